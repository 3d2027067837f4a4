"""An experiment without its data has a section that says so, and no figure."""

from __future__ import annotations

from pathlib import Path

import pytest

from experiments import not_run
from reports.__main__ import main
from reproductions.inputs import CorruptInputError
from reproductions.not_run import read_notes


def test_the_page_marks_what_could_not_run_for_want_of_data(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    runs, out = tmp_path / "runs", tmp_path / "out"
    not_run.note(runs, "version_ladder", "locomo", "LoCoMo")
    assert main(["--runs", str(runs), "--out", str(out)]) == 0
    said = "Not run here: no data (LoCoMo was not found)."
    assert said in capsys.readouterr().out
    page = (out / "index.html").read_text()
    [section] = [part for part in page.split("<section ") if said in part]
    assert section.startswith('id="version-ladder-locomo"')
    assert "experiment=version_ladder data=locomo" in section


def test_a_note_that_is_none_is_named(tmp_path: Path) -> None:
    place = tmp_path / "retrieval" / "locomo.not-run.json"
    place.parent.mkdir()
    place.write_text('{"experiment": 3}')
    with pytest.raises(CorruptInputError, match=r"locomo\.not-run\.json"):
        read_notes(tmp_path)

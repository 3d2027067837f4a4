"""`python -m reports compare`: what changed between two runs, and nothing where nothing did."""

from __future__ import annotations

import csv
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from reports.__main__ import main
from tests.harness.sample_runs import figure, write_run
from tests.harness.test_reports_page import HOSTILE, Page

ONE, OTHER = "0" * 16, "1" * 16
TABLE = [{"k": "1", "v": "x"}, {"k": "2", "v": "y"}]


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    write(tmp_path, ONE)
    return tmp_path


def write(root: Path, run_id: str, **changes: Any) -> None:
    given: dict[str, Any] = {
        "figures": {"a.recall": figure(0.40, "share", 60, (0.35, 0.45))},
        "tables": {"rows.csv": TABLE},
        "notes": ["As it was."],
        "data_set": "generated",
        "machine": {"packages": {"numpy": "2.4.6"}, "figures": {"a.seconds": figure(1.5, "s", 1)}},
    }
    write_run(root, "retrieval", run_id=run_id, **(given | changes))


def compared(runs: Path, *more: str) -> tuple[int, list[dict[str, str]]]:
    """Return the exit status and the rows of the CSV."""
    place = runs / "changed.csv"
    place.unlink(missing_ok=True)
    status = main(["compare", ONE, OTHER, "--runs", str(runs), "--csv", str(place), *more])
    if not place.exists():
        return status, []
    with place.open(newline="") as file:
        return status, list(csv.DictReader(file))


def test_runs_that_say_the_same_are_status_zero(
    runs: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(runs, OTHER)
    assert compared(runs) == (0, [])
    assert "the runs say the same" in capsys.readouterr().out


def test_every_kind_of_change_is_listed(runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(
        runs,
        OTHER,
        figures={
            "a.recall": figure(0.60, "share", 60, (0.55, 0.65)),
            "a.new": figure(3, "count", 3),
        },
        tables={"rows.csv": TABLE[:1]},
        notes=["As it is."],
        data_set="locomo",
        source_digest="cd" * 32,
        machine={"packages": {"numpy": "2.5.0"}, "figures": {"a.seconds": figure(3.5, "s", 1)}},
    )
    status, rows = compared(runs)
    assert status == 1
    told = {(row["Part"], row["Name"]): row for row in rows}
    assert told["settings", "data.name"]["B"] == "locomo"
    assert (told["versions", "numpy"]["A"], told["versions", "numpy"]["B"]) == ("2.4.6", "2.5.0")
    assert told["versions", "sources"]
    recall = told["figures", "a.recall"]
    assert (recall["B minus A"], recall["Intervals"]) == ("+0.2", "apart")
    assert recall["A"] == "0.4000 [0.3500, 0.4500] share, n=60"
    assert told["figures", "a.new"]["A"] == ""
    assert (told["rows of tables", "rows.csv"]["A"], told["rows of tables", "rows.csv"]["B"]) == (
        "2", "1",
    )  # fmt: skip
    assert {row["A"] + row["B"] for row in rows if row["Part"] == "notes"} == {
        "As it was.", "As it is.",
    }  # fmt: skip
    assert told["of the moment", "a.seconds"]["B minus A"] == "+2"
    assert "the runs differ in" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("low", "high", "word"), [(0.45, 0.6, "overlap"), (0.451, 0.6, "apart"), (0.1, 0.9, "overlap")]
)
def test_intervals_overlap_or_lie_apart(runs: Path, low: float, high: float, word: str) -> None:
    write(runs, OTHER, figures={"a.recall": figure(0.5, "share", 60, (low, high))})
    status, [row] = compared(runs)
    assert (status, row["Intervals"]) == (1, word)


def test_what_is_of_the_moment_is_told_and_does_not_count(runs: Path) -> None:
    write(
        runs,
        OTHER,
        machine={"packages": {"numpy": "2.4.6"}, "figures": {"a.seconds": figure(9, "s", 1)}},
    )
    status, [row] = compared(runs)
    assert (status, row["Part"]) == (0, "of the moment")


def test_the_html_is_quiet_and_escapes_what_runs_say(runs: Path) -> None:
    write(runs, OTHER, notes=[HOSTILE])
    place = runs / "changed.html"
    compared(runs, "--html", str(place))
    text = place.read_text()
    page = Page(text)
    assert HOSTILE not in text
    assert len(list(page.all("script"))) == 1
    assert not list(page.all("img"))
    assert any("Content-Security-Policy" in each.values() for each in page.all("meta"))


@pytest.mark.parametrize("name", ["zzz", "", "../x", "0" * 17])
def test_a_run_that_is_none_is_status_two(
    runs: Path, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["compare", ONE, name, "--runs", str(runs)]) == 2
    assert "no run folder" in capsys.readouterr().err


def test_an_id_is_taken_by_its_beginning_only_where_that_names_one_run(
    runs: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(runs, "0" * 8 + "1" * 8)
    assert main(["compare", "000", "00000000111", "--runs", str(runs)]) == 2
    assert "names 2 runs" in capsys.readouterr().err
    assert main(["compare", "0000000000", "000000001", "--runs", str(runs)]) == 0
    folder = str(runs / "retrieval" / ONE)
    assert main(["compare", folder, "000000001", "--runs", str(runs)]) == 0


def test_a_changed_table_is_refused(runs: Path) -> None:
    write(runs, OTHER)
    place = runs / "retrieval" / OTHER / "result.json"
    result = json.loads(place.read_text()) | {"table_digests": {"rows.csv": "0" * 64}}
    place.write_text(json.dumps(result))
    assert main(["compare", ONE, OTHER, "--runs", str(runs)]) == 2


def test_the_command_explains_itself() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "reports", "compare", "--help"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0
    assert "exit status: 0 the runs say the same, 1 they differ" in done.stdout

"""The schemas of the harness's files are those of its models, and hold real output to its form."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from jsonschema import Draft202012Validator

from experiments import running
from experiments.failures import RunFailedError
from experiments.overrides import composed
from reports.__main__ import report
from reports.unchanged import made_of
from reproductions.__main__ import main
from reproductions.claims import CLAIMS_FILE
from reproductions.schemas import __main__ as command
from reproductions.schemas import making
from reproductions.schemas.making import DIALECT, MODELS, committed, first_problem, outdated
from tests.harness.staged_runs import tree_of, write_staged


def problems(name: str, path: Path) -> list[str]:
    text = path.read_text(encoding="utf-8")
    content = yaml.safe_load(text) if path.suffix == ".yaml" else json.loads(text)
    return list(first_problem(name, content))


def test_the_committed_schemas_are_those_of_the_models() -> None:
    assert outdated() == [], "run: python -m reproductions.schemas"
    for name in MODELS:
        assert committed(name)["$schema"] == DIALECT
        Draft202012Validator.check_schema(committed(name))
    assert len({committed(name)["$id"] for name in MODELS}) == len(MODELS)


def test_what_the_harness_writes_fits_its_schemas(tmp_path: Path) -> None:
    runs = tmp_path / "runs"
    place = running.run(composed(["experiment=graph_fixture", f"paths.runs={runs}"])).place
    assert problems("result", place / "result.json") == []
    assert problems("machine", place / "machine.json") == []
    assert main(["--runs", str(runs)]) == 0
    assert problems("judged_claims", runs / "claims.json") == []
    report(runs, tmp_path / "out", made_of(runs))
    assert problems("figures", tmp_path / "out" / "figures.json") == []
    assert problems("claims", CLAIMS_FILE) == []


def test_a_failed_run_fits_too(tmp_path: Path) -> None:
    with pytest.raises(RunFailedError):
        running.run(composed(["experiment=stage150", f"paths.runs={tmp_path}"]))
    [place] = (tmp_path / "stage150").iterdir()
    assert problems("result", place / "result.json") == []
    assert problems("machine", place / "machine.json") == []


@pytest.mark.parametrize(
    ("name", "spoil"),
    [
        ("result", {"status": "fine"}),
        ("result", {"run_id": "x"}),
        ("result", {"more": 1}),
        ("result", {"figures": {"a": {"value": "5", "unit": "x", "n": 1}}}),
        ("result", {"figures": {"a": {"value": 5, "unit": "x", "n": 1, "interval": None}}}),
        ("machine", {"host": "build7"}),
        ("machine", {"seconds": "1"}),
    ],
)
def test_what_nobody_writes_does_not_fit(name: str, spoil: dict[str, Any]) -> None:
    formats = Path(__file__).resolve().parents[1] / "fixtures" / "formats"
    [path] = formats.glob(f"v0_2/results/*/*/{name}.json")
    content = json.loads(path.read_text())
    assert list(first_problem(name, content)) == []
    assert list(first_problem(name, content | spoil))


def test_every_kind_of_file_in_the_tree_has_a_schema_that_it_fits(tmp_path: Path) -> None:
    write_staged(tmp_path)
    files = {path: json.loads(data) for path, data in tree_of(tmp_path).files.items()}
    kinds = {content["kind"] for content in files.values() if "kind" in content}
    assert {f"stage150/{kind}" for kind in kinds} == {
        name for name in MODELS if name.startswith("stage150/")
    }
    for content in files.values():
        if "kind" in content:
            assert list(first_problem(f"stage150/{content['kind']}", content)) == []
            assert list(first_problem(f"stage150/{content['kind']}", content | {"more": 1}))


def test_the_command_names_what_is_old_and_writes_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(making, "FOLDER", tmp_path)
    monkeypatch.setattr(making, "MODELS", {"figures": MODELS["figures"]})
    monkeypatch.setattr(command, "MODELS", making.MODELS)
    assert command.main(["--check"]) == 1
    assert "not up to date: figures" in capsys.readouterr().out
    assert command.main([]) == 0
    assert command.main(["--check"]) == 0
    (tmp_path / "figures.json").write_text("{}")
    assert command.main(["--check"]) == 1

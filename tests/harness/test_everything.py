"""All experiments in turn: what is finished costs no process, a failure stops nothing else."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from experiments import everything
from experiments.dispatch import EXPERIMENTS
from experiments.overrides import composed, problems
from experiments.running import known, run

TINY = [
    "experiment=retrieval",
    "data=generated",
    "data.generated.conversations=1",
    "data.generated.turns=40",
    "data.generated.questions=4",
    "evaluation.resamples=50",
]


def test_every_experiment_is_on_the_list_and_every_request_is_right() -> None:
    asked = everything.requests()
    assert [problems(each) for each in asked] == [[] for _ in asked]
    assert {composed(each).experiment for each in asked} == set(EXPERIMENTS)
    assert composed(asked[-1]).experiment == "stage150"  # it reads the others


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """Let three requests stand on the list; the processes that they would be are recorded."""
    started: list[list[str]] = []

    def process(overrides: list[str]) -> int:
        started.append(overrides)
        return 1 if "seed=6" in overrides else 0

    monkeypatch.setattr(everything, "requests", lambda: [[*TINY, f"seed={n}"] for n in (5, 6, 7)])
    monkeypatch.setattr(everything, "_process", process)
    return started


def test_only_what_is_not_finished_runs(
    asked: list[list[str]], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    here = f"paths.runs={tmp_path}"
    run(composed([*TINY, "seed=5", here]))
    assert everything.main([here]) == 1
    assert [each[-2] for each in asked] == ["seed=6", "seed=7"]
    said = capsys.readouterr()
    assert f"already done: {tmp_path}" in said.out
    assert said.err.splitlines()[-1] == f"failed: {' '.join(TINY)} seed=6"
    assert not (tmp_path / everything.SECONDS).exists()


def test_what_was_changed_runs_again(asked: list[list[str]], tmp_path: Path) -> None:
    settings = composed([*TINY, "seed=5", f"paths.runs={tmp_path}"])
    run(settings)
    result = known(settings).identity.place(tmp_path) / "result.json"
    result.write_text(result.read_text().replace('"ok"', '"OK"'))
    everything.main([f"paths.runs={tmp_path}"])
    assert [each[-2] for each in asked] == ["seed=5", "seed=6", "seed=7"]


def test_the_time_of_a_whole_first_run_is_kept(
    asked: list[list[str]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(everything, "requests", lambda: [[*TINY, "seed=5"]])
    assert everything.main([f"paths.runs={tmp_path}"]) == 0
    kept = json.loads((tmp_path / everything.SECONDS).read_text())["figures"]
    assert kept["reproduce.seconds"]["unit"] == "s"
    assert kept["reproduce.seconds"]["n"] == 1

"""Grids of runs: launchers beyond one process, cells that failed or are missing, resuming."""

from __future__ import annotations

import importlib.util
import json
import shutil
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest

from experiments import grid
from experiments.overrides import composed
from experiments.running import run

TINY = [
    "experiment=retrieval",
    "data=generated",
    "data.generated.conversations=1",
    "data.generated.turns=40",
    "data.generated.questions=4",
    "evaluation.analysers=[unicode]",
    "evaluation.scorers=[overlap]",
    "evaluation.resamples=50",
]


def launched(launcher: str, runs: Path, *more: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "experiments", "-m", f"hydra/launcher={launcher}", *TINY,
         f"paths.runs={runs}", *more],
        capture_output=True, text=True, check=False,
    )  # fmt: skip


def table(runs: Path) -> pd.DataFrame:
    [place] = (runs / "grids").glob("*.csv")
    return pd.read_csv(place)


def written(runs: Path) -> dict[str, str]:
    return {
        str(path.relative_to(runs)): path.read_text()
        for path in runs.glob("retrieval/*/result.json")
    }


@pytest.mark.parametrize(
    "launcher",
    [
        "joblib",
        pytest.param(
            "ray",
            marks=pytest.mark.skipif(
                importlib.util.find_spec("hydra_plugins.hydra_ray_launcher") is None,
                reason="the extra `ray` is not installed",
            ),
        ),
    ],
)
def test_a_launcher_runs_the_grid_and_names_what_is_not_done(launcher: str, tmp_path: Path) -> None:
    done = launched(launcher, tmp_path / "runs", "seed=5,-1")
    assert done.returncode == 1, done.stderr
    assert "grid: 1 of 2 cells done" in done.stderr
    assert "refused: seed=-1 (seed=-1 is out of range" in done.stderr
    found = table(tmp_path / "runs")
    assert set(zip(found["seed"], found["status"], strict=True)) == {(5, "done"), (-1, "refused")}
    assert "generated.recall10.overlap" in set(found["figure"])
    here = tmp_path / "here"
    run(composed([*TINY, f"paths.runs={here}", "seed=5"]))
    assert written(tmp_path / "runs") == written(here)  # wherever a job runs, it finds the same


def test_what_is_missing_is_told_and_only_that_runs_again(tmp_path: Path) -> None:
    asked = [*TINY, f"paths.runs={tmp_path}", "seed=5,6"]
    for seed in (5, 6):
        run(composed([*TINY, f"paths.runs={tmp_path}", f"seed={seed}"]))
    whole = grid.collect(asked)
    assert whole.complete
    assert [cell.varied for cell in whole.cells] == [{"seed": "5"}, {"seed": "6"}]
    gone = tmp_path / "retrieval" / whole.cells[1].run_id
    shutil.rmtree(gone)
    left = grid.collect(asked)
    assert [cell.status for cell in left.cells] == [grid.DONE, grid.MISSING]
    assert left.told() == ["grid: 1 of 2 cells done", "  missing: seed=6"]
    kept = (tmp_path / "retrieval" / whole.cells[0].run_id / "machine.json").read_bytes()
    for seed in (5, 6):
        run(composed([*TINY, f"paths.runs={tmp_path}", f"seed={seed}"]))
    assert grid.collect(asked).complete
    first = tmp_path / "retrieval" / whole.cells[0].run_id
    assert (first / "machine.json").read_bytes() == kept  # its times: it did not run again


def test_a_failed_cell_says_why_and_has_a_line(tmp_path: Path) -> None:
    asked = [*TINY, f"paths.runs={tmp_path}"]
    run(composed(asked))
    [cell] = grid.collect(asked).cells
    place = tmp_path / "retrieval" / cell.run_id / "result.json"
    result = json.loads(place.read_text())
    place.write_text(json.dumps(result | {"status": "failed", "error": {"message": "no room"}}))
    failed = grid.collect(asked)
    assert failed.told() == ["grid: 0 of 1 cells done", "  failed:  (no room)"]
    assert list(failed.table()["status"]) == ["failed"]

"""`python -m experiments` in child processes: exit statuses, messages, and what was written."""

import json
import os
import re
import subprocess
import sys

import pytest

from experiments import not_run
from experiments.runs import ROOT
from reproductions.not_run import read_notes

TINY = [
    "data.generated.conversations=1",
    "data.generated.sessions=2",
    "data.generated.turns=24",
    "data.generated.questions=6",
    "evaluation.resamples=50",
    "evaluation.analysers=[unicode]",
    "evaluation.scorers=[overlap]",
]


@pytest.fixture
def command(tmp_path):
    """Run the command in an empty folder; everything that it writes is seen there."""

    def command(*arguments, environment=None):
        varied = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(("CMA_", "HYDRA_", "PYTEST_"))
        }
        return subprocess.run(
            [sys.executable, "-m", "experiments", *arguments],
            cwd=tmp_path,
            env={**varied, "PYTHONPATH": str(ROOT), "CMA_CACHE_DIR": str(tmp_path / "no-cache"),
                 **(environment or {})},
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )  # fmt: skip

    return command


def written(tmp_path):
    return sorted(path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*"))


def results(tmp_path):
    return [json.loads(path.read_bytes()) for path in sorted(tmp_path.rglob("result.json"))]


def test_an_experiment_writes_its_run_directory_and_nothing_else_and_resumes(command, tmp_path):
    first = command("experiment=retrieval", "data=generated", *TINY)
    assert first.returncode == 0, first.stderr
    assert first.stdout.splitlines()[-1].startswith("done: runs/retrieval/")
    (result,) = results(tmp_path)
    place = f"runs/retrieval/{result['run_id']}"
    everything = written(tmp_path)
    assert all(path in ("runs", "runs/retrieval") or path.startswith(place) for path in everything)
    second = command("experiment=retrieval", "data=generated", *TINY)
    assert second.returncode == 0
    found, said = second.stdout.splitlines()
    assert said == f"already done: {place}; resume=false to run anew"
    assert found in first.stdout.splitlines()
    assert re.fullmatch(
        r"recall@10 on generated: hand_set unicode [01]\.\d{3} \[.*\]; "
        r"best bm25s \(unicode\) [01]\.\d{3} \[.*\]",
        found,
    )
    assert written(tmp_path) == everything


def test_without_data_nothing_else_is_run_in_its_place(command, tmp_path):
    done = command("experiment=retrieval", "data.download=false", *TINY)
    assert done.returncode == 2, done.stderr
    assert "error: LoCoMo was not found" in done.stderr
    assert "data=generated" in done.stderr
    assert written(tmp_path) == []


def test_without_data_a_run_that_may_be_skipped_is_and_leaves_a_note(command, tmp_path):
    """As `make reproduce` asks: it must finish without data, and the page must say so."""
    done = command("experiment=retrieval", "data.download=false", "data.missing=skip", *TINY)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "not run here: no data for retrieval (LoCoMo was not found)\n"
    note = "runs/retrieval/locomo.not-run.json"
    assert written(tmp_path) == ["runs", "runs/retrieval", note]
    root = tmp_path / "runs"
    assert read_notes(root) == {("retrieval", "locomo"): "LoCoMo"}
    not_run.clear(root, "retrieval", "locomo")
    assert read_notes(root) == {}
    done = command("experiment=retrieval", "data.missing=guess", *TINY)
    assert done.returncode == 2
    assert "refuse, skip" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["experiment=retreival"], "did you mean experiment=retrieval?"),
        (["experiment=retrieval", "seed=many"], "seed"),
        ([], "experiment"),
        (
            ["experiment=retrieval", "evaluation.peer_k1=nan"],
            "error: evaluation.peer_k1=nan is out of",
        ),
        (
            ["experiment=retrieval", "evaluation.analysers=[zz]"],
            "are: unicode, english, dialogue\n",
        ),
        (["experiment=retrieval", "data.path=nowhere"], "data.path=nowhere does not exist"),
        (["experiment=retrieval", "seed=1,2"], "seed=1,2 gives several values; a grid of them"),
    ],
)
def test_wrong_request_ends_with_status_2_a_clear_word_and_nothing_written(
    command, tmp_path, arguments, words
):
    done = command(*arguments)
    assert done.returncode == 2
    assert words in done.stderr
    assert "Traceback" not in done.stderr
    assert written(tmp_path) == []


@pytest.mark.parametrize("more", [[], ["-m"]])
@pytest.mark.parametrize("place", ["/proc/x", "taken", "taken/below"])
def test_a_place_that_takes_no_runs_is_one_line_and_status_2(command, tmp_path, more, place):
    (tmp_path / "taken").write_text("a file")
    done = command(*more, "experiment=contract_tally", f"paths.runs={place}")
    assert done.returncode == 2
    assert done.stderr.startswith(f"error: nothing can be written to {place} (")
    assert done.stderr.count("\n") == 1
    assert "paths.runs=FOLDER" in done.stderr
    assert written(tmp_path) == ["taken"]


def test_other_bytes_in_the_data_folder_end_with_status_2(command, tmp_path):
    (tmp_path / "data/locomo").mkdir(parents=True)
    (tmp_path / "data/locomo/locomo10.json").write_text("[]")
    done = command("experiment=retrieval", environment={"CMA_DATA_DIR": str(tmp_path / "data")})
    assert done.returncode == 2
    assert "is not the pinned version" in done.stderr
    assert not (tmp_path / "runs").exists()


def test_failed_run_ends_with_status_1_and_is_on_record(command, tmp_path):
    done = command("experiment=contract_tally", "tally.suite=tests/benchmarks/__init__.py")
    assert done.returncode == 1
    assert "contract_tally failed" in done.stderr
    assert "Traceback" not in done.stderr
    (result,) = results(tmp_path)
    assert result["status"] == "failed"
    assert result["error"]["type"] == "ExperimentError"


def test_multirun_goes_on_past_a_failed_job_and_ends_with_status_1(command, tmp_path):
    done = command("-m", "experiment=retrieval", "data=generated", *TINY, "seed=-1,5,6")
    assert done.returncode == 1
    assert "seed=-1 is out of range" in done.stderr
    assert "Traceback" not in done.stderr
    assert "grid: 2 of 3 cells done" in done.stderr
    assert "refused: seed=-1 (seed=-1 is out of range" in done.stderr
    assert sorted((each["seed"], each["status"]) for each in results(tmp_path)) == [
        (5, "ok"), (6, "ok"),
    ]  # fmt: skip
    assert len({each["run_id"] for each in results(tmp_path)}) == 2


def test_help_teaches_by_example(command, tmp_path):
    done = command("--help")
    assert done.returncode == 0
    assert "python -m experiments experiment=retrieval data=generated" in done.stdout
    assert "evaluation.resamples=2000" in done.stdout
    assert written(tmp_path) == []

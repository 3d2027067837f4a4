"""The run directory: whole or absent, reused only when it is the same run and intact."""

import json
import logging
import os
from dataclasses import replace

import pandas as pd
import pytest

from experiments import dispatch, running, runs
from experiments.disclosure import scrub
from experiments.dispatch import Experiment
from experiments.failures import DataError, RunFailedError, UsageError
from experiments.overrides import composed
from experiments.result import Figure, Result
from reproductions.inputs import CorruptInputError
from reproductions.results import read_run

TINY = [
    "experiment=retrieval",
    "data=generated",
    "data.generated.conversations=1",
    "data.generated.sessions=2",
    "data.generated.turns=24",
    "data.generated.questions=6",
    "evaluation.resamples=50",
    "evaluation.analysers=[unicode]",
    "evaluation.scorers=[overlap]",
]


@pytest.fixture
def settings(tmp_path):
    return composed([*TINY, f"paths.runs={tmp_path / 'runs'}"])


@pytest.fixture
def stand_in(monkeypatch):
    """Put another function in the place of `retrieval`."""

    def put(function):
        monkeypatch.setitem(
            dispatch.EXPERIMENTS,
            "retrieval",
            Experiment(("data", "store"), True, lambda _: None, lambda *_: function()),
        )

    return put


def contents(place):
    return {path.name: path.read_bytes() for path in place.iterdir() if path.is_file()}


def test_run_directory_holds_what_is_promised(settings, tmp_path):
    outcome = running.run(settings, ["experiment=retrieval", f"paths.runs={tmp_path}"])
    assert not outcome.reused
    found = json.loads((outcome.place / "result.json").read_bytes())
    assert outcome.place == tmp_path / "runs/retrieval" / found["run_id"]
    assert found["format"] == "cma.result/1"
    assert (found["status"], found["error"], found["experiment"]) == ("ok", None, "retrieval")
    assert found["tables"] == ["differences.csv", "evidence_problems.csv", "recall.csv"]
    assert {path.name for path in outcome.place.iterdir()} == {
        "config.yaml", "result.json", "machine.json", "log.txt", *found["tables"],
    }  # fmt: skip
    machine = json.loads((outcome.place / "machine.json").read_bytes())
    assert {"started_at", "finished_at", "seconds", "python", "packages", "platform", "cpu_count",
            "device", "git_revision", "git_dirty"} <= set(machine)  # fmt: skip
    assert machine["overrides"] == ["experiment=retrieval"]


def test_run_directory_discloses_nothing_of_the_machine(settings, tmp_path):
    place = running.run(settings).place
    everything = b"".join(contents(place).values()).decode()
    for secret in (str(tmp_path), str(runs.ROOT), os.environ.get("HOME", "/root") + "/"):
        assert secret not in everything


def test_finished_run_is_reused_and_is_the_same_made_anew(settings, tmp_path):
    first = running.run(settings)
    before = contents(first.place)
    again = running.run(settings)
    assert again.reused
    assert again.place == first.place
    assert contents(first.place) == before
    anew = running.run(replace(settings, resume=False))
    assert not anew.reused
    after = contents(anew.place)
    varying = {"machine.json", "log.txt"}
    assert {name: text for name, text in after.items() if name not in varying} == {
        name: text for name, text in before.items() if name not in varying
    }
    assert [path.name for path in first.place.parent.iterdir()] == [first.place.name]


@pytest.mark.parametrize(
    "spoil",
    [
        lambda place: (place / "recall.csv").unlink(),
        lambda place: (place / "recall.csv").write_text("data,value\n"),
        lambda place: (place / "result.json").write_text("{"),
        lambda place: (place / "result.json").unlink(),
        lambda place: (place / "result.json").write_text(
            (place / "result.json").read_text().replace('"ok"', '"failed"')
        ),
    ],
    ids=["table gone", "table changed", "result torn", "result gone", "failed"],
)
def test_run_that_is_not_whole_is_run_again(settings, spoil):
    place = running.run(settings).place
    before = contents(place)["recall.csv"]
    spoil(place)
    assert not running.run(settings).reused
    assert contents(place)["recall.csv"] == before


@pytest.mark.parametrize(
    "change",
    [
        "seed=1",
        "evaluation.resamples=51",
        "retrieval.coefficients.link=0.2",
        "data.generated.seed=5",
        "data.generated.questions=5",
    ],
)
def test_other_settings_are_another_run(settings, change, tmp_path):
    other = composed([*TINY, f"paths.runs={tmp_path / 'runs'}", change])
    assert identity(other).run_id != identity(settings).run_id


@pytest.mark.parametrize(
    "change", ["resume=false", "paths.runs=elsewhere", "data.download=false", "tally.suite=tests"]
)
def test_settings_that_change_no_result_are_the_same_run(settings, change):
    assert identity(composed([*TINY, change])).run_id == identity(settings).run_id


def test_other_sources_are_another_run(settings, tmp_path):
    (tmp_path / "cma").mkdir()
    (tmp_path / "cma/one.py").write_text("a = 1\n")
    first = runs.source_digest(tmp_path)
    (tmp_path / "cma/one.py").write_text("a = 2\n")
    second = runs.source_digest(tmp_path)
    (tmp_path / "cma/one.py").rename(tmp_path / "cma/two.py")
    third = runs.source_digest(tmp_path)
    assert len({first, second, third}) == 3
    assert (
        replace(identity(settings), source_digest=first).run_id
        != replace(identity(settings), source_digest=second).run_id
    )


def identity(settings):
    sections = dispatch.lookup(settings.experiment).sections
    config = running.resolved(settings, sections)
    return runs.Identity(settings.experiment, config, settings.seed, "0" * 64)


def test_failed_experiment_leaves_a_failed_run_and_raises(settings, stand_in):
    def fail():
        raise OSError(f"no space left in {runs.ROOT}/runs/x")

    stand_in(fail)
    with pytest.raises(RunFailedError, match="no space left"):
        running.run(settings)
    (place,) = (path for path in runs_of(settings) if path.is_dir())
    found = json.loads((place / "result.json").read_bytes())
    assert found["status"] == "failed"
    assert found["error"] == {"type": "OSError", "message": "no space left in ./runs/x"}
    assert found["figures"] == {}
    assert found["tables"] == []
    assert "Traceback" in (place / "log.txt").read_text()
    assert str(runs.ROOT) not in (place / "log.txt").read_text()


def test_failed_run_is_tried_again_and_replaced(settings, stand_in):
    worked = []

    def once_broken():
        if not worked:
            worked.append(1)
            raise ValueError("not yet")
        table = pd.DataFrame({"value": [1 / 3]})
        return Result(figures={"a.b": Figure(1 / 3, "share", 3)}, tables={"t": table})

    stand_in(once_broken)
    with pytest.raises(RunFailedError):
        running.run(settings)
    outcome = running.run(settings)
    assert not outcome.reused
    assert [path.name for path in runs_of(settings)] == [outcome.place.name]
    assert (outcome.place / "t.csv").read_text() == "value\n0.333333\n"
    found = json.loads((outcome.place / "result.json").read_bytes())
    assert found["figures"] == {"a.b": {"value": 0.333333, "unit": "share", "n": 3}}


def test_interrupted_run_leaves_nothing(settings, stand_in):
    def interrupt():
        raise KeyboardInterrupt

    stand_in(interrupt)
    with pytest.raises(KeyboardInterrupt):
        running.run(settings)
    assert list(runs_of(settings)) == []


def test_figure_that_is_no_number_fails_the_run(settings, stand_in):
    stand_in(lambda: Result(figures={"a.b": Figure(float("nan"), "share", 3)}))
    with pytest.raises(RunFailedError):
        running.run(settings)
    (place,) = runs_of(settings)
    assert json.loads((place / "result.json").read_bytes())["status"] == "failed"


@pytest.mark.parametrize(
    ("change", "error"),
    [
        ({"experiment": "retrival"}, UsageError),
        ({"seed": -1}, UsageError),
    ],
)
def test_wrong_request_writes_nothing(settings, tmp_path, change, error):
    with pytest.raises(error):
        running.run(replace(settings, **change))
    assert not (tmp_path / "runs").exists()


def test_wrong_data_path_writes_nothing(tmp_path):
    asked = ["experiment=retrieval", "data=locomo", f"data.path={tmp_path / 'nowhere'}"]
    with pytest.raises(DataError, match="does not exist"):
        running.run(composed([*asked, f"paths.runs={tmp_path / 'runs'}"]))
    assert not (tmp_path / "runs").exists()


def test_logging_is_left_as_it_was(settings):
    before = (logging.getLogger("experiments").level, logging.getLogger("experiments").handlers[:])
    running.run(settings)
    after = (logging.getLogger("experiments").level, logging.getLogger("experiments").handlers[:])
    assert after == before


def test_scrubbing_keeps_what_is_no_path(tmp_path):
    root = tmp_path / "checkout"
    assert scrub(f"{root}/a.py and {root}", root) == "./a.py and ."
    assert scrub("read /srv/data/secret/file.json now", root) == "read .../file.json now"
    assert scrub("1/2 of https://example.org/a/b and D8:6/3", root) == (
        "1/2 of https://example.org/a/b and D8:6/3"
    )


def test_a_changed_figure_is_not_reused_and_not_read(settings, caplog):
    place = running.run(settings).place
    file = place / "result.json"
    before = file.read_bytes()
    assert read_run(place).result.figures  # both sides compute one digest
    content = json.loads(before)
    next(iter(content["figures"].values()))["value"] = 1
    file.write_text(json.dumps(content))
    with pytest.raises(CorruptInputError, match="changed after the run"):
        read_run(place)
    assert not running.run(settings).reused
    assert f"{file} was changed after its run, so it runs again" in caplog.text
    assert file.read_bytes() == before


def test_a_result_from_before_there_were_digests_is_still_a_run(settings, caplog):
    place = running.run(settings).place
    content = json.loads((place / "result.json").read_bytes())
    del content["result_digest"]
    (place / "result.json").write_text(json.dumps(content))
    assert read_run(place).result.status == "ok"
    assert running.run(settings).reused
    assert "WARNING" not in caplog.text


def test_a_result_too_deep_to_read_is_run_again(settings):
    place = running.run(settings).place
    (place / "result.json").write_text("[" * 100_000)
    assert not running.run(settings).reused


def test_an_error_that_utf8_cannot_hold_is_on_record(settings, stand_in):
    def fail():
        raise OSError("no file \ud800")

    stand_in(fail)
    with pytest.raises(RunFailedError):
        running.run(settings)
    (place,) = runs_of(settings)
    found = json.loads((place / "result.json").read_bytes())
    assert found["error"]["message"] == "no file \\ud800"


def runs_of(settings):
    from pathlib import Path

    return Path(settings.paths.runs, "retrieval").iterdir()

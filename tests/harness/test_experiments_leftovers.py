"""What a killed run leaves: removed a day later, never while a run is at work."""

import os
import time

from experiments import leftovers, running, runs
from experiments.overrides import composed
from tests.harness.test_experiments_runs import TINY


def left(folder, name, *, days):
    """Make what a killed run leaves, last changed so many days ago."""
    path = folder / name
    (path / "run").mkdir(parents=True)
    (path / "run" / "log.txt").write_text("x")
    then = time.time() - days * 86_400
    for each in (path / "run" / "log.txt", path / "run", path):
        os.utime(each, (then, then))
    return path


def test_old_leftovers_of_killed_runs_go_at_the_next_start(tmp_path, caplog):
    settings = composed([*TINY, f"paths.runs={tmp_path / 'runs'}"])
    folder = tmp_path / "runs" / "retrieval"
    old = left(folder, f".{'a' * 16}-x1_y2", days=2)
    kept = [
        left(folder, f".{'b' * 16}-recent", days=0.5),
        left(folder, ".mine-notes", days=2),
        left(folder, "c" * 16, days=2),
    ]
    busy = left(folder, f".{'d' * 16}-busy", days=2)
    written = left(folder, f".{'e' * 16}-written", days=2)
    (written / "run" / "log.txt").write_text("still at work")
    with leftovers.locked(busy) as held:
        assert held
        running.run(settings)
    assert not old.exists()
    assert old.name in caplog.text
    assert all(path.is_dir() for path in (*kept, busy, written))


def test_an_earlier_run_moved_aside_by_a_killed_one_is_put_back(tmp_path):
    aside = left(tmp_path, f".{'a' * 16}-old-x1", days=2)
    assert leftovers.remove(tmp_path) == [aside.name]
    assert (tmp_path / ("a" * 16) / "log.txt").read_text() == "x"
    again = left(tmp_path, f".{'a' * 16}-old-x2", days=2)
    leftovers.remove(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["a" * 16]
    assert not again.exists()


def test_a_run_at_work_holds_its_lock(tmp_path):
    place = tmp_path / ("a" * 16)
    with runs.prepared(place) as folder:
        with leftovers.locked(folder) as free:
            assert not free
        then = time.time() - 2 * 86_400
        os.utime(folder, (then, then))
        assert leftovers.remove(tmp_path) == []
    assert place.is_dir()

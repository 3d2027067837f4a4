"""SIGKILL: what was acknowledged is there, what was not is there whole or not at all."""

from __future__ import annotations

import os
import shutil
import signal
from pathlib import Path

import pytest

from cma import CmaError, Memory
from experiments.crashing import killing, script
from experiments.crashing.calls import Fate
from experiments.crashing.judging import Verdict, left
from experiments.crashing.nursery import Order
from experiments.crashing.scratch import scratch
from experiments.failures import ExperimentError
from tests.faults.injection import child, copied

CYCLES = int(os.environ.get("CMA_KILL_CYCLES", "6"))


@pytest.mark.parametrize(
    ("point", "in_flight"),
    [
        ("before-commit", False),
        ("after-commit", True),
        ("torn-anchor", True),
        ("before-anchor-sync", True),
    ],
)
def test_killed_at_a_named_point_the_store_is_whole(
    path: Path, tmp_path: Path, point: str, in_flight: bool
) -> None:
    process = child("killed", path, point)
    out, _ = process.communicate("go\n", timeout=60)
    assert process.returncode == -signal.SIGKILL
    acknowledged = out.split()[1:]
    assert len(acknowledged) == 3
    with Memory.open(copied(path, tmp_path / "copy")) as memory:
        verified = memory.verify()
        assert verified.cells == 3 + in_flight
        assert verified.tail_pinned
        for cell_id in acknowledged:
            assert memory.get(cell_id).content.startswith("acknowledged")
        assert len(memory.recall("in flight").hits) == in_flight
    with Memory.open(path) as memory:  # and with the files where they were, it goes on
        memory.write("after", kind="episodic", origin="test", observed_at="2026-03-01T12:00:00Z")
        assert memory.verify().cells == 4 + in_flight


@pytest.mark.parametrize("synchronous", ["FULL", "OFF"])
def test_killed_at_any_moment_nothing_acknowledged_is_lost(synchronous: str) -> None:
    """A kill leaves what the system was given: without a single sync nothing is lost either."""
    with scratch() as place:
        (place / "clean").mkdir()
        reference = script.reference(place / "clean")
        with killing.nursery(place / "nursery") as process:
            tally = killing.cycles(
                process,
                reference,
                place,
                count=CYCLES,
                seed="11",
                synchronous=synchronous,
                advance=lambda _: None,
            )
    assert {verdict for _, verdict in tally.verdicts} == {Verdict.WHOLE}
    assert tally.verdicts.total() == CYCLES
    assert len(tally.verdicts) > 1


def test_a_writer_that_fails_of_itself_is_no_kill() -> None:
    with scratch() as place, killing.nursery(place / "nursery") as process:
        order = Order(str(place / "no such folder"), 0, dies_at=1000)
        with pytest.raises(ExperimentError, match="a writer failed: StoreRefusedError"):
            killing.life(process, order, 0)


@pytest.mark.parametrize("fate", [Fate.KILL, Fate.TEAR])
def test_killed_at_each_call_of_one_step_it_is_done_or_not(fate: Fate) -> None:
    """Goes through the calls one after another, until the writer outlives the step."""
    with scratch() as place:
        (place / "clean").mkdir()
        reference = script.reference(place / "clean")
        admit = reference.place("admit") - 1
        (place / "before").mkdir()
        script.play(place / "before", {}, end=admit)
        states = []
        with killing.nursery(place / "nursery") as process:
            for call in range(1, 60, 2):
                folder = place / str(call)
                shutil.copytree(place / "before", folder)
                order = Order(str(folder), admit, dies_at=call, fate=fate.value)
                done = killing.life(process, order, 0)
                found = left(folder, reference, done, done + 1)
                assert found.verdict is Verdict.WHOLE, (call, found)
                states.append(found.place)
                if done > admit:
                    break
    assert set(states) >= {admit, admit + 1}
    assert states == sorted(states)


def test_another_process_goes_on_where_a_writer_was_killed() -> None:
    """It held the store open all the while, and shares the memory that the writer wrote to."""
    with scratch() as place:
        (place / "clean").mkdir()
        reference = script.reference(place / "clean")
        admit = reference.place("admit") - 1
        (place / "before").mkdir()
        script.play(place / "before", {}, end=admit)
        seen = set()
        with killing.nursery(place / "nursery") as process:
            for call in range(1, 40, 3):
                folder = place / str(call)
                shutil.copytree(place / "before", folder)
                with script.opened(folder, admit) as beside:
                    assert script.state_of(beside) == reference.states[admit]
                    order = Order(str(folder), admit, dies_at=call, fate=Fate.TEAR.value)
                    done = killing.life(process, order, 0)
                    found = script.state_of(beside)
                    assert found in reference.states[done : done + 2], call
                    seen.add(found == reference.states[admit])
                    if found == reference.states[admit]:
                        reference.steps[admit].run(beside, dict(reference.known), folder)
                        assert script.state_of(beside) == reference.states[admit + 1]
        assert seen == {True, False}


def test_a_store_killed_while_it_began_can_begin_again(path: Path) -> None:
    """The file appears under its name only when it and its anchor are whole."""
    import cma.orion.opening as opening

    def die(*_: object) -> None:
        raise KeyboardInterrupt

    for name in ("migrate", "write_anchor"):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(opening, name, die)
            with pytest.raises(KeyboardInterrupt):
                Memory.open(path)
        assert not path.exists()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(opening.os, "replace", die)
        with pytest.raises(KeyboardInterrupt):
            Memory.open(path)
    assert not path.exists()
    with Memory.open(path) as memory:
        assert memory.verify().audit_records == 1
    assert sorted(entry.name for entry in path.parent.iterdir()) == [path.name, f"{path.name}.head"]
    assert issubclass(CmaError, Exception)

"""Power cuts: what was acknowledged survives them, whatever the disk had still written."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from itertools import islice
from pathlib import Path

import pytest

from cma import CmaError, FixedClock, Memory
from experiments.crashing import cuts, script, steps
from experiments.crashing.calls import Call, Fate
from experiments.crashing.cuts import Cut, Recording
from experiments.crashing.faults import Failing, Fault
from experiments.crashing.judging import Verdict, left
from experiments.crashing.platter import FAILED_SYNC, Platter, Survives
from experiments.crashing.scratch import scratch
from experiments.crashing.script import Reference
from experiments.crashing.watching import watched

STRIDE = 47
"""Of all the cuts, each so many is tried here; the experiment tries them all."""


@pytest.fixture
def place() -> Iterator[Path]:
    with scratch() as folder:
        yield folder


@pytest.fixture(scope="module")
def reference() -> Reference:
    with scratch() as folder:
        return script.reference(folder)


@pytest.fixture(scope="module")
def recording() -> Recording:
    with scratch() as folder:
        return cuts.record(folder, "folded")


def _fold(memory: Memory) -> None:
    memory.store.connection.pragma("wal_autocheckpoint", cuts.FOLD_PAGES)


def _clock(memory: Memory) -> FixedClock:
    assert isinstance(memory.store.clock, FixedClock)
    return memory.store.clock


def _verdict(recording: Recording, reference: Reference, cut: Cut, folder: Path) -> Verdict:
    platter = Platter()
    for call in recording.calls[: cut.position]:
        platter.take(call)
    image = platter.image(cut.survives, f"7 {cut}")
    acknowledged = recording.acknowledged(cut.position)
    return cuts.verdict_of(image, reference, acknowledged, folder)


def test_cuts_all_over_the_script_lose_nothing(
    recording: Recording, reference: Reference, place: Path
) -> None:
    tried = Counter(
        _verdict(recording, reference, cut, place / "image")
        for cut in islice(cuts.cuts(recording, 8), 0, None, STRIDE)
    )
    assert set(tried) == {Verdict.WHOLE}
    assert tried.total() > 40


def test_the_moment_a_step_is_acknowledged_it_survives_without_any_luck(
    recording: Recording, reference: Reference, place: Path
) -> None:
    for step, position in enumerate(recording.done, 1):
        cut = Cut(position, at_sync=True, survives=Survives.NOTHING)
        verdict = _verdict(recording, reference, cut, place / "image")
        assert verdict is Verdict.WHOLE, script.script()[step - 1].name


def test_the_same_script_asks_the_same_of_the_disk(recording: Recording, place: Path) -> None:
    again = cuts.record(place, "folded")
    assert [call[:3] for call in again.calls if call.file == steps.STORE] == [
        call[:3] for call in recording.calls if call.file == steps.STORE
    ]
    assert again.done == recording.done


@pytest.mark.parametrize("synchronous", ["NORMAL", "OFF"])
def test_a_store_that_syncs_less_often_loses(
    reference: Reference, place: Path, synchronous: str
) -> None:
    (place / "recorded").mkdir()
    control = cuts.record(place / "recorded", "growing", synchronous)
    lost = 0
    for position in control.done[1::5]:
        cut = Cut(position, at_sync=False, survives=Survives.NOTHING)
        lost += _verdict(control, reference, cut, place / "image") is Verdict.REFUSED
    assert lost > 3


@pytest.mark.parametrize("name", ["admit", steps.ERASE])
def test_what_a_failed_sync_threw_away_is_written_again(
    reference: Reference, place: Path, name: str
) -> None:
    """The step is done again, the next is acknowledged, and then the power goes."""
    begin = reference.place(name) - 1
    for number in range(1, 60):
        folder, platter = place / str(number), Platter()
        folder.mkdir()
        failing = Failing(Fault(Fate.IO_ERROR, ("sync",)), number)

        def observe(call: Call, failing: Failing = failing, platter: Platter = platter) -> Fate:
            fate = failing(call)
            if fate is not Fate.PASS:
                platter.take(Call(FAILED_SYNC, call.file))
            elif call.kind in cuts.CHANGING:
                platter.take(call)
            return fate

        with watched(folder, observe):
            script.play(folder, {}, end=begin, prepare=_fold)
            with script.opened(folder, begin) as memory:
                _fold(memory)
                failing.armed = True
                with suppress(CmaError):
                    reference.steps[begin].run(memory, dict(reference.known), folder)
                failing.armed = False
                if script.seen_by(memory) == reference.states[begin]:
                    reference.steps[begin].again(memory, dict(reference.known), folder)
                _clock(memory).advance(steps.PAUSE)
                reference.steps[begin + 1].run(memory, dict(reference.known), folder)
                image = platter.image(Survives.NOTHING, "7")
        verdict = cuts.verdict_of(image, reference, begin + 2, place / "image")
        assert verdict is Verdict.WHOLE, number
        if failing.hit is None:
            break
    assert 3 < number < 60


def test_a_restoring_cut_off_before_its_last_move_can_begin_anew(
    recording: Recording, reference: Reference, place: Path
) -> None:
    """Its anchor names records of a store that is not there: a draft beside it says why."""
    moved = [
        position
        for position, call in enumerate(recording.calls)
        if call.kind == "rename" and call.to == steps.RESTORED
    ]
    cut = Cut(moved[0], at_sync=True, survives=Survives.ALL)
    assert _verdict(recording, reference, cut, place / "image") is Verdict.WHOLE


def test_a_store_that_lost_a_step_and_one_that_is_torn_are_told_apart(
    reference: Reference, place: Path
) -> None:
    folder = place / "store"
    folder.mkdir()
    script.play(folder, {}, end=4)
    assert left(folder, reference, 5, 6).verdict is Verdict.LOST
    with script.opened(folder, 4) as memory:
        memory.write("what no step writes", kind="working", origin="x", metadata={"ttl_seconds": 9})
    assert left(folder, reference, 4, 5).verdict is Verdict.TORN
    (folder / f"{steps.STORE}.head").unlink()
    assert left(folder, reference, 4, 5) == (Verdict.REFUSED, None, "anchor-missing")
    for file in folder.iterdir():
        file.unlink()
    assert left(folder, reference, 1, 2).verdict is Verdict.LOST
    assert left(folder, reference, 0, 1).verdict is Verdict.WHOLE


def _image(survives: Survives, *calls: Call) -> dict[str, bytes]:
    platter = Platter()
    for call in calls:
        platter.take(call)
    return platter.image(survives, "3")


def test_the_disk_keeps_what_was_synced_and_may_lose_the_rest() -> None:
    calls = (
        Call("create", "a", syncs_name=True),
        Call("write", "a", 0, b"old"),
        Call("sync", "a"),
        Call("write", "a", 2, b"new"),
        Call("truncate", "a", 4),
    )
    assert _image(Survives.NOTHING, *calls) == {"a": b"old"}
    assert _image(Survives.ALL, *calls) == {"a": b"olne"}
    assert _image(Survives.ALL, *calls, Call("write", "a", 6, b"x")) == {"a": b"olne\0\0x"}
    assert _image(Survives.NOTHING, *calls, Call("sync", "a")) == {"a": b"olne"}


def test_a_name_is_durable_when_its_folder_was_synced() -> None:
    made = (Call("create", "a"), Call("write", "a", 0, b"text"), Call("sync", "a"))
    moved = (*made, Call("rename", "a", to="b"))
    assert _image(Survives.NOTHING, *made) == {}
    assert _image(Survives.ALL, *moved) == {"b": b"text"}
    assert _image(Survives.NOTHING, *moved) == {}
    assert _image(Survives.NOTHING, *moved, Call("sync", ".")) == {"b": b"text"}
    linked = (*made, Call("link", "a", to="b"), Call("sync", "."), Call("delete", "a"))
    assert _image(Survives.NOTHING, *linked) == {"a": b"text", "b": b"text"}
    assert _image(Survives.ALL, *linked) == {"b": b"text"}


def test_a_name_may_show_a_file_whose_content_never_came() -> None:
    calls = (Call("create", "a"), Call("write", "a", 0, b"text"))
    assert _image(Survives.NAMES, *calls) == {"a": b""}
    assert _image(Survives.CONTENT, *calls) == {}
    assert _image(Survives.CONTENT, *calls, Call("sync", ".")) == {"a": b"text"}


def test_pieces_of_one_write_survive_apart() -> None:
    calls = (Call("create", "a"), Call("sync", "."), Call("write", "a", 100, b"x" * 4096))
    content = _image(Survives.SECTORS, *calls)["a"]
    sectors = {content[at : at + 512].strip(b"\0") for at in range(512, len(content) - 511, 512)}
    assert sectors == {b"", b"x" * 512}
    assert _image(Survives.SECTORS, *calls) == _image(Survives.SECTORS, *calls)

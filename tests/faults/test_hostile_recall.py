"""Recall against histories that differ in nothing that was said."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import timedelta
from pathlib import Path
from typing import Any

import apsw
import pytest

from cma import CmaError, Coefficients, FixedClock, Memory, Reason, Retrieval
from cma.doctor.examining import examine
from cma.orion import pruning
from cma.orion.index_file import read_image, write_image
from cma.orion.indexes import Indexes
from cma.orion.store import Store
from cma.orion.traces import Hit
from cma.values.errors import StoreRefusedError
from tests.faults.injection import CALLER, START, hold, remember

AROUND = Retrieval(coefficients=Coefficients(link=0.0, two_links=1.0))


def test_a_link_that_is_there_already_lends_nothing_twice(memory: Memory, path: Path) -> None:
    """Two events at one time, linked either way, beside more links than stand in columns."""
    hub = remember(memory, "a hub")
    leaves = [remember(memory, f"leaf {number}") for number in range(7)]
    for leaf in leaves:
        memory.link("temporal", hub.id, leaf.id)
    memory.recall("leaf 6", retrieval=AROUND)  # the index follows link by link
    memory.link("temporal", leaves[6].id, hub.id)
    found = memory.recall("leaf 6", limit=20, retrieval=AROUND)
    with Memory.open(path, caller=CALLER, clock=FixedClock(START)) as other:
        built = other.recall("leaf 6", limit=20, retrieval=AROUND)
    assert found.hits == built.hits
    own = next(hit for hit in found.hits if hit.cell == leaves[6])
    assert own.parts["two_links"] < 1.0  # its own words come back to it over no link


def test_an_erasure_between_two_looks_at_the_store_breaks_no_recall(
    memory: Memory, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another process erases after the index was brought in step, before its context is built."""
    gone, stays = remember(memory, "a leaf of tea"), remember(memory, "a leaf of mint", minutes=1)
    surroundings = Indexes.surroundings
    with Memory.open(path, caller=CALLER, clock=FixedClock(START)) as other:

        def late(*given: Any) -> Any:
            monkeypatch.undo()
            with ThreadPoolExecutor(1) as pool:
                monkeypatch.setattr(Store, "clean", lambda _: False)
                pool.submit(other.erase, gone.id, reason="person-request").result()
            return surroundings(*given)

        monkeypatch.setattr(Indexes, "surroundings", late)
        memory.recall("leaf", retrieval=AROUND)
    found = memory.recall("leaf", retrieval=AROUND)
    assert [hit.cell.id for hit in found.hits] == [stays.id]


@pytest.mark.parametrize(
    "moved",
    [
        "UPDATE cells SET ordinal = -5 WHERE ordinal = 2",
        "UPDATE cells SET ordinal = 0 WHERE ordinal = 2",
        "UPDATE cells SET ordinal = 100 WHERE ordinal = 1",
        "UPDATE links SET ordinal = -5",
    ],
)
def test_a_row_that_recall_would_never_come_upon_is_refused(
    memory: Memory, path: Path, moved: str
) -> None:
    """The order of the rows is what an index follows, and no digest covers it."""
    first, second = remember(memory, "a leaf of tea"), remember(memory, "a leaf", minutes=1)
    memory.link("temporal", first.id, second.id)
    memory.update(first.id, summary="once more")
    memory.verify()
    memory.close()
    with apsw.Connection(str(path)) as stranger:
        stranger.execute(moved)
    stranger.close()
    with Memory.open(path, caller=CALLER, clock=FixedClock(START)) as again:
        with pytest.raises(CmaError) as refusal:
            again.verify()
        assert refusal.value.reason is Reason.STATE_DISAGREES
    assert not examine(path, clock=FixedClock(START)).healthy


@pytest.mark.parametrize(
    ("column", "value"), [("scopes", 1), ("rows", 1), ("inactive", False), ("expires", 2**62)]
)
def test_a_forged_index_serves_nothing_that_the_store_would_not(
    ann: Memory, bob: Memory, path: Path, column: str, value: Any
) -> None:
    """Whoever can write files can seal an index anew; scope and lifetime are the store's."""
    hers = [remember(ann, f"a leaf of hers, {number}", minutes=number) for number in range(2)]
    ann.update(hers[1].id, lifecycle="retracted")
    held = hold(bob, "a leaf of his", ttl=1)
    remember(bob, "another leaf of his")
    place = bob.keep_index()
    image = read_image(place)
    arrays = {name: values[: image.used[name]] for name, values in image.arrays.items()}
    arrays[column][:] = value
    write_image(place, image.facts, arrays)
    with Memory.open(path, caller=CALLER, clock=FixedClock(START + timedelta(hours=1))) as other:
        for view in (other.within(ann.scope), other.within(bob.scope)):
            hits: tuple[Hit, ...] = ()
            with suppress(StoreRefusedError):
                hits = view.recall("leaf").hits
            assert {hit.cell.scope for hit in hits} <= {view.scope}
            assert {hit.cell.id for hit in hits}.isdisjoint({hers[1].id, held.id})


@pytest.mark.parametrize("threads", [0, -1, 257, 1.5, True, "2", None])
def test_a_number_of_threads_that_is_none_is_refused(threads: Any, tmp_path: Path) -> None:
    with pytest.raises(CmaError, match="threads") as caught:
        Memory.open(tmp_path / "new.cma", threads=threads)
    assert caught.value.reason is Reason.FIELD_INVALID
    assert list(tmp_path.iterdir()) == []


def test_threads_share_the_work_and_change_no_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("numba")
    monkeypatch.setattr(pruning, "LARGE", 0)
    monkeypatch.setattr(pruning, "_WORTH", 0)
    path, clock = tmp_path / "m.cma", FixedClock(START + timedelta(days=1))
    with Memory.open(path, caller=CALLER, clock=clock) as memory:
        for number in range(200):
            remember(memory, f"tea {number % 7} mate {number % 11}")
        one = memory.recall("tea 3 mate 5", limit=50)
    with Memory.open(path, caller=CALLER, clock=clock, threads=3) as memory:
        three = memory.recall("tea 3 mate 5", limit=50)
    assert three.hits == one.hits
    assert three.trace.exclusions == one.trace.exclusions
    assert three.trace.excluded == one.trace.excluded

"""Expiry is decided by the clock alone; reading changes nothing; a clock may go back."""

from __future__ import annotations

from datetime import timedelta

from cma import FixedClock, Memory, Reason
from tests.faults.injection import audit, hold, refused, remember


def test_an_expired_cell_is_not_returned_and_not_revived_by_reading(
    memory: Memory, ann: Memory, clock: FixedClock
) -> None:
    note = hold(ann, "the kettle is on", ttl=60)
    clock.advance(timedelta(seconds=59, microseconds=999_999))
    assert [hit.cell.id for hit in ann.recall("kettle").hits] == [note.id]
    clock.advance(timedelta(microseconds=1))
    before = memory.digest(), memory.generation
    for _ in range(3):
        assert ann.recall("kettle").hits == ()
        assert [hit.cell.id for hit in ann.recall("kettle", include_inactive=True).hits] == [
            note.id
        ]
        assert ann.get(note.id) == note
        assert ann.explain(ann.recall("kettle", include_inactive=True).trace.id).verified
    assert (memory.digest(), memory.generation) == before
    trace = ann.recall("kettle").trace
    assert [(item.cell, item.reason) for item in trace.exclusions] == [(note.id, "inactive")]
    for changes in ({"content": "again"}, {"metadata": {"ttl_seconds": 9_999}}):
        with refused(ann, Reason.CELL_INACTIVE):
            ann.update(note.id, **changes)
    assert memory.sweep() == (note.id,)
    assert memory.sweep() == ()
    assert ann.get(note.id).lifecycle == "expired"
    assert audit(memory).count("expire") == 1


def test_writing_an_expired_cell_again_is_refused_and_does_not_revive_it(
    ann: Memory, clock: FixedClock
) -> None:
    """Taken for a duplicate it would be lost without a word: it is never recalled."""
    note = hold(ann, "the kettle is on", ttl=60)
    clock.advance(timedelta(seconds=60))
    with refused(ann, Reason.CELL_INACTIVE, "content"):
        hold(ann, "the kettle is on", ttl=60)
    assert ann.recall("kettle").hits == ()
    ann.sweep()
    with refused(ann, Reason.CELL_INACTIVE, "content"):
        hold(ann, "the kettle is on", ttl=60)
    assert ann.get(note.id).lifecycle == "expired"
    assert ann.recall("kettle").hits == ()


def test_an_expiry_cannot_be_moved_into_the_past(ann: Memory, clock: FixedClock) -> None:
    note = hold(ann, "the kettle is on", ttl=600)
    clock.advance(timedelta(seconds=300))
    for seconds in (1, 299, 300):
        with refused(ann, Reason.EXPIRY_PAST, "metadata.ttl_seconds"):
            ann.update(note.id, metadata={"ttl_seconds": seconds})
    assert ann.update(note.id, metadata={"ttl_seconds": 301}).expires_at == (
        note.created_at + timedelta(seconds=301)
    )


def test_a_clock_that_goes_back_breaks_nothing(
    memory: Memory, ann: Memory, clock: FixedClock
) -> None:
    swept, unswept = hold(ann, "swept note", ttl=60), hold(ann, "unswept note", ttl=7_200)
    clock.advance(timedelta(hours=1))
    assert memory.sweep() == (swept.id,)
    later = remember(ann, "written later", minutes=60)
    clock.advance(timedelta(days=-400))
    earlier = remember(ann, "written by an earlier clock", minutes=-1)
    assert earlier.created_at < later.created_at
    assert ann.update(later.id, confidence=0.5).revision == 2
    assert ann.get(swept.id).lifecycle == "expired"  # what was recorded stays recorded
    served = {hit.cell.id for hit in ann.recall("note written").hits}
    assert served == {unswept.id, later.id, earlier.id}
    assert memory.sweep() == ()
    verified = memory.verify()
    assert (verified.cells, verified.tail_pinned) == (4, True)
    seconds = [record.at for record in ann.explain(ann.recall("later").trace.id).hits[0].history]
    assert seconds == [later.created_at, earlier.created_at]


def test_a_retired_cell_takes_no_change_and_never_returns(memory: Memory) -> None:
    for state in ("superseded", "retracted"):
        cell = remember(memory, f"a {state} claim")
        assert memory.update(cell.id, lifecycle=state).lifecycle == state
        assert memory.recall(state).hits == ()
        for changes in ({"lifecycle": "active"}, {"confidence": 0.1}, {"lifecycle": state}):
            with refused(memory, Reason.CELL_INACTIVE, "cell_id"):
                memory.update(cell.id, **changes)
        active = remember(memory, f"not yet {state}")
        with refused(memory, Reason.FIELD_INVALID, "lifecycle"):
            memory.update(active.id, lifecycle="expired")

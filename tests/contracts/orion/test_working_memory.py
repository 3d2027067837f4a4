"""Working memory: O21 to O26."""

from __future__ import annotations

from datetime import timedelta

import pytest

from cma import FixedClock, Lifecycle, Reason

INSTANT = timedelta(microseconds=1)
MINUTE = timedelta(seconds=60)


def served(view, query="note", **options):
    return {hit.cell.id for hit in view.recall(query, **options).hits}


@pytest.mark.contract("O21")
def test_a_working_cell_is_active_until_its_expiry(ann, hold, clock, start):
    """A working cell is active until its expiry."""
    note = hold(ann, "a note", ttl=60)
    assert note.expires_at == start + MINUTE
    assert note.is_active(start)
    assert served(ann) == {note.id}
    clock.advance(MINUTE - INSTANT)
    assert note.is_active(clock.now())
    assert served(ann) == {note.id}
    assert ann.sweep() == ()
    longer = ann.update(note.id, metadata={"ttl_seconds": 61}, summary="still time")
    assert longer.lifecycle is Lifecycle.ACTIVE
    assert longer.expires_at == start + timedelta(seconds=61)
    clock.advance(timedelta(seconds=1))
    assert served(ann) == {note.id}
    clock.advance(INSTANT)
    assert served(ann) == set()


@pytest.mark.contract("O22")
def test_a_working_cell_is_inactive_at_its_expiry(memory, ann, hold, clock, start, refused):
    """It is inactive at the very instant of expiry."""
    note, other = hold(ann, "a note", ttl=60), hold(ann, "other note", ttl=61)
    with refused(memory, Reason.EXPIRY_PAST):
        clock.advance(timedelta(seconds=30))
        ann.update(note.id, metadata={"ttl_seconds": 30})
    assert served(ann) == {note.id, other.id}
    clock.advance(timedelta(seconds=30))
    assert clock.now() == note.expires_at
    assert not note.is_active(clock.now())
    assert other.is_active(clock.now())
    assert served(ann) == {other.id}
    with refused(memory, Reason.CELL_INACTIVE) as caught:
        ann.update(note.id, importance=1.0)
    assert caught[0].value == note.id
    with refused(memory, Reason.CELL_INACTIVE):
        ann.update(note.id, metadata={"ttl_seconds": 3600})
    assert ann.sweep() == (note.id,)
    assert ann.get(note.id).lifecycle is Lifecycle.EXPIRED


def inactive_ones(ann, hold, remember, clock):
    """An active note and five that are not: by time, by sweep, and by lifecycle."""
    swept = hold(ann, "swept note", ttl=1)
    clock.advance(timedelta(seconds=1))
    assert ann.sweep() == (swept.id,)
    expired = hold(ann, "expired note", ttl=1)
    retired = [remember(ann, "superseded note"), remember(ann, "retracted note")]
    retired.append(hold(ann, "retracted working note", ttl=3600))
    active = {hold(ann, "active note", ttl=60).id, remember(ann, "remembered note").id}
    for cell, lifecycle in zip(retired, ("superseded", "retracted", "retracted"), strict=True):
        assert ann.update(cell.id, lifecycle=lifecycle).lifecycle == lifecycle
    assert served(ann) == active | {expired.id}
    clock.advance(timedelta(seconds=1))
    return active, {swept.id, expired.id, *(cell.id for cell in retired)}


@pytest.mark.contract("O23")
def test_inactive_cells_are_absent_from_recall(memory, ann, hold, remember, clock, refused):
    """Inactive cells are absent from default recall."""
    active, inactive = inactive_ones(ann, hold, remember, clock)
    assert served(ann) == active
    assert served(ann, include_inactive=False) == active
    for analyser in ("unicode", "english"):
        retrieval = ann.retrieval.model_copy(update={"analyser": analyser})
        assert served(ann, retrieval=retrieval) == active
    excluded = {item.cell: item.reason for item in ann.recall("note").trace.exclusions}
    assert excluded == dict.fromkeys(inactive, "inactive")
    for cell_id in inactive:
        with refused(memory, Reason.CELL_INACTIVE):
            ann.update(cell_id, lifecycle="active")
    assert served(ann) == active


@pytest.mark.contract("O24")
def test_inactive_cells_are_there_when_asked_for(ann, hold, remember, clock):
    """They are present when a caller asks for them."""
    active, inactive = inactive_ones(ann, hold, remember, clock)
    assert len(inactive) == 5
    recollection = ann.recall("note", include_inactive=True)
    assert {hit.cell.id for hit in recollection.hits} == active | inactive
    assert recollection.trace.include_inactive is True
    assert recollection.trace.exclusions == ()
    latest = {hit.cell.id: hit.cell for hit in recollection.hits}
    assert latest == {cell_id: ann.get(cell_id) for cell_id in active | inactive}
    assert ann.recall("note").trace.include_inactive is False


@pytest.mark.contract("O25")
def test_an_expiry_is_recorded_once(memory, ann, bob, hold, remember, audit, clock, open_memory):
    """A sweep records each expiry once, however often it runs."""
    remember(ann, "an event does not expire")
    notes = [hold(view, f"note {place}", ttl=60) for place in range(4) for view in (ann, bob)]
    retracted, later = notes.pop(), hold(ann, "later note", ttl=61)
    bob.update(retracted.id, lifecycle="retracted")
    ann.update(notes[0].id, confidence=0.5)
    due = sorted(cell.id for cell in notes)

    def expiries():
        return [
            (item["subjects"][0], item["before"] is None, item["before"] == item["after"])
            for item in audit(memory)
            if item["operation"] == "expire"
        ]

    assert memory.sweep() == ()
    assert expiries() == []
    clock.advance(MINUTE)
    generation = memory.generation
    assert memory.sweep() == tuple(due)
    assert expiries() == [(cell_id, False, False) for cell_id in due]
    assert memory.generation == generation + 1
    state = (memory.digest(), memory.generation, len(audit(memory)))
    for view in (memory, ann, bob, memory):
        assert view.sweep() == ()
    assert (memory.digest(), memory.generation, len(audit(memory))) == state
    clock.advance(timedelta(seconds=1))
    assert memory.sweep() == (later.id,)
    memory.close()
    memory = open_memory(clock=FixedClock(clock.now() + timedelta(days=1)))
    assert memory.sweep() == ()
    assert sorted(cell_id for cell_id, *_ in expiries()) == sorted([*due, later.id])
    assert memory.verify().cells == 10


@pytest.mark.contract("O26")
def test_an_expired_cell_is_readable_by_id(ann, hold, clock, open_memory, memory):
    """An expired cell is still readable by id."""
    note = hold(ann, "a note", ttl=60)
    clock.advance(timedelta(days=1))
    assert ann.get(note.id) == note
    assert ann.sweep() == (note.id,)
    expired = ann.get(note.id)
    assert expired == note.model_copy(update={"revision": 2, "lifecycle": Lifecycle.EXPIRED})
    assert ann.get(note.id, revision=1) == note
    assert ann.links_of(note.id) == ()
    memory.close()
    ann = open_memory(clock=FixedClock(clock.now())).within("session:ann")
    assert (ann.get(note.id), ann.get(note.id, revision=1)) == (expired, note)

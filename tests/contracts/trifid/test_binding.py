"""Binding: T01 to T09."""

from __future__ import annotations

from datetime import timedelta

import pytest

from cma import FixedClock, Reason


@pytest.mark.contract("T01")
def test_a_frame_holds_all_its_parts(ann, events, start):
    """A frame holds scene, ordered sources, entities, goals, actions, outcome, cues, interval."""
    cells = events(ann, 3)
    frame = ann.bind(
        scene="kitchen",
        sources=cells,
        entities=["Ann", "tea"],
        goals=["wake up"],
        actions=["boils water", "pours"],
        outcome="a cup of tea",
        cues=["morning"],
        start=start - timedelta(minutes=1),
        end=start + timedelta(minutes=5),
    )
    read = ann.frame(frame.id)
    assert read == frame
    assert read.scene == "kitchen"
    assert read.cells == tuple(cells)
    assert read.entities == ("Ann", "tea")
    assert read.goals == ("wake up",)
    assert read.actions == ("boils water", "pours")
    assert read.outcome == "a cup of tea"
    assert read.cues == ("morning",)
    assert (read.start, read.end) == (start - timedelta(minutes=1), start + timedelta(minutes=5))
    assert read.scope == "session:ann"
    assert ann.frames() == (frame,)
    by_default = ann.bind(scene="kitchen", sources=cells)
    assert (by_default.start, by_default.end) == (start, start + timedelta(minutes=2))


@pytest.mark.contract("T02")
def test_every_source_exists(memory, ann, events, refused):
    """Every source of a frame exists."""
    cells = events(ann, 2)
    with refused(memory, Reason.SOURCE_MISSING) as caught:
        ann.bind(scene="kitchen", sources=[*cells, "cell-" + "0" * 40])
    assert caught[0].value == "cell-" + "0" * 40
    assert caught[0].field == "sources[2]"
    for nothing in ([], [cells[0], cells[0]]):
        with refused(memory, Reason.FIELD_INVALID):
            ann.bind(scene="kitchen", sources=nothing)
    assert ann.frames() == ()


@pytest.mark.contract("T03")
def test_sources_are_episodic(memory, ann, events, episodes, claim, hold, refused):
    """Sources are episodic cells."""
    cells = events(ann, 1)
    note = hold(ann, "a working note")
    known = ann.approve(claim(ann, episodes(ann)).id, approval_id="CR-1")
    for other in (note.id, known.id):
        with refused(memory, Reason.SOURCE_KIND) as caught:
            ann.bind(scene="kitchen", sources=[*cells, other])
        assert caught[0].value == other
    ann.update(cells[0], lifecycle="retracted")
    with refused(memory, Reason.SOURCE_INACTIVE):
        ann.bind(scene="kitchen", sources=cells)


@pytest.mark.contract("T04")
def test_sources_stand_in_observed_order(memory, ann, events, remember, refused):
    """Sources stand in observed order; disorder is rejected, not sorted."""
    cells = events(ann, 3)
    with refused(memory, Reason.SOURCES_DISORDERED) as caught:
        ann.bind(scene="kitchen", sources=[cells[0], cells[2], cells[1]])
    assert (caught[0].field, caught[0].value) == ("sources[2]", cells[1])
    with refused(memory, Reason.SOURCES_DISORDERED):
        ann.bind(scene="kitchen", sources=cells[::-1])
    at_once = remember(ann, "at the same time", minutes=2).id
    for order in ([*cells, at_once], [*cells[:2], at_once, cells[2]]):
        assert ann.bind(scene="kitchen", sources=order).cells == tuple(order)


@pytest.mark.contract("T05")
def test_the_interval_covers_the_sources(memory, ann, events, refused, start):
    """The interval covers every source."""
    cells = events(ann, 3)
    late, early = start + timedelta(microseconds=1), start + timedelta(minutes=1, seconds=59)
    with refused(memory, Reason.INTERVAL_TOO_NARROW) as caught:
        ann.bind(scene="kitchen", sources=cells, start=late)
    assert caught[0].field == "start"
    with refused(memory, Reason.INTERVAL_TOO_NARROW) as caught:
        ann.bind(scene="kitchen", sources=cells, end=early)
    assert caught[0].field == "end"
    exact = ann.bind(scene="kitchen", sources=cells, start=start, end=start + timedelta(minutes=2))
    assert (exact.start, exact.end) == (start, start + timedelta(minutes=2))
    with refused(memory, Reason.TIME_NAIVE):
        ann.bind(scene="kitchen", sources=cells, start="2026-03-01T11:00:00")


@pytest.mark.contract("T06")
def test_the_same_frame_has_the_same_id(ann, events, episodes, open_memory, start, audit):
    """The same frame has the same id, in another store and at another time."""
    cells = events(ann, 2)
    parts = {"scene": "kitchen", "entities": ["Ann"], "actions": ["pours"], "cues": ["morning"]}
    frame = ann.bind(sources=cells, **parts)
    before = ann.digest()
    assert ann.bind(sources=cells, **parts) == frame
    assert ann.digest() == before
    assert audit(ann)[-1]["reason"] == "duplicate"
    later = FixedClock(start + timedelta(days=3))
    other = open_memory("other.cma", clock=later).within("session:ann")
    assert events(other, 2) == cells
    assert other.bind(sources=cells, **parts).id == frame.id
    changed = [
        {**parts, "scene": "hall"},
        {**parts, "entities": ["Bob"]},
        {**parts, "actions": ["drinks"]},
        {**parts, "cues": []},
        {**parts, "goals": ["wake"]},
        {**parts, "outcome": "tea"},
        {**parts, "end": start + timedelta(hours=1)},
    ]
    ids = {ann.bind(sources=cells, **each).id for each in changed}
    assert len(ids | {frame.id}) == len(changed) + 1
    assert ann.bind(sources=cells[:1], **parts).id != frame.id


@pytest.mark.contract("T07")
def test_binding_makes_no_fact(memory, ann, events):
    """Binding makes no semantic or procedural cell and changes no source."""
    cells = events(ann, 3)
    before = {cell: ann.get(cell) for cell in cells}
    counts = memory.verify()
    ann.bind(scene="kitchen", sources=cells, entities=["Ann"], outcome="tea")
    after = memory.verify()
    assert (after.cells, after.revisions, after.links) == (counts.cells, counts.revisions, 0)
    assert {cell: ann.get(cell) for cell in cells} == before
    assert {hit.cell.id for hit in ann.recall("event kitchen tea Ann").hits} == set(cells)


@pytest.mark.contract("T08")
def test_sources_of_two_sessions_are_rejected(memory, ann, bob, events, remember, refused):
    """Sources of two sessions are rejected; global ones may stand in a session's frame."""
    [own], [other] = events(ann, 1), events(bob, 1, first=5)
    shared = remember(memory, "for all", minutes=9).id
    for view, sources in ((ann, [own, other]), (bob, [own, other]), (memory, [own, shared])):
        with refused(memory, Reason.SOURCE_MISSING):
            view.bind(scene="kitchen", sources=sources)
    frame = ann.bind(scene="kitchen", sources=[own, shared])
    assert frame.scope == "session:ann"
    assert bob.frames() == memory.frames() == ()
    with refused(memory, Reason.FRAME_NOT_FOUND):
        bob.replay(frame.id)


@pytest.mark.contract("T09")
def test_binding_is_recorded(memory, ann, events, audit):
    """Binding is recorded, with who bound what, and raises the generation."""
    cells = events(ann, 2)
    generation, seen = memory.generation, len(audit(memory))
    frame = ann.bind(scene="kitchen", sources=cells)
    [record] = audit(memory, after=seen)
    assert (record["operation"], record["actor"]) == ("bind", "tester")
    assert record["subjects"][0] == frame.id
    assert record["before"] is None
    assert record["after"] is not None
    assert memory.generation == generation + 1 == record["generation"]
    assert memory.verify().governed == 1

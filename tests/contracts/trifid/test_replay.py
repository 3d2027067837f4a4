"""Replay: T10 to T15."""

from __future__ import annotations

import json

import pytest


def states(evidence):
    return [step.state for step in evidence.steps]


@pytest.fixture
def frame(ann, events):
    return ann.bind(scene="kitchen", sources=events(ann, 3), entities=["Ann"])


@pytest.mark.contract("T10")
def test_a_complete_replay_gives_evidence(ann, frame, audit):
    """A complete replay gives evidence with every source's digest in order."""
    evidence = ann.replay(frame.id)
    assert evidence.complete
    assert evidence.frame_id == frame.id
    told = [(step.cell, step.expected, step.seen) for step in evidence.steps]
    assert told == [(source.cell, source.digest, source.digest) for source in frame.sources]
    assert states(evidence) == ["present"] * 3
    assert evidence.wanting == ()
    assert ann.replay(frame.id, sequence=list(frame.cells)) == evidence
    recorded = [each for each in audit(ann) if each["operation"] == "replay"]
    assert [each["reason"] for each in recorded] == [None, "duplicate"]
    ann.update(frame.cells[0], importance=1.0, confidence=0.5, summary="judged anew")
    assert ann.replay(frame.id) == evidence


@pytest.mark.contract("T11")
def test_a_missing_source_is_named(ann, frame, tamper):
    """A missing source makes a replay incomplete and is named."""
    short = ann.replay(frame.id, sequence=list(frame.cells[:2]))
    assert not short.complete
    assert states(short) == ["present", "present", "missing"]
    assert [step.cell for step in short.wanting] == [frame.cells[2]]
    tamper(ann.store.path, ("DELETE FROM cells WHERE id = ?", (frame.cells[1],)))
    gone = ann.replay(frame.id)
    assert not gone.complete
    assert states(gone) == ["present", "missing", "present"]
    assert (gone.wanting[0].cell, gone.wanting[0].seen) == (frame.cells[1], None)


@pytest.mark.contract("T12")
def test_an_altered_source_makes_it_incomplete(ann, frame, tamper):
    """An altered source makes a replay incomplete, and so does one that was retired."""
    ann.update(frame.cells[0], metadata={"speaker": "somebody else"})
    altered = ann.replay(frame.id)
    assert not altered.complete
    assert states(altered) == ["altered", "present", "present"]
    assert altered.steps[0].seen not in (None, altered.steps[0].expected)
    ann.update(frame.cells[2], lifecycle="retracted")
    assert states(ann.replay(frame.id)) == ["altered", "present", "inactive"]
    row = ann.store.connection.execute(
        "SELECT record FROM cells WHERE id = ?", (frame.cells[1],)
    ).fetchone()
    record = {**json.loads(row[0]), "content": "what never happened"}
    data = json.dumps(record, sort_keys=True, separators=(",", ":")).encode()
    tamper(ann.store.path, ("UPDATE cells SET record = ? WHERE id = ?", (data, frame.cells[1])))
    assert states(ann.replay(frame.id)) == ["altered", "altered", "inactive"]


@pytest.mark.contract("T13")
def test_a_changed_order_makes_it_incomplete(ann, frame):
    """A changed order makes a replay incomplete, and so does what was not in the frame."""
    first, second, third = frame.cells
    swapped = ann.replay(frame.id, sequence=[first, third, second])
    assert not swapped.complete
    assert states(swapped) == ["present", "out_of_order", "out_of_order"]
    assert not ann.replay(frame.id, sequence=[third, second, first]).complete
    more = ann.replay(frame.id, sequence=[first, second, third, "cell-" + "0" * 40])
    assert not more.complete
    assert states(more) == ["present", "present", "present", "foreign"]
    assert not ann.replay(frame.id, sequence=[first, second, third, third]).complete


@pytest.mark.contract("T14")
def test_the_same_replay_has_the_same_digest(ann, frame, open_memory, events):
    """The same replay has the same evidence digest, whenever and wherever it is made."""
    evidence = ann.replay(frame.id)
    assert ann.replay(frame.id).digest == evidence.digest
    other = open_memory("other.cma").within("session:ann")
    again = other.bind(scene="kitchen", sources=events(other, 3), entities=["Ann"])
    assert other.replay(again.id).digest == evidence.digest
    differing = {
        ann.replay(frame.id, sequence=sequence).digest
        for sequence in (frame.cells[:2], frame.cells[::-1], [])
    }
    assert len(differing | {evidence.digest}) == 4
    assert ann.verify().attendant == 4


@pytest.mark.contract("T15")
def test_replay_links_and_changes_no_evidence(memory, ann, frame):
    """Replay adds replay links between consecutive sources and changes no evidence."""
    cells = {cell: ann.get(cell) for cell in frame.cells}
    untouched = memory.digest()
    ann.replay(frame.id, sequence=frame.cells[::-1])
    assert memory.digest() == untouched
    assert memory.verify().links == 0
    ann.replay(frame.id)
    ann.replay(frame.id)
    first, second, third = frame.cells
    links = {
        (link.source_id, link.target_id)
        for cell in frame.cells
        for link in ann.links_of(cell, kind="replay")
    }
    assert links == {(first, second), (second, third)}
    assert memory.verify().links == 2
    assert {cell: ann.get(cell) for cell in frame.cells} == cells
    assert ann.frame(frame.id) == frame

"""Writing: O09 to O14."""

from __future__ import annotations

import hashlib
import json
from datetime import timedelta

import apsw
import pytest

from cma import Cell, CellDraft, CmaError, FixedClock, Lifecycle, Reason
from cma.orion.cells import EpisodicMetadata

TEXTS = (
    "plain",
    "  blanks kept  ",
    "two\nlines\tand a tab\r\n",
    "e\u0301 is not \u00e9",
    "外币汇率换算 ☕ \U0001f469\u200d\U0001f4bb",
    "مرحبا \u200f",
    'quotes " and \\ and \u2028',
    "x" * 100_000,
)


def iso(at) -> str | None:
    return None if at is None else at.isoformat().replace("+00:00", "Z")


def revision_digest_by_hand(cell: Cell) -> str:
    """The digest of a revision as the documentation has it, made without the library."""
    record = {
        "approval_id": cell.approval_id,
        "confidence": round(cell.confidence * 1_000_000),
        "content": cell.content,
        "created_at": iso(cell.created_at),
        "derived_from": list(cell.derived_from),
        "expires_at": iso(cell.expires_at),
        "id": cell.id,
        "importance": round(cell.importance * 1_000_000),
        "kind": cell.kind.value,
        "lifecycle": cell.lifecycle.value,
        "metadata": cell.metadata.model_dump(mode="json"),
        "observed_at": iso(cell.observed_at),
        "revision": cell.revision,
        "scope": cell.scope,
        "source": {"authority": cell.source.authority.value, "origin": cell.source.origin},
        "summary": cell.summary,
    }
    text = json.dumps(record, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(b"cma:cell-revision:1\0" + text.encode()).hexdigest()


@pytest.mark.contract("O09")
def test_a_written_cell_reads_back_equal(open_memory, start):
    """A written cell reads back equal."""
    memory = open_memory()
    ann = memory.within("session:ann")
    observed = start - timedelta(days=1, microseconds=7)
    attributes = {"text": "ü", "whole": -(2**53) + 1, "yes": True, "none": None, "_x.y-z": ""}
    written = []
    for place, text in enumerate(TEXTS):
        share = place * 0.111111
        cell = ann.write(
            text,
            kind="episodic",
            origin=f"line {place}",
            summary=f"summary {place} é",
            confidence=share,
            importance=1 - share,
            observed_at=observed,
            metadata={"speaker": "Zoë", "session": "1", "turn": "D1:3", "attributes": attributes},
        )
        assert cell.content == text
        assert (cell.summary, cell.source.origin) == (f"summary {place} é", f"line {place}")
        assert cell.confidence == round(share, 6)
        assert cell.importance == round(1 - share, 6)
        assert cell.observed_at == observed
        assert cell.metadata == EpisodicMetadata(
            speaker="Zoë", session="1", turn="D1:3", attributes=attributes
        )
        written.append(cell)
    written.append(
        ann.write(
            "note",
            kind="working",
            origin="test",
            metadata={"ttl_seconds": 9, "attributes": attributes},
        )
    )
    assert [ann.get(cell.id) for cell in written] == written
    memory.close()
    again = open_memory(clock=FixedClock(start + timedelta(days=9))).within("session:ann")
    assert [again.get(cell.id) for cell in written] == written
    drafts = [
        CellDraft(
            kind=cell.kind,
            content=cell.content,
            origin=cell.source.origin,
            summary=cell.summary,
            confidence=cell.confidence,
            importance=cell.importance,
            observed_at=cell.observed_at,
            metadata=cell.metadata,
        )
        for cell in written
    ]
    receipt = again.within("session:bob").write_many(drafts)
    assert (receipt.created, receipt.duplicates) == (len(drafts), 0)
    copied = [again.within("session:bob").get(cell_id) for cell_id in receipt.ids]
    assert [cell.content for cell in copied] == [cell.content for cell in written]


@pytest.mark.contract("O10")
def test_a_repeated_cell_is_a_recorded_duplicate(memory, remember, audit, clock, start):
    """Writing the same cell again changes nothing and is recorded as a duplicate."""
    first = remember(memory, "tea at noon")
    other = remember(memory, "milk at one")
    clock.advance(timedelta(hours=1))
    before, generation, known = memory.digest(), memory.generation, len(audit(memory))
    assert remember(memory, "tea at noon") == first
    draft = {"kind": "episodic", "content": "tea at noon", "origin": "test", "observed_at": start}
    receipt = memory.write_many([draft, {**draft, "content": "milk at one"}, draft])
    assert receipt.ids == (first.id, other.id, first.id)
    assert (receipt.created, receipt.duplicates, receipt.generation) == (0, 3, generation)
    assert (memory.digest(), memory.generation) == (before, generation)
    added = audit(memory)[known:]
    assert [(item["operation"], item["reason"]) for item in added] == [("write", "duplicate")] * 4
    assert [item["subjects"] for item in added] == [
        [cell.id] for cell in (first, first, other, first)
    ]
    for item in added:
        cell = memory.get(item["subjects"][0])
        assert item["before"] == item["after"] == revision_digest_by_hand(cell)
    new = {**draft, "content": "cake at two"}
    receipt = memory.write_many([new, draft, new])
    assert (receipt.created, receipt.duplicates) == (1, 2)
    assert receipt.generation == generation + 1
    assert [item["reason"] for item in audit(memory)[known + 4 :]] == [
        None,
        "duplicate",
        "duplicate",
    ]
    many = [{**draft, "content": f"tea {place}"} for place in range(450)]
    receipt = memory.write_many([*many, many[0], draft, many[-1]])
    assert (receipt.created, receipt.duplicates) == (450, 3)
    changed = memory.update(first.id, confidence=0.5)
    assert remember(memory, "tea at noon") == changed
    assert audit(memory)[-1]["after"] == revision_digest_by_hand(changed)
    assert memory.verify().cells == 453


@pytest.mark.contract("O11")
def test_an_unknown_id_is_named(memory, remember, refused):
    """An unknown id gives a not-found error that names it."""
    known = remember(memory, "tea")
    for unknown in ("cell-" + "0" * 40, known.id[:-1], known.id.upper(), "tea", ""):
        for read in (memory.get, memory.links_of):
            with pytest.raises(LookupError) as info:
                read(unknown)
            assert isinstance(info.value, CmaError)
            assert info.value.reason is Reason.CELL_NOT_FOUND
            assert info.value.value == unknown
            assert repr(unknown) in str(info.value)
            assert (info.value.field, bool(info.value.remedy)) == ("cell_id", True)
        with refused(memory, Reason.CELL_NOT_FOUND) as caught:
            memory.update(unknown, confidence=0.5)
        assert isinstance(caught[0], LookupError)
        assert caught[0].value == unknown


@pytest.mark.contract("O12")
def test_an_update_records_both_digests(memory, ann, remember, hold, audit):
    """An update's audit record holds the digests before and after."""
    for view, make in ((memory, remember), (ann, hold), (ann, remember)):
        cell = make(view, "tea")
        written = audit(memory)[-1]
        assert (written["operation"], written["before"]) == ("write", None)
        assert written["after"] == revision_digest_by_hand(cell)
        for changes in ({"confidence": 0.25}, {"summary": "é"}, {"lifecycle": "retracted"}):
            known = len(audit(memory))
            changed = view.update(cell.id, **changes)
            (record,) = audit(memory)[known:]
            assert (record["operation"], record["subjects"]) == ("update", [cell.id])
            assert record["actor"] == "tester"
            assert record["before"] == revision_digest_by_hand(cell)
            assert record["after"] == revision_digest_by_hand(changed)
            assert record["before"] != record["after"]
            assert record["generation"] == memory.generation
            cell = changed


@pytest.mark.contract("O13")
def test_witnessed_content_is_not_edited(memory, ann, remember, hold, refused, clock):
    """A witnessed event's content cannot be edited."""
    for view in (memory, ann):
        event = remember(view, "Ann drinks tea")
        for content in ("Ann drinks coffee", "Ann drinks tea ", "ann drinks tea"):
            with refused(memory, Reason.WITNESSED_CONTENT) as caught:
                view.update(event.id, content=content, confidence=0.1)
            assert caught[0].field == "content"
            assert caught[0].remedy
        assert view.get(event.id) == event
        told = view.update(event.id, content="Ann drinks tea", confidence=0.5)
        assert (told.content, told.confidence, told.revision) == ("Ann drinks tea", 0.5, 2)
        with refused(memory, Reason.WITNESSED_CONTENT):
            view.update(event.id, content="Ann drinks coffee")
    note = hold(ann, "water is cold")
    clock.advance(timedelta(seconds=1))
    edited = ann.update(note.id, content="water boils")
    assert (edited.content, edited.lifecycle) == ("water boils", Lifecycle.ACTIVE)
    assert ann.get(note.id, revision=1).content == "water is cold"


@pytest.mark.contract("O14")
def test_a_failed_write_leaves_nothing(memory, ann, remember, audit, refused, tamper, start):
    """A failed write leaves no cell, no link and no success record."""
    one, two = remember(memory, "one"), remember(memory, "two", minutes=1)
    good = {"kind": "episodic", "content": "good", "origin": "test", "observed_at": start}
    bad = [
        ({"confidence": 2}, Reason.FIELD_INVALID, "drafts[1].confidence"),
        ({"content": " \u200b"}, Reason.CONTENT_EMPTY, "drafts[1].content"),
        (
            {
                "kind": "semantic",
                "approval_id": "approval-1",
                "derived_from": [one.id],
                "metadata": {"subject": "a", "predicate": "b", "object": "c"},
            },
            Reason.APPROVAL_REQUIRED,
            "drafts[1].kind",
        ),
    ]
    for change, reason, field in bad:
        with refused(memory, reason) as caught:
            memory.write_many([good, {**good, **change}, {**good, "content": "good too"}])
        assert caught[0].field == field
        assert audit(memory)[-1]["detail"] == field
    many = [{**good, "content": f"good {place}"} for place in range(450)]
    with refused(memory, Reason.FIELD_INVALID) as caught:
        memory.write_many([*many, {**good, "importance": -1}])
    assert caught[0].field == "drafts[450].importance"
    working = {"kind": "working", "content": "w", "origin": "t", "metadata": {"ttl_seconds": 1}}
    with refused(memory, Reason.WORKING_GLOBAL):
        memory.write_many([good, working])
    with refused(memory, Reason.LINK_ENDPOINT_MISSING):
        memory.link_many(
            {"kind": "causal", "source_id": one.id, "target_id": target}
            for target in (two.id, "cell-" + "0" * 40)
        )
    assert memory.links_of(one.id) == ()
    # The database itself refuses the audit record, after the cell or the link was inserted.
    fault = "CREATE TRIGGER fault BEFORE INSERT ON audit BEGIN SELECT RAISE(ABORT, 'fault'); END"
    tamper(memory.store.path, (fault, ()))
    digest, records = memory.digest(), audit(memory)
    for attempt in (
        lambda: memory.write(**good),
        lambda: memory.write_many([good]),
        lambda: memory.link("causal", one.id, two.id),
        lambda: memory.update(one.id, confidence=0.5),
    ):
        with pytest.raises((apsw.Error, CmaError)):
            attempt()
        assert (memory.digest(), audit(memory)) == (digest, records)
    tamper(memory.store.path, ("DROP TRIGGER fault", ()))
    assert memory.get(one.id) == one
    assert memory.write(**good).revision == 1
    assert memory.links_of(one.id) == ()

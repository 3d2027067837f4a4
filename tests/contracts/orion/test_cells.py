"""Cells and kinds: O01 to O08."""

from __future__ import annotations

import hashlib
import json
import math
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from typing import Any

import pytest

from cma import Authority, Caller, CellDraft, CmaError, FixedClock, Kind, Lifecycle, Reason
from cma.orion.cells import (
    EpisodicMetadata,
    ProceduralMetadata,
    SemanticMetadata,
    WorkingMetadata,
)

METADATA: dict[str, dict[str, Any]] = {
    "working": {"ttl_seconds": 60},
    "episodic": {"speaker": "Ann"},
    "semantic": {"subject": "Ann", "predicate": "likes", "object": "tea"},
    "procedural": {"task": "brew tea", "steps": ["boil", "pour"]},
}


def draft_fields(kind: str, start: datetime, **changes: Any) -> dict[str, Any]:
    fields: dict[str, Any] = {
        "kind": kind,
        "content": "tea at noon",
        "origin": "test",
        "observed_at": start,
        "metadata": METADATA.get(kind, {}),
    }
    if kind in ("semantic", "procedural"):
        fields |= {"approval_id": "approval-1", "derived_from": ["cell-1"]}
    return fields | changes


@pytest.mark.contract("O01")
def test_the_four_kinds_are_the_only_ones(memory, refused, start):
    """The four memory kinds are the only ones; another is rejected by name."""
    four = {"working", "episodic", "semantic", "procedural"}
    assert {kind.value for kind in Kind} == four
    for kind in sorted(four):
        assert CellDraft(**draft_fields(kind, start)).kind == kind
    for name in ("declarative", "Episodic", "episodic ", "sensory", ""):
        with refused(memory, Reason.KIND_UNKNOWN) as caught:
            memory.write("tea", kind=name, origin="test", observed_at=start)
        assert caught[0].field == "kind"
        assert repr(name) in str(caught[0])
        with refused(memory, Reason.KIND_UNKNOWN) as caught:
            memory.write_many([draft_fields("episodic", start), draft_fields(name, start)])
        assert caught[0].field == "drafts[1].kind"
        assert caught[0].value == name


@pytest.mark.contract("O02")
def test_a_cell_carries_what_memory_needs_to_know(open_memory, start):
    """A cell carries provenance, summary, confidence, importance, times, lifecycle, metadata."""
    clock = FixedClock(start + timedelta(hours=2))
    for authority in Authority:
        caller = Caller(name="reader", authority=authority)
        memory = open_memory(f"{authority}.cma", caller=caller, clock=clock)
        ann = memory.within("session:ann")
        cell = ann.write(
            "Ann drinks tea",
            kind="episodic",
            origin="diary p. 3",
            summary="tea",
            confidence=0.75,
            importance=0.25,
            observed_at=start,
            metadata={"speaker": "Ann", "session": "1", "turn": "D1:3", "attributes": {"n": 7}},
        )
        assert (cell.kind, cell.scope, cell.revision) == (Kind.EPISODIC, "session:ann", 1)
        assert (cell.source.origin, cell.source.authority) == ("diary p. 3", authority)
        assert (cell.content, cell.summary) == ("Ann drinks tea", "tea")
        assert (cell.confidence, cell.importance) == (0.75, 0.25)
        assert (cell.observed_at, cell.created_at) == (start, start + timedelta(hours=2))
        assert (cell.expires_at, cell.lifecycle) == (None, Lifecycle.ACTIVE)
        assert cell.metadata == EpisodicMetadata(
            speaker="Ann", session="1", turn="D1:3", attributes={"n": 7}
        )
        note = ann.write(
            "tea is brewing", kind="working", origin="kitchen", metadata={"ttl_seconds": 90}
        )
        assert note.metadata == WorkingMetadata(ttl_seconds=90)
        assert (note.observed_at, note.created_at) == (None, clock.now())
        assert note.expires_at == clock.now() + timedelta(seconds=90)
        assert (note.confidence, note.importance, note.summary) == (1.0, 0.5, "")
        assert (note.approval_id, note.derived_from) == (None, ())


@pytest.mark.contract("O03")
def test_shares_lie_between_nought_and_one(memory, refused, remember, start):
    """Confidence or importance outside [0,1], NaN or infinite is rejected."""
    known = remember(memory, "known")
    bad = (-0.000001, -1e-12, 1.000001, 1 + 2**-52, 2, -1, math.nan, math.inf, -math.inf)
    for field in ("confidence", "importance"):
        for value in (*bad, "0.5", None):
            with refused(memory, Reason.FIELD_INVALID) as caught:
                remember(memory, "tea", **{field: value})
            assert caught[0].field == field
            assert caught[0].remedy
        for value in bad:
            with refused(memory, Reason.FIELD_INVALID) as caught:
                memory.update(known.id, **{field: value})
            assert caught[0].field == field
        with refused(memory, Reason.FIELD_INVALID) as caught:
            memory.write_many(
                [draft_fields("episodic", start, **{field: value}) for value in (0.5, math.nan)]
            )
        assert caught[0].field == f"drafts[1].{field}"
        for value in (0, 0.0, 0.000001, 0.999999, 1, 1.0):
            cell = remember(memory, f"{field} {value!r}", **{field: value})
            assert getattr(memory.get(cell.id), field) == value


class Nowhere(tzinfo):
    """A zone that cannot say how far it is from UTC."""

    def utcoffset(self, dt: datetime | None) -> None:
        return None

    def tzname(self, dt: datetime | None) -> str:
        return "nowhere"

    def dst(self, dt: datetime | None) -> None:
        return None


@pytest.mark.contract("O04")
def test_a_time_has_a_zone_and_is_kept_as_utc(memory, refused, remember, start):
    """A timestamp without a zone is rejected; one with a zone is kept as UTC."""
    naive = start.replace(tzinfo=None)
    for value in (naive, naive.isoformat(), "2026-03-01", naive.replace(tzinfo=Nowhere())):
        with refused(memory, Reason.TIME_NAIVE) as caught:
            remember(memory, "tea", observed_at=value)
        assert caught[0].field == "observed_at"
        assert "zone" in str(caught[0])
    with pytest.raises(CmaError) as info:
        FixedClock(naive)
    assert info.value.reason is Reason.TIME_NAIVE
    india = timezone(timedelta(hours=5, minutes=30))
    noon = datetime(2026, 3, 1, 17, 30, 0, 123456, tzinfo=india)
    cells = [
        remember(memory, "tea", observed_at=value)
        for value in (noon, noon.isoformat(), noon.astimezone(UTC), "2026-03-01T12:00:00.123456Z")
    ]
    assert len({cell.id for cell in cells}) == 1
    kept = memory.get(cells[0].id).observed_at
    assert kept is not None
    assert kept.utcoffset() == timedelta(0)
    assert kept.isoformat() == "2026-03-01T12:00:00.123456+00:00"


def id_by_hand(scope: str, authority: str, observed_at: str, metadata: dict[str, Any]) -> str:
    """The id as the documentation has it, made without the library."""
    identity = {
        "approval_id": None,
        "confidence": 750_000,
        "content": "Zoë trinkt Tee ☕",
        "derived_from": [],
        "importance": 500_000,
        "kind": "episodic",
        "metadata": {"attributes": {}, "session": None, "speaker": None, "turn": None} | metadata,
        "observed_at": observed_at,
        "scope": scope,
        "source": {"authority": authority, "origin": "test"},
        "summary": "",
    }
    text = json.dumps(identity, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return "cell-" + hashlib.sha256(b"cma:cell:1\0" + text.encode()).hexdigest()[:40]


@pytest.mark.contract("O05")
def test_an_id_is_made_from_content(open_memory, remember, start):
    """The id is derived from content: the same payload has the same id in two stores."""
    one = open_memory("one.cma")
    other = open_memory("other.cma", clock=FixedClock(start + timedelta(days=400)))
    assert one.store.store_id != other.store.store_id
    remember(other, "something before it")
    for scope in ("global", "session:ann"):
        fields = {
            "confidence": 0.75,
            "observed_at": start + timedelta(milliseconds=250),
            "metadata": {"speaker": "Zoë", "attributes": {"b": True, "a": 1}},
        }
        first = remember(one.within(scope), "Zoë trinkt Tee ☕", **fields)
        second = remember(other.within(scope), "Zoë trinkt Tee ☕", **fields)
        assert first.id == second.id
        assert first.created_at != second.created_at
        assert first.id == id_by_hand(
            scope,
            "user",
            "2026-03-01T12:00:00.250000Z",
            {"speaker": "Zoë", "attributes": {"a": 1, "b": True}},
        )


@pytest.mark.contract("O06")
def test_every_identifying_field_is_in_the_id(open_memory, start):
    """Changing any identifying field changes the id."""
    memory = open_memory("one.cma")
    base = {
        "content": "tea",
        "kind": "episodic",
        "origin": "test",
        "observed_at": start,
        "metadata": {"speaker": "Ann"},
    }
    changes: list[dict[str, Any]] = [
        {},
        {"content": "tea "},
        {"content": "Tea"},
        {"origin": "test 2"},
        {"summary": "t"},
        {"confidence": 0.999999},
        {"importance": 0.500001},
        {"observed_at": start + timedelta(microseconds=1)},
        {"metadata": {}},
        {"metadata": {"speaker": "Bob"}},
        {"metadata": {"speaker": "Ann", "session": "1"}},
        {"metadata": {"speaker": "Ann", "turn": "1"}},
        {"metadata": {"speaker": "Ann", "attributes": {"mood": "1"}}},
        {"metadata": {"speaker": "Ann", "attributes": {"mood": 1}}},
        {"metadata": {"speaker": "Ann", "attributes": {"mood": True}}},
        {"kind": "working", "metadata": {"ttl_seconds": 60}},
        {"kind": "working", "metadata": {"ttl_seconds": 61}},
        {"kind": "working", "metadata": {"ttl_seconds": 60}, "observed_at": None},
    ]
    view = memory.within("session:ann")
    ids = [view.write(**{**base, **change}).id for change in changes]
    ids += [memory.within(scope).write(**base).id for scope in ("global", "session:bob")]
    for authority in ("tool", "model", "document"):
        caller = Caller(name="tester", authority=authority)
        other = open_memory(f"{authority}.cma", caller=caller)
        ids.append(other.within("session:ann").write(**base).id)
    assert len(set(ids)) == len(ids)
    renamed = open_memory("renamed.cma", caller=Caller(name="someone else", authority="user"))
    assert renamed.within("session:ann").write(**base).id == ids[0]


@pytest.mark.contract("O07")
def test_metadata_is_that_of_the_kind(ann, refused, start):
    """A working cell needs a time to live, an episodic one a time; another kind's is rejected."""
    for metadata in (None, {}, *({"ttl_seconds": ttl} for ttl in (0, -1, 1.5, "60", True, None))):
        with refused(ann, Reason.FIELD_INVALID) as caught:
            ann.write("tea", kind="working", origin="test", metadata=metadata)
        assert caught[0].field == "metadata.ttl_seconds"
    assert ann.write("tea", kind="working", origin="test", metadata={"ttl_seconds": 1}).expires_at
    with refused(ann, Reason.METADATA_MISMATCH) as caught:
        ann.write("tea", kind="episodic", origin="test")
    assert caught[0].field == "observed_at"
    values = {
        "working": WorkingMetadata(**METADATA["working"]),
        "episodic": EpisodicMetadata(**METADATA["episodic"]),
        "semantic": SemanticMetadata(**METADATA["semantic"]),
        "procedural": ProceduralMetadata(task="brew tea", steps=("boil", "pour")),
    }
    for kind in ("working", "episodic"):
        for other in values:
            fields = draft_fields(kind, start, metadata=values[other])
            if other == kind:
                assert CellDraft(**fields).metadata == values[kind]
                continue
            with refused(ann, Reason.METADATA_MISMATCH) as caught:
                ann.write(**fields)
            assert caught[0].field == "metadata"
            with refused(ann, Reason.FIELD_INVALID):
                ann.write(**(fields | {"metadata": METADATA[other]}))
    with refused(ann, Reason.FIELD_INVALID) as caught:
        ann.write(**draft_fields("episodic", start, metadata={"speeker": "Ann"}))
    assert "speeker" in str(caught[0])


@pytest.mark.contract("O08")
def test_an_update_adds_a_revision(memory, remember, clock, refused):
    """An update makes a new revision and keeps the earlier one readable."""
    first = remember(memory, "tea at noon", metadata={"speaker": "Ann"})
    clock.advance(timedelta(hours=1))
    second = memory.update(first.id, confidence=0.5, summary="tea")
    third = memory.update(first.id, importance=0.9, metadata={"speaker": "Bob"})
    assert [cell.revision for cell in (first, second, third)] == [1, 2, 3]
    assert second == first.model_copy(update={"revision": 2, "confidence": 0.5, "summary": "tea"})
    assert third.metadata == EpisodicMetadata(speaker="Bob")
    assert (third.confidence, third.summary, third.importance) == (0.5, "tea", 0.9)
    for place, cell in enumerate((first, second, third), start=1):
        assert memory.get(first.id, revision=place) == cell
    assert memory.get(first.id) == third
    precise = remember(memory, "a share has six digits", confidence=2 / 3)
    assert memory.update(precise.id, confidence=1 / 3) == memory.get(precise.id)
    assert memory.get(precise.id).confidence == 0.333333
    for revision in (0, 4, -1):
        with pytest.raises(CmaError) as info:
            memory.get(first.id, revision=revision)
        assert info.value.reason is Reason.REVISION_NOT_FOUND
    for changes in ({}, {"confidence": 0.5}):
        with refused(memory, Reason.NOTHING_TO_UPDATE):
            memory.update(first.id, **changes)
    for field in ("id", "kind", "scope", "origin", "observed_at", "colour"):
        with refused(memory, Reason.FIELD_INVALID) as caught:
            memory.update(first.id, **{field: "x"})
        assert caught[0].field == field
    assert memory.verify().revisions == 5
    (hit,) = memory.recall("noon").hits
    assert hit.cell == third

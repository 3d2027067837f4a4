"""Records that are well formed and mean what cannot be: each is told by name, with its reason."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import apsw
import pytest

from cma import Memory
from cma.lagoon.standing import REJECTION
from cma.orion.governed import record_id
from cma.rosette.coherence import faults
from cma.rosette.topology import misplaced
from cma.values.identity import canonical
from tests.faults.injection import CALLER, hold, remember

Record = dict[str, Any]
Change = Callable[[Record, SimpleNamespace], object]


@pytest.fixture
def told(path: Path, ann: Memory) -> SimpleNamespace:
    """A closed store with a record of every kind, and the ids of some."""
    ids = SimpleNamespace(path=path)
    events, frames = [], {}
    for place, drink in enumerate(("tea", "tea", "mate", "mate")):
        pair = [remember(ann, f"{drink} {place} {n}", minutes=2 * place + n).id for n in range(2)]
        events += pair
        frame = ann.bind(scene=f"s{place}", sources=pair, actions=[drink])
        ann.replay(frame.id)
        frames.setdefault(drink, []).append(frame.id)
    ids.events, ids.frame = events, frames["tea"][0]
    ids.note = hold(ann, "a note").id
    claims = {}
    for drink in ("tea", "mate"):
        proposal = ann.propose(
            frames=frames[drink], content=drink, subject="a", predicate="drinks", object=drink
        )
        claims[drink] = ann.approve(proposal.id, approval_id=f"CR-{drink}").id
        ann.approve(proposal.id, approval_id=f"CR-again-{drink}")
    ids.claim = claims["tea"]
    further = ann.propose(
        frames=frames["tea"], content="more", subject="b", predicate="drinks", object="tea"
    )
    ann.reject(further.id, reason="no")
    for outcome, source in (("success", events[0]), ("success", events[1]), ("failure", events[2])):
        ids.execution = ann.execute(task="t", steps=["a"], outcome=outcome, sources=[source]).id
    runs = ann.store.connection.execute("SELECT id FROM governed WHERE kind = 'execution'")
    skill = ann.propose_skill(executions=[name for (name,) in runs.fetchall()])
    ann.approve(skill.id, approval_id="CR-skill")
    ids.conflict = ann.conflicts()[0].id
    ann.decide(ids.conflict, handling="defer")
    ann.deliver(ann.packet(ann.recall("tea"), budget=2_000))
    changing = remember(ann, "changing").id
    ann.update(changing, summary="one")
    ids.changing = changing
    ann.verify()
    ann.store.close()
    return ids


def edited(
    ids: SimpleNamespace, table: str, where: str, change: Change, columns: tuple[str, ...] = ()
) -> list[str]:
    """Change the record of the first row of a kind, and columns that repeat its parts; return its
    faults as topology and coherence tell them.
    """
    connection = apsw.Connection(str(ids.path))
    ordinal, data = connection.execute(
        f"SELECT ordinal, record FROM {table} WHERE {where} ORDER BY ordinal LIMIT 1"
    ).fetchone()
    record = json.loads(data)
    change(record, ids)
    sets = "".join(f", {name} = ?" for name in columns)
    connection.execute(
        f"UPDATE {table} SET record = ?{sets} WHERE ordinal = ?",
        (canonical(record), *(record[name] for name in columns), ordinal),
    )
    return messages(connection)


def messages(connection: apsw.Connection) -> list[str]:
    found = [error.message for error in misplaced(connection)]
    assert {message for _, message in faults(connection)} <= set(found)
    return found


def sources_of(record: Record) -> list[Any]:
    found: list[Any] = record["identity"]["sources"]
    return found


def other_digest(record: Record, _: SimpleNamespace) -> None:
    sources_of(record)[0][1] = "0" * 64


def turned(record: Record, _: SimpleNamespace) -> None:
    sources_of(record).reverse()


def source_is_a_note(record: Record, ids: SimpleNamespace) -> None:
    sources_of(record)[0][0] = ids.note
    record["refs"] = [*record["refs"], ids.note]


def cell_is_a_note(record: Record, ids: SimpleNamespace) -> None:
    record["identity"]["cells"][0] = ids.note
    record["refs"] = [*record["refs"], ids.note]


def both_kinds(record: Record, ids: SimpleNamespace) -> None:
    record["identity"]["executions"] = [ids.execution]
    record["refs"] = [*record["refs"], ids.execution]


def no_kind(record: Record, _: SimpleNamespace) -> None:
    record["identity"]["frames"] = []


def part(place: str, value: Any) -> Change:
    """Return what puts a value at a dotted place of a record."""

    def change(record: Record, _: SimpleNamespace) -> None:
        *path, last = place.split(".")
        for step in path:
            record = record[step]
        record[last] = value

    return change


def without(place: str) -> Change:
    """Return what takes the part at a dotted place away."""

    def change(record: Record, _: SimpleNamespace) -> None:
        *path, last = place.split(".")
        for step in path:
            record = record[step]
        del record[last]

    return change


def named(change: Change) -> Change:
    """Return a change after which the record has the id of its identity."""

    def apply(record: Record, ids: SimpleNamespace) -> None:
        change(record, ids)
        record["id"] = record_id(record["kind"], record["identity"])

    return apply


NOT_WITNESSED = "a source is not what it says was witnessed"
NOT_ONE_KIND = "claim and evidence are not of one kind"
NOT_AGREED = "cell, approval and candidate of the admission do not agree"
NO_PARTS = "a record does not have the parts of its kind"
OTHER_KIND = "its evidence is of another kind"
EVIDENCE_SAYS = "it does not say what its evidence says"
NO_CONFLICT = "it decides on what is no conflict"
NO_FRAME = "the frame that it names is not there"
REPEATS_NONE = "it repeats no admission"
NO_INTERVAL = "its interval does not cover its sources"
LATE, EARLY = "2026-03-02T00:00:00Z", "2026-02-01T00:00:00Z"
Case = tuple[str, str, Change, tuple[str, ...], str]
CASES: tuple[Case, ...] = (
    ("governed", "frame", part("kind", "other"), ("kind",), "knows records of the kind other"),
    ("governed", "frame", without("identity.sources"), (), NO_PARTS),
    ("governed", "frame", part("refs", []), (), "a source is not among its references"),
    ("governed", "frame", source_is_a_note, (), "is no episodic cell"),
    ("governed", "execution", source_is_a_note, (), "is no episodic cell"),
    ("attendant", "candidate", cell_is_a_note, (), "is no episodic cell"),
    ("attendant", "candidate", both_kinds, (), NOT_ONE_KIND),
    ("attendant", "candidate", no_kind, (), NOT_ONE_KIND),
    ("attendant", "candidate", part("subject", "0" * 64), ("subject",), NOT_ONE_KIND),
    ("governed", "approval", part("details.fingerprint", "0" * 64), (), NOT_AGREED),
    ("attendant", "replay", part("refs", []), (), NO_FRAME),
    ("attendant", "replay", part("identity.frame", "frame-0"), (), NO_FRAME),
    ("governed", "decision", part("identity.link", "link-0"), (), NO_CONFLICT),
    ("governed", "frame", part("subject", "0" * 64), ("subject",), "its signature or scope is"),
    ("governed", "frame", part("scope", "session:x"), ("scope",), "its signature or scope is"),
    ("governed", "frame", other_digest, (), NOT_WITNESSED),
    ("governed", "frame", part("identity.sources", []), (), NOT_WITNESSED),
    ("governed", "frame", turned, (), "its sources are not in observed order"),
    ("governed", "frame", part("identity.start", LATE), (), NO_INTERVAL),
    ("governed", "frame", part("identity.end", EARLY), (), NO_INTERVAL),
    ("governed", "execution", part("subject", "0" * 64), ("subject",), "its fingerprint or scope"),
    ("governed", "execution", other_digest, (), NOT_WITNESSED),
    ("governed", "execution", part("identity.sources", []), (), NOT_WITNESSED),
    ("attendant", "replay", part("identity.complete", False), (), "it is not complete in the way"),
    ("attendant", "candidate", part("scope", "session:x"), ("scope",), "another scope than its"),
    ("attendant", "candidate", named(both_kinds), ("id",), OTHER_KIND),
    ("attendant", "candidate", named(no_kind), ("id",), OTHER_KIND),
    ("attendant", "candidate", named(part("identity.signature", "0")), ("id",), EVIDENCE_SAYS),
    ("attendant", "rejection", part("details.reason", "  "), (), "it does not say why"),
    ("attendant", "rejection", part("details.reason", 5), (), "it does not say why"),
    ("governed", "approval", part("details.fingerprint", "0" * 64), (), "to another proposal"),
    ("governed", "approval", part("scope", "global"), ("scope",), "to another proposal"),
    ("governed", "admission", part("scope", "global"), ("scope",), "its cell is not what was"),
    ("governed", "admission", part("subject", "0" * 64), ("subject",), "by another claim"),
    ("governed", "approval", part("details.expires_at", EARLY), (), "its approval had expired"),
    ("attendant", "repeat", part("identity.approval", 5), (), REPEATS_NONE),
    ("attendant", "repeat", part("identity.fingerprint", "0" * 64), (), REPEATS_NONE),
    ("governed", "decision", part("by", "another"), (), "scope, name or time is another"),
)  # fmt: skip


@pytest.mark.parametrize(
    ("table", "kind", "change", "columns", "words"),
    CASES,
    ids=[f"{place}-{case[1]}" for place, case in enumerate(CASES)],
)
def test_a_record_that_means_what_cannot_be_is_told(
    told: SimpleNamespace,
    table: str,
    kind: str,
    change: Change,
    columns: tuple[str, ...],
    words: str,
) -> None:
    found = edited(told, table, f"kind = '{kind}'", change, columns)
    assert any(words in message for message in found), found


def test_an_approval_that_holds_still_is_no_fault(told: SimpleNamespace) -> None:
    later = part("details.expires_at", LATE)
    assert edited(told, "governed", "kind = 'approval'", later) == []


def executed(ids: SimpleNamespace, *statements: tuple[Any, ...]) -> list[str]:
    connection = apsw.Connection(str(ids.path))
    for sql, *values in statements:
        connection.execute(sql, tuple(values))
    return messages(connection)


def test_a_sound_store_has_no_faults(told: SimpleNamespace) -> None:
    assert executed(told) == []


def test_what_is_no_conflict_any_more_is_not_decided_on(told: SimpleNamespace) -> None:
    found = executed(told, ("UPDATE links SET kind = 'causal' WHERE id = ?", told.conflict))
    assert "it decides on what is no conflict" in found


def test_a_decision_on_what_its_scope_does_not_see_is_told(told: SimpleNamespace) -> None:
    ends = f"id IN (SELECT source_id FROM links WHERE id = '{told.conflict}')"
    found = executed(told, (f"UPDATE cells SET scope = 'session:x' WHERE {ends}",))
    assert "it decides on what its scope does not see" in found
    assert "it joins what no link can join" in found


def test_a_link_to_itself_is_told(told: SimpleNamespace) -> None:
    found = executed(told, ("UPDATE links SET target_id = source_id",))
    assert "it joins what no link can join" in found


@pytest.mark.parametrize(
    ("revision", "change", "words"),
    [
        (1, part("lifecycle", "retracted"), "it was changed after it was retired"),
        (2, part("content", "another"), "a revision changed what no update can change"),
        (2, part("source.origin", "another"), "a revision changed what no update can change"),
    ],
)
def test_a_revision_that_no_update_makes_is_told(
    told: SimpleNamespace, revision: int, change: Change, words: str
) -> None:
    where = f"id = '{told.changing}' AND revision = {revision}"
    assert words in edited(told, "cells", where, change)


def test_an_admission_of_what_is_not_derived_is_told(told: SimpleNamespace) -> None:
    connection = apsw.Connection(str(told.path))
    data = connection.execute("SELECT record FROM governed WHERE kind = 'admission'").fetchone()[0]
    admission = json.loads(data)["details"]
    connection.close()
    edited(told, "attendant", f"id = '{admission['candidate']}'", part("identity.kind", "episodic"))
    found = edited(told, "cells", f"id = '{admission['cell']}'", part("kind", "episodic"))
    assert "an admission without its cell" in found


def test_a_proposal_that_was_also_rejected_is_told(told: SimpleNamespace) -> None:
    connection = apsw.Connection(str(told.path))
    data = connection.execute("SELECT record FROM governed WHERE kind = 'admission'").fetchone()[0]
    connection.close()
    candidate = json.loads(data)["details"]["candidate"]

    def also(record: Record, _: SimpleNamespace) -> None:
        record["identity"] = {"candidate": candidate}
        record["id"] = record_id(REJECTION, record["identity"])
        record["refs"] = [candidate]

    found = edited(told, "attendant", "kind = 'rejection'", also, ("id",))
    assert "its proposal was rejected" in found


def test_a_repeat_of_another_cell_is_told(told: SimpleNamespace) -> None:
    def another(record: Record, ids: SimpleNamespace) -> None:
        record["refs"] = [ids.note if name.startswith("cell-") else name for name in record["refs"]]

    assert REPEATS_NONE in edited(told, "attendant", "kind = 'repeat'", another)


def test_what_is_gone_is_told_by_those_that_name_it(told: SimpleNamespace) -> None:
    found = executed(told, ("DELETE FROM governed WHERE id = ?", told.frame))
    assert "the frame that it names is not there" in found
    assert "it, or what it names, does not have the parts of its kind" in found


@pytest.mark.parametrize(
    ("table", "kind", "change"),
    [
        ("governed", "frame", part("identity.scene", "words")),
        ("governed", "execution", part("identity.task", "words")),
        ("attendant", "candidate", part("identity.content", "words")),
        ("attendant", "rejection", part("details.reason", "words")),
    ],
)
def test_what_was_erased_holds_no_words(
    told: SimpleNamespace, table: str, kind: str, change: Change
) -> None:
    with Memory.open(told.path, caller=CALLER) as memory:
        memory.within("session:ann").erase(told.events[0], reason="person-request")
    assert executed(told) == []
    marked = "json_extract(CAST(record AS TEXT), '$.details.erased') IS NOT NULL"
    found = edited(told, table, f"kind = '{kind}' AND {marked}", change)
    assert "it was erased and is not blank" in found


def test_an_admission_that_follows_none_is_told(told: SimpleNamespace) -> None:
    follows = named(part("identity.after", "cell-0"))
    found = edited(told, "governed", "kind = 'admission'", follows, ("id",))
    assert "it follows no admission of its fingerprint" in found

"""An erasure that no audit record tells of, or that left something: refused wherever it is seen."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import apsw
import pytest

from cma import CmaError, Memory, Reason
from cma.doctor.examining import examine
from cma.orion.erased import blank_cell, blank_trace
from cma.orion.governed import filed_of, record_digest
from cma.orion.records import record_of, revision_digest
from cma.rosette.blanks import blank
from cma.rosette.topology import check_topology, misplaced
from cma.values.clock import SystemClock
from cma.values.identity import canonical, canonical_of_checked
from tests.faults.forging import Line, forged
from tests.faults.injection import CALLER, remember, tamper

WHY = "person-request"
CLAIM = {"subject": "Ann", "predicate": "drinks", "object": "tea", "content": "Ann drinks tea"}


@pytest.fixture
def ids(ann: Memory) -> SimpleNamespace:
    """Two cups, their frames, a fact, a recall that was delivered, and one more cell."""
    cups, frames = [], []
    for number in range(2):
        cups.append(remember(ann, f"a cup of tea at {number}", minutes=number).id)
        frames.append(ann.bind(scene=f"room {number}", sources=cups[-1:], entities=["Ann"]).id)
        ann.replay(frames[-1])
    candidate = ann.propose(frames=frames, **CLAIM).id
    fact = ann.approve(candidate, approval_id="CR-1").id
    link = ann.link("task", cups[0], cups[1], evidence="both of tea").id
    recalled = ann.recall("cup of tea")
    packet = ann.packet(recalled, budget=200)
    ann.deliver(packet)
    innocent = remember(ann, "an innocent remark", minutes=9).id
    return SimpleNamespace(
        cups=cups, frames=frames, candidate=candidate, fact=fact, link=link,
        trace=recalled.trace.id, packet=packet.id, innocent=innocent,
    )  # fmt: skip


def put(path: Path, table: str, name: str, change: Callable[[Any], Any], **columns: Any) -> None:
    """Change a stored record as a stranger would, and columns with it."""
    with apsw.Connection(str(path)) as stranger:
        for revision, data in stranger.execute(
            f"SELECT rowid, record FROM {table} WHERE id = ?", (name,)
        ).fetchall():
            values = {"record": canonical_of_checked(change(data)), **columns}
            sets = ", ".join(f"{column} = ?" for column in values)
            sql = f"UPDATE {table} SET {sets} WHERE rowid = ?"
            stranger.execute(sql, (*values.values(), revision))


def _left(data: bytes) -> Any:
    filed = blank(filed_of(data))
    details = {**filed.details, "erased": record_digest(data)}
    return {**json.loads(data), "identity": filed.identity, "details": details}


FAKES: dict[str, Callable[[Path, SimpleNamespace], None]] = {
    "a cell": lambda path, ids: put(
        path, "cells", ids.innocent,
        lambda data: blank_cell(record_of(data), revision_digest(data)), lifecycle="erased",
    ),
    "a cell, without a mark": lambda path, ids: put(
        path, "cells", ids.innocent, lambda data: {**record_of(data), "content": ""}
    ),
    "a trace": lambda path, ids: put(
        path, "traces", ids.trace, lambda data: blank_trace(record_of(data), ids.trace)
    ),
    "a frame": lambda path, ids: put(path, "governed", ids.frames[0], _left),
    "a proposal": lambda path, ids: put(path, "attendant", ids.candidate, _left),
    "a packet": lambda path, ids: put(path, "attendant", ids.packet, _left),
    "a link's evidence": lambda path, ids: put(
        path, "links", ids.link, lambda data: {**record_of(data), "evidence": None}
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", FAKES)
def test_what_was_blanked_by_hand_is_refused(
    memory: Memory, path: Path, ids: SimpleNamespace, case: str
) -> None:
    memory.close()
    FAKES[case](path, ids)
    with Memory.open(path, caller=CALLER) as again:
        with pytest.raises(CmaError) as refusal:
            again.verify()
        assert refusal.value.reason is Reason.STATE_DISAGREES
        with pytest.raises(CmaError, match=Reason.STATE_DISAGREES.value):
            again.snapshot(path.with_name("s.cma.jsonl"))
    found = examine(path, clock=SystemClock())
    assert not found.healthy
    assert Reason.STATE_DISAGREES.value in {each.code.value for each in found.findings}


def test_an_erased_store_is_healthy_and_what_is_put_back_is_not(
    ann: Memory, path: Path, ids: SimpleNamespace
) -> None:
    with apsw.Connection(str(path)) as stranger:
        query = "SELECT revision, record FROM cells WHERE id = ?"
        old = stranger.execute(query, (ids.cups[0],)).fetchall()
    ann.erase(ids.cups[0], reason=WHY)
    ann.close()
    assert examine(path, clock=SystemClock()).healthy
    for revision, data in old:
        tamper(
            path,
            ("UPDATE cells SET record = ?, lifecycle = 'active' WHERE id = ? AND revision = ?",
             data, ids.cups[0], revision),
        )  # fmt: skip
    with Memory.open(path, caller=CALLER) as again, pytest.raises(CmaError) as refusal:
        again.verify()
    assert refusal.value.reason is Reason.STATE_DISAGREES


@contextmanager
def erased_and(ann: Memory, path: Path, ids: SimpleNamespace) -> Iterator[apsw.Connection]:
    """Erase a cup, then look at the store's meaning alone, as a stranger left it."""
    ann.erase(ids.cups[0], reason=WHY)
    ann.close()
    connection = apsw.Connection(str(path))
    check_topology(connection)
    yield connection
    connection.close()


def _said(connection: apsw.Connection) -> set[str]:
    return {error.message for error in misplaced(connection)}


def _texts_in_frame(data: bytes) -> Any:
    record = json.loads(data)
    return {**record, "identity": {**record["identity"], "scene": "room 0"}}


def _unmarked(data: bytes) -> Any:
    record = json.loads(data)
    details = {name: part for name, part in record["details"].items() if name != "erased"}
    return {**record, "details": details}


MEANINGS: dict[str, tuple[Callable[[apsw.Connection, Path, SimpleNamespace], Any], str]] = {
    "a fact back in service": (
        lambda c, _, ids: c.execute("DELETE FROM cells WHERE id = ? AND revision = 2", (ids.fact,)),
        "it is in service, and a source of it was erased",
    ),
    "a frame that still says something": (
        lambda _, path, ids: put(path, "governed", ids.frames[0], _texts_in_frame),
        "it was erased and is not blank",
    ),
    "a packet without a mark": (
        lambda _, path, ids: put(path, "attendant", ids.packet, _unmarked),
        "it says more than the erased cell that it served left of it",
    ),
    "a frame without a mark": (
        lambda _, path, ids: put(path, "governed", ids.frames[0], _unmarked),
        "it says more than its erased source left of it",
    ),
    "a proposal erased, its fact not": (
        lambda _, path, ids: put(path, "attendant", ids.candidate, _left),
        "its proposal was erased, and its cell was not",
    ),
    "a revision that was spared": (
        lambda c, _, ids: _spare(c, ids.cups[0]),
        "only some of its revisions were erased",
    ),
}  # fmt: skip


def _spare(connection: apsw.Connection, name: str) -> None:
    (data,) = connection.execute("SELECT record FROM cells WHERE id = ?", (name,)).fetchone()
    record = {**record_of(data), "revision": 2, "summary": "what was spared"}
    del record["erased"]
    connection.execute(
        "INSERT INTO cells (id, revision, scope, lifecycle, record) VALUES (?, 2, ?, ?, ?)",
        (name, record["scope"], "active", canonical(record)),
    )


@pytest.mark.parametrize("case", MEANINGS)
def test_what_an_erasure_must_leave_is_held(
    ann: Memory, path: Path, ids: SimpleNamespace, case: str
) -> None:
    change, message = MEANINGS[case]
    with erased_and(ann, path, ids) as connection:
        change(connection, path, ids)
        assert message in _said(connection)


def test_a_claim_is_admitted_anew_only_where_the_first_fell(
    ann: Memory, path: Path, ids: SimpleNamespace
) -> None:
    ann.erase(ids.cups[0], reason=WHY)
    third = remember(ann, "a cup of tea at 5", minutes=5).id
    ann.replay(ann.bind(scene="room 5", sources=[third], entities=["Ann"]).id)
    ann.approve(ann.regenerate(ids.candidate).id, approval_id="CR-2")
    ann.close()
    with apsw.Connection(str(path)) as stranger:
        stranger.execute("DELETE FROM cells WHERE id = ? AND revision = 2", (ids.fact,))
        assert "its fingerprint is admitted twice, and the first cell stands" in _said(stranger)


def _line(records: list[Line], kind: str, mark: bool = True) -> Any:
    def marked(record: Any) -> bool:
        return "erased" in record or "erased" in record.get("details", {})

    return next(r["record"] for r in records if r["type"] == kind and marked(r["record"]) is mark)


def _faked_in_snapshot(records: list[Line]) -> None:
    innocent = next(r for r in records if r["record"].get("content") == "an innocent remark")
    commitment = revision_digest(canonical(innocent["record"]))
    innocent["record"] = blank_cell(innocent["record"], commitment)


def _scene(records: list[Line]) -> None:
    _line(records, "governed")["identity"]["scene"] = "room 0"


LIES: dict[str, tuple[Callable[[list[Line]], Any], Reason]] = {
    "a cell that says something": (
        lambda records: _line(records, "cell").update(summary="tea"), Reason.SNAPSHOT_RECORD,
    ),
    "a trace that asks something": (
        lambda records: _line(records, "trace").update(query="tea"), Reason.SNAPSHOT_RECORD,
    ),
    "a frame with a scene": (_scene, Reason.SNAPSHOT_TOPOLOGY),
    "a cell of which no erasure is on record": (_faked_in_snapshot, Reason.SNAPSHOT_CHAIN),
    "a cell whose mark is gone": (
        lambda records: _line(records, "cell").pop("erased"), Reason.SNAPSHOT_RECORD,
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", ["none", *LIES])
def test_a_snapshot_that_lies_about_an_erasure_is_refused(
    ann: Memory, path: Path, ids: SimpleNamespace, case: str
) -> None:
    ann.erase(ids.cups[0], reason=WHY)
    honest, target = path.with_name("h.cma.jsonl"), path.with_name("l.cma.jsonl")
    ann.snapshot(honest)
    if case == "none":
        forged(honest, target, lambda _: None)
        Memory.restore(target, path.with_name("r"), caller=CALLER).close()
        return
    lie, reason = LIES[case]
    forged(honest, target, lie)
    with pytest.raises(CmaError) as refusal:
        Memory.restore(target, path.with_name("r"), caller=CALLER)
    assert refusal.value.reason is reason, str(refusal.value)
    assert not path.with_name("r").exists()

"""Snapshots that were made up: sealed without a fault around a lie, and refused for the lie."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from cma import CmaError, Memory, Reason
from tests.faults.claiming import claimed, frames, proposed
from tests.faults.forging import Line, forged
from tests.faults.injection import remember


@pytest.fixture
def honest(path: Path, memory: Memory, ann: Memory) -> Path:
    """A snapshot of a memory with a record of every kind."""
    claimed(ann, "Ann drinks tea", first=0)
    claimed(ann, "Ann drinks coffee", first=5)
    again = proposed(ann, "Ann drinks tea", frames(ann, "again", first=10))
    ann.approve(again.id, approval_id="CR-again")
    no = proposed(ann, "Ann drinks gin", frames(ann, "no", first=15))
    ann.reject(no.id, reason="hearsay")
    proposed(ann, "Cat likes fish", frames(ann, "fish", first=20))
    runs = [
        ann.execute(
            task="deploy",
            steps=["ship"],
            outcome=outcome,
            sources=[remember(ann, f"a {outcome}", minutes=30).id],
        ).id
        for outcome in ("success", "failure")
    ]
    ann.approve(ann.propose_skill(executions=runs).id, approval_id="CR-skill")
    ann.decide(ann.conflicts()[0].id, handling="prefer_recent")
    ann.write("a note", kind="working", origin="o", metadata={"ttl_seconds": 60})
    ann.deliver(ann.packet(ann.recall("Ann drinks tea coffee"), budget=900))
    memory.snapshot(path.with_name("honest.cma.jsonl"))
    return path.with_name("honest.cma.jsonl")


def _of(kind: str, records: list[Line], /, **identity: Any) -> Line:
    """Return the record of the first line of a kind whose identity has these parts."""
    return next(
        each["record"]
        for each in records
        if each["record"].get("kind") == kind
        and identity.items() <= each["record"].get("identity", each["record"]).items()
    )


def _set(found: Callable[[list[Line]], Line], *path: Any) -> Callable[[list[Line]], None]:
    """Return a lie: what stands at a path of a record is another value, the last of `path`."""

    def lie(records: list[Line]) -> None:
        place: Any = found(records)
        for step in path[:-2]:
            place = place[step]
        place[path[-2]] = path[-1]

    return lie


def _tea(records: list[Line]) -> Line:
    return _of("semantic", records, content="Ann drinks tea")


def _fish(records: list[Line]) -> Line:
    return _of("candidate", records, content="Cat likes fish")


def _kind(name: str, /, **identity: Any) -> Callable[[list[Line]], Line]:
    return lambda records: _of(name, records, **identity)


def _rejected_and_admitted(records: list[Line]) -> None:
    rejection, admission = _of("rejection", records), _of("admission", records)
    name = admission["details"]["candidate"]
    rejection |= {"identity": {"candidate": name}, "subject": name, "refs": [name]}


def _half_a_conflict(records: list[Line]) -> None:
    packet, receipt = _of("packet", records)["identity"], _of("receipt", records)["identity"]
    group = next(each for each in packet["groups"] if len(each["cells"]) > 1)
    left = group["cells"].pop()
    group["reason"] = "hit"
    receipt["cells"].remove(left)


def _failure_told_as_success(records: list[Line]) -> None:
    skill = _of("candidate", records, kind="procedural")["identity"]
    skill["successes"] += skill["failures"]
    skill["failures"] = []


LIES: dict[str, Callable[[list[Line]], None]] = {
    "the cell is another claim": _set(_tea, "metadata", "object", "gin"),
    "the cell is global": _set(_tea, "scope", "global"),
    "the cell is certain": _set(_tea, "confidence", 1),
    "the cell is a model's": _set(_tea, "source", "authority", "model"),
    "the skill has other steps": _set(_kind("procedural"), "metadata", "steps", ["rm"]),
    "a witness was approved": _set(_kind("episodic"), "approval_id", "CR-1"),
    "a witness has no time": _set(_kind("episodic"), "observed_at", None),
    "a note never ends": _set(_kind("working"), "expires_at", None),
    "a note is global": _set(_kind("working"), "scope", "global"),
    "a scope is none": _set(_kind("working"), "scope", "somewhere"),
    "a candidate of another fingerprint": _set(_fish, "identity", "fingerprint", "0" * 64),
    "a candidate of another object": _set(_fish, "identity", "metadata", "object", "birds"),
    "a candidate of another kind": _set(_fish, "identity", "kind", "procedural"),
    "a candidate of no kind": _set(_fish, "identity", "kind", "odd"),
    "a candidate for another session": _set(_fish, "identity", "scope", "session:bob"),
    "a candidate of fewer cells": _set(_fish, "identity", "cells", []),
    "a candidate surer than sure": _set(_fish, "identity", "confidence", 5_000_000),
    "a candidate of no share": _set(_fish, "identity", "confidence", "much"),
    "a failure is a success": _failure_told_as_success,
    "an execution came out the other way": _set(
        _kind("execution", outcome="failure"), "identity", "outcome", "success"
    ),
    "an execution came out oddly": _set(_kind("execution"), "identity", "outcome", "perhaps"),
    "an execution of another skill": _set(_kind("execution"), "subject", "0" * 64),
    "a frame of another signature": _set(_kind("frame"), "subject", "0" * 64),
    "a frame of another session": _set(_kind("frame"), "scope", "session:bob"),
    "a frame without sources": _set(_kind("frame"), "identity", "sources", []),
    "a frame of another witness": _set(_kind("frame"), "identity", "sources", 0, 1, "0" * 64),
    "a frame that ends before it begins": _set(
        _kind("frame"), "identity", "end", "1990-01-01T00:00:00Z"
    ),
    "a frame of no time": _set(_kind("frame"), "identity", "start", "soon"),
    "a replay that was not complete": _set(_kind("replay"), "identity", "complete", False),
    "a replay of no steps": _set(_kind("replay"), "identity", "steps", [5]),
    "an approval that had expired": _set(
        _kind("approval"), "details", "expires_at", "1990-01-01T00:00:00Z"
    ),
    "an approval until some time": _set(_kind("approval"), "details", "expires_at", "soon"),
    "an approval by nobody": _set(_kind("approval"), "details", {}),
    "an admission of another claim": _set(_kind("admission"), "subject", "0" * 64),
    "an admission elsewhere": _set(_kind("admission"), "scope", "session:bob"),
    "rejected and admitted": _rejected_and_admitted,
    "a rejection without a reason": _set(_kind("rejection"), "details", {}),
    "a repeat by nobody": _set(_kind("repeat"), "details", {}),
    "a decision of no handling": _set(_kind("decision"), "identity", "handling", "delete_one"),
    "a decision from elsewhere": _set(_kind("decision"), "scope", "session:bob"),
    "a receipt of nothing": _set(_kind("receipt"), "identity", {}),
    "a receipt of fewer cells": _set(_kind("receipt"), "identity", "cells", []),
    "a receipt of no packet": _set(_kind("receipt"), "identity", "packet", "packet-" + "0" * 40),
    "a packet over its budget": _set(_kind("packet"), "identity", "budget", 1),
    "a packet of no groups": _set(_kind("packet"), "identity", "groups", [[5]]),
    "a packet with half a conflict": _half_a_conflict,
}


def test_a_snapshot_forged_without_a_lie_is_restored(honest: Path, tmp_path: Path) -> None:
    """Otherwise every lie below would be refused for the forger's own mistakes."""
    forged(honest, tmp_path / "same.cma.jsonl", lambda _: None)
    assert (tmp_path / "same.cma.jsonl").read_bytes() == honest.read_bytes()
    with Memory.restore(tmp_path / "same.cma.jsonl", tmp_path / "same.cma") as restored:
        assert restored.verify().governed > 10


@pytest.mark.parametrize("lie", LIES.values(), ids=LIES)
def test_a_snapshot_that_tells_a_lie_is_refused_however_well_it_is_sealed(
    honest: Path, tmp_path: Path, lie: Callable[[list[Line]], None]
) -> None:
    forged(honest, tmp_path / "lie.cma.jsonl", lie)
    with pytest.raises(CmaError) as info:
        Memory.restore(tmp_path / "lie.cma.jsonl", tmp_path / "lie.cma")
    assert info.value.reason in (Reason.SNAPSHOT_TOPOLOGY, Reason.SNAPSHOT_RECORD), info.value
    assert not (tmp_path / "lie.cma").exists()


def test_a_global_packet_that_sessions_deliver_is_no_lie(
    memory: Memory, ann: Memory, bob: Memory
) -> None:
    remember(memory, "tea at noon")
    packet = memory.packet(memory.recall("tea"), budget=200)
    for view in (ann, bob, memory):
        view.deliver(packet)
    assert memory.verify().attendant == 4

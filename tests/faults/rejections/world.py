"""A prepared memory with something of every kind, and how its file is looked at from outside."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import apsw

from cma import Caller, FixedClock, Memory, Policy
from cma.orion.audit import AuditRecord, Operation, audit_record
from cma.orion.authority import store_digest
from cma.orion.opening import head_of
from tests.faults.injection import CALLER, START, hold, remember

MODEL = Caller(name="model", authority="model")
NOWHERE = "0" * 40
DEPLOY = {"task": "deploy", "steps": ["build", "ship"]}


@dataclass
class World:
    """A memory seen from its scopes; `ids` names what was prepared in it."""

    path: Path
    clock: FixedClock
    memory: Memory
    ids: SimpleNamespace

    @property
    def ann(self) -> Memory:
        return self.memory.within("session:ann")

    @property
    def bob(self) -> Memory:
        return self.memory.within("session:bob")

    @property
    def model(self) -> Memory:
        return self.ann.acting_as(MODEL)

    @property
    def folder(self) -> Path:
        return self.path.parent

    def with_policy(self, **parts: Any) -> Memory:
        """Ann's view of the same store under another policy."""
        view = self.ann
        view.policy = Policy(**parts)
        return view

    def tamper(self, *statements: tuple[Any, ...]) -> None:
        """Change the file as a stranger would, while the memory is open."""
        connection = apsw.Connection(str(self.path))
        connection.execute("DROP TRIGGER IF EXISTS audit_is_never_changed")
        connection.execute("DROP TRIGGER IF EXISTS audit_is_never_deleted")
        with connection:
            for sql, *values in statements:
                connection.execute(sql, values)
        connection.close()

    def drop(self, cell_id: str) -> None:
        """Remove a cell's row."""
        self.tamper(("DELETE FROM cells WHERE id = ?", cell_id))

    def later(self, **parts: float) -> None:
        self.clock.advance(timedelta(**parts))

    def retract(self, cell_id: str) -> None:
        self.ann.update(cell_id, lifecycle="retracted")


def claim(view: Memory, frames: list[str], **parts: Any) -> Any:
    """Propose that Ann drinks tea, or what `parts` say."""
    parts = {"subject": "Ann", "predicate": "drinks", "object": "tea", **parts}
    parts.setdefault("content", f"{parts['subject']} {parts['predicate']} {parts['object']}")
    return view.propose(frames=frames, **parts)


def prepare(path: Path) -> SimpleNamespace:
    """Make the memory, close it, and return the ids of what is in it."""
    ids = SimpleNamespace()
    clock = FixedClock(START)
    with Memory.open(path, caller=CALLER, clock=clock, store_id="prepared") as memory:
        ann, bob = memory.within("session:ann"), memory.within("session:bob")
        ids.shared = remember(memory, "a public notice about tea").id
        ids.one, ids.two = (remember(ann, f"event {n}", minutes=n).id for n in (1, 2))
        ids.held = hold(ann, "the kettle is on").id
        ids.retired = remember(ann, "hearsay", minutes=3).id
        ann.update(ids.retired, lifecycle="retracted")
        ids.bobs = remember(bob, "a secret of bob", minutes=1).id
        ids.bobs_two = remember(bob, "another secret", minutes=2).id
        ids.bobs_conflict = bob.link("conflict", ids.bobs, ids.bobs_two).id
        ann.link("task", ids.one, ids.two, weight=0.5)
        ids.cups, ids.frames = [], []
        for number in range(4):
            drink = "tea" if number < 2 else "mate"
            cup = remember(ann, f"Ann drinks {drink}, cup {number}", minutes=10 + number).id
            frame = ann.bind(
                scene=f"kitchen {number}", sources=[cup], entities=["Ann"], actions=[drink]
            )
            ann.replay(frame.id)
            ids.cups.append(cup)
            ids.frames.append(frame.id)
        bare = remember(ann, "a cup that nobody replayed", minutes=20).id
        ids.bare = ann.bind(scene="bare", sources=[bare], entities=["Ann"], actions=["tea"]).id
        again = ann.bind(scene="again", sources=ids.cups[:1], entities=["Ann"], actions=["tea"])
        ids.again = again.id
        ann.replay(again.id)
        echo = remember(ann.acting_as(MODEL), "Ann drinks tea, cup 0", minutes=30).id
        frame = ann.bind(scene="echo", sources=[echo], entities=["Ann"], actions=["tea"])
        ids.echo = frame.id
        ann.replay(frame.id)

        tea, mate = ids.frames[:2], ids.frames[2:]
        ids.approved = claim(ann, tea).id
        ids.cell = ann.approve(ids.approved, approval_id="CR-1").id
        ids.repeat = claim(ann, tea, summary="in other words").id
        ids.pending = claim(ann, mate, object="mate").id
        ids.other = claim(ann, mate, predicate="likes", object="mate").id
        ids.rejected = claim(ann, mate, predicate="sells", object="mate").id
        ann.reject(ids.rejected, reason="nobody said so")

        ids.runs = [
            ann.execute(
                **DEPLOY,
                outcome=outcome,
                sources=[remember(ann, f"the deployment was a {outcome}", minutes=40).id],
            )
            for outcome in ("success", "failure")
        ]
        ids.executions = [each.id for each in ids.runs]
        ids.painted = ann.execute(
            task="paint",
            steps=["brush"],
            outcome="success",
            sources=[remember(ann, "the fence was painted", minutes=41).id],
        ).id
        ids.flown = ann.execute(
            task="fly",
            steps=["jump"],
            outcome="failure",
            sources=[remember(ann, "the flight was short", minutes=42).id],
        ).id
        ids.skill = ann.propose_skill(executions=ids.executions).id
        ids.conflict = ann.conflicts()[0].id
        ids.trace = ann.recall("who drinks tea", limit=20).trace
        memory.store.flush_reads()
        ids.packet = ann.packet(ids.trace, budget=1_024)
        ids.receipt = ann.deliver(ids.packet).id
        memory.snapshot(path.with_name("prepared.cma.jsonl"))
        memory.verify()
    ids.snapshot = path.with_name("prepared.cma.jsonl").read_bytes()
    return ids


def opened(prepared: Path, folder: Path, ids: SimpleNamespace) -> World:
    """Open a copy of the prepared memory in a folder of its own."""
    path = folder / "memory.cma"
    for end in ("", ".head"):
        shutil.copyfile(f"{prepared}{end}", f"{path}{end}")
    clock = FixedClock(START)
    return World(path, clock, Memory.open(path, caller=CALLER, clock=clock), ids)


@dataclass(frozen=True)
class Seen:
    """What a stranger reads in the file: digest, generation, and the audit as (operation, reason).

    A person's rejection of a proposal has a digest and is told apart as `decided`.
    """

    digest: str
    generation: int
    audit: tuple[tuple[str, str | None], ...]


def seen(path: Path) -> Seen:
    """Look at a store past the library: a broken one can be looked at too."""
    connection = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READWRITE)
    try:
        records = [
            audit_record(data, sealed)
            for data, sealed in connection.execute("SELECT record, hash FROM audit ORDER BY seq")
        ]
        told = tuple((_name(each), each.reason) for each in records)
        return Seen(store_digest(connection), head_of(connection)[2], told)
    finally:
        connection.close()


def _name(record: AuditRecord) -> str:
    decided = record.operation is Operation.REJECT and record.after is not None
    return "decided" if decided else record.operation.value

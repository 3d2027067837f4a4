"""Records that stand beside memory: replays, proposals and their fate, packets and receipts."""

from __future__ import annotations

from typing import Any, Literal

from cma.orion.cells import Authority, Kind
from cma.rosette.reaching import ModelPart
from cma.rosette.snapshot_form import Count, Sha256
from cma.schemas.stored.parts import Filed, Left, Millionths, Nothing, Record, Scope, Time

Step = tuple[str, Sha256 | None, Sha256 | None, str]
"""A cell, the digest that was expected, the one that was seen, and how the cell stands."""


class ReplayIdentity(Record):
    """What a replay saw: each step is cell, expected digest, seen digest, state."""

    complete: bool
    frame: str
    steps: list[Step]


class ReplayRecord(Filed):
    """Replay evidence."""

    kind: Literal["replay"]
    identity: ReplayIdentity
    details: Nothing


class CandidateIdentity(Record):
    """A proposed claim or skill and the evidence that it rests on."""

    authority: Authority
    cells: list[str]
    confidence: Millionths
    content: str
    evidence: list[tuple[str, Sha256]]
    executions: list[str]
    failures: list[str]
    fingerprint: Sha256
    frames: list[str]
    importance: Millionths
    kind: Literal[Kind.SEMANTIC, Kind.PROCEDURAL]
    metadata: dict[str, Any]
    origin: str
    scope: Scope
    signature: Sha256
    successes: list[str]
    summary: str


class CandidateRecord(Filed):
    """A proposal."""

    kind: Literal["candidate"]
    identity: CandidateIdentity
    details: Left


class RejectionIdentity(Record):
    """Which proposal was rejected."""

    candidate: str


class RejectionDetails(Record):
    """Why, or what is left of it."""

    erased: Sha256 | None = None
    reason: str


class RejectionRecord(Filed):
    """A rejected proposal."""

    kind: Literal["rejection"]
    identity: RejectionIdentity
    details: RejectionDetails


class RepeatIdentity(Record):
    """An approval of what was memory already."""

    approval: str
    candidate: str
    fingerprint: Sha256


class RepeatDetails(Record):
    """Who approved it again."""

    approver: str
    authority: Authority
    expires_at: Time | None
    policy: str


class RepeatRecord(Filed):
    """A repeated approval, which changed nothing."""

    kind: Literal["repeat"]
    identity: RepeatIdentity
    details: RepeatDetails


class PacketGroup(Record):
    """Cells that went in together: each is id, revision, digest."""

    cells: list[tuple[str, Count, Sha256]]
    reason: str
    tokens: Count


class PacketIdentity(Record):
    """What a packet held and left out."""

    budget: Count
    control: list[str]
    counter: str
    excluded: list[tuple[list[str], str]]
    generation: Count
    groups: list[PacketGroup]
    query: str
    scope: Scope
    text_sha256: Sha256 | Literal[""]
    trace: str
    used: Count


class PacketRecord(Filed):
    """A delivered packet."""

    kind: Literal["packet"]
    identity: PacketIdentity
    details: Left


class ReceiptIdentity(Record):
    """What was handed over to whom; `model` stands there only where one was given it."""

    at: Time
    by: str
    cells: list[tuple[str, Count, Sha256]]
    control: list[str]
    generation: Count
    packet: str
    recipient: str
    scope: Scope
    trace: str
    model: ModelPart | None = None


class ReceiptRecord(Filed):
    """A delivery receipt."""

    kind: Literal["receipt"]
    identity: ReceiptIdentity
    details: Left


Attendant = (
    ReplayRecord | CandidateRecord | RejectionRecord | RepeatRecord | PacketRecord | ReceiptRecord
)

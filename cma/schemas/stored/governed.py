"""Records that count as memory: frames, executions, approvals, admissions, decisions."""

from __future__ import annotations

from typing import Literal

from cma.eagle.decisions import Handling
from cma.eagle.executions import Outcome
from cma.orion.cells import Authority
from cma.rosette.snapshot_form import Sha256
from cma.schemas.stored.parts import Filed, Left, Nothing, Record, Scope, Time


class FrameIdentity(Record):
    """What an episode binds."""

    actions: list[str]
    cues: list[str]
    end: Time
    entities: list[str]
    goals: list[str]
    outcome: str
    scene: str
    scope: Scope
    sources: list[tuple[str, Sha256]]
    start: Time


class FrameRecord(Filed):
    """A bound episode."""

    kind: Literal["frame"]
    identity: FrameIdentity
    details: Left


class ExecutionIdentity(Record):
    """A task carried out, and what came of it."""

    outcome: Outcome
    scope: Scope
    sources: list[tuple[str, Sha256]]
    steps: list[str]
    task: str


class ExecutionRecord(Filed):
    """An execution trace."""

    kind: Literal["execution"]
    identity: ExecutionIdentity
    details: Left


class ApprovalName(Record):
    """The name by which an approval is known."""

    name: str


class ApprovalDetails(Record):
    """Who approved what, and until when."""

    approver: str
    authority: Authority
    candidate: str
    expires_at: Time | None
    fingerprint: Sha256
    policy: str


class ApprovalRecord(Filed):
    """An approval."""

    kind: Literal["approval"]
    identity: ApprovalName
    details: ApprovalDetails


class AdmissionIdentity(Record):
    """What was admitted. after: the cell that it was before, which was erased or quarantined."""

    after: str | None = None
    fingerprint: Sha256


class AdmissionDetails(Record):
    """By which approval a candidate became which cell."""

    approval: str
    candidate: str
    cell: str


class AdmissionRecord(Filed):
    """The admission of a derived cell."""

    kind: Literal["admission"]
    identity: AdmissionIdentity
    details: AdmissionDetails


class DecisionIdentity(Record):
    """How a conflict is to be handled."""

    at: Time
    by: str
    handling: Handling
    link: str
    policy: str
    scope: Scope


class DecisionRecord(Filed):
    """A decision."""

    kind: Literal["decision"]
    identity: DecisionIdentity
    details: Nothing


Governed = FrameRecord | ExecutionRecord | ApprovalRecord | AdmissionRecord | DecisionRecord

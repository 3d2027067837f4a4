"""Approvals: who let a proposal in, under which policy, when, and until when that holds."""

from __future__ import annotations

from datetime import datetime

import apsw

from cma.lagoon.candidates import Candidate
from cma.lagoon.policy import Policy
from cma.orion.audit import Operation
from cma.orion.cells import Caller
from cma.orion.governed import Filed, Shelf, file_record, find_record, record_id
from cma.orion.transition import Transition
from cma.values.clock import utc_text
from cma.values.errors import Reason, TransitionRejectedError
from cma.values.validation import Value

APPROVAL = "approval"


class Approval(Value):
    """An approval, bound to one candidate and its fingerprint (paper: approval identifier).

    id: the name that the approver's organisation knows it by. approver and authority come from
    the caller who granted it, never from a text. expires_at: the instant from which it no longer
    holds (None: it holds).
    """

    id: str
    approver: str
    authority: str
    policy: str
    at: datetime
    candidate: str
    fingerprint: str
    expires_at: datetime | None


def new_approval(
    name: str,
    candidate: Candidate,
    *,
    caller: Caller,
    policy: Policy,
    at: datetime,
    expires_at: datetime | None,
) -> Approval:
    """Return the approval that a caller grants to a candidate."""
    return Approval(
        id=name,
        approver=caller.name,
        authority=caller.authority.value,
        policy=policy.name,
        at=at,
        candidate=candidate.id,
        fingerprint=candidate.fingerprint,
        expires_at=expires_at,
    )


def approval_record_id(name: str) -> str:
    """Return the id of the record of an approval."""
    return record_id(APPROVAL, {"name": name})


def file_approval(transition: Transition, approval: Approval, scope: str) -> Approval:
    """File an approval and return the one on record.

    The same approval again is left as it is. Raises TransitionRejectedError (`approval-mismatch`)
    when the name is bound to another candidate.
    """
    filed, _ = file_record(
        transition,
        Shelf.GOVERNED,
        APPROVAL,
        scope=scope,
        identity={"name": approval.id},
        details={
            "approver": approval.approver,
            "authority": approval.authority,
            "candidate": approval.candidate,
            "expires_at": None if approval.expires_at is None else utc_text(approval.expires_at),
            "fingerprint": approval.fingerprint,
            "policy": approval.policy,
        },
        subject=approval.candidate,
        refs=(approval.candidate,),
        also=(approval.candidate,),
        operation=Operation.APPROVE,
        policy=approval.policy,
    )
    found = approval_of(filed)
    if found.candidate != approval.candidate:
        raise mismatch(found, approval.candidate)
    return found


def approval_of(filed: Filed) -> Approval:
    """Return the approval that a filed record holds."""
    told = filed.details
    expires = told["expires_at"]
    return Approval(
        id=filed.identity["name"],
        approver=told["approver"],
        authority=told["authority"],
        policy=told["policy"],
        at=filed.at,
        candidate=told["candidate"],
        fingerprint=told["fingerprint"],
        expires_at=None if expires is None else datetime.fromisoformat(expires),
    )


def find_approval(connection: apsw.Connection, name: str) -> Approval | None:
    """Return the approval of that name, None where none is on record."""
    filed = find_record(connection, Shelf.GOVERNED, APPROVAL, approval_record_id(name), viewer=None)
    return None if filed is None else approval_of(filed)


def check_approval(approval: Approval, candidate: Candidate, at: datetime) -> None:
    """Refuse an approval of another proposal, or one that has expired.

    Raises TransitionRejectedError: `approval-mismatch`, `approval-expired`.
    """
    if (approval.candidate, approval.fingerprint) != (candidate.id, candidate.fingerprint):
        raise mismatch(approval, candidate.id)
    if approval.expires_at is not None and at >= approval.expires_at:
        raise TransitionRejectedError(
            Reason.APPROVAL_EXPIRED,
            f"the approval held until {approval.expires_at.isoformat()}",
            field="approval_id",
            value=approval.id,
            remedy="have the proposal approved anew under another approval id",
            subjects=(candidate.id,),
            policy=approval.policy,
        )


def mismatch(
    approval: Approval,
    candidate_id: str,
    message: str = "this approval id is bound to another proposal",
) -> TransitionRejectedError:
    """Return the refusal of an approval that is bound to something else."""
    return TransitionRejectedError(
        Reason.APPROVAL_MISMATCH,
        message,
        field="approval_id",
        value=approval.id,
        remedy="an approval is for one proposal; give another id",
        subjects=(candidate_id,),
        policy=approval.policy,
    )

"""The guarded transition: the one way by which derived memory comes to be.

Lagoon and Eagle both use it. It checks, in this order: kinds compatible, sources present, evidence
complete, approval present and bound to this candidate, approver authorised by the policy,
fingerprint unused. The first failure refuses the whole and leaves one failure record. A success
writes cell, links and audit records in one transaction.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import apsw

from cma.lagoon.approvals import (
    Approval,
    approval_record_id,
    check_approval,
    file_approval,
    mismatch,
)
from cma.lagoon.candidates import Candidate, claim_key
from cma.lagoon.claims import ADMISSION, link_claim_conflicts
from cma.lagoon.policy import Policy
from cma.lagoon.standing import admission_identity, check_open, has_fallen, last_admission
from cma.orion.audit import Operation
from cma.orion.cells import Authority, Cell, CellDraft, Kind
from cma.orion.governed import Filed, Shelf, file_record
from cma.orion.records import cell_of_record, record_of
from cma.orion.transition import Transition
from cma.orion.writing import LATEST, add_derived_cell
from cma.trifid.sources import visible_cell
from cma.values.clock import utc_text
from cma.values.errors import Reason, TransitionRejectedError
from cma.values.validation import validated

REPEAT = "repeat"
EvidenceCheck = Callable[[apsw.Connection, Candidate, Policy], None]


def admit_candidate(
    transition: Transition,
    candidate: Candidate,
    approval: Approval | None,
    *,
    policy: Policy,
    evidence_checks: Mapping[Kind, EvidenceCheck],
) -> Cell:
    """Admit a candidate as a cell under an approval, or refuse it whole.

    evidence_checks: what complete evidence means, by kind of candidate. A fingerprint that was
    admitted before gives the cell that is there; the repeat and its approval are recorded, and
    memory stays as it is. Where that cell was erased, or a source of it was, the claim is admitted
    anew, as a cell of its own.

    Raises TransitionRejectedError: `proposal-decided`, `kinds-incompatible`, `source-missing`,
    `evidence-incomplete`, `approval-required`, `approval-mismatch`, `approval-expired`,
    `policy-unauthorised`, `cell-inactive`, `record-erased`.
    """
    connection = transition.connection
    check_open(connection, candidate)
    _check_kinds(connection, candidate, evidence_checks)
    _check_sources(connection, candidate)
    evidence_checks[candidate.kind](connection, candidate, policy)
    approval = _checked_approval(approval, candidate, transition, policy)
    check_not_repeated(connection, approval)
    known = find_admission(connection, candidate.fingerprint)
    if known is not None:
        return _repeated(transition, known, candidate, approval)
    filed = file_approval(transition, approval, candidate.held_in)
    return _admitted(transition, candidate, filed, policy)


def admitted_draft(candidate: Candidate, approval_id: str) -> CellDraft:
    """Return the cell that a candidate becomes under an approval of that name."""
    return validated(
        lambda: CellDraft.model_validate(
            {
                "kind": candidate.kind,
                "content": candidate.content,
                "origin": candidate.id,
                "summary": candidate.summary,
                "confidence": candidate.confidence,
                "importance": candidate.importance,
                "approval_id": approval_id,
                "derived_from": candidate.cells,
                "metadata": candidate.metadata,
            }
        )
    )


def find_admission(connection: apsw.Connection, fingerprint: str) -> Filed | None:
    """Return the admission that stands for a fingerprint, None while it is unused.

    One whose cell was erased, or quarantined, does not stand: the claim may be admitted anew.
    """
    last = last_admission(connection, fingerprint)
    return None if last is None or has_fallen(connection, last) else last


def _check_kinds(
    connection: apsw.Connection, candidate: Candidate, evidence_checks: Mapping[Kind, EvidenceCheck]
) -> None:
    semantic = candidate.kind is Kind.SEMANTIC
    fits = (
        candidate.kind in evidence_checks
        and bool(candidate.frames) == semantic
        and bool(candidate.executions) != semantic
    )
    for cell_id in candidate.cells:
        row = connection.execute(LATEST, (cell_id,)).fetchone()
        fits = fits and (row is None or record_of(row[0])["kind"] == Kind.EPISODIC)
    if not fits:
        raise TransitionRejectedError(
            Reason.KINDS_INCOMPATIBLE,
            f"a {candidate.kind} candidate does not fit evidence of these kinds",
            field="candidate_id",
            value=candidate.id,
            remedy="claims come from frames and skills from executions, both of episodic cells",
            subjects=(candidate.id,),
        )


def _check_sources(connection: apsw.Connection, candidate: Candidate) -> None:
    for cell_id in candidate.cells:
        if visible_cell(connection, cell_id, candidate.held_in) is None:
            raise TransitionRejectedError(
                Reason.SOURCE_MISSING,
                "a source of the proposal is not there",
                field="cells",
                value=cell_id,
                remedy="regenerate the proposal from the evidence that stands",
                subjects=(candidate.id, cell_id),
            )


def _checked_approval(
    approval: Approval | None, candidate: Candidate, transition: Transition, policy: Policy
) -> Approval:
    if approval is None:
        raise TransitionRejectedError(
            Reason.APPROVAL_REQUIRED,
            "no approval of that id is on record",
            field="approval_id",
            remedy="have it granted first: memory.grant(candidate_id, approval_id=...)",
            subjects=(candidate.id,),
            policy=policy.name,
        )
    check_approval(approval, candidate, transition.at)
    known = approval.policy == policy.name
    if not known or not policy.authorises(approval.approver, approval.authority):
        raise TransitionRejectedError(
            Reason.POLICY_UNAUTHORISED,
            "the policy does not let this approver approve"
            if known
            else "the approval was granted under another policy",
            field="policy",
            value=f"{approval.policy}: {approval.approver} ({approval.authority})",
            remedy=f"policy {policy.name!r} asks for authority "
            f"{' or '.join(each.value for each in policy.authorities)}"
            + (f" and one of {', '.join(policy.approvers)}" if policy.approvers else ""),
            subjects=(candidate.id, approval_record_id(approval.id)),
            policy=policy.name,
        )
    return approval


def _admitted(
    transition: Transition, candidate: Candidate, approval: Approval, policy: Policy
) -> Cell:
    approval_record = approval_record_id(approval.id)
    cell = add_derived_cell(
        transition,
        admitted_draft(candidate, approval.id),
        scope=candidate.scope,
        authority=Authority(candidate.authority),
        also=(candidate.id, approval_record),
        policy=policy.name,
    )
    fallen = last_admission(transition.connection, candidate.fingerprint)
    subject = candidate.fingerprint
    if candidate.kind is Kind.SEMANTIC:
        told = candidate.metadata
        subject = claim_key(told["subject"], told["predicate"])
    file_record(
        transition,
        Shelf.GOVERNED,
        ADMISSION,
        scope=candidate.scope,
        identity=admission_identity(candidate.fingerprint, fallen),
        details={"approval": approval.id, "candidate": candidate.id, "cell": cell.id},
        subject=subject,
        refs=(
            cell.id,
            approval_record,
            candidate.id,
            *candidate.frames,
            *candidate.executions,
            *candidate.cells,
        ),
        also=(cell.id,),
        operation=Operation.CONSOLIDATE,
        policy=policy.name,
    )
    link_claim_conflicts(transition, cell, policy)
    return cell


def check_not_repeated(connection: apsw.Connection, approval: Approval) -> None:
    """Refuse an approval whose id has approved a repeat: of another proposal, that is.

    Raises TransitionRejectedError (`approval-mismatch`).
    """
    row = connection.execute(
        "SELECT 1 FROM attendant WHERE kind = ?"
        " AND json_extract(CAST(record AS TEXT), '$.identity.approval') = ?"
        " AND json_extract(CAST(record AS TEXT), '$.identity.candidate') <> ?",
        (REPEAT, approval.id, approval.candidate),
    ).fetchone()
    if row is not None:
        raise mismatch(approval, approval.candidate)


def _repeated(
    transition: Transition, known: Filed, candidate: Candidate, approval: Approval
) -> Cell:
    cell_id = known.details["cell"]
    row = transition.connection.execute(LATEST, (cell_id,)).fetchone()
    cell = None if row is None else cell_of_record(record_of(row[0]))
    if cell is None or not cell.is_active(transition.at):
        raise TransitionRejectedError(
            Reason.CELL_INACTIVE,
            "this very memory was admitted before and is no longer active; it is not revived",
            field="candidate_id",
            value=cell_id,
            remedy="propose what holds now in other words",
            subjects=(candidate.id, cell_id),
        )
    expires = approval.expires_at
    file_record(
        transition,
        Shelf.ATTENDANT,
        REPEAT,
        scope=candidate.held_in,
        identity={
            "approval": approval.id,
            "candidate": candidate.id,
            "fingerprint": candidate.fingerprint,
        },
        details={
            "approver": approval.approver,
            "authority": approval.authority,
            "expires_at": None if expires is None else utc_text(expires),
            "policy": approval.policy,
        },
        subject=candidate.fingerprint,
        refs=(candidate.id, cell.id),
        also=(cell.id, candidate.id),
        operation=Operation.CONSOLIDATE,
        policy=approval.policy,
        reason="repeated",
    )
    return cell

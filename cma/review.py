"""The review of proposals: approvals, the guarded transition, rejections and regeneration.

Ties Lagoon's one transition to what complete evidence means for claims (Lagoon) and for skills
(Eagle). A viewer of None reviews the whole store, whatever scope a proposal is held in.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime

from cma.eagle.executions import visible_executions
from cma.eagle.skills import check_skill_evidence, propose_skill
from cma.lagoon.admission import EvidenceCheck, admit_candidate, check_not_repeated
from cma.lagoon.approvals import (
    Approval,
    file_approval,
    find_approval,
    mismatch,
    new_approval,
)
from cma.lagoon.candidates import Candidate, read_candidate
from cma.lagoon.claims import MAX_FRAMES, check_claim_evidence, propose_claim
from cma.lagoon.policy import Policy
from cma.lagoon.standing import Proposal, check_open, proposal_of, reject_candidate
from cma.orion.cells import Caller, Cell, Kind
from cma.orion.connection import database_errors
from cma.orion.store import Store
from cma.orion.transition import Transition
from cma.trifid.frames import EpisodeFrame, all_frames
from cma.trifid.replaying import recorded_replays, replayed
from cma.values.clock import in_utc
from cma.values.errors import InvalidValueError, Reason
from cma.values.validation import checked_id

EVIDENCE_CHECKS: Mapping[Kind, EvidenceCheck] = {
    Kind.SEMANTIC: check_claim_evidence,
    Kind.PROCEDURAL: check_skill_evidence,
}


def grant(
    store: Store,
    candidate_id: str,
    *,
    approval_id: str,
    expires_at: datetime | str | None,
    viewer: str | None,
    caller: Caller,
    policy: Policy,
) -> Approval:
    """Put an approval on record, bound to one proposal; memory's cells stay as they are.

    The approver is the caller. Whether the policy lets him is judged when the proposal is admitted.
    Raises TransitionRejectedError: `approval-mismatch`, `proposal-decided`.
    """
    with store.transition(caller.name) as transition:
        candidate = read_candidate(transition.connection, candidate_id, viewer=viewer)
        check_open(transition.connection, candidate)
        approval = _granted(transition, candidate, approval_id, expires_at, caller, policy)
        check_not_repeated(transition.connection, approval)
        return file_approval(transition, approval, candidate.held_in)


def admit(
    store: Store,
    candidate_id: str,
    *,
    approval_id: str | None,
    viewer: str | None,
    caller: Caller,
    policy: Policy,
) -> Cell:
    """Admit a proposal under an approval that is on record: the guarded transition."""
    with store.transition(caller.name) as transition:
        candidate = read_candidate(transition.connection, candidate_id, viewer=viewer)
        approval = None
        if approval_id is not None:
            name = checked_id(approval_id, field="approval_id")
            approval = find_approval(transition.connection, name)
        return admit_candidate(
            transition, candidate, approval, policy=policy, evidence_checks=EVIDENCE_CHECKS
        )


def approve(
    store: Store,
    candidate_ids: Sequence[str],
    *,
    approval_id: str | None,
    expires_at: datetime | str | None,
    viewer: str | None,
    caller: Caller,
    policy: Policy,
) -> tuple[Cell, ...]:
    """Approve and admit proposals in one transition: all of them, or none.

    Several proposals get an approval each, named `<approval_id>/1`, `<approval_id>/2`, in order.
    """
    with store.transition(caller.name) as transition:
        cells = []
        for place, candidate_id in enumerate(candidate_ids, 1):
            candidate = read_candidate(transition.connection, candidate_id, viewer=viewer)
            approval = asked = None
            if approval_id is not None:
                checked_id(approval_id, field="approval_id")
                name = approval_id if len(candidate_ids) == 1 else f"{approval_id}/{place}"
                asked = _granted(transition, candidate, name, expires_at, caller, policy)
                approval = find_approval(transition.connection, name) or asked
            cells.append(
                admit_candidate(
                    transition, candidate, approval, policy=policy, evidence_checks=EVIDENCE_CHECKS
                )
            )
            if approval and asked and asked.expires_at not in (None, approval.expires_at):
                raise mismatch(approval, candidate.id, "this approval holds until another time")
        return tuple(cells)


def reject(
    store: Store,
    candidate_ids: Sequence[str],
    *,
    reason: str,
    viewer: str | None,
    caller: Caller,
) -> tuple[Proposal, ...]:
    """Reject proposals in one transition: all of them, or none. Memory stays as it is."""
    with store.transition(caller.name) as transition:
        return tuple(
            reject_candidate(
                transition, read_candidate(transition.connection, name, viewer=viewer), reason
            )
            for name in candidate_ids
        )


def regenerate(
    store: Store, candidate_id: str, *, viewer: str | None, caller: Caller, policy: Policy
) -> Proposal:
    """Propose the same claim or skill anew from the evidence that stands now.

    The same evidence gives the same proposal, as it was decided; further episodes of the same
    signature, or further executions, give a new one. Memory stays as it is.
    """
    with store.transition(caller.name) as transition:
        candidate = read_candidate(transition.connection, candidate_id, viewer=viewer)
        frames: tuple[str, ...] = ()
        executions: tuple[str, ...] = ()
        if candidate.kind is Kind.SEMANTIC:
            frames = _standing_frames(store, candidate)
        else:
            executions = tuple(
                each.id
                for each in visible_executions(
                    transition.connection,
                    candidate.metadata["task"],
                    candidate.metadata["steps"],
                    viewer=candidate.held_in,
                )
            )
    judged = {
        "content": candidate.content,
        "summary": candidate.summary,
        "importance": candidate.importance,
        "scope": candidate.scope,
    }
    if candidate.kind is Kind.SEMANTIC:
        fields = {
            **judged,
            **candidate.metadata,
            "confidence": candidate.confidence,
            "frames": frames or candidate.frames,
        }
        fields.pop("attributes", None)
        new = propose_claim(store, fields, viewer=candidate.held_in, caller=caller, policy=policy)
    else:
        fields = {**judged, "executions": executions}
        new = propose_skill(store, fields, viewer=candidate.held_in, caller=caller, policy=policy)
    with database_errors(store.path):
        return proposal_of(store.connection, new)


def _standing_frames(store: Store, candidate: Candidate) -> tuple[str, ...]:
    """Return the proposal's frames and further ones of its signature that carry it now.

    No more than a claim may rest on: the proposal's own come first, then by id.
    """
    chosen: list[str] = []
    used: set[str] = set()
    frames = sorted(
        (
            frame
            for frame in all_frames(store, viewer=candidate.held_in)
            if frame.signature == candidate.signature
        ),
        key=lambda frame: (frame.id not in candidate.frames, frame.id),
    )
    for frame in frames:
        if len(chosen) == MAX_FRAMES:
            break
        if used.isdisjoint(frame.cells) and _stands(store, frame):
            chosen.append(frame.id)
            used.update(frame.cells)
    return tuple(chosen)


def _stands(store: Store, frame: EpisodeFrame) -> bool:
    now = replayed(store.connection, frame)
    known = recorded_replays(store.connection, frame.id)
    return now.complete and any(each.digest == now.digest for each in known)


def _granted(
    transition: Transition,
    candidate: Candidate,
    name: str,
    expires_at: datetime | str | None,
    caller: Caller,
    policy: Policy,
) -> Approval:
    checked_id(name, field="approval_id")
    if not name.strip():
        raise InvalidValueError(
            Reason.APPROVAL_REQUIRED,
            "an approval has an id",
            field="approval_id",
            value=name,
            remedy="give the id under which the approval is known, such as a change number",
            subjects=(candidate.id,),
            policy=policy.name,
        )
    until = None if expires_at is None else in_utc(expires_at, field="expires_at")
    return new_approval(
        name, candidate, caller=caller, policy=policy, at=transition.at, expires_at=until
    )

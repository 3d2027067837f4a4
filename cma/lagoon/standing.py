"""How a proposal stands: pending, approved or rejected. Read from records, held nowhere else."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

import apsw

from cma.lagoon.candidates import CANDIDATE, Candidate, candidate_of
from cma.lagoon.claims import ADMISSION
from cma.orion.audit import Operation
from cma.orion.governed import Shelf, file_record, find_record, record_id, records_of_kind
from cma.orion.scopes import visible_scopes
from cma.orion.transition import Transition
from cma.values.errors import InvalidValueError, Reason, TransitionRejectedError
from cma.values.validation import Value

REJECTION = "rejection"
MAX_REASON_LENGTH = 10_000
AGAIN = "propose again from further evidence"
RETRACT = "it is memory: retract its cell with memory.update(cell_id, lifecycle='retracted')"


class Status(StrEnum):
    """How a proposal stands."""

    PENDING = "pending"
    APPROVED = "approved"
    REJECTED = "rejected"


class Proposal(Value):
    """A candidate and how it stands.

    cell_id: the cell that its fingerprint was admitted as. rejection_reason: why it was rejected.
    """

    candidate: Candidate
    status: Status
    cell_id: str | None
    rejection_reason: str | None

    @property
    def id(self) -> str:
        """The candidate's id."""
        return self.candidate.id


def proposal_of(connection: apsw.Connection, candidate: Candidate) -> Proposal:
    """Return how a candidate stands.

    It counts as approved when its claim is memory, by its own approval or by an earlier one.
    """
    name = record_id(REJECTION, {"candidate": candidate.id})
    rejection = find_record(connection, Shelf.ATTENDANT, REJECTION, name, viewer=None)
    name = record_id(ADMISSION, {"fingerprint": candidate.fingerprint})
    admission = find_record(connection, Shelf.GOVERNED, ADMISSION, name, viewer=None)
    status = Status.PENDING
    if rejection is not None:
        status = Status.REJECTED
    elif admission is not None:
        status = Status.APPROVED
    return Proposal(
        candidate=candidate,
        status=status,
        cell_id=None if admission is None else admission.details["cell"],
        rejection_reason=None if rejection is None else rejection.details["reason"],
    )


def proposals(
    connection: apsw.Connection, *, viewer: str | None, status: str | None
) -> tuple[Proposal, ...]:
    """Return the proposals that a viewer sees (None: the whole store's), oldest first."""
    wanted = None if status is None else _status(status)
    scopes = None if viewer is None else visible_scopes(viewer)
    filed = records_of_kind(connection, Shelf.ATTENDANT, CANDIDATE, scopes=scopes)
    found = [proposal_of(connection, candidate_of(each)) for each in list(filed)]
    return tuple(each for each in found if wanted is None or each.status is wanted)


def check_open(connection: apsw.Connection, candidate: Candidate) -> None:
    """Refuse to decide a proposal that was rejected (`proposal-decided`)."""
    proposal = proposal_of(connection, candidate)
    if proposal.status is Status.REJECTED:
        raise _decided(proposal, "was rejected")


def reject_candidate(transition: Transition, candidate: Candidate, reason: str) -> Proposal:
    """Reject a proposal; memory stays as it is.

    Raises TransitionRejectedError (`proposal-decided`) when it was decided before.
    """
    proposal = proposal_of(transition.connection, candidate)
    if proposal.status is not Status.PENDING:
        remedy = AGAIN if proposal.status is Status.REJECTED else RETRACT
        raise _decided(proposal, f"was {proposal.status} before", remedy)
    if not isinstance(reason, str) or not reason.strip() or len(reason) > MAX_REASON_LENGTH:
        raise InvalidValueError(
            Reason.FIELD_INVALID,
            "a rejection says why",
            field="reason",
            value=reason,
            remedy=f"give a sentence of up to {MAX_REASON_LENGTH:,} characters",
            subjects=(candidate.id,),
        )
    file_record(
        transition,
        Shelf.ATTENDANT,
        REJECTION,
        scope=candidate.held_in,
        identity={"candidate": candidate.id},
        details={"reason": reason},
        subject=candidate.id,
        refs=(candidate.id,),
        also=(candidate.id,),
        operation=Operation.REJECT,
    )
    return proposal_of(transition.connection, candidate)


def _decided(proposal: Proposal, how: str, remedy: str = AGAIN) -> TransitionRejectedError:
    return TransitionRejectedError(
        Reason.PROPOSAL_DECIDED,
        f"the proposal {how}",
        field="candidate_id",
        value=proposal.id,
        remedy=remedy,
        subjects=(proposal.id,),
    )


def _status(name: str) -> Status:
    names: Mapping[str, Status] = {each.value: each for each in Status}
    if not isinstance(name, str) or name not in names:
        raise InvalidValueError(
            Reason.FIELD_INVALID,
            "not a status of proposals",
            field="status",
            value=name,
            remedy=f"use one of {', '.join(names)}",
        )
    return names[name]

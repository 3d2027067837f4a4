"""How a proposal stands: pending, approved or rejected. Read from records, held nowhere else."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

import apsw

from cma.lagoon.candidates import CANDIDATE, Candidate, candidate_of
from cma.lagoon.claims import ADMISSION
from cma.orion.audit import Operation
from cma.orion.cells import Lifecycle
from cma.orion.governed import (
    Filed,
    Shelf,
    file_record,
    find_record,
    record_id,
    records_of_kind,
)
from cma.orion.scopes import visible_scopes
from cma.orion.transition import Transition
from cma.values.errors import InvalidValueError, Reason, TransitionRejectedError
from cma.values.validation import Value

REJECTION = "rejection"
FALLEN = (Lifecycle.QUARANTINED, Lifecycle.ERASED)
MAX_REASON_LENGTH = 10_000
AGAIN = "propose again from further evidence"
RETRACT = "it is memory: retract its cell with memory.update(cell_id, lifecycle='retracted')"


class Status(StrEnum):
    """How a proposal stands.

    Quarantined: it was memory until a source of it was erased; it needs approval anew, from
    evidence that stands. Erased: what it said was erased with a cell; nothing is left to decide.
    """

    PENDING = "pending"
    APPROVED = "approved"
    REJECTED = "rejected"
    QUARANTINED = "quarantined"
    ERASED = "erased"


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

    It counts as approved when its claim is memory, by its own approval or by another one.
    """
    name = record_id(REJECTION, {"candidate": candidate.id})
    rejection = find_record(connection, Shelf.ATTENDANT, REJECTION, name, viewer=None)
    admission = last_admission(connection, candidate.fingerprint)
    status = Status.PENDING
    if admission is not None and has_fallen(connection, admission):
        own = admission.details["candidate"] == candidate.id
        status = Status.QUARANTINED if own else Status.PENDING
        admission = admission if own else None
    elif admission is not None:
        status = Status.APPROVED
    if candidate.erased:
        status = Status.ERASED
    elif rejection is not None:
        status = Status.REJECTED
    return Proposal(
        candidate=candidate,
        status=status,
        cell_id=None if admission is None else admission.details["cell"],
        rejection_reason=None if rejection is None else rejection.details["reason"],
    )


def last_admission(connection: apsw.Connection, fingerprint: str) -> Filed | None:
    """Return how a fingerprint was admitted last, None while it is unused."""
    return next(reversed(admissions_of(connection, fingerprint)), None)


def admissions_of(connection: apsw.Connection, fingerprint: str) -> list[Filed]:
    """Return the admissions of a fingerprint: one, and one more for each that fell, in order."""
    found: list[Filed] = []
    identity = {"fingerprint": fingerprint}
    while True:
        name = record_id(ADMISSION, identity)
        filed = find_record(connection, Shelf.GOVERNED, ADMISSION, name, viewer=None)
        if filed is None:
            return found
        found.append(filed)
        identity = admission_identity(fingerprint, filed)


def admission_identity(fingerprint: str, fallen: Filed | None) -> dict[str, str]:
    """Return what makes an admission's id. fallen: the one before it, whose cell fell."""
    after = {} if fallen is None else {"after": fallen.details["cell"]}
    return {"fingerprint": fingerprint, **after}


def has_fallen(connection: apsw.Connection, admission: Filed) -> bool:
    """Tell whether an admitted cell was erased, or quarantined because a source of it was."""
    row = connection.execute(
        "SELECT lifecycle FROM cells WHERE id = ? ORDER BY revision DESC LIMIT 1",
        (admission.details["cell"],),
    ).fetchone()
    return row is not None and row[0] in FALLEN


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
    """Refuse to decide a proposal that was rejected (`proposal-decided`) or erased."""
    proposal = proposal_of(connection, candidate)
    if candidate.erased:
        raise TransitionRejectedError(
            Reason.RECORD_ERASED,
            "what the proposal said was erased",
            field="candidate_id",
            value=candidate.id,
            remedy=AGAIN,
            subjects=(candidate.id,),
        )
    if proposal.status is Status.REJECTED:
        raise _decided(proposal, "was rejected")


def reject_candidate(transition: Transition, candidate: Candidate, reason: str) -> Proposal:
    """Reject a proposal; memory stays as it is.

    Raises TransitionRejectedError (`proposal-decided`) when it was decided before.
    """
    proposal = proposal_of(transition.connection, candidate)
    if proposal.status is not Status.PENDING:
        remedy = RETRACT if proposal.status is Status.APPROVED else AGAIN
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

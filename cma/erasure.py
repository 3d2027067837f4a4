"""Erasure: a person's words leave the store for good, and the history still verifies.

One transition blanks the cell, blanks what names or quotes it, and takes what was derived from it
out of service; the audit says who, when, which and why. Then the bytes are overwritten. What a
crash interrupts is not erased at all, or is erased and cleaned at the next opening.

What stays, and what it tells: the cell's id, kind, scope, times and links, and digests. Id and
digests were made of the content, so whoever can guess all of a cell (every field that makes its id)
can see that the guess is right. A cell whose content could be guessed needs something in it that
cannot: see `cma.orion.salting`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime

import apsw
import regex

from cma.eagle.executions import EXECUTION
from cma.lagoon.candidates import CANDIDATE
from cma.lagoon.claims import ADMISSION
from cma.lagoon.policy import Policy
from cma.lagoon.standing import REJECTION, admissions_of
from cma.orion.agreement import check_agreement
from cma.orion.analysis import ANALYSERS
from cma.orion.cells import Caller, Lifecycle
from cma.orion.cleaning import owe_cleaning
from cma.orion.erased import Record, needles_of, texts_of
from cma.orion.erasing import (
    cells_quoting,
    derived_from,
    erase_evidence,
    erase_filed,
    erase_revisions,
    erase_traces,
    filed_quoting,
    revisions_of,
)
from cma.orion.governed import Shelf, filed_of, find_record, records_about, records_naming
from cma.orion.revising import latest_cell, quarantine
from cma.orion.scopes import visible_scopes
from cma.orion.store import Store
from cma.orion.verification import check_database
from cma.rosette.blanks import blank
from cma.rosette.delivery import RECEIPT
from cma.rosette.packets import PACKET
from cma.rosette.topology import check_topology
from cma.trifid.frames import FRAME
from cma.values.errors import InvalidValueError, Reason, TransitionRejectedError
from cma.values.validation import Value, checked_id

REASONS = ("person-request", "retention-ended", "written-in-error", "legal-order")
"""Reasons that any erasure may give. Another one is a note of its own, in words of its own."""
MAX_NOTE_LENGTH = 64
_NOTE = regex.compile(r"[a-z0-9]+(?:[ -][a-z0-9]+)*")
_QUOTING = {Shelf.GOVERNED: (), Shelf.ATTENDANT: (PACKET, RECEIPT, REJECTION)}
"""Kinds that lose what they say when they quote an erased cell without naming it."""
_TELLING = {Shelf.GOVERNED: (FRAME, EXECUTION), Shelf.ATTENDANT: (CANDIDATE,)}
"""Kinds that rest on evidence of their own: one that quotes a cell is named, and stays."""


class Erasure(Value):
    """What an erasure did.

    revisions: how many of the cell were blanked. blanked: ids of other records that lost what they
    said: links their evidence, traces and packets what was asked, frames, executions, proposals and
    rejections all text. quarantined: derived cells that are out of service until they are approved
    anew. still_quoting: cells, frames, executions and proposals in sight of the caller's scope that
    hold the same words and stay; erase or retract them if they should not. cleaned: whether the
    bytes are overwritten; if not, another process was in the way or the disk refused, and the next
    opening does it.
    """

    cell: str
    scope: str
    at: datetime
    by: str
    reason: str
    revisions: int
    blanked: tuple[str, ...]
    quarantined: tuple[str, ...]
    still_quoting: tuple[str, ...]
    generation: int
    cleaned: bool


def erase(
    store: Store, cell_id: str, *, reason: str, viewer: str, caller: Caller, policy: Policy
) -> Erasure:
    """Erase a cell of the viewer's scope for good, with everything that names or quotes it.

    reason: one of `REASONS`, or a note of up to 64 lower-case letters, digits, blanks and dashes
    that shares no word with what is erased; the audit keeps it. The store is checked whole first.

    Raises NotFoundError (`cell-not-found`), InvalidValueError (`erasure-quotes`, `field-invalid`),
    TransitionRejectedError (`cell-erased`, `global-from-session`, `policy-unauthorised`),
    StoreRefusedError for a store that is not sound. Nothing is erased then.
    """
    with store.transition(caller.name) as transition:
        checked_id(cell_id, field="cell_id")
        _check_caller(caller, policy)
        cell = latest_cell(transition, cell_id, viewer)
        if cell.lifecycle is Lifecycle.ERASED:
            raise _refused(Reason.CELL_ERASED, "the cell was erased before", cell_id)
        if cell.scope != viewer:
            raise _refused(
                Reason.GLOBAL_FROM_SESSION,
                "a session sees the global cells and cannot erase them",
                cell_id,
                remedy="erase it through memory.within('global')",
            )
        connection = transition.connection
        records = revisions_of(connection, cell_id)
        _check_reason(reason, records)
        transition.flush()  # what waits to be recorded belongs to the history that is checked
        check_database(connection, store.path.name)
        check_agreement(connection, store.store_id)
        check_topology(connection)
        needles = sorted({needle for record in records for needle in needles_of(record)})
        told = _told_by(connection, cell_id, needles)
        revisions = erase_revisions(transition, cell_id, reason=reason)
        blanked = erase_evidence(transition, cell_id, needles, reason=reason)
        blanked += erase_traces(transition, cell_id, needles, reason=reason)
        for shelf in Shelf:
            blanked += erase_filed(transition, shelf, told[shelf], blank, reason=reason)
        quarantined = quarantine(transition, derived_from(connection, cell_id))
        owe_cleaning(connection)
        found = {
            "cell": cell_id,
            "scope": cell.scope,
            "at": transition.at,
            "by": caller.name,
            "reason": reason,
            "revisions": revisions,
            "blanked": tuple(sorted(blanked)),
            "quarantined": quarantined,
            "still_quoting": tuple(_still_quoting(connection, needles, viewer)),
            "generation": transition.chain.generation,
        }
    return Erasure(**found, cleaned=store.clean())


def _told_by(
    connection: apsw.Connection, cell_id: str, needles: Sequence[bytes]
) -> dict[Shelf, list[str]]:
    """Return the filed records that lose what they say together with a cell."""
    found: dict[Shelf, list[str]] = {
        shelf: filed_quoting(connection, shelf, kinds, needles) for shelf, kinds in _QUOTING.items()
    }
    for kind in (FRAME, EXECUTION):
        found[Shelf.GOVERNED] += records_naming(connection, cell_id, kind)
    for kind in (PACKET, RECEIPT):
        found[Shelf.ATTENDANT] += records_naming(connection, cell_id, kind)
    proposals = records_naming(connection, cell_id, CANDIDATE)
    for name in records_naming(connection, cell_id, ADMISSION):
        admission = find_record(connection, Shelf.GOVERNED, ADMISSION, name, viewer=None)
        if admission is not None and admission.details["cell"] == cell_id:
            fingerprint = admission.identity["fingerprint"]
            of_claim = records_about(connection, Shelf.ATTENDANT, CANDIDATE, fingerprint)
            proposals += [each.id for each in of_claim]
    proposals = [name for name in proposals if not _is_memory(connection, name, cell_id)]
    found[Shelf.ATTENDANT] += proposals
    for name in proposals:
        found[Shelf.ATTENDANT] += records_naming(connection, name, REJECTION)
    return found


def _is_memory(connection: apsw.Connection, name: str, erased: str) -> bool:
    """Tell whether a proposal was admitted as another cell than the one that is being erased.

    It holds the words of that cell, which is quarantined and decided on by a person.
    """
    candidate = find_record(connection, Shelf.ATTENDANT, CANDIDATE, name, viewer=None)
    if candidate is None:
        return False
    return any(
        admission.details["candidate"] == name and admission.details["cell"] != erased
        for admission in admissions_of(connection, candidate.identity["fingerprint"])
        if not _is_erased(connection, admission.details["cell"])
    )


def _is_erased(connection: apsw.Connection, cell_id: str) -> bool:
    query = "SELECT 1 FROM cells WHERE id = ? AND lifecycle = 'erased'"
    return connection.execute(query, (cell_id,)).fetchone() is not None


def _still_quoting(
    connection: apsw.Connection, needles: Sequence[bytes], viewer: str
) -> Iterable[str]:
    scopes = visible_scopes(viewer)
    yield from cells_quoting(connection, needles, scopes)
    for shelf, kinds in _TELLING.items():
        for name in filed_quoting(connection, shelf, kinds, needles):
            row = connection.execute(
                f"SELECT record FROM {shelf.value} WHERE id = ?",  # noqa: S608 (one of two names)
                (name,),
            ).fetchone()
            if filed_of(row[0]).scope in scopes:
                yield name


def _check_caller(caller: Caller, policy: Policy) -> None:
    if not policy.authorises(caller.name, caller.authority.value):
        raise TransitionRejectedError(
            Reason.POLICY_UNAUTHORISED,
            "the policy does not let this caller erase",
            field="caller",
            value=f"{caller.name} ({caller.authority.value})",
            remedy="who may approve may erase: memory.acting_as(...) that person",
            policy=policy.name,
        )


def _check_reason(reason: object, records: Sequence[Record]) -> None:
    """Refuse a reason that is none, or that would keep a word of what is erased."""
    if reason in REASONS:
        return
    if not isinstance(reason, str) or not (
        len(reason) <= MAX_NOTE_LENGTH and _NOTE.fullmatch(reason)
    ):
        raise InvalidValueError(
            Reason.FIELD_INVALID,
            "not a reason for an erasure",
            field="reason",
            value=reason,
            remedy=f"use one of {', '.join(REASONS)}, or a note of up to {MAX_NOTE_LENGTH} "
            "lower-case letters, digits, blanks and dashes",
        )
    words = {
        word
        for record in records
        for text in texts_of(record)
        for word in ANALYSERS["unicode"](text.replace("-", " ").replace("_", " "))
    }
    if words & set(ANALYSERS["unicode"](reason.replace("-", " "))):
        raise InvalidValueError(
            Reason.ERASURE_QUOTES,
            "the note shares a word with what is erased, and the audit would keep it",
            field="reason",
            remedy=f"use one of {', '.join(REASONS)}",
        )


def _refused(
    reason: Reason, message: str, cell_id: str, *, remedy: str | None = None
) -> TransitionRejectedError:
    return TransitionRejectedError(
        reason,
        message,
        field="cell_id",
        value=cell_id,
        remedy=remedy or "nothing is left to do: its id, kind and times stay",
    )

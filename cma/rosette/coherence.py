"""Coherence: every governed record says what the records that it rests on say.

Topology has found each record; here what they tell is held against each other: a frame against its
witnesses, a proposal against its evidence, an admitted cell against what was approved, a receipt
against its packet. A store that was written by its transitions passes; one that was made up passes
only as far as its lies agree.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import apsw

from cma.eagle.decisions import DECISION, decision_of
from cma.eagle.executions import EXECUTION, ExecutionTrace, Outcome, execution_of
from cma.eagle.skills import execution_evidence
from cma.lagoon.admission import REPEAT, admitted_draft
from cma.lagoon.approvals import APPROVAL, approval_of, approval_record_id
from cma.lagoon.candidates import (
    CANDIDATE,
    Candidate,
    candidate_of,
    claim_fingerprint,
    claim_key,
    skill_fingerprint,
)
from cma.lagoon.claims import ADMISSION
from cma.lagoon.standing import REJECTION, admissions_of
from cma.orion.cells import DERIVED_KINDS, Authority, Cell, Kind, Lifecycle
from cma.orion.erased import is_blank
from cma.orion.governed import Filed, Shelf, filed_of, find_record, record_id
from cma.orion.records import (
    DAMAGES,
    Record,
    cell_id,
    cell_of_record,
    identity_of_draft,
    record_of,
)
from cma.orion.scopes import GLOBAL, is_visible
from cma.rosette.blanks import is_blank as is_left_blank
from cma.rosette.delivered import packet_faults, receipt_faults
from cma.rosette.delivery import RECEIPT
from cma.rosette.erasure_faults import admitted_anew, derived_in_service, left_of, lifecycle_of
from cma.rosette.packets import PACKET
from cma.trifid.frames import FRAME, EpisodeFrame, frame_of
from cma.trifid.replaying import REPLAY, complete_replay, evidence_of, replay_identity
from cma.trifid.sources import Source, witness_digest
from cma.values.errors import StoreRefusedError

Fault = tuple[str, str]
"""The id of a record, and what is wrong with it."""


def faults(connection: apsw.Connection) -> Iterator[Fault]:
    """Yield what disagrees, as it is found; a record that cannot be read is one that does.

    Topology goes first: what a record names is there and of its kind.
    """
    yield from _revisions(connection)
    yield from derived_in_service(connection)
    yield from _links(connection)
    for shelf, kind, check in (
        (Shelf.GOVERNED, FRAME, _frame),
        (Shelf.GOVERNED, EXECUTION, _execution),
        (Shelf.ATTENDANT, REPLAY, _replay),
        (Shelf.ATTENDANT, CANDIDATE, _candidate),
        (Shelf.ATTENDANT, REJECTION, _rejection),
        (Shelf.GOVERNED, APPROVAL, _approval),
        (Shelf.GOVERNED, ADMISSION, _admission),
        (Shelf.ATTENDANT, REPEAT, _repeat),
        (Shelf.GOVERNED, DECISION, _decision),
        (Shelf.ATTENDANT, PACKET, packet_faults),
        (Shelf.ATTENDANT, RECEIPT, receipt_faults),
    ):
        rows = connection.execute(
            f"SELECT id, record FROM {shelf.value} WHERE kind = ?",  # noqa: S608
            (kind,),
        )
        for name, data in rows:
            try:
                messages = list(check(connection, filed_of(data)))
            except (StoreRefusedError, *DAMAGES):
                messages = ["it, or what it names, does not have the parts of its kind"]
            for message in messages:
                yield name, message


def _revisions(connection: apsw.Connection) -> Iterator[Fault]:
    """A later revision changes an active cell, in what an update can change."""
    rows = connection.execute(
        "SELECT n.id, n.record, o.record FROM cells n JOIN cells o ON o.id = n.id"
        " AND o.revision = n.revision - 1 WHERE n.revision > 1"
    )
    for name, new, old in rows:
        try:
            message = _wrongly_changed(record_of(old), record_of(new))
        except (StoreRefusedError, *DAMAGES):
            message = "a revision does not have the parts of its kind"
        if message is not None:
            yield name, message


def _wrongly_changed(before: Record, after: Record) -> str | None:
    kept = {"approval_id", "created_at", "derived_from", "kind", "observed_at"}
    kept |= {"scope", "source"}
    if is_blank(before) != is_blank(after):
        return "only some of its revisions were erased"
    if is_blank(before):
        return None
    if before["kind"] != Kind.WORKING:
        kept.add("content")
    if before["kind"] in DERIVED_KINDS:
        kept.add("metadata")
    if before["lifecycle"] != Lifecycle.ACTIVE:
        return "it was changed after it was retired"
    if any(after[name] != before[name] for name in kept):
        return "a revision changed what no update can change"
    return None


def _links(connection: apsw.Connection) -> Iterator[Fault]:
    rows = connection.execute(
        "SELECT l.id FROM links l JOIN cells s ON s.id = l.source_id AND s.revision = 1"
        " JOIN cells t ON t.id = l.target_id AND t.revision = 1 WHERE s.id = t.id"
        " OR (s.scope <> t.scope AND s.scope <> ?1 AND t.scope <> ?1)",
        (GLOBAL,),
    )
    for (name,) in rows:
        yield name, "it joins what no link can join"


def _frame(connection: apsw.Connection, filed: Filed) -> Iterator[str]:
    frame = frame_of(filed)
    yield from left_of(connection, filed, frame.cells)
    if (filed.subject, filed.scope) != (frame.signature, frame.scope):
        yield "its signature or scope is another"
    seen = list(_witnessed(connection, frame.sources, frame.scope))
    if None in seen or not seen:
        yield "a source is not what it says was witnessed"
        return
    times = [cell.observed_at or cell.created_at for cell in seen if cell is not None]
    if any(later < earlier for earlier, later in pairwise(times)):
        yield "its sources are not in observed order"
    if not frame.start <= times[0] or not times[-1] <= frame.end:
        yield "its interval does not cover its sources"


def _execution(connection: apsw.Connection, filed: Filed) -> Iterator[str]:
    execution = execution_of(filed)
    yield from left_of(connection, filed, execution.cells)
    if (filed.subject, filed.scope) != (execution.fingerprint, execution.scope):
        yield "its fingerprint or scope is another"
    if not execution.sources or None in _witnessed(connection, execution.sources, filed.scope):
        yield "a source is not what it says was witnessed"


def _witnessed(
    connection: apsw.Connection, sources: tuple[Source, ...], viewer: str
) -> Iterator[Cell | None]:
    """Yield each source's revision that was bound, None where none was ever like that."""
    for source in sources:
        rows = connection.execute("SELECT record FROM cells WHERE id = ?", (source.cell,))
        cells = (cell_of_record(record_of(data)) for (data,) in rows.fetchall())
        yield next(
            (
                cell
                for cell in cells
                if is_visible(cell.scope, viewer=viewer)
                and (cell.lifecycle is Lifecycle.ERASED or witness_digest(cell) == source.digest)
            ),
            None,
        )


def _replay(connection: apsw.Connection, filed: Filed) -> Iterator[str]:
    told = evidence_of(filed)
    frame = _frame_named(connection, told.frame_id)
    if told.complete != (told.steps == complete_replay(frame).steps):
        yield "it is not complete in the way that it says"


def _candidate(connection: apsw.Connection, filed: Filed) -> Iterator[str]:
    told = candidate_of(filed)
    if told.erased:
        if not is_left_blank(filed):
            yield "it was erased and is not blank"
        return
    if told.scope not in (told.held_in, GLOBAL):
        yield "it would live in another scope than its evidence allows"
    semantic = told.kind is Kind.SEMANTIC
    if bool(told.frames) != semantic or bool(told.executions) == semantic:
        yield "its evidence is of another kind"
    elif filed.identity != {**filed.identity, **_expected(connection, told)}:
        yield "it does not say what its evidence says"
    admitted_draft(told, "any")


def _expected(connection: apsw.Connection, told: Candidate) -> dict[str, Any]:
    """Return the parts of a candidate's identity that follow from its evidence and claim."""
    parts = told.metadata
    if told.kind is Kind.SEMANTIC:
        frames = [_frame_named(connection, name) for name in sorted(told.frames)]
        for frame in frames:
            replay = record_id(REPLAY, replay_identity(complete_replay(frame)))
            _found(connection, Shelf.ATTENDANT, REPLAY, replay)
        return {
            "frames": [each.id for each in frames if is_visible(each.scope, viewer=told.held_in)],
            "cells": [cell for frame in frames for cell in frame.cells],
            "signature": frames[0].signature,
            "evidence": [[frame.id, complete_replay(frame).digest] for frame in frames],
            "fingerprint": claim_fingerprint(
                told.scope, parts["subject"], parts["predicate"], parts["object"]
            ),
        }
    runs = [_execution_named(connection, name) for name in sorted(told.executions)]
    wins, losses = ([each.id for each in runs if each.outcome is outcome] for outcome in Outcome)
    return {
        "kind": Kind.PROCEDURAL,
        "executions": [each.id for each in runs if is_visible(each.scope, viewer=told.held_in)],
        "successes": wins,
        "failures": losses,
        "cells": list(dict.fromkeys(cell for each in runs for cell in each.cells)),
        "signature": runs[0].fingerprint,
        "evidence": [[each.id, execution_evidence(each)] for each in runs],
        "fingerprint": skill_fingerprint(told.scope, parts["task"], parts["steps"]),
    }


def _rejection(_: apsw.Connection, filed: Filed) -> Iterator[str]:
    reason = filed.details["reason"]
    if filed.erased:
        if not is_left_blank(filed):
            yield "it was erased and is not blank"
        return
    if not isinstance(reason, str) or not reason.strip():
        yield "it does not say why"


def _approval(connection: apsw.Connection, filed: Filed) -> Iterator[str]:
    approval = approval_of(filed)
    candidate = _candidate_named(connection, approval.candidate)
    if (approval.fingerprint, filed.scope) != (candidate.fingerprint, candidate.held_in):
        yield "it is bound to another proposal"


def _admission(connection: apsw.Connection, filed: Filed) -> Iterator[str]:
    told = filed.details
    candidate = _candidate_named(connection, told["candidate"])
    if candidate.erased:
        if lifecycle_of(connection, told["cell"]) != Lifecycle.ERASED:
            yield "its proposal was erased, and its cell was not"
    else:
        yield from _approved(filed, candidate)
    yield from admitted_anew(connection, filed)
    approval = approval_of(
        _found(connection, Shelf.GOVERNED, APPROVAL, approval_record_id(told["approval"]))
    )
    if approval.expires_at is not None and filed.at >= approval.expires_at:
        yield "its approval had expired"
    rejection = record_id(REJECTION, {"candidate": candidate.id})
    if find_record(connection, Shelf.ATTENDANT, REJECTION, rejection, viewer=None) is not None:
        yield "its proposal was rejected"


def _approved(filed: Filed, candidate: Candidate) -> Iterator[str]:
    told = filed.details
    draft = admitted_draft(candidate, told["approval"])
    expected = identity_of_draft(draft, candidate.scope, Authority(candidate.authority))
    # The cell's id is made of all that was approved.
    if told["cell"] != cell_id(expected) or filed.scope != candidate.scope:
        yield "its cell is not what was approved"
    subject, parts = candidate.fingerprint, candidate.metadata
    if candidate.kind is Kind.SEMANTIC:
        subject = claim_key(parts["subject"], parts["predicate"])
    if filed.subject != subject:
        yield "it is looked up by another claim"


def _repeat(connection: apsw.Connection, filed: Filed) -> Iterator[str]:
    told = filed.identity
    candidate = _candidate_named(connection, told["candidate"])
    admitted = {each.details["cell"] for each in admissions_of(connection, candidate.fingerprint)}
    named = isinstance(told["approval"], str) and isinstance(filed.details["approver"], str)
    if (
        not named
        or told["fingerprint"] != candidate.fingerprint
        or not (admitted & set(filed.refs))
    ):
        yield "it repeats no admission"


def _decision(connection: apsw.Connection, filed: Filed) -> Iterator[str]:
    told = decision_of(filed)
    if (filed.identity["scope"], told.by, told.at) != (filed.scope, filed.by, filed.at):
        yield "scope, name or time is another"
    ends = connection.execute(
        "SELECT c.scope FROM links l JOIN cells c ON c.id IN (l.source_id, l.target_id)"
        " AND c.revision = 1 WHERE l.id = ?",
        (told.link,),
    )
    if not all(is_visible(scope, viewer=filed.scope) for (scope,) in ends.fetchall()):
        yield "it decides on what its scope does not see"


def _candidate_named(connection: apsw.Connection, name: str) -> Candidate:
    return candidate_of(_found(connection, Shelf.ATTENDANT, CANDIDATE, name))


def _frame_named(connection: apsw.Connection, name: str) -> EpisodeFrame:
    return frame_of(_found(connection, Shelf.GOVERNED, FRAME, name))


def _execution_named(connection: apsw.Connection, name: str) -> ExecutionTrace:
    return execution_of(_found(connection, Shelf.GOVERNED, EXECUTION, name))


def _found(connection: apsw.Connection, shelf: Shelf, kind: str, name: str) -> Filed:
    filed = find_record(connection, shelf, kind, name, viewer=None)
    if filed is None:
        raise ValueError(f"the {kind} {name} is not there")
    return filed

"""Claims: semantic candidates from frames, their evidence, and the conflicts of admitted ones."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any

import apsw
from pydantic import Field

from cma.lagoon.candidates import (
    CANDIDATE,
    Candidate,
    candidate_identity,
    candidate_of,
    claim_fingerprint,
    claim_key,
)
from cma.lagoon.policy import Policy
from cma.orion.audit import Operation
from cma.orion.cells import Caller, Cell, Content, Kind, Note, SemanticMetadata
from cma.orion.governed import Shelf, file_record, records_about
from cma.orion.linking import put_link
from cma.orion.links import LinkDraft, LinkKind, link_of_draft
from cma.orion.records import cell_of_record, record_of
from cma.orion.scopes import GLOBAL, may_link
from cma.orion.store import Store
from cma.orion.transition import Transition
from cma.orion.writing import LATEST
from cma.trifid.admissibility import check_admissible
from cma.trifid.frames import EpisodeFrame, read_frame
from cma.trifid.signatures import normalised
from cma.values.errors import InvalidValueError, Reason, TransitionRejectedError
from cma.values.validation import Identifier, Share, Value, validated

ADMISSION = "admission"
MAX_FRAMES = 1_000


class ClaimDraft(Value):
    """A proposed claim. scope: where the cell would live, the proposer's own by default."""

    frames: Annotated[tuple[Identifier, ...], Field(min_length=1, max_length=MAX_FRAMES)]
    content: Content
    subject: Identifier
    predicate: Identifier
    object: Identifier
    summary: Note = ""
    confidence: Share = 1.0
    importance: Share = 0.5
    scope: Identifier | None = None


def propose_claim(
    store: Store, fields: Mapping[str, Any], *, viewer: str, caller: Caller, policy: Policy
) -> Candidate:
    """Propose a semantic cell from episode frames (paper: Lagoon). Memory stays as it is.

    Raises TransitionRejectedError: `kinds-incompatible`, and all of `check_admissible`;
    NotFoundError: `frame-not-found`.
    """
    with store.transition(caller.name) as transition:
        draft = validated(lambda: ClaimDraft.model_validate(dict(fields)))
        scope = target_scope(draft.scope, viewer)
        frames = _frames(transition.connection, draft.frames, viewer)
        evidence = check_admissible(transition.connection, frames, minimum=policy.frames)
        metadata = SemanticMetadata(
            subject=draft.subject, predicate=draft.predicate, object=draft.object
        )
        cells = [cell for frame in frames for cell in frame.cells]
        identity = candidate_identity(
            kind=Kind.SEMANTIC,
            confidence=draft.confidence,
            importance=draft.importance,
            scope=scope,
            fingerprint=claim_fingerprint(scope, draft.subject, draft.predicate, draft.object),
            content=draft.content,
            summary=draft.summary,
            metadata=metadata.model_dump(),
            frames=[frame.id for frame in frames],
            executions=[],
            successes=[],
            failures=[],
            cells=cells,
            signature=frames[0].signature,
            evidence=[[each.frame_id, each.digest] for each in evidence],
            origin=f"episodes {frames[0].id}",
            authority=caller.authority.value,
        )
        filed, _ = file_record(
            transition,
            Shelf.ATTENDANT,
            CANDIDATE,
            scope=viewer,
            identity=identity,
            subject=identity["fingerprint"],
            refs=(*identity["frames"], *cells),
            operation=Operation.PROPOSE,
            policy=policy.name,
        )
    return candidate_of(filed)


def target_scope(asked: str | None, viewer: str) -> str:
    """Return where a derived cell would live: the proposer's scope, or global if asked."""
    if asked not in (None, viewer, GLOBAL):
        raise InvalidValueError(
            Reason.FIELD_INVALID,
            "derived memory lives in the proposer's scope or becomes global",
            field="scope",
            value=asked,
            remedy=f"use {viewer!r} or 'global'",
        )
    return asked or viewer


def check_claim_evidence(connection: apsw.Connection, candidate: Candidate, policy: Policy) -> None:
    """Refuse a claim whose frames no longer carry it, or not in this number.

    Raises TransitionRejectedError (`evidence-incomplete`).
    """
    try:
        frames = _frames(connection, candidate.frames, candidate.held_in)
        evidence = check_admissible(connection, frames, minimum=policy.frames)
    except (TransitionRejectedError, LookupError) as error:
        raise evidence_incomplete(candidate, str(error)) from error
    seen = tuple((each.frame_id, each.digest) for each in evidence)
    if seen != candidate.evidence:
        raise evidence_incomplete(candidate, "a replay is not what it was")


def evidence_incomplete(candidate: Candidate, why: str) -> TransitionRejectedError:
    """Return the refusal of a candidate whose evidence does not carry it any more."""
    return TransitionRejectedError(
        Reason.EVIDENCE_INCOMPLETE,
        f"the evidence does not carry the proposal: {why}",
        field="evidence",
        value=candidate.id,
        remedy="regenerate the proposal from the evidence that stands",
        subjects=(candidate.id,),
    )


def link_claim_conflicts(transition: Transition, cell: Cell, policy: Policy) -> None:
    """Join a new claim by conflict links to active claims with the same subject and predicate and
    another object, wherever the two may know of each other. Both stay.
    """
    metadata = cell.metadata
    if not isinstance(metadata, SemanticMetadata):
        return
    many = {normalised(predicate) for predicate in policy.many_valued}
    if normalised(metadata.predicate) in many:
        return
    key = claim_key(metadata.subject, metadata.predicate)
    for filed in records_about(transition.connection, Shelf.GOVERNED, ADMISSION, key):
        row = transition.connection.execute(LATEST, (filed.details["cell"],)).fetchone()
        other = None if row is None else cell_of_record(record_of(row[0]))
        if (
            other is not None
            and other.id != cell.id
            and isinstance(other.metadata, SemanticMetadata)
            and normalised(other.metadata.object) != normalised(metadata.object)
            and other.is_active(transition.at)
            and may_link(other.scope, cell.scope)
        ):
            draft = LinkDraft(kind=LinkKind.CONFLICT, source_id=other.id, target_id=cell.id)
            put_link(transition, link_of_draft(draft, transition.at), or_any=True)


def _frames(connection: apsw.Connection, ids: Sequence[str], viewer: str) -> list[EpisodeFrame]:
    frames = {}
    for place, name in enumerate(ids):
        if not name.startswith("frame-"):
            raise TransitionRejectedError(
                Reason.KINDS_INCOMPATIBLE,
                "a claim rests on episode frames",
                field=f"frames[{place}]",
                value=name,
                remedy="name frames, as memory.bind returned them",
            )
        frames[name] = read_frame(connection, name, viewer=viewer)
    return [frames[name] for name in sorted(frames)]

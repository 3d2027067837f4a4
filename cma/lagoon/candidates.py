"""Candidates: derived memory that somebody proposes, with everything that it rests on.

A candidate is no memory. Its id covers claim and evidence; its fingerprint covers the claim alone,
so that the same claim from further evidence is the same memory.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

import apsw

from cma.orion.cells import Kind
from cma.orion.governed import Filed, Shelf, find_record, record_id
from cma.orion.records import damaged_record
from cma.trifid.signatures import normalised
from cma.values.errors import NotFoundError, Reason
from cma.values.identity import canonical, digest, is_identifier
from cma.values.validation import Value, checked_id, millionths, share

CANDIDATE = "candidate"
FINGERPRINT_DOMAIN = "cma:fingerprint:1"
CLAIM_DOMAIN = "cma:claim:1"


class Candidate(Value):
    """A proposed semantic or procedural cell (paper: consolidation candidates).

    cells: the source cells, in order. evidence: pairs of a frame or execution and the digest of
    its evidence. successes and failures: executions by outcome. scope: where the cell would live;
    held_in: the scope whose evidence it rests on, which sees the proposal. erased: what it said was
    erased together with a cell.
    """

    id: str
    kind: Kind
    scope: str
    held_in: str
    fingerprint: str
    content: str
    summary: str
    metadata: dict[str, Any]
    frames: tuple[str, ...]
    executions: tuple[str, ...]
    successes: tuple[str, ...]
    failures: tuple[str, ...]
    cells: tuple[str, ...]
    signature: str
    evidence: tuple[tuple[str, str], ...]
    confidence: float
    importance: float
    origin: str
    authority: str
    proposed_by: str
    at: datetime
    erased: bool = False


def claim_fingerprint(scope: str, subject: str, predicate: str, object_: str) -> str:
    """Return the fingerprint of a claim: its three parts, whatever their case and spacing."""
    parts = [normalised(part) for part in (subject, predicate, object_)]
    return digest(FINGERPRINT_DOMAIN, canonical({"claim": parts, "scope": scope}))


def skill_fingerprint(scope: str, task: str, steps: Sequence[str]) -> str:
    """Return the fingerprint of a skill: its task and steps, whatever came of them."""
    parts = {"scope": scope, "steps": [normalised(step) for step in steps]}
    return digest(FINGERPRINT_DOMAIN, canonical({**parts, "task": normalised(task)}))


def claim_key(subject: str, predicate: str) -> str:
    """Return what two claims share when only one of their objects can hold."""
    return digest(CLAIM_DOMAIN, canonical([normalised(subject), normalised(predicate)]))


def candidate_identity(
    *, kind: Kind, confidence: float, importance: float, **parts: Any
) -> dict[str, Any]:
    """Return what makes the candidate's id: claim, evidence and judgement."""
    return {
        "kind": kind.value,
        "confidence": millionths(confidence),
        "importance": millionths(importance),
        **parts,
    }


def candidate_of(filed: Filed) -> Candidate:
    """Return the candidate that a filed record holds; refuse one whose content is not its id's."""
    told = filed.identity
    if not filed.erased and record_id(CANDIDATE, told) != filed.id:
        raise damaged_record()
    return Candidate(
        id=filed.id,
        kind=Kind(told["kind"]),
        scope=told["scope"],
        held_in=filed.scope,
        fingerprint=told["fingerprint"],
        content=told["content"],
        summary=told["summary"],
        metadata=told["metadata"],
        frames=tuple(told["frames"]),
        executions=tuple(told["executions"]),
        successes=tuple(told["successes"]),
        failures=tuple(told["failures"]),
        cells=tuple(told["cells"]),
        signature=told["signature"],
        evidence=tuple((name, seen) for name, seen in told["evidence"]),
        confidence=share(told["confidence"]),
        importance=share(told["importance"]),
        origin=told["origin"],
        authority=told["authority"],
        proposed_by=filed.by,
        at=filed.at,
        erased=filed.erased,
    )


def read_candidate(
    connection: apsw.Connection, candidate_id: str, *, viewer: str | None
) -> Candidate:
    """Return a candidate that the viewer sees (None: whoever reviews the whole store).

    Raises NotFoundError (`proposal-not-found`).
    """
    checked_id(candidate_id, field="candidate_id")
    filed = find_record(connection, Shelf.ATTENDANT, CANDIDATE, candidate_id, viewer=viewer)
    if filed is None:
        raise NotFoundError(
            Reason.PROPOSAL_NOT_FOUND,
            f"no such proposal in the scope {viewer or 'of this store'}",
            field="candidate_id",
            value=candidate_id,
            remedy="take the id from memory.proposals() or `cma proposals list`"
            + ("" if viewer is None else "; check the scope"),
            subjects=(candidate_id,) if is_identifier(CANDIDATE, candidate_id) else (),
        )
    return candidate_of(filed)

"""Skills: procedural candidates from execution traces, failures included.

A skill candidate keeps every execution of its task and steps; one that leaves out a failure is
refused, and so is one without a success.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any

import apsw
from pydantic import Field

from cma.eagle.executions import ExecutionTrace, Outcome, read_execution, visible_executions
from cma.lagoon.candidates import (
    CANDIDATE,
    Candidate,
    candidate_identity,
    candidate_of,
    skill_fingerprint,
)
from cma.lagoon.claims import evidence_incomplete, target_scope
from cma.lagoon.policy import Policy
from cma.orion.audit import Operation
from cma.orion.cells import Caller, Content, Kind, Note, ProceduralMetadata
from cma.orion.governed import Shelf, file_record
from cma.orion.store import Store
from cma.trifid.signatures import normalised
from cma.trifid.sources import visible_cell, witness_digest
from cma.values.errors import Reason, TransitionRejectedError
from cma.values.identity import canonical, digest
from cma.values.validation import Identifier, Share, Value, validated

EVIDENCE_DOMAIN = "cma:execution-evidence:1"
MAX_EXECUTIONS = 10_000  # a skill names every one: so often may a task have been carried out


class SkillDraft(Value):
    """A proposed skill. content: how it reads (task and steps by default)."""

    executions: Annotated[tuple[Identifier, ...], Field(min_length=1, max_length=MAX_EXECUTIONS)]
    content: Content | None = None
    summary: Note = ""
    importance: Share = 0.5
    scope: Identifier | None = None


def propose_skill(
    store: Store, fields: Mapping[str, Any], *, viewer: str, caller: Caller, policy: Policy
) -> Candidate:
    """Propose a procedural cell from executions (paper: Eagle). Memory stays as it is.

    Its confidence is the share of executions that succeeded.

    Raises TransitionRejectedError: `kinds-incompatible`, `executions-mixed`, `executions-too-few`,
    `execution-omitted`, `success-missing`, `evidence-shared`, `source-missing`,
    `evidence-incomplete`; NotFoundError:
    `execution-not-found`.
    """
    with store.transition(caller.name) as transition:
        draft = validated(lambda: SkillDraft.model_validate(dict(fields)))
        connection = transition.connection
        scope = target_scope(draft.scope, viewer)
        executions = _executions(connection, draft.executions, viewer)
        _check_not_erased(executions)
        check_executions(connection, executions, viewer=viewer, minimum=policy.executions)
        first = executions[0]
        metadata = ProceduralMetadata(task=first.task, steps=first.steps)
        cells = list(dict.fromkeys(cell for each in executions for cell in each.cells))
        by_outcome = {
            outcome: [each.id for each in executions if each.outcome is outcome]
            for outcome in Outcome
        }
        wins = by_outcome[Outcome.SUCCESS]
        identity = candidate_identity(
            kind=Kind.PROCEDURAL,
            confidence=round(len(wins) / len(executions), 6),
            importance=draft.importance,
            scope=scope,
            fingerprint=skill_fingerprint(scope, first.task, first.steps),
            content=draft.content or f"{first.task}: {'; '.join(first.steps)}",
            summary=draft.summary,
            metadata={**metadata.model_dump(), "steps": list(metadata.steps)},
            frames=[],
            executions=[each.id for each in executions],
            successes=wins,
            failures=by_outcome[Outcome.FAILURE],
            cells=cells,
            signature=first.fingerprint,
            evidence=[[each.id, evidence_digest(connection, each)] for each in executions],
            origin=f"executions {first.id}",
            authority=caller.authority.value,
        )
        filed, _ = file_record(
            transition,
            Shelf.ATTENDANT,
            CANDIDATE,
            scope=viewer,
            identity=identity,
            subject=identity["fingerprint"],
            refs=(*identity["executions"], *cells),
            operation=Operation.PROPOSE,
            policy=policy.name,
        )
    return candidate_of(filed)


def _check_not_erased(executions: Sequence[ExecutionTrace]) -> None:
    for each in executions:
        if each.erased:
            raise TransitionRejectedError(
                Reason.EVIDENCE_INCOMPLETE,
                "what the execution said was erased with one of its sources",
                field="executions",
                value=each.id,
                remedy="propose from executions that stand",
                subjects=tuple(each.id for each in executions),
            )


def check_executions(
    connection: apsw.Connection,
    executions: Sequence[ExecutionTrace],
    *,
    viewer: str,
    minimum: int,
) -> None:
    """Refuse executions that do not make a skill, or not the whole story of it."""
    first = executions[0]
    names = tuple(each.id for each in executions)
    told = set(names)
    for each in executions:
        if _skill(each) != _skill(first):
            raise TransitionRejectedError(
                Reason.EXECUTIONS_MIXED,
                "the executions are of different tasks or steps",
                field="executions",
                value=each.id,
                remedy="propose from executions of one task with the same steps",
                subjects=names,
            )
    if len(executions) < minimum:
        raise TransitionRejectedError(
            Reason.EXECUTIONS_TOO_FEW,
            f"{len(executions)} executions, the policy asks for {minimum}",
            field="executions",
            remedy="record further executions",
            subjects=names,
        )
    everything = visible_executions(connection, first.task, first.steps, viewer=viewer)
    for each in everything:
        if each.id not in told:
            raise TransitionRejectedError(
                Reason.EXECUTION_OMITTED,
                f"a {each.outcome} of the same skill is left out",
                field="executions",
                value=each.id,
                remedy="name every execution of the skill, failures too",
                subjects=names,
            )
    if not any(each.outcome is Outcome.SUCCESS for each in executions):
        raise TransitionRejectedError(
            Reason.SUCCESS_MISSING,
            "not one execution succeeded",
            field="executions",
            remedy="a skill needs at least one success",
            subjects=names,
        )
    _check_independent(executions)


def _check_independent(executions: Sequence[ExecutionTrace]) -> None:
    """Refuse one witness of two executions: scopes that do not see each other may both name it."""
    witnessed: dict[str, str] = {}
    for each in executions:
        for cell in each.cells:
            other = witnessed.setdefault(cell, each.id)
            if other != each.id:
                raise TransitionRejectedError(
                    Reason.EVIDENCE_SHARED,
                    "one source witnesses two of the executions and would be counted twice",
                    field="executions",
                    value=cell,
                    remedy="record executions from what witnessed each of them alone",
                    subjects=(other, each.id),
                )


def check_skill_evidence(connection: apsw.Connection, candidate: Candidate, policy: Policy) -> None:
    """Refuse a skill whose executions no longer carry it, or are no longer the whole story.

    Raises TransitionRejectedError (`evidence-incomplete`).
    """
    try:
        executions = _executions(connection, candidate.executions, candidate.held_in)
        check_executions(
            connection, executions, viewer=candidate.held_in, minimum=policy.executions
        )
        seen = tuple((each.id, evidence_digest(connection, each)) for each in executions)
    except (TransitionRejectedError, LookupError) as error:
        raise evidence_incomplete(candidate, str(error)) from error
    if seen != candidate.evidence:
        raise evidence_incomplete(candidate, "an execution is not what it was")


def evidence_digest(connection: apsw.Connection, execution: ExecutionTrace) -> str:
    """Return the digest of an execution with its sources as they stand.

    Raises TransitionRejectedError: `source-missing`, or `evidence-incomplete` for a source that
    is not as it was witnessed.
    """
    for source in execution.sources:
        cell = visible_cell(connection, source.cell, execution.scope)
        if cell is None:
            raise TransitionRejectedError(
                Reason.SOURCE_MISSING,
                "a source of the execution is not there",
                field="executions",
                value=source.cell,
                remedy="record what can still be witnessed",
                subjects=(execution.id, source.cell),
            )
        if witness_digest(cell) != source.digest or cell.lifecycle != "active":
            raise TransitionRejectedError(
                Reason.EVIDENCE_INCOMPLETE,
                "a source of the execution was altered or retired",
                field="executions",
                value=source.cell,
                remedy="record the execution anew from evidence that stands",
                subjects=(execution.id, source.cell),
            )
    return execution_evidence(execution)


def execution_evidence(execution: ExecutionTrace) -> str:
    """Return the digest of an execution with its sources as they were witnessed."""
    told = [execution.id, *([source.cell, source.digest] for source in execution.sources)]
    return digest(EVIDENCE_DOMAIN, canonical(told))


def _skill(execution: ExecutionTrace) -> tuple[str, tuple[str, ...]]:
    return normalised(execution.task), tuple(normalised(step) for step in execution.steps)


def _executions(
    connection: apsw.Connection, ids: Sequence[str], viewer: str
) -> list[ExecutionTrace]:
    found: dict[str, ExecutionTrace] = {}
    for place, name in enumerate(ids):
        if not name.startswith("execution-"):
            raise TransitionRejectedError(
                Reason.KINDS_INCOMPATIBLE,
                "a skill rests on execution traces",
                field=f"executions[{place}]",
                value=name,
                remedy="name executions, as memory.execute returned them",
            )
        found[name] = read_execution(connection, name, viewer=viewer)
    return [found[name] for name in sorted(found)]

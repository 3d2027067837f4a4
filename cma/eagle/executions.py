"""Execution traces: a task that was carried out by certain steps, and what came of it.

Opposite outcomes of one skill are joined by a conflict link between the cells that witnessed them.
Neither is removed, however inconvenient.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from enum import StrEnum
from typing import Annotated, Any, NamedTuple

import apsw
from pydantic import Field

from cma.lagoon.candidates import skill_fingerprint
from cma.orion.audit import Operation
from cma.orion.cells import Caller
from cma.orion.governed import Filed, Shelf, file_record, find_record, records_about
from cma.orion.linking import put_link
from cma.orion.links import LinkDraft, LinkKind, link_of_draft
from cma.orion.scopes import visible_scopes
from cma.orion.store import Store
from cma.orion.transition import Transition
from cma.trifid.sources import Source, source_cells, witness_digest
from cma.values.errors import NotFoundError, Reason, TransitionRejectedError
from cma.values.validation import Identifier, Value, checked_id, validated

EXECUTION = "execution"


class Outcome(StrEnum):
    """What came of an execution."""

    SUCCESS = "success"
    FAILURE = "failure"


class ExecutionDraft(Value):
    """An execution to be recorded. sources: the episodic cells that witnessed it, in order."""

    task: Identifier
    steps: Annotated[tuple[Identifier, ...], Field(min_length=1, max_length=1_000)]
    outcome: Outcome
    sources: Annotated[tuple[Identifier, ...], Field(min_length=1, max_length=1_000)]


class ExecutionTrace(Value):
    """A recorded execution (paper: execution traces, Eagle).

    erased: what it said was erased with one of its sources; it counts as evidence no more.
    """

    id: str
    task: str
    steps: tuple[str, ...]
    outcome: Outcome
    sources: tuple[Source, ...]
    scope: str
    fingerprint: str
    at: datetime
    erased: bool = False

    @property
    def cells(self) -> tuple[str, ...]:
        """The source cells' ids, in observed order."""
        return tuple(source.cell for source in self.sources)


class _Earlier(NamedTuple):
    """What a new execution is held against; thousands of these are read for one."""

    id: str
    scope: str
    outcome: Outcome
    cells: list[str]


def record_execution(
    store: Store, fields: Mapping[str, Any], *, viewer: str, caller: Caller
) -> ExecutionTrace:
    """Record an execution in the viewer's scope; the same again is a duplicate.

    Where another execution of the same task and steps came out the other way, a conflict link
    joins the last sources of the two.

    Raises TransitionRejectedError: those of sources, and `evidence-shared` when a source already
    witnesses another execution of the same skill, in this scope or the global one.
    """
    with store.transition(caller.name) as transition:
        draft = validated(lambda: ExecutionDraft.model_validate(dict(fields)))
        cells = source_cells(transition.connection, draft.sources, viewer)
        fingerprint = skill_fingerprint(viewer, draft.task, draft.steps)
        earlier = _earlier(transition.connection, draft, viewer)
        identity = {
            "outcome": draft.outcome.value,
            "scope": viewer,
            "sources": [[cell.id, witness_digest(cell)] for cell in cells],
            "steps": list(draft.steps),
            "task": draft.task,
        }
        filed, new = file_record(
            transition,
            Shelf.GOVERNED,
            EXECUTION,
            scope=viewer,
            identity=identity,
            subject=fingerprint,
            refs=draft.sources,
            operation=Operation.EXECUTE,
        )
        execution = execution_of(filed)
        if new:
            _check_independent(execution, earlier)
            _link_opposite(transition, execution, earlier)
    return execution


def execution_of(filed: Filed) -> ExecutionTrace:
    """Return the execution that a filed record holds."""
    told = filed.identity
    return ExecutionTrace(
        id=filed.id,
        task=told["task"],
        steps=tuple(told["steps"]),
        outcome=Outcome(told["outcome"]),
        sources=tuple(Source(cell=cell, digest=seen) for cell, seen in told["sources"]),
        scope=told["scope"],
        fingerprint=filed.subject or ""
        if filed.erased
        else skill_fingerprint(told["scope"], told["task"], told["steps"]),
        at=filed.at,
        erased=filed.erased,
    )


def read_execution(connection: apsw.Connection, name: str, *, viewer: str) -> ExecutionTrace:
    """Return an execution that the viewer sees. Raises NotFoundError (`execution-not-found`)."""
    checked_id(name, field="execution_id")
    filed = find_record(connection, Shelf.GOVERNED, EXECUTION, name, viewer=viewer)
    if filed is None:
        raise NotFoundError(
            Reason.EXECUTION_NOT_FOUND,
            f"no such execution in the scope {viewer}",
            field="execution_id",
            value=name,
            remedy="record it first: memory.execute(...); or check the id and the scope",
        )
    return execution_of(filed)


def executions_of(
    connection: apsw.Connection, fingerprint: str, *, scopes: Sequence[str]
) -> list[ExecutionTrace]:
    """Return the executions of one skill fingerprint that stand, in the order of recording."""
    filed = records_about(connection, Shelf.GOVERNED, EXECUTION, fingerprint, scopes=scopes)
    return [execution_of(each) for each in filed if not each.erased]


def visible_executions(
    connection: apsw.Connection, task: str, steps: Sequence[str], *, viewer: str
) -> list[ExecutionTrace]:
    """Return every execution of one task and steps that the viewer sees, its own scope first."""
    return [
        execution
        for scope in visible_scopes(viewer)[::-1]
        for execution in executions_of(
            connection, skill_fingerprint(scope, task, steps), scopes=(scope,)
        )
    ]


def _earlier(connection: apsw.Connection, draft: ExecutionDraft, viewer: str) -> list[_Earlier]:
    """Return what the viewer sees of the same skill's executions, each scope's oldest first."""
    found = []
    for scope in visible_scopes(viewer):
        fingerprint = skill_fingerprint(scope, draft.task, draft.steps)
        for filed in records_about(
            connection, Shelf.GOVERNED, EXECUTION, fingerprint, scopes=(scope,)
        ):
            if filed.erased:
                continue
            outcome = Outcome(filed.identity["outcome"])
            cells = [cell for cell, _ in filed.identity["sources"]]
            found.append(_Earlier(filed.id, scope, outcome, cells))
    return found


def _check_independent(execution: ExecutionTrace, earlier: Sequence[_Earlier]) -> None:
    used = {cell: other.id for other in earlier for cell in other.cells}
    for place, cell in enumerate(execution.cells):
        if cell in used:
            raise TransitionRejectedError(
                Reason.EVIDENCE_SHARED,
                "this source already witnesses another execution of the same skill",
                field=f"sources[{place}]",
                value=cell,
                remedy="name what witnessed this execution alone",
                subjects=(used[cell],),
            )


def _link_opposite(
    transition: Transition, execution: ExecutionTrace, earlier: Sequence[_Earlier]
) -> None:
    # The first of an outcome is joined to all of the other, a later one to the first of the other:
    # so all executions in conflict are one component, and whoever holds one holds all.
    own = [each for each in earlier if each.scope == execution.scope]
    opposite = [each for each in own if each.outcome is not execution.outcome]
    first = len(opposite) == len(own)
    for other in opposite if first else opposite[:1]:
        draft = LinkDraft(
            kind=LinkKind.CONFLICT, source_id=other.cells[-1], target_id=execution.cells[-1]
        )
        put_link(transition, link_of_draft(draft, transition.at), or_any=True)

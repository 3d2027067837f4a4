"""Revisions: update, retire, expire, quarantine.

A change adds a revision; the earlier ones stay readable.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from cma.orion.audit import Operation
from cma.orion.cells import (
    DERIVED_KINDS,
    Caller,
    Cell,
    CellDraft,
    Kind,
    Lifecycle,
    WorkingMetadata,
)
from cma.orion.records import (
    cell_of_record,
    checked_size,
    due,
    expiry,
    record_of,
    record_of_cell,
    revision_digest,
)
from cma.orion.scopes import is_visible
from cma.orion.store import Store
from cma.orion.transition import Transition
from cma.orion.writing import CELL_INSERT, LATEST, cell_not_found
from cma.values.clock import microseconds
from cma.values.errors import (
    InvalidValueError,
    Reason,
    TransitionRejectedError,
)
from cma.values.identity import canonical_of_checked
from cma.values.validation import checked_id, validated

_SETTABLE = frozenset({Lifecycle.ACTIVE, Lifecycle.SUPERSEDED, Lifecycle.RETRACTED})
UPDATABLE = frozenset({"content", "summary", "confidence", "importance", "metadata", "lifecycle"})


def update_cell(
    store: Store, cell_id: str, changes: Mapping[str, Any], *, viewer: str, caller: Caller
) -> Cell:
    """Make a new revision of an active cell with the changed fields; keep the earlier ones.

    content, summary, confidence, importance, metadata and lifecycle can change. The content of a
    witnessed event cannot, nor content and metadata of a derived cell, which an approval covers,
    nor a global cell from a session. A cell that is no longer active takes no change; lifecycle
    goes from active to superseded or retracted, never back, and `expired` comes from the sweep
    alone.
    """
    with store.transition(caller.name) as transition:
        checked_id(cell_id, field="cell_id")
        before = latest_cell(transition, cell_id, viewer)
        if before.scope != viewer:
            raise TransitionRejectedError(
                Reason.GLOBAL_FROM_SESSION,
                "a session sees the global cells and cannot change them",
                field="cell_id",
                value=cell_id,
                remedy="change it through memory.within('global')",
            )
        after = _revised(before, changes, transition)
        _add_revision(transition, before, after, Operation.UPDATE)
    return after


def sweep(store: Store, *, caller: Caller) -> tuple[str, ...]:
    """Record each expiry that has come, once; return the ids of the cells that expired."""
    with store.transition(caller.name) as transition:
        expiring = transition.connection.execute(
            "SELECT c.record FROM cells c WHERE c.expires_at <= ? AND c.lifecycle = 'active'"
            " AND NOT EXISTS (SELECT 1 FROM cells n WHERE n.id = c.id AND n.revision > c.revision)"
            " ORDER BY c.id",
            (microseconds(transition.at),),
        ).fetchall()
        expired = []
        for (data,) in expiring:
            before = cell_of_record(record_of(data))
            after = before.model_copy(
                update={"lifecycle": Lifecycle.EXPIRED, "revision": before.revision + 1}
            )
            _add_revision(transition, before, after, Operation.EXPIRE)
            expired.append(before.id)
    return tuple(expired)


def quarantine(transition: Transition, cell_ids: Sequence[str]) -> tuple[str, ...]:
    """Take cells out of service whose source was erased; return those that were in service.

    Each gets a revision of its own; its content stays readable for whoever decides on it.
    """
    taken = []
    for name in cell_ids:
        (data,) = transition.connection.execute(LATEST, (name,)).fetchone()
        before = cell_of_record(record_of(data))
        if before.lifecycle is not Lifecycle.ACTIVE:
            continue
        fields = {"lifecycle": Lifecycle.QUARANTINED, "revision": before.revision + 1}
        after = before.model_copy(update=fields)
        reason = Reason.SOURCE_ERASED.value
        _add_revision(transition, before, after, Operation.QUARANTINE, reason=reason)
        taken.append(name)
    return tuple(taken)


def latest_cell(transition: Transition, cell_id: str, viewer: str) -> Cell:
    """Return the latest revision of a cell that the viewer may see, or raise NotFoundError."""
    row = transition.connection.execute(LATEST, (cell_id,)).fetchone()
    cell = None if row is None else cell_of_record(record_of(row[0]))
    if cell is None or not is_visible(cell.scope, viewer=viewer):
        raise cell_not_found(cell_id, viewer)
    return cell


def _revised(before: Cell, changes: Mapping[str, Any], transition: Transition) -> Cell:
    unknown = sorted(set(changes) - UPDATABLE)
    if unknown:
        refusal = InvalidValueError(
            Reason.FIELD_INVALID,
            "this field cannot be updated",
            field=unknown[0],
            remedy=f"only {', '.join(sorted(UPDATABLE))} can",
        )
        refusal.made_up = len(unknown[0])
        raise refusal
    if not before.is_active(transition.at):
        raise TransitionRejectedError(
            Reason.CELL_INACTIVE,
            "the cell is no longer active",
            field="cell_id",
            value=before.id,
            remedy="write a new cell",
        )
    missing = sorted(name for name, value in changes.items() if value is None)
    if missing:
        raise InvalidValueError(
            Reason.FIELD_INVALID,
            "no value",
            field=missing[0],
            remedy="leave the field out to keep it as it is",
        )
    after = _validated_change(before, changes, transition)
    if before.kind is Kind.EPISODIC and after.content != before.content:
        raise TransitionRejectedError(
            Reason.WITNESSED_CONTENT,
            "the content of a witnessed event cannot be edited",
            field="content",
            remedy="write what you know now as a new cell and link the two",
        )
    if before.kind in DERIVED_KINDS:
        for name in ("content", "metadata"):
            if getattr(after, name) != getattr(before, name):
                raise TransitionRejectedError(
                    Reason.APPROVAL_REQUIRED,
                    "what was approved cannot be edited",
                    field=name,
                    remedy="retract this cell, and propose what holds now",
                )
    if canonical_of_checked(record_of_cell(after)) == canonical_of_checked(record_of_cell(before)):
        raise TransitionRejectedError(
            Reason.NOTHING_TO_UPDATE,
            "no field would change",
            field="changes",
            remedy=f"give a new value for one of {', '.join(sorted(UPDATABLE))}",
        )
    return after.model_copy(update={"revision": before.revision + 1})


def _validated_change(before: Cell, changes: Mapping[str, Any], transition: Transition) -> Cell:
    """Return the cell with its changes, held to the same rules as a draft."""
    fields = {name: value for name, value in changes.items() if name != "lifecycle"}
    draft = validated(
        lambda: CellDraft.model_validate(
            {
                "kind": before.kind,
                "content": before.content,
                "origin": before.source.origin,
                "summary": before.summary,
                "confidence": before.confidence,
                "importance": before.importance,
                "observed_at": before.observed_at,
                "metadata": before.metadata,
                "approval_id": before.approval_id,
                "derived_from": before.derived_from,
                **fields,
            }
        )
    )
    expires_at = before.expires_at
    if isinstance(draft.metadata, WorkingMetadata):
        expires_at = expiry(before.created_at, draft.metadata.ttl_seconds)
        if expires_at <= transition.at:
            raise TransitionRejectedError(
                Reason.EXPIRY_PAST,
                "the cell would have expired already",
                field="metadata.ttl_seconds",
                value=draft.metadata.ttl_seconds,
                remedy="the time to live counts from the cell's creation",
            )
    lifecycle = changes.get("lifecycle", before.lifecycle)
    if not isinstance(lifecycle, str) or lifecycle not in _SETTABLE:
        raise InvalidValueError(
            Reason.FIELD_INVALID,
            "not a lifecycle that an update can set",
            field="lifecycle",
            value=lifecycle,
            remedy="use 'superseded' or 'retracted'",
        )
    return before.model_copy(
        update={
            "content": draft.content,
            "summary": draft.summary,
            "confidence": draft.confidence,
            "importance": draft.importance,
            "metadata": draft.metadata,
            "expires_at": expires_at,
            "lifecycle": Lifecycle(lifecycle),
        }
    )


def _add_revision(
    transition: Transition,
    before: Cell,
    after: Cell,
    operation: Operation,
    *,
    reason: str | None = None,
) -> None:
    transition.change()
    data = checked_size(canonical_of_checked(record_of_cell(after)))
    transition.connection.execute(
        CELL_INSERT,
        (after.id, after.revision, after.scope, after.lifecycle.value, due(after.expires_at), data),
    )
    transition.record(
        operation,
        (after.id,),
        reason=reason,
        before=revision_digest(canonical_of_checked(record_of_cell(before))),
        after=revision_digest(data),
    )

"""Transitions of cells: write, update, retire, expire. Each happens whole or not at all."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import timedelta
from typing import Annotated, Any, TypeVar

import orjson
from pydantic import FailFast, TypeAdapter, ValidationError

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
    Record,
    cell_of_record,
    checked_size,
    first_revision,
    identity_of_draft,
    record_of,
    record_of_cell,
    revision_digest,
)
from cma.orion.scopes import GLOBAL, is_visible
from cma.orion.store import Store, Transition
from cma.values.clock import microseconds
from cma.values.errors import (
    InvalidValueError,
    NotFoundError,
    Reason,
    TransitionRejectedError,
)
from cma.values.identity import canonical_of_checked
from cma.values.validation import Value, as_invalid_value, validated

Item = TypeVar("Item")
UPDATABLE = frozenset({"content", "summary", "confidence", "importance", "metadata", "lifecycle"})
CHUNK = 200
_CELL_INSERT = (
    "INSERT INTO cells (id, revision, scope, lifecycle, expires_at, record)"
    " VALUES (?, ?, ?, ?, ?, ?)"
)
LATEST = "SELECT record FROM cells WHERE id = ? ORDER BY revision DESC LIMIT 1"
_DRAFTS: TypeAdapter[list[CellDraft]] = TypeAdapter(Annotated[list[CellDraft], FailFast()])


class BatchReceipt(Value):
    """What a batch did: ids in the order given, how many were new, how many were there before."""

    ids: tuple[str, ...]
    created: int
    duplicates: int
    generation: int


def write_cells(
    store: Store,
    drafts: Sequence[CellDraft | Mapping[str, Any]],
    *,
    scope: str,
    caller: Caller,
) -> BatchReceipt:
    """Validate and write working and episodic cells in one transition.

    A cell that is there already is left as it is and recorded as a duplicate. Semantic and
    procedural cells are refused here (`approval-required`): they enter only through an approved
    transition.
    """
    batch = len(drafts) > 1
    ids: list[str] = []
    created = 0
    with store.transition(caller.name) as transition:
        # In chunks, so that a large batch works in a little memory that stays in the cache.
        for start in range(0, len(drafts), CHUNK):
            chunk = valid_batch(_DRAFTS, drafts[start : start + CHUNK], start if batch else None)
            for place, draft in enumerate(chunk, start):
                _check_direct(draft, scope, f"drafts[{place}]." if batch else "")
            firsts = [
                first_revision(identity_of_draft(draft, scope, caller.authority), transition.at)
                for draft in chunk
            ]
            for place, (_, data) in enumerate(firsts, start):
                checked_size(data, place=f"drafts[{place}]." if batch else "")
            created += _write_chunk(transition, firsts, scope)
            ids.extend(record["id"] for record, _ in firsts)
            transition.flush()
        generation = transition.chain.generation
    return BatchReceipt(
        ids=tuple(ids), created=created, duplicates=len(ids) - created, generation=generation
    )


def _write_chunk(transition: Transition, firsts: Sequence[tuple[Record, bytes]], scope: str) -> int:
    """Add the first revisions that are new; record each, the others as duplicates."""
    present = _present(transition, [record["id"] for record, _ in firsts])
    rows: list[tuple[str, int, str, str, int | None, bytes]] = []
    sealed: list[tuple[str, str | None, str]] = []
    for record, data in firsts:
        cell_id = record["id"]
        known = present.get(cell_id)
        if known is not None:
            sealed.append((cell_id, known, known))
            continue
        present[cell_id] = after = revision_digest(data)
        expires = record["expires_at"]
        due = None if expires is None else microseconds(expires)
        rows.append((cell_id, 1, scope, "active", due, data))
        sealed.append((cell_id, None, after))
    if rows:
        transition.change()
        transition.connection.executemany(_CELL_INSERT, rows)
    seal, records = transition.chain.seal, transition.rows
    for cell_id, before, after in sealed:
        reason = None if before is None else "duplicate"
        records.append(seal("write", (cell_id,), before=before, after=after, reason=reason))
    return len(rows)


def _present(transition: Transition, ids: list[str]) -> dict[str, str]:
    """Return the digest of the latest revision of each of these cells that is there."""
    known = transition.connection.execute(
        "SELECT DISTINCT id FROM cells WHERE id IN (SELECT value FROM json_each(?))",
        (orjson.dumps(ids).decode(),),
    ).fetchall()
    found = {}
    for (cell_id,) in known:
        (data,) = transition.connection.execute(LATEST, (cell_id,)).fetchone()
        found[cell_id] = revision_digest(data)
    return found


def update_cell(
    store: Store, cell_id: str, changes: Mapping[str, Any], *, viewer: str, caller: Caller
) -> Cell:
    """Make a new revision of an active cell with the changed fields; keep the earlier ones.

    content, summary, confidence, importance, metadata and lifecycle can change. A witnessed
    event's content cannot; a cell that is no longer active takes no change; lifecycle goes from
    active to superseded or retracted, never back, and `expired` comes from the sweep alone.
    """
    with store.transition(caller.name) as transition:
        before = latest_cell(transition, cell_id, viewer)
        after = _revised(before, changes, transition)
        _add_revision(transition, before, after, Operation.UPDATE)
    return after


def sweep(store: Store, *, caller: Caller) -> tuple[str, ...]:
    """Record each expiry that has come, once; return the ids of the cells that expired."""
    with store.transition(caller.name) as transition:
        due = transition.connection.execute(
            "SELECT c.record FROM cells c WHERE c.expires_at <= ? AND c.lifecycle = 'active'"
            " AND NOT EXISTS (SELECT 1 FROM cells n WHERE n.id = c.id AND n.revision > c.revision)"
            " ORDER BY c.id",
            (microseconds(transition.at),),
        ).fetchall()
        expired = []
        for (data,) in due:
            before = cell_of_record(record_of(data))
            after = before.model_copy(
                update={"lifecycle": Lifecycle.EXPIRED, "revision": before.revision + 1}
            )
            _add_revision(transition, before, after, Operation.EXPIRE)
            expired.append(before.id)
    return tuple(expired)


def latest_cell(transition: Transition, cell_id: str, viewer: str) -> Cell:
    """Return the latest revision of a cell that the viewer may see, or raise NotFoundError."""
    row = transition.connection.execute(LATEST, (cell_id,)).fetchone()
    cell = None if row is None else cell_of_record(record_of(row[0]))
    if cell is None or not is_visible(cell.scope, viewer=viewer):
        raise cell_not_found(cell_id, viewer)
    return cell


def cell_not_found(cell_id: str, viewer: str) -> NotFoundError:
    """Return the error for a cell that is not there or not visible: the two are not told apart."""
    return NotFoundError(
        Reason.CELL_NOT_FOUND,
        f"no such cell in the scope {viewer}",
        field="cell_id",
        value=cell_id,
        remedy="check the id and the scope",
    )


def batch_of(items: Iterable[Any]) -> list[Any]:
    """Return the drafts of a batch as a list, or raise InvalidValueError for what is none."""
    if not isinstance(items, Iterable):
        raise InvalidValueError(
            Reason.FIELD_INVALID,
            "not a batch",
            field="drafts",
            value=items,
            remedy="give a list of drafts",
        )
    return list(items)


def valid_batch(
    adapter: TypeAdapter[list[Item]], items: Sequence[Any], start: int | None
) -> list[Item]:
    """Return validated drafts; the error of a bad one names its place, as in `drafts[56].kind`.

    start: the place of the first of these in their batch, or None for a draft that stands alone.
    """
    try:
        return adapter.validate_python(items)
    except ValidationError as error:
        invalid = as_invalid_value(error, skip=1)
        if start is not None:
            place = start + int(error.errors()[0]["loc"][0])
            invalid.field = f"drafts[{place}]" + (f".{invalid.field}" if invalid.field else "")
        raise invalid from error


def _check_direct(draft: CellDraft, scope: str, prefix: str) -> None:
    if draft.kind in DERIVED_KINDS:
        raise TransitionRejectedError(
            Reason.APPROVAL_REQUIRED,
            "semantic and procedural cells enter only through an approved transition",
            field=f"{prefix}kind",
            value=draft.kind.value,
            remedy="write what was observed as an episodic cell and propose the abstraction",
        )
    if draft.kind is Kind.WORKING and scope == GLOBAL:
        raise TransitionRejectedError(
            Reason.WORKING_GLOBAL,
            "a working cell belongs to a session",
            field=f"{prefix}scope",
            value=scope,
            remedy="write it through memory.within('session:<id>')",
        )


def _revised(before: Cell, changes: Mapping[str, Any], transition: Transition) -> Cell:
    unknown = sorted(set(changes) - UPDATABLE)
    if unknown:
        raise InvalidValueError(
            Reason.FIELD_INVALID,
            "this field cannot be updated",
            field=unknown[0],
            remedy=f"only {', '.join(sorted(UPDATABLE))} can",
        )
    if not before.is_active(transition.at):
        raise TransitionRejectedError(
            Reason.CELL_INACTIVE,
            "the cell is no longer active",
            field="cell_id",
            value=before.id,
            remedy="write a new cell",
        )
    if before.kind is Kind.EPISODIC and changes.get("content", before.content) != before.content:
        raise TransitionRejectedError(
            Reason.WITNESSED_CONTENT,
            "the content of a witnessed event cannot be edited",
            field="content",
            remedy="write what you know now as a new cell and link the two",
        )
    after = _validated_change(before, changes, transition)
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
        expires_at = before.created_at + timedelta(seconds=draft.metadata.ttl_seconds)
        if expires_at <= transition.at:
            raise TransitionRejectedError(
                Reason.EXPIRY_PAST,
                "the cell would have expired already",
                field="metadata.ttl_seconds",
                value=draft.metadata.ttl_seconds,
                remedy="the time to live counts from the cell's creation",
            )
    lifecycle = changes.get("lifecycle", before.lifecycle)
    if lifecycle not in (Lifecycle.ACTIVE, Lifecycle.SUPERSEDED, Lifecycle.RETRACTED):
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


def _add_revision(transition: Transition, before: Cell, after: Cell, operation: Operation) -> None:
    transition.change()
    data = checked_size(canonical_of_checked(record_of_cell(after)))
    due = None if after.expires_at is None else microseconds(after.expires_at)
    transition.connection.execute(
        _CELL_INSERT, (after.id, after.revision, after.scope, after.lifecycle.value, due, data)
    )
    transition.record(
        operation,
        (after.id,),
        before=revision_digest(canonical_of_checked(record_of_cell(before))),
        after=revision_digest(data),
    )

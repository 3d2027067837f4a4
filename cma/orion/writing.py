"""Writing cells, one or a batch, in one transition that happens whole or not at all."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated, Any, TypeVar

import orjson
from pydantic import FailFast, TypeAdapter, ValidationError

from cma.orion.audit import Operation
from cma.orion.cells import (
    DERIVED_KINDS,
    Authority,
    Caller,
    Cell,
    CellDraft,
    Kind,
    Lifecycle,
)
from cma.orion.records import (
    Record,
    cell_of_record,
    checked_size,
    due,
    first_revision,
    identity_of_draft,
    record_of,
    revision_digest,
)
from cma.orion.scopes import GLOBAL, is_visible
from cma.orion.store import Store
from cma.orion.transition import Transition
from cma.values.errors import (
    InvalidValueError,
    NotFoundError,
    Reason,
    TransitionRejectedError,
)
from cma.values.validation import Value, as_invalid_value, nested_too_deep

Item = TypeVar("Item")
CHUNK = 200
INACTIVE = "inactive"
CELL_INSERT = (
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

    A cell that is there already is left as it is and recorded as a duplicate; one that is no
    longer active is refused (`cell-inactive`), since it would not be recalled. Semantic and
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
            for place, (record, data) in enumerate(firsts, start):
                prefix = f"drafts[{place}]." if batch else ""
                checked_size(data, place=prefix)
                if record["derived_from"]:
                    _check_sources(transition, record["derived_from"], scope, prefix)
            created += _write_chunk(transition, firsts, scope, start if batch else None)
            ids.extend(record["id"] for record, _ in firsts)
            transition.flush()
        generation = transition.chain.generation
    return BatchReceipt(
        ids=tuple(ids), created=created, duplicates=len(ids) - created, generation=generation
    )


def add_derived_cell(
    transition: Transition,
    draft: CellDraft,
    *,
    scope: str,
    authority: Authority,
    also: tuple[str, ...],
    policy: str,
) -> Cell:
    """Add a semantic or procedural cell within an approved transition, and return it.

    For the guarded transition alone: it has checked approval and sources. `also` are further
    subjects of the audit record, such as proposal and approval.
    """
    record, data = first_revision(identity_of_draft(draft, scope, authority), transition.at)
    checked_size(data)
    transition.change()
    transition.connection.execute(CELL_INSERT, (record["id"], 1, scope, "active", None, data))
    transition.record(
        Operation.CONSOLIDATE,
        (record["id"], *also),
        after=revision_digest(data),
        policy=policy,
    )
    return cell_of_record(record_of(data))


def _write_chunk(
    transition: Transition,
    firsts: Sequence[tuple[Record, bytes]],
    scope: str,
    start: int | None,
) -> int:
    """Add the first revisions that are new; record each, the others as duplicates."""
    present = _present(transition, [record["id"] for record, _ in firsts])
    rows: list[tuple[str, int, str, str, int | None, bytes]] = []
    sealed: list[tuple[str, str | None, str]] = []
    for place, (record, data) in enumerate(firsts, start or 0):
        cell_id = record["id"]
        known = present.get(cell_id)
        if known is not None:
            if known == INACTIVE:
                raise _inactive(cell_id, "" if start is None else f"drafts[{place}].")
            sealed.append((cell_id, known, known))
            continue
        present[cell_id] = after = revision_digest(data)
        rows.append((cell_id, 1, scope, "active", due(record["expires_at"]), data))
        sealed.append((cell_id, None, after))
    if rows:
        transition.change()
        transition.connection.executemany(CELL_INSERT, rows)
    seal, records = transition.chain.seal, transition.rows
    for cell_id, before, after in sealed:
        reason = None if before is None else "duplicate"
        records.append(seal("write", (cell_id,), before=before, after=after, reason=reason))
    return len(rows)


def _present(transition: Transition, ids: list[str]) -> dict[str, str]:
    """Return the digest of the latest revision of each of these cells that is there.

    INACTIVE stands for that of a cell which has expired or was retired.
    """
    known = transition.connection.execute(
        "SELECT DISTINCT id FROM cells WHERE id IN (SELECT value FROM json_each(?))",
        (orjson.dumps(ids).decode(),),
    ).fetchall()
    found = {}
    for (cell_id,) in known:
        (data,) = transition.connection.execute(LATEST, (cell_id,)).fetchone()
        active = cell_of_record(record_of(data)).is_active(transition.at)
        found[cell_id] = revision_digest(data) if active else INACTIVE
    return found


def _check_sources(transition: Transition, ids: Sequence[str], scope: str, prefix: str) -> None:
    for name in ids:
        row = transition.connection.execute(
            "SELECT scope FROM cells WHERE id = ? LIMIT 1", (name,)
        ).fetchone()
        if row is None or not is_visible(row[0], viewer=scope):
            raise TransitionRejectedError(
                Reason.SOURCE_MISSING,
                f"no such cell in the scope {scope}",
                field=f"{prefix}derived_from",
                value=name,
                remedy="name cells that are there",
            )
        if rests_on_erased(transition, name):
            raise TransitionRejectedError(
                Reason.SOURCE_ERASED,
                "the source was erased, or was derived from what was",
                field=f"{prefix}derived_from",
                value=name,
                remedy="name sources that stand",
            )


def rests_on_erased(transition: Transition, cell_id: str) -> bool:
    """Tell whether a cell was erased, or derived from one that was, directly or not."""
    waiting, seen = [cell_id], {cell_id}
    while waiting:
        row = transition.connection.execute(LATEST, (waiting.pop(),)).fetchone()
        if row is None:  # damage, which is found elsewhere
            continue
        cell = cell_of_record(record_of(row[0]))
        if cell.lifecycle is Lifecycle.ERASED:
            return True
        new = set(cell.derived_from) - seen
        seen |= new
        waiting.extend(new)
    return False


def _inactive(cell_id: str, prefix: str) -> TransitionRejectedError:
    return TransitionRejectedError(
        Reason.CELL_INACTIVE,
        "this very cell was written before and is no longer active; it is not revived",
        field=f"{prefix}content",
        value=cell_id,
        remedy="give what sets the new cell apart, such as another origin",
    )


def cell_not_found(cell_id: str, viewer: str) -> NotFoundError:
    """Return the error for a cell that is not there or not visible: the two are not told apart."""
    return NotFoundError(
        Reason.CELL_NOT_FOUND,
        f"no such cell in the scope {viewer}",
        field="cell_id",
        value=cell_id,
        remedy="check the id and the scope",
    )


def batch_of(items: object) -> list[Any]:
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
    except RecursionError as error:
        raise nested_too_deep() from error


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

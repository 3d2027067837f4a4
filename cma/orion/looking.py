"""Looking things up: a cell by id, its links, the failures on record. Nothing is changed."""

from __future__ import annotations

from cma.orion.audit import AuditRecord, Operation, audit_record
from cma.orion.cells import Cell
from cma.orion.connection import database_errors
from cma.orion.links import Link, link_kind, link_of_record
from cma.orion.records import DAMAGES, cell_of_record, damaged_record, record_of
from cma.orion.scopes import is_visible
from cma.orion.store import Store
from cma.orion.writing import LATEST, cell_not_found
from cma.values.errors import InvalidValueError, NotFoundError, Reason
from cma.values.identity import MAX_INTEGER
from cma.values.validation import checked_id


def read_cell(store: Store, cell_id: str, *, revision: int | None, viewer: str) -> Cell:
    """Return a cell at its latest or a given revision, expired or not.

    Raises NotFoundError (`cell-not-found`, `revision-not-found`).
    """
    checked_id(cell_id, field="cell_id")
    _check_revision(revision)
    with database_errors(store.path):
        row = store.connection.execute(LATEST, (cell_id,)).fetchone()
    latest = None if row is None else cell_of_record(record_of(row[0]))
    if latest is None or not is_visible(latest.scope, viewer=viewer):
        raise cell_not_found(cell_id, viewer)
    if revision is None or revision == latest.revision:
        return latest
    with database_errors(store.path):
        row = store.connection.execute(
            "SELECT record FROM cells WHERE id = ? AND revision = ?", (cell_id, revision)
        ).fetchone()
    if row is None:
        raise NotFoundError(
            Reason.REVISION_NOT_FOUND,
            f"the cell has revisions 1 to {latest.revision}",
            field="revision",
            value=revision,
            remedy="leave it out for the latest",
        )
    return cell_of_record(record_of(row[0]))


def read_links(store: Store, cell_id: str, *, kind: str | None, viewer: str) -> tuple[Link, ...]:
    """Return the links of a visible cell, seen from either end, ordered by id.

    Links to cells that the viewer does not see are left out.
    """
    read_cell(store, cell_id, revision=None, viewer=viewer)
    wanted = None if kind is None else link_kind(kind)
    with database_errors(store.path):
        rows = store.connection.execute(
            "SELECT record FROM links WHERE source_id = ?1 OR target_id = ?1 ORDER BY id",
            (cell_id,),
        ).fetchall()
        links = [link_of_record(record_of(data)) for (data,) in rows]
        return tuple(
            link
            for link in links
            if (wanted is None or link.kind is wanted)
            and _sees(store, link.other_end(cell_id), viewer)
        )


def failures(store: Store) -> tuple[AuditRecord, ...]:
    """Return the failure records: one for each transition that was refused, in order."""
    store.flush_reads()
    with database_errors(store.path):
        rows = store.connection.execute(
            "SELECT record, hash FROM audit WHERE operation = ? ORDER BY seq",
            (Operation.REJECT.value,),
        ).fetchall()
    try:
        records = [audit_record(data, sealed) for data, sealed in rows]
    except DAMAGES as error:
        raise damaged_record() from error
    # A person's rejection of a proposal is a record of its own and no failure.
    return tuple(record for record in records if record.after is None)


def _sees(store: Store, cell_id: str, viewer: str) -> bool:
    row = store.connection.execute(
        "SELECT scope FROM cells WHERE id = ? LIMIT 1", (cell_id,)
    ).fetchone()
    return row is not None and is_visible(row[0], viewer=viewer)


def _check_revision(revision: object) -> None:
    whole = isinstance(revision, int) and not isinstance(revision, bool)
    if revision is not None and not (whole and abs(revision) <= MAX_INTEGER):  # type: ignore[arg-type]
        raise InvalidValueError(
            Reason.FIELD_INVALID,
            "not the number of a revision",
            field="revision",
            value=revision,
            remedy="revisions count from 1; leave it out for the latest",
        )

"""Source cells: what witnesses an episode or an execution, and the digest of what was witnessed.

The digest covers the event itself (content, source, time, scope, metadata). Confidence, importance
and summary are judgements about it and may change without altering the evidence.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from itertools import pairwise

import apsw

from cma.orion.cells import Cell, Kind
from cma.orion.records import cell_of_record, record_of, record_of_cell
from cma.orion.scopes import is_visible
from cma.orion.writing import LATEST
from cma.values.clock import utc_text
from cma.values.errors import InvalidValueError, Reason, TransitionRejectedError
from cma.values.identity import canonical, digest
from cma.values.validation import Value

WITNESS_DOMAIN = "cma:witness:1"


class Source(Value):
    """A source cell with the digest of what it witnessed when it was bound."""

    cell: str
    digest: str


def witness_digest(cell: Cell) -> str:
    """Return the digest of what a cell witnessed."""
    record = record_of_cell(cell)
    observed = cell.observed_at
    witnessed = {
        "content": record["content"],
        "id": record["id"],
        "kind": record["kind"],
        "metadata": record["metadata"],
        "observed_at": None if observed is None else utc_text(observed),
        "scope": record["scope"],
        "source": record["source"],
    }
    return digest(WITNESS_DOMAIN, canonical(witnessed))


def visible_cell(connection: apsw.Connection, cell_id: str, viewer: str) -> Cell | None:
    """Return the latest revision of a cell, None where none is or the viewer does not see it."""
    row = connection.execute(LATEST, (cell_id,)).fetchone()
    cell = None if row is None else cell_of_record(record_of(row[0]))
    return cell if cell is not None and is_visible(cell.scope, viewer=viewer) else None


def source_cells(connection: apsw.Connection, ids: Sequence[str], viewer: str) -> list[Cell]:
    """Return the source cells of these ids: there, witnessed, active, in observed order.

    Raises TransitionRejectedError: `source-missing` (also for a cell of another session, which is
    not told apart from none), `source-kind`, `source-inactive`, `sources-disordered`;
    InvalidValueError when one is named twice.
    """
    if len(set(ids)) != len(ids):
        raise InvalidValueError(
            Reason.FIELD_INVALID,
            "names a source twice",
            field="sources",
            remedy="name each source cell once",
        )
    cells = [_source(connection, cell_id, viewer, place) for place, cell_id in enumerate(ids)]
    for place, (earlier, later) in enumerate(pairwise(cells), 1):
        if _observed(later) < _observed(earlier):
            raise TransitionRejectedError(
                Reason.SOURCES_DISORDERED,
                "this source was observed before the one that it follows",
                field=f"sources[{place}]",
                value=later.id,
                remedy="give the sources in the order in which they were observed",
            )
    return cells


def _observed(cell: Cell) -> datetime:
    return cell.observed_at or cell.created_at


def _source(connection: apsw.Connection, cell_id: str, viewer: str, place: int) -> Cell:
    field = f"sources[{place}]"
    cell = visible_cell(connection, cell_id, viewer)
    if cell is None:
        raise TransitionRejectedError(
            Reason.SOURCE_MISSING,
            f"no such cell in the scope {viewer}",
            field=field,
            value=cell_id,
            remedy="write the event first, or check its id and scope",
        )
    if cell.kind is not Kind.EPISODIC:
        raise TransitionRejectedError(
            Reason.SOURCE_KIND,
            f"a {cell.kind} cell witnesses no event",
            field=field,
            value=cell_id,
            remedy="name episodic cells",
        )
    if cell.lifecycle != "active":
        raise TransitionRejectedError(
            Reason.SOURCE_INACTIVE,
            f"the source was {cell.lifecycle}",
            field=field,
            value=cell_id,
            remedy="name evidence that still stands",
        )
    return cell

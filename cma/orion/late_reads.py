"""Reads that were made before an erasure and are recorded after it: what they asked is not kept.

Each process keeps its reads for a moment before it records them, so a recall that served a cell may
come to the store when the cell is erased already.
"""

from __future__ import annotations

from collections.abc import Sequence

import orjson

from cma.orion.audit import Operation
from cma.orion.erased import blank_trace, is_blank
from cma.orion.reads import Read
from cma.orion.records import record_of
from cma.orion.traces import TRACE_DOMAIN
from cma.orion.transition import Transition
from cma.values.errors import Reason
from cma.values.identity import canonical_of_checked, digest

_ANY_ERASED = "SELECT 1 FROM cells WHERE lifecycle = 'erased' LIMIT 1"


def blanks_among(transition: Transition, reads: Sequence[Read]) -> dict[str, str]:
    """Return the digests of those of these traces that are in the store already, and blank.

    The same recall may have been made twice: what is recorded of the second is what is there.
    """
    connection, found = transition.connection, dict[str, str]()
    if not reads or connection.execute(_ANY_ERASED).fetchone() is None:
        return found
    for read in reads:
        query = "SELECT record FROM traces WHERE id = ?"
        (data,) = connection.execute(query, (read.trace_id,)).fetchone()
        if is_blank(record_of(data)):
            found[read.trace_id] = digest(TRACE_DOMAIN, data)
    return found


def blank_late_reads(transition: Transition, trace_ids: Sequence[str]) -> None:
    """Blank those of these traces, just recorded, that served or listed an erased cell."""
    connection = transition.connection
    if not trace_ids or connection.execute(_ANY_ERASED).fetchone() is None:
        return
    for name in dict.fromkeys(trace_ids):
        row = connection.execute("SELECT record FROM traces WHERE id = ?", (name,)).fetchone()
        record = record_of(row[0])
        named = [hit["cell"] for hit in record["hits"]]
        named += [cell for cell, _ in record["exclusions"]]
        late = connection.execute(
            "SELECT 1 FROM json_each(?) e JOIN cells c ON c.id = e.value"
            " WHERE c.lifecycle = 'erased'",
            (orjson.dumps(named).decode(),),
        ).fetchone()
        if late is not None and not is_blank(record):
            put_blank_trace(transition, name, row[0], Reason.CELL_ERASED.value)


def put_blank_trace(transition: Transition, name: str, data: bytes, reason: str) -> None:
    """Put the blank of a trace in its place, with its audit record."""
    blank = canonical_of_checked(blank_trace(record_of(data), name))
    transition.connection.execute("UPDATE traces SET record = ? WHERE id = ?", (blank, name))
    transition.record(
        Operation.REDACT,
        (name,),
        before=digest(TRACE_DOMAIN, data),
        after=digest(TRACE_DOMAIN, blank),
        reason=reason,
    )

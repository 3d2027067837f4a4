"""Explaining a recall backwards: trace, cells, sources and the audit records behind each.

Every step is verified: the trace against its id and its audit record, each cell's revision
against the record that admitted it, and the whole chain from its first record on.
"""

from __future__ import annotations

from cma.orion.audit import AuditRecord, Operation, audit_record, verified
from cma.orion.cells import Cell
from cma.orion.connection import database_errors
from cma.orion.recall import read_trace
from cma.orion.records import DAMAGES, cell_of_record, damaged_record, record_of, revision_digest
from cma.orion.store import Store
from cma.orion.traces import RecallTrace, TraceHit
from cma.values.validation import Value, trusted


class ExplainedHit(Value):
    """A hit with the revision that was served, the records behind it, and whether they agree."""

    hit: TraceHit
    cell: Cell | None
    history: tuple[AuditRecord, ...]
    verified: bool


class Explanation(Value):
    """What a recall served and why, with the audit records that prove it."""

    trace: RecallTrace
    recorded: AuditRecord | None
    hits: tuple[ExplainedHit, ...]
    comparisons: tuple[str, ...]
    chain_verified: bool

    @property
    def verified(self) -> bool:
        """Tell whether every step agrees with the chain."""
        return (
            self.chain_verified
            and self.recorded is not None
            and all(hit.verified for hit in self.hits)
        )


def explain_recall(store: Store, trace_id: str, *, viewer: str) -> Explanation:
    """Return the explanation of a recorded recall.

    Raises NotFoundError (`trace-not-found`) when it is not there or was made in a scope that the
    viewer does not see, and StoreRefusedError (`chain-broken`) when the chain does not hold.
    """
    trace = read_trace(store, trace_id, viewer=viewer)
    for _ in verified(store.audit_rows(), store.store_id):
        pass
    recorded = next(
        (item for item in records_of(store, trace.id) if item.operation is Operation.READ),
        None,
    )
    pairs = zip(trace.hits, trace.hits[1:], strict=False)
    # Made without validation: what is wrong with a stored cell is told, it is not refused.
    return trusted(
        Explanation,
        {
            "trace": trace,
            "recorded": recorded,
            "hits": tuple(_explained(store, hit) for hit in trace.hits),
            "comparisons": tuple(trace.contrast(above, below) for above, below in pairs),
            "chain_verified": True,
        },
    )


def records_of(store: Store, subject: str) -> tuple[AuditRecord, ...]:
    """Return the audit records whose first subject this is, in order."""
    rows = store.connection.execute(
        "SELECT record, hash FROM audit WHERE subject = ? ORDER BY seq", (subject,)
    )
    return tuple(audit_record(data, sealed) for data, sealed in rows)


def timeline(store: Store, *, subject: str | None, last: int) -> list[AuditRecord]:
    """Return the last audit records, oldest first; with a subject, those of it alone."""
    with database_errors(store.path):
        rows = store.connection.execute(
            "SELECT record, hash FROM audit WHERE ?1 IS NULL OR subject = ?1"
            " ORDER BY seq DESC LIMIT ?2",
            (subject, last),
        ).fetchall()
    try:
        return [audit_record(data, sealed) for data, sealed in reversed(rows)]
    except DAMAGES as error:
        raise damaged_record() from error


def _explained(store: Store, hit: TraceHit) -> ExplainedHit:
    row = store.connection.execute(
        "SELECT record FROM cells WHERE id = ? AND revision = ?", (hit.cell, hit.revision)
    ).fetchone()
    history = records_of(store, hit.cell)
    cell = None if row is None else cell_of_record(record_of(row[0]))
    agrees = row is not None and revision_digest(row[0]) in {record.after for record in history}
    return trusted(ExplainedHit, {"hit": hit, "cell": cell, "history": history, "verified": agrees})

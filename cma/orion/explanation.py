"""Explaining a recall backwards: trace, cells, sources and the audit records behind each.

Every step is verified: the trace against its id and its audit record, each cell's revision
against the record that admitted it, and the whole chain from its first record on.
"""

from __future__ import annotations

from cma.orion.audit import AuditRecord, Operation, audit_record, verified
from cma.orion.cells import Cell
from cma.orion.recall import read_trace
from cma.orion.records import cell_of_record, record_of, revision_digest
from cma.orion.scopes import is_visible
from cma.orion.store import Store
from cma.orion.traces import RecallTrace, TraceHit
from cma.values.errors import NotFoundError, Reason
from cma.values.validation import Value


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
    trace = read_trace(store, trace_id)
    if not is_visible(trace.scope, viewer=viewer):
        raise NotFoundError(
            Reason.TRACE_NOT_FOUND,
            f"no recall of that id was recorded in the scope {viewer}",
            field="trace_id",
            value=trace_id,
            remedy="check the id and the scope",
        )
    for _ in verified(store.audit_rows(), store.store_id):
        pass
    recorded = next(
        (item for item in records_of(store, trace.id) if item.operation is Operation.READ),
        None,
    )
    pairs = zip(trace.hits, trace.hits[1:], strict=False)
    return Explanation(
        trace=trace,
        recorded=recorded,
        hits=tuple(_explained(store, hit) for hit in trace.hits),
        comparisons=tuple(trace.why(above.cell, below.cell) for above, below in pairs),
        chain_verified=True,
    )


def records_of(store: Store, subject: str) -> tuple[AuditRecord, ...]:
    """Return the audit records whose first subject this is, in order."""
    rows = store.connection.execute(
        "SELECT record, hash FROM audit WHERE subject = ? ORDER BY seq", (subject,)
    )
    return tuple(audit_record(data, sealed) for data, sealed in rows)


def _explained(store: Store, hit: TraceHit) -> ExplainedHit:
    row = store.connection.execute(
        "SELECT record FROM cells WHERE id = ? AND revision = ?", (hit.cell, hit.revision)
    ).fetchone()
    history = records_of(store, hit.cell)
    if row is None:
        return ExplainedHit(hit=hit, cell=None, history=history, verified=False)
    admitted = revision_digest(row[0])
    return ExplainedHit(
        hit=hit,
        cell=cell_of_record(record_of(row[0])),
        history=history,
        verified=any(record.after == admitted for record in history),
    )

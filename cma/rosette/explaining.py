"""Telling a request backwards: receipt, packet, recall trace, decisions, cells, sources, audit.

Every step is held against the audit chain, and the chain itself from its first record on.
"""

from __future__ import annotations

from typing import Any

from cma.eagle.decisions import DECISION, Decision, decision_of
from cma.orion.audit import AuditRecord
from cma.orion.cells import DERIVED_KINDS, Cell
from cma.orion.explanation import ExplainedHit, Explanation, explain_recall, records_of
from cma.orion.governed import Shelf, filed_of, record_digest
from cma.orion.records import (
    cell_of_record,
    committed_digest,
    record_of,
    revision_digest,
)
from cma.orion.scopes import is_visible
from cma.orion.store import Store
from cma.orion.traces import RecallTrace
from cma.rosette.delivery import RECEIPT, DeliveryReceipt, read_packet, read_receipt
from cma.rosette.lineage import Lineage, lineage_of
from cma.rosette.packets import PACKET
from cma.values.validation import Value, trusted


class Served(Value):
    """A revision that a packet delivered, with the records behind it."""

    id: str
    revision: int
    digest: str
    cell: Cell | None
    history: tuple[AuditRecord, ...]
    verified: bool


class RequestExplanation(Value):
    """A request told backwards (paper: from stored evidence to an audit trail).

    receipt, packet and served are there for what was delivered; a recall that went nowhere has
    none. packet is what is on record of it: groups, exclusions, budget, control.
    """

    receipt: DeliveryReceipt | None
    packet: dict[str, Any] | None
    recall: Explanation
    served: tuple[Served, ...]
    lineages: tuple[Lineage, ...]
    decisions: tuple[Decision, ...]
    records: tuple[AuditRecord, ...]
    steps_verified: bool

    @property
    def trace(self) -> RecallTrace:
        """The recall's trace."""
        return self.recall.trace

    @property
    def hits(self) -> tuple[ExplainedHit, ...]:
        """The recall's hits."""
        return self.recall.hits

    @property
    def verified(self) -> bool:
        """Tell whether every step agrees with the chain."""
        return (
            self.recall.verified
            and self.steps_verified
            and all(each.verified for each in self.served)
            and all(each.verified for each in self.lineages)
        )


def explain_request(store: Store, name: str, *, viewer: str) -> RequestExplanation:
    """Explain a delivery by its receipt's id, or a recall by its trace's id.

    Raises NotFoundError (`receipt-not-found`, `trace-not-found`), StoreRefusedError
    (`chain-broken`).
    """
    if not isinstance(name, str) or not name.startswith(f"{RECEIPT}-"):
        recall = explain_recall(store, name, viewer=viewer)
        cells = [hit.cell for hit in recall.hits if hit.cell is not None]
        return _told(store, None, None, recall, (), cells, viewer)
    receipt = read_receipt(store, name, viewer=viewer)
    packet = read_packet(store, receipt.packet)
    recall = explain_recall(store, receipt.trace, viewer=viewer)
    served = tuple(_served(store, *each, viewer=viewer) for each in receipt.cells)
    cells = [each.cell for each in served if each.cell is not None]
    return _told(store, receipt, packet, recall, served, cells, viewer)


def _told(
    store: Store,
    receipt: DeliveryReceipt | None,
    packet: dict[str, Any] | None,
    recall: Explanation,
    served: tuple[Served, ...],
    cells: list[Cell],
    viewer: str,
) -> RequestExplanation:
    decisions: list[Decision] = []
    records: list[AuditRecord] = []
    agrees = True
    steps = [] if receipt is None else [(Shelf.ATTENDANT, RECEIPT, receipt.id)]
    if receipt is not None:
        steps.append((Shelf.ATTENDANT, PACKET, receipt.packet))
        steps += [(Shelf.GOVERNED, DECISION, name) for name in receipt.control]
        packed = [each for group in (packet or {}).get("groups", ()) for each in group["cells"]]
        agrees = tuple(tuple(each) for each in packed) == receipt.cells
        agrees = agrees and (packet or {}).get("trace") == recall.trace.id
    for shelf, kind, name in steps:
        row = store.connection.execute(
            f"SELECT record FROM {shelf.value} WHERE id = ? AND kind = ?",  # noqa: S608
            (name, kind),
        ).fetchone()
        history = records_of(store, name)
        records.extend(history)
        known = {record.after for record in history}
        agrees = agrees and row is not None and record_digest(row[0]) in known
        if row is not None and kind == DECISION:
            decisions.append(decision_of(filed_of(row[0])))
    derived = [cell for cell in cells if cell.kind in DERIVED_KINDS]
    return trusted(
        RequestExplanation,
        {
            "receipt": receipt,
            "packet": packet,
            "recall": recall,
            "served": served,
            "lineages": tuple(lineage_of(store, cell, viewer=viewer) for cell in derived),
            "decisions": tuple(decisions),
            "records": tuple(sorted(records, key=lambda record: record.seq)),
            "steps_verified": agrees,
        },
    )


def _served(store: Store, name: str, revision: int, digest: str, *, viewer: str) -> Served:
    row = store.connection.execute(
        "SELECT record FROM cells WHERE id = ? AND revision = ?", (name, revision)
    ).fetchone()
    cell = None if row is None else cell_of_record(record_of(row[0]))
    history = records_of(store, name)
    agrees = (
        row is not None
        and committed_digest(row[0]) == digest
        and revision_digest(row[0]) in {record.after for record in history}
        and digest in {record.after for record in history}
    )
    if cell is not None and not is_visible(cell.scope, viewer=viewer):
        cell = None
    fields = {"id": name, "revision": revision, "digest": digest, "cell": cell}
    return trusted(Served, {**fields, "history": history, "verified": agrees})

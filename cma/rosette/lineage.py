"""Lineage: by which proposal and approval a derived cell was admitted, and what it rests on.

Each step is held against the audit record that tells of it. What the viewer's scope does not see
is named by its id and not shown.
"""

from __future__ import annotations

from collections.abc import Iterable

from cma.eagle.executions import EXECUTION, ExecutionTrace, execution_of
from cma.lagoon.approvals import APPROVAL, Approval, approval_of, approval_record_id
from cma.lagoon.candidates import CANDIDATE, Candidate, candidate_of
from cma.lagoon.claims import ADMISSION
from cma.orion.audit import AuditRecord
from cma.orion.cells import Cell
from cma.orion.explanation import records_of
from cma.orion.governed import Filed, Shelf, filed_of, record_digest, records_naming
from cma.orion.records import cell_of_record, record_of, revision_digest
from cma.orion.scopes import is_visible
from cma.orion.store import Store
from cma.orion.writing import LATEST
from cma.trifid.frames import FRAME, EpisodeFrame, frame_of
from cma.values.validation import Value, trusted


class SourceCell(Value):
    """A source cell as it stands. cell is none where it is gone or not visible from here."""

    id: str
    cell: Cell | None
    visible: bool
    history: tuple[AuditRecord, ...]
    verified: bool


class Lineage(Value):
    """How a derived cell came to be memory (paper: source lineage, admitting policy).

    history: the audit records of proposal, approval and admission, in order. verified: whether
    every step is what the chain tells.
    """

    cell: str
    candidate: Candidate | None
    approval: Approval | None
    frames: tuple[EpisodeFrame, ...]
    executions: tuple[ExecutionTrace, ...]
    sources: tuple[SourceCell, ...]
    history: tuple[AuditRecord, ...]
    verified: bool


def lineage_of(store: Store, cell: Cell, *, viewer: str) -> Lineage:
    """Return the lineage of a derived cell; what is missing or altered makes it unverified."""
    steps = _Steps(store)
    names = records_naming(store.connection, cell.id, ADMISSION)
    admission = steps.filed(Shelf.GOVERNED, ADMISSION, names[0]) if len(names) == 1 else None
    details = admission.details if admission is not None else {}
    found = steps.filed(Shelf.ATTENDANT, CANDIDATE, details.get("candidate", ""))
    # A session's evidence behind a global cell is named to others and not shown.
    seen = found is not None and is_visible(found.scope, viewer=viewer)
    candidate = candidate_of(found) if found is not None and seen else None
    granted = steps.filed(
        Shelf.GOVERNED, APPROVAL, approval_record_id(str(details.get("approval", "")))
    )
    approval = None if granted is None else approval_of(granted)
    told = candidate if candidate is not None else None
    frames = [steps.filed(Shelf.GOVERNED, FRAME, name) for name in (told.frames if told else ())]
    executions = [
        steps.filed(Shelf.GOVERNED, EXECUTION, name) for name in (told.executions if told else ())
    ]
    sources = tuple(source_cell(store, name, viewer) for name in cell.derived_from)
    agrees = (
        details.get("cell") == cell.id
        and approval is not None
        and approval.id == cell.approval_id
        and found is not None
        and (approval.candidate, approval.fingerprint) == (found.id, found.subject)
        and tuple(found.identity["cells"]) == cell.derived_from
    )
    return trusted(
        Lineage,
        {
            "cell": cell.id,
            "candidate": candidate,
            "approval": approval,
            "frames": tuple(frame_of(each) for each in frames if each is not None),
            "executions": tuple(execution_of(each) for each in executions if each is not None),
            "sources": sources,
            "history": steps.history(),
            "verified": agrees
            and steps.verified
            and all(each.verified for each in sources if each.visible),
        },
    )


class _Steps:
    """Reads filed records and keeps what the audit says of each."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.verified = True
        self._records: dict[int, AuditRecord] = {}

    def filed(self, shelf: Shelf, kind: str, name: str) -> Filed | None:
        row = self.store.connection.execute(
            f"SELECT record FROM {shelf.value} WHERE id = ? AND kind = ?",  # noqa: S608
            (name, kind),
        ).fetchone()
        records = records_of(self.store, name)
        self._add(records)
        if row is None or record_digest(row[0]) not in {record.after for record in records}:
            self.verified = False
        return None if row is None else filed_of(row[0])

    def history(self) -> tuple[AuditRecord, ...]:
        return tuple(self._records[seq] for seq in sorted(self._records))

    def _add(self, records: Iterable[AuditRecord]) -> None:
        self._records.update((record.seq, record) for record in records)


def source_cell(store: Store, cell_id: str, viewer: str) -> SourceCell:
    """Return a source cell as it stands, with the audit records behind it."""
    row = store.connection.execute(LATEST, (cell_id,)).fetchone()
    cell = None if row is None else cell_of_record(record_of(row[0]))
    visible = cell is None or is_visible(cell.scope, viewer=viewer)
    history = records_of(store, cell_id) if visible else ()
    agrees = row is not None and revision_digest(row[0]) in {record.after for record in history}
    return trusted(
        SourceCell,
        {
            "id": cell_id,
            "cell": cell if visible else None,
            "visible": visible,
            "history": history,
            "verified": agrees,
        },
    )

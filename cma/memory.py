"""Memory: the one object through which an agent uses CMA.

A memory is a store seen by a caller from a scope. `within` gives the same memory seen from
another scope. Each method is one transition or one read; a refused transition leaves memory as it
was, adds one failure record, and raises a CmaError with a stable reason code.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

from cma.orion.cells import Authority, Caller, Cell, CellDraft
from cma.orion.connection import database_errors
from cma.orion.explanation import Explanation, explain_recall
from cma.orion.indexes import Indexes
from cma.orion.linking import add_links
from cma.orion.links import Link, LinkDraft, link_kind, link_of_record
from cma.orion.recall import recall
from cma.orion.records import cell_of_record, record_of
from cma.orion.revising import sweep, update_cell
from cma.orion.scopes import GLOBAL, checked_scope, is_visible
from cma.orion.store import Store
from cma.orion.traces import Recollection, Retrieval
from cma.orion.verification import Verification, verify_store
from cma.orion.writing import LATEST, BatchReceipt, batch_of, cell_not_found, write_cells
from cma.values.clock import Clock
from cma.values.errors import InvalidValueError, NotFoundError, Reason
from cma.values.identity import MAX_INTEGER
from cma.values.validation import Model, checked_id, validated

DEFAULT_CALLER = Caller(name="agent", authority=Authority.MODEL)


class Memory:
    """Governed memory in one file. Open it with `Memory.open`, best as a context manager."""

    def __init__(
        self,
        store: Store,
        *,
        caller: Caller,
        retrieval: Retrieval,
        scope: str,
        indexes: Indexes,
    ) -> None:
        """Hold an open store; `Memory.open` is the way in."""
        self.store = store
        self.caller = caller
        self.retrieval = retrieval
        self.scope = scope
        self._indexes = indexes

    @classmethod
    def open(
        cls,
        path: str | os.PathLike[str],
        *,
        caller: Caller = DEFAULT_CALLER,
        clock: Clock | None = None,
        retrieval: Retrieval | None = None,
        store_id: str | None = None,
    ) -> Memory:
        """Open the memory in a file, or begin one where no file is.

        caller: its name goes into the audit, its authority into the source of what it writes.
        clock: where time comes from (the machine's by default). retrieval: how to recall unless a
        call says otherwise. store_id: the name of a new store (random by default).

        Raises StoreRefusedError when the file cannot be trusted; nothing is changed then.
        """
        caller = _valid(Caller, caller)
        retrieval = _valid(Retrieval, retrieval or Retrieval())
        store = Store.open(path, clock=clock, store_id=store_id)
        return cls(
            store,
            caller=caller,
            retrieval=retrieval,
            scope=GLOBAL,
            indexes=Indexes(),
        )

    def within(self, scope: str) -> Memory:
        """Return the same memory seen from another scope: `global` or `session:<id>`."""
        return Memory(
            self.store,
            caller=self.caller,
            retrieval=self.retrieval,
            scope=checked_scope(scope),
            indexes=self._indexes,
        )

    def __enter__(self) -> Memory:
        """Return the memory itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close the store."""
        self.close()

    def close(self) -> None:
        """Record the reads that wait and close the store, for all its scopes."""
        self.store.close()

    def write(
        self,
        content: str,
        *,
        kind: str,
        origin: str,
        summary: str = "",
        confidence: float = 1.0,
        importance: float = 0.5,
        observed_at: datetime | str | None = None,
        metadata: Mapping[str, Any] | None = None,
    ) -> Cell:
        """Write one working or episodic cell and return it (paper: typed cells, Orion).

        origin: where it came from, in your own terms. confidence, importance: shares from 0 to 1.
        observed_at: when it happened, with a zone; an episodic cell needs it. metadata: that of
        the kind; a working cell needs `ttl_seconds`. A cell that is there already is returned as
        it is and recorded as a duplicate.
        """
        fields = {
            "kind": kind,
            "content": content,
            "origin": origin,
            "summary": summary,
            "confidence": confidence,
            "importance": importance,
            "observed_at": observed_at,
            "metadata": metadata,
        }
        receipt = write_cells(self.store, [fields], scope=self.scope, caller=self.caller)
        return self.get(receipt.ids[0])

    def write_many(self, drafts: Iterable[CellDraft | Mapping[str, Any]]) -> BatchReceipt:
        """Write a batch in one transition: all of it or, when one draft is bad, none.

        The error names the bad draft, as in `drafts[56].confidence`.
        """
        return write_cells(self.store, self._batch(drafts), scope=self.scope, caller=self.caller)

    def link(
        self,
        kind: str,
        source_id: str,
        target_id: str,
        *,
        weight: float | None = None,
        evidence: str | None = None,
    ) -> Link:
        """Link two cells. kind: one of the seven. weight: a share from 0 to 1."""
        fields = {
            "kind": kind,
            "source_id": source_id,
            "target_id": target_id,
            "weight": weight,
            "evidence": evidence,
        }
        links, _ = add_links(self.store, [fields], viewer=self.scope, caller=self.caller)
        return links[0]

    def link_many(self, drafts: Iterable[LinkDraft | Mapping[str, Any]]) -> BatchReceipt:
        """Add a batch of links in one transition: all of it or none."""
        return add_links(self.store, self._batch(drafts), viewer=self.scope, caller=self.caller)[1]

    def links_of(self, cell_id: str, *, kind: str | None = None) -> tuple[Link, ...]:
        """Return the links of a visible cell, seen from either end, ordered by id.

        Links to cells that this scope does not see are left out.
        """
        self.get(cell_id)
        wanted = None if kind is None else link_kind(kind)
        with database_errors(self.store.path):
            rows = self.store.connection.execute(
                "SELECT record FROM links WHERE source_id = ?1 OR target_id = ?1 ORDER BY id",
                (cell_id,),
            ).fetchall()
            links = [link_of_record(record_of(data)) for (data,) in rows]
            return tuple(
                link
                for link in links
                if (wanted is None or link.kind is wanted) and self._sees(link.other_end(cell_id))
            )

    def update(self, cell_id: str, **changes: Any) -> Cell:
        """Make a new revision of an active cell; the earlier ones stay readable.

        content, summary, confidence, importance, metadata and lifecycle (`superseded`,
        `retracted`) can change; the content of a witnessed event cannot.
        """
        return update_cell(self.store, cell_id, changes, viewer=self.scope, caller=self.caller)

    def get(self, cell_id: str, *, revision: int | None = None) -> Cell:
        """Return a cell at its latest or a given revision, expired or not.

        Raises NotFoundError (`cell-not-found`, `revision-not-found`).
        """
        checked_id(cell_id, field="cell_id")
        _check_revision(revision)
        with database_errors(self.store.path):
            row = self.store.connection.execute(LATEST, (cell_id,)).fetchone()
        latest = None if row is None else cell_of_record(record_of(row[0]))
        if latest is None or not is_visible(latest.scope, viewer=self.scope):
            raise cell_not_found(cell_id, self.scope)
        if revision is None or revision == latest.revision:
            return latest
        with database_errors(self.store.path):
            row = self.store.connection.execute(
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

    def recall(
        self,
        query: str,
        *,
        limit: int = 10,
        retrieval: Retrieval | None = None,
        include_inactive: bool = False,
    ) -> Recollection:
        """Return the cells that best match a query, best first, and the recorded trace.

        limit: at least 1. retrieval: other settings than the memory's own. include_inactive:
        serve expired and retired cells too. Session cells and global ones are served, others'
        never.
        """
        with database_errors(self.store.path):
            return recall(
                self.store,
                self._indexes,
                query,
                limit=limit,
                retrieval=_valid(Retrieval, retrieval or self.retrieval),
                viewer=self.scope,
                include_inactive=include_inactive,
                caller=self.caller,
            )

    def sweep(self) -> tuple[str, ...]:
        """Record every expiry that has come, once; return the ids of the cells that expired.

        Upkeep of the whole store, whatever scope it is called from.
        """
        return sweep(self.store, caller=self.caller)

    def verify(self) -> Verification:
        """Recompute the audit chain and hold every stored record against it.

        Raises StoreRefusedError that names the first thing that is wrong.
        """
        return verify_store(self.store)

    def explain(self, trace_id: str) -> Explanation:
        """Tell a recorded recall backwards: trace, cells, sources, audit records, each verified."""
        with database_errors(self.store.path):
            return explain_recall(self.store, trace_id, viewer=self.scope)

    def digest(self) -> str:
        """Return the digest of authoritative memory: cells with their revisions, and links."""
        return self.store.digest()

    @property
    def generation(self) -> int:
        """The generation of memory: raised by each committed change of it."""
        return self.store.generation()

    def _sees(self, cell_id: str) -> bool:
        row = self.store.connection.execute(
            "SELECT scope FROM cells WHERE id = ? LIMIT 1", (cell_id,)
        ).fetchone()
        return row is not None and is_visible(row[0], viewer=self.scope)

    def _batch(self, drafts: object) -> list[Any]:
        try:
            return batch_of(drafts)
        except InvalidValueError as error:
            self.store.record_rejection(self.caller.name, error)
            raise


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


def _valid(model: type[Model], value: Model | Mapping[str, Any]) -> Model:
    """Return a value, or the value that a mapping describes; refuse anything else."""
    return value if isinstance(value, model) else validated(lambda: model.model_validate(value))

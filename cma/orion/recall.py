"""Recall: a query becomes ranked cells and a trace that is recorded.

The walk: the query is analysed, the analyser's index is brought in step with the store, the index
ranks exactly, the hits' revisions are read, and the trace is queued for the audit.
"""

from __future__ import annotations

from contextlib import nullcontext
from datetime import datetime
from typing import Any

import apsw
import orjson

from cma.orion.analysis import ANALYSERS
from cma.orion.cells import Caller, Cell
from cma.orion.indexes import Indexes
from cma.orion.reads import Read
from cma.orion.records import DAMAGES, cell_of_record, damaged_record, record_of
from cma.orion.scopes import is_visible
from cma.orion.store import Store
from cma.orion.traces import (
    TRACE_DOMAIN,
    Exclusion,
    Hit,
    RecallTrace,
    Recollection,
    Retrieval,
    TraceHit,
    sealed_trace,
    trace_of_record,
)
from cma.values.clock import microseconds
from cma.values.errors import InvalidValueError, NotFoundError, Reason, StoreRefusedError
from cma.values.identity import MAX_INTEGER, digest
from cma.values.validation import checked_id, trusted

MAX_QUERY_LENGTH = 100_000
LISTED_EXCLUSIONS = 20


def recall(
    store: Store,
    indexes: Indexes,
    query: str,
    *,
    limit: int,
    retrieval: Retrieval,
    viewer: str,
    include_inactive: bool,
    caller: Caller,
) -> Recollection:
    """Return the best cells for a query, ordered by score, then id, and record the recall.

    limit: a whole number of at least 1. include_inactive: serve expired and retired cells too.
    Ranking is exact; equal scores are ordered by id before the cut. A cell without a shared term
    (and without link support, where that has a weight) is no hit.

    Raises InvalidValueError: `query-empty`, `content-too-large`, `limit-invalid`.
    """
    store.check_usable()  # before any lock: after a fork one may be held for ever
    _check_limit(limit)
    terms = _analysed(query, retrieval)
    at = store.now()
    weights = indexes.weights(retrieval.coefficients)
    # A context is built of the rows that the index was brought in step with: one view for both.
    view = store.reading() if weights.of_context else nullcontext()
    # The trace must name the generation and digest that were searched.
    with indexes.held(), view:
        index, generation, rows = indexes.in_step(store, retrieval.analyser)
        around = None
        if weights.of_context:
            around = indexes.surroundings(store, retrieval.analyser, query, terms)
        ranking = index.search(
            terms,
            viewer=indexes.codes(viewer),
            at_us=microseconds(at),
            limit=limit,
            lexical=retrieval.lexical,
            weights=weights,
            half_life_seconds=retrieval.half_life_seconds,
            include_inactive=include_inactive,
            exclusion_limit=LISTED_EXCLUSIONS,
            surroundings=around,
            threads=indexes.threads,
        )
        index_digest = index.digest
    try:
        cells = _served(store, [rows[ordinal] for ordinal in ranking.ordinals.tolist()])
        for cell, name in zip(cells, ranking.ids, strict=True):
            _check_served(cell, name, viewer=viewer, at=None if include_inactive else at)
    except StoreRefusedError:
        if store.generation() == generation:
            raise
        asked: dict[str, Any] = {"limit": limit, "retrieval": retrieval, "viewer": viewer}
        asked |= {"include_inactive": include_inactive, "caller": caller}
        return recall(store, indexes, query, **asked)  # a cell was erased; its row is another now
    scores = ranking.scores.tolist()
    columns = [values.tolist() for values in ranking.parts.values()]
    parts = [dict(zip(ranking.parts, own, strict=True)) for own in zip(*columns, strict=True)]
    hits = tuple(map(Hit, cells, scores, parts))
    traced = tuple(TraceHit(hit.cell.id, hit.cell.revision, hit.score, hit.parts) for hit in hits)
    trace, data = sealed_trace(
        {
            "query": query,
            "terms": tuple(terms),
            "retrieval": retrieval,
            "scope": viewer,
            "limit": limit,
            "include_inactive": include_inactive,
            "at": at,
            "generation": generation,
            "index_digest": index_digest,
            "hits": traced,
            "exclusions": tuple(
                Exclusion(cell=cell_id, reason=reason) for cell_id, reason in ranking.exclusions
            ),
            # how much another scope holds is nobody's business here
            "excluded": {
                reason: count
                for reason, count in ranking.excluded.items()
                if count and reason != "other_scope"
            },
        }
    )
    store.reads.put(Read(trace.id, data, digest(TRACE_DOMAIN, data), caller.name, at))
    return trusted(Recollection, {"hits": hits, "trace": trace})


def read_trace(store: Store, trace_id: str, *, viewer: str) -> RecallTrace:
    """Return a recorded trace that the viewer may see. Raises NotFoundError (`trace-not-found`)."""
    store.flush_reads()
    return find_trace(store.connection, trace_id, viewer=viewer)


def find_trace(connection: apsw.Connection, trace_id: str, *, viewer: str) -> RecallTrace:
    """Return a trace that is in the store already. Raises NotFoundError (`trace-not-found`)."""
    checked_id(trace_id, field="trace_id")
    row = connection.execute("SELECT record FROM traces WHERE id = ?", (trace_id,)).fetchone()
    try:
        trace = None if row is None else trace_of_record(record_of(row[0]))
    except DAMAGES as error:
        raise damaged_record() from error
    if trace is not None and trace.id != trace_id:  # the row of another trace
        raise damaged_record()
    if trace is None or not is_visible(trace.scope, viewer=viewer):
        raise NotFoundError(
            Reason.TRACE_NOT_FOUND,
            f"no recall of that id was recorded in the scope {viewer}",
            field="trace_id",
            value=trace_id,
            remedy="take the id from recollection.trace.id or from `cma timeline`; check the scope",
        )
    return trace


def _served(store: Store, ordinals: list[int]) -> list[Cell]:
    """Return the cells in these rows, in this order: the very revisions that were ranked."""
    found = dict(
        store.connection.execute(
            "SELECT ordinal, record FROM cells WHERE ordinal IN (SELECT value FROM json_each(?))",
            (orjson.dumps(ordinals).decode(),),
        )
    )
    try:
        return [cell_of_record(record_of(found[ordinal])) for ordinal in ordinals]
    except DAMAGES as error:  # a row that was there a moment ago is gone
        raise damaged_record() from error


def _check_served(cell: Cell, name: str, *, viewer: str, at: datetime | None) -> None:
    """Refuse what no sound index serves: one that is kept in a file may have been forged."""
    served = cell.id == name and is_visible(cell.scope, viewer=viewer)
    if not served or (at is not None and not cell.is_active(at)):
        raise StoreRefusedError(
            Reason.INDEX_DISAGREES,
            "the index serves what the store does not let this scope recall",
            field="index",
            value=name,
            remedy="remove the indexes kept beside the store: they are built anew from it",
        )


def _check_limit(limit: object) -> None:
    if isinstance(limit, bool) or not isinstance(limit, int) or not 1 <= limit <= MAX_INTEGER:
        raise InvalidValueError(
            Reason.LIMIT_INVALID,
            "a limit is a whole number of at least 1; nothing means unlimited",
            field="limit",
            value=limit,
            remedy="give the number of cells wanted",
        )


def _analysed(query: object, retrieval: Retrieval) -> list[str]:
    if not isinstance(query, str):
        raise InvalidValueError(
            Reason.FIELD_INVALID, "not text", field="query", value=query, remedy="give text"
        )
    if len(query) > MAX_QUERY_LENGTH:
        raise InvalidValueError(
            Reason.CONTENT_TOO_LARGE,
            f"{len(query):,} characters, the cap for a query is {MAX_QUERY_LENGTH:,}",
            field="query",
            remedy="ask in fewer words",
        )
    try:
        query.encode()
    except UnicodeEncodeError as error:
        raise InvalidValueError(
            Reason.FIELD_INVALID,
            "a lone surrogate is no text",
            field="query",
            value=query,
            remedy="decode the text properly first",
        ) from error
    terms = ANALYSERS[retrieval.analyser](query)
    if not terms:
        raise InvalidValueError(
            Reason.QUERY_EMPTY,
            f"no term is left after analysis ({retrieval.analyser})",
            field="query",
            value=query,
            remedy="ask with at least one word that is no stop word",
        )
    return terms

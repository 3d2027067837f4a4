"""Verification of a whole store: chain, anchor, records and identities, read and never mended."""

from __future__ import annotations

from typing import Any

from cma.orion.anchor import Anchor, anchor_path, locked, newest, read_slots
from cma.orion.audit import FIRST_HASH, verified
from cma.orion.connection import database_errors
from cma.orion.linking import LINK_DOMAIN
from cma.orion.links import link_of_record, record_of_link
from cma.orion.records import IDENTIFYING_FIELDS, cell_id, due, instant, revision_digest
from cma.orion.store import Store
from cma.orion.traces import TRACE_DOMAIN
from cma.values.errors import InvalidValueError, Reason, StoreRefusedError
from cma.values.identity import canonical, digest, identifier, parse_canonical
from cma.values.validation import Value

_CELL_OPERATIONS = frozenset({"write", "update", "expire"})
_LINK_OPERATIONS = frozenset({"link", "conflict"})


class Verification(Value):
    """What was verified. `tail_pinned` says whether the anchor names the very last record."""

    store_id: str
    audit_records: int
    audit_head: str
    cells: int
    revisions: int
    links: int
    traces: int
    generation: int
    store_digest: str
    tail_pinned: bool


def verify_store(store: Store) -> Verification:
    """Recompute the chain and hold every stored record against it.

    Raises StoreRefusedError with `store-damaged`, `chain-broken`, `anchor-disagrees` or
    `state-disagrees`, naming the first thing that is wrong.
    """
    store.flush_reads()
    anchor = _anchor_of(store)  # read first: what it names was committed before it
    with database_errors(store.path), store.reading() as connection:
        answer = connection.execute("PRAGMA integrity_check(1)").fetchone()[0]
        if answer != "ok":
            raise StoreRefusedError(
                Reason.STORE_DAMAGED,
                f"the database says: {answer}",
                field="store",
                value=store.path.name,
                remedy="keep the file as it is and go back to a backup of both files",
            )
        told: dict[str, str] = {}
        latest: dict[str, int] = {}
        seq, generation = 0, 0
        for fields in verified(store.audit_rows(), store.store_id):
            seq = fields["seq"]
            generation = _next_generation(fields, generation)
            _follow(fields, told, latest)
        head = connection.execute("SELECT hash FROM audit WHERE seq = ?", (seq,)).fetchone()
        pinned = _check_anchor(store, anchor, seq)
        cells, revisions = _check_cells(store, told)
        links = _check_links(store, told)
        traces = _check_traces(store, told)
        if told:
            raise _disagrees(min(told), "the chain tells of it, the store does not hold it")
        return Verification(
            store_id=store.store_id,
            audit_records=seq,
            audit_head=(head[0] if head else FIRST_HASH).hex(),
            cells=cells,
            revisions=revisions,
            links=links,
            traces=traces,
            generation=generation,
            store_digest=store.digest(),
            tail_pinned=pinned,
        )


def _follow(fields: dict[str, Any], told: dict[str, str], latest: dict[str, int]) -> None:
    """Note what the chain says is stored: `cell@revision`, link or trace, with its digest."""
    operation, before, after = fields["operation"], fields["before"], fields["after"]
    subject = fields["subjects"][0] if fields["subjects"] else ""
    if operation in _CELL_OPERATIONS and before != after:
        revision = latest.get(subject, 0)
        if before != told.get(f"{subject}@{revision}"):
            raise _disagrees(subject, f"record {fields['seq']} names another state before it")
        latest[subject] = revision + 1
        told[f"{subject}@{revision + 1}"] = after
    elif (operation in _LINK_OPERATIONS and before != after) or operation == "read":
        told[subject] = after


def _next_generation(fields: dict[str, Any], generation: int) -> int:
    if fields["generation"] not in (generation, generation + 1):
        raise _disagrees(f"audit[{fields['seq']}]", "the generation does not follow")
    return int(fields["generation"])


def _anchor_of(store: Store) -> Anchor | None:
    with locked(anchor_path(store.path)) as anchor_file:
        return newest(read_slots(anchor_file))


def _check_anchor(store: Store, anchor: Anchor | None, last: int) -> bool:
    row = (
        anchor
        and store.connection.execute(
            "SELECT hash FROM audit WHERE seq = ?", (anchor.seq,)
        ).fetchone()
    )
    if anchor is None or anchor.store_id != store.store_id or not row or row[0] != anchor.head:
        raise StoreRefusedError(
            Reason.ANCHOR_DISAGREES,
            "store and anchor tell different histories",
            field="anchor",
            value=anchor_path(store.path).name,
            remedy="keep both files as they are and go back to a backup of both files",
        )
    return anchor.seq == last


def _check_cells(store: Store, told: dict[str, str]) -> tuple[int, int]:
    cells = revisions = 0
    rows = store.connection.execute(
        "SELECT id, revision, scope, lifecycle, expires_at, record FROM cells ORDER BY id, revision"
    )
    for name, revision, scope, lifecycle, expires_at, data in rows:
        place = f"{name}@{revision}"
        if told.pop(place, None) != revision_digest(data):
            raise _disagrees(place, "the chain does not tell of this record")
        record = _parsed(data, place)
        columns = (record["id"], record["revision"], record["scope"], record["lifecycle"])
        stated = due(instant(record["expires_at"]))
        if columns != (name, revision, scope, lifecycle) or expires_at != stated:
            raise _disagrees(place, "its columns and its record differ")
        if revision == 1:
            cells += 1
            identity = {field: record[field] for field in IDENTIFYING_FIELDS}
            if cell_id(identity) != name:
                raise _disagrees(place, "its id is not that of its content")
        revisions += 1
    return cells, revisions


def _check_links(store: Store, told: dict[str, str]) -> int:
    count = 0
    rows = store.connection.execute(
        "SELECT l.id, l.kind, l.source_id, l.target_id, l.record,"
        " EXISTS (SELECT 1 FROM cells WHERE id = l.source_id)"
        " AND EXISTS (SELECT 1 FROM cells WHERE id = l.target_id) FROM links l ORDER BY l.id"
    )
    for name, kind, source_id, target_id, data, ends in rows:
        if told.pop(name, None) != digest(LINK_DOMAIN, data):
            raise _disagrees(name, "the chain does not tell of this record")
        link = link_of_record(_parsed(data, name))
        if (link.id, link.kind.value, link.source_id, link.target_id) != (
            name,
            kind,
            source_id,
            target_id,
        ):
            raise _disagrees(name, "its columns and its record differ")
        record = record_of_link(link)
        identity = {field: record[field] for field in ("kind", "source_id", "target_id")}
        if identifier("link", canonical(identity)) != name:
            raise _disagrees(name, "its id is not that of its content")
        if not ends:
            raise _disagrees(name, "it joins a cell that is not there")
        count += 1
    return count


def _check_traces(store: Store, told: dict[str, str]) -> int:
    count = 0
    for name, data in store.connection.execute("SELECT id, record FROM traces ORDER BY id"):
        if identifier("trace", data) != name or told.pop(name, None) != digest(TRACE_DOMAIN, data):
            raise _disagrees(name, "the chain does not tell of this trace")
        count += 1
    return count


def _parsed(data: bytes, place: str) -> dict[str, Any]:
    try:
        record: dict[str, Any] = parse_canonical(data)
    except InvalidValueError as error:
        raise _disagrees(place, "its record is not canonical") from error
    return record


def _disagrees(place: str, message: str) -> StoreRefusedError:
    return StoreRefusedError(
        Reason.STATE_DISAGREES,
        message,
        field=place,
        remedy="keep the file as it is and go back to a backup of both files",
    )

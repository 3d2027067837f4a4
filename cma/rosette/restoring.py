"""Restoring a snapshot: all of it is checked before a store appears; any doubt refuses it whole.

The file is opened once, without following a link, and read twice: first for its digests alone, so
that a changed file is refused before anything is built, then record by record into a hidden
database, which is held to the rules of a live store. Memory needed does not grow with contents.
"""

from __future__ import annotations

import hashlib
import os
import stat
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from typing import Any, BinaryIO

import apsw

from cma.orion.agreement import check_agreement
from cma.orion.audit import ChainWriter, Operation, audit_record
from cma.orion.authority import store_digest
from cma.orion.cells import Caller, Cell, CellDraft, Lifecycle, WorkingMetadata
from cma.orion.connection import database_errors
from cma.orion.erased import MARK, blank_cell, blank_trace, is_blank
from cma.orion.governed import filed_of, record_id
from cma.orion.links import link_of_record, record_of_link
from cma.orion.opening import AUDIT_INSERT, publish_store, store_path
from cma.orion.records import (
    DAMAGES,
    IDENTIFYING_FIELDS,
    cell_id,
    cell_of_record,
    due,
    expiry,
    record_of_cell,
)
from cma.orion.scopes import GLOBAL, checked_scope
from cma.orion.traces import trace_of_record
from cma.orion.writing import CELL_INSERT
from cma.rosette.snapshot_form import (
    MAX_LINE,
    TYPES,
    Envelope,
    parse_line,
    read_envelope,
    rejected,
)
from cma.rosette.snapshotting import check_folder, target_exists
from cma.rosette.topology import check_topology
from cma.values.clock import Clock, in_utc
from cma.values.errors import (
    CmaError,
    InvalidValueError,
    Reason,
    SnapshotRejectedError,
    StoreRefusedError,
    StoreUnavailableError,
)
from cma.values.identity import canonical, canonical_of_checked, identifier, is_identifier
from cma.values.validation import Value

CHUNK = 500
_FILED = "(id, kind, scope, subject, record) VALUES (?, ?, ?, ?, ?)"
_INSERTS = {
    "attendant": f"INSERT INTO attendant {_FILED}",
    "audit": AUDIT_INSERT,
    "cell": CELL_INSERT,
    "governed": f"INSERT INTO governed {_FILED}",
    "link": "INSERT INTO links (id, kind, source_id, target_id, record) VALUES (?, ?, ?, ?, ?)",
    "trace": "INSERT INTO traces (id, record) VALUES (?, ?)",
}
_REFUSALS = {
    Reason.CHAIN_BROKEN: Reason.SNAPSHOT_CHAIN,
    Reason.STATE_DISAGREES: Reason.SNAPSHOT_CHAIN,  # each id was held against its content before
    Reason.REFERENCE_MISSING: Reason.SNAPSHOT_TOPOLOGY,
}


class Restored(Value):
    """What was restored."""

    store_id: str
    generation: int
    store_digest: str
    records: int


def restore_snapshot(
    snapshot: str | os.PathLike[str],
    target: str | os.PathLike[str],
    *,
    caller: Caller,
    clock: Clock,
) -> Restored:
    """Build a store from a snapshot, with the same id, digest and audit chain, and a record of it.

    Raises SnapshotRejectedError with a `snapshot-...` reason and the line; InvalidValueError
    (`snapshot-target-exists`). Nothing is at the target then, and nothing else was touched.
    """
    place = store_path(target)
    check_folder(place)
    for name in (place, *(place.with_name(place.name + end) for end in ("-wal", "-journal"))):
        if os.path.lexists(name):  # a log left over would be read as the new store's own
            raise target_exists(name)
    with _opened(snapshot) as file, _disk_errors():
        envelope, sealed = _read_through(file)
        file.seek(0)

        def fill(connection: apsw.Connection) -> ChainWriter:
            return _fill(connection, file, envelope, sealed, clock, caller)

        try:
            with database_errors(place):
                done = publish_store(place, envelope.store_id, fill, None)
        except StoreRefusedError as error:
            if error.reason is not Reason.STORE_DAMAGED:
                raise
            raise rejected(
                Reason.SNAPSHOT_RECORD, "the records do not fit into a store", None
            ) from error
    if not done:
        raise target_exists(place)
    return Restored(
        store_id=envelope.store_id,
        generation=envelope.generation,
        store_digest=envelope.store_digest,
        records=sum(envelope.counts.values()),
    )


def _opened(snapshot: str | os.PathLike[str]) -> BinaryIO:
    try:
        place = store_path(snapshot)
    except InvalidValueError as error:
        raise _no_file(str(snapshot)[:200]) from error
    try:
        descriptor = os.open(place, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        raise _no_file(place.name) from error
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise _no_file(place.name)
    return os.fdopen(descriptor, "rb")


@contextmanager
def _disk_errors() -> Iterator[None]:
    try:
        yield
    except CmaError:
        raise
    except OSError as error:
        raise StoreUnavailableError(
            Reason.STORE_IO,
            f"the disk refused: {error}",
            field="snapshot",
            remedy="nothing was restored; see to the disk and its permissions, then try again",
        ) from error


def _no_file(name: str) -> SnapshotRejectedError:
    return SnapshotRejectedError(
        Reason.SNAPSHOT_NOT_FOUND,
        "there is no plain file of that name",
        field="snapshot",
        value=name,
        remedy="name the file itself, not a folder or a link to it",
    )


def _read_through(file: BinaryIO) -> tuple[Envelope, str]:
    """Return the envelope and the records' digest, which agree; parse nothing but the envelope."""
    envelope = read_envelope(file.readline(MAX_LINE))
    sealed = hashlib.sha256()
    while chunk := file.read(1 << 20):
        sealed.update(chunk)
    if sealed.hexdigest() != envelope.records_sha256:
        raise rejected(
            Reason.SNAPSHOT_HASH, "the records are not those that the envelope names", None
        )
    return envelope, sealed.hexdigest()


def _fill(
    connection: apsw.Connection,
    file: BinaryIO,
    envelope: Envelope,
    sealed: str,
    clock: Clock,
    caller: Caller,
) -> ChainWriter:
    connection.execute("INSERT INTO store (only_row, store_id) VALUES (1, ?)", (envelope.store_id,))
    counts = _insert(connection, file, sealed)
    if counts != envelope.counts:
        raise rejected(Reason.SNAPSHOT_COUNTS, "other counts than the envelope's", None)
    try:
        # Topology first: it says what is wrong where the chain could only say that something is.
        check_topology(connection)
        agreed = check_agreement(connection, envelope.store_id)
    except StoreRefusedError as error:
        found = rejected(_REFUSALS.get(error.reason, error.reason), error.message, None)
        found.field = error.field
        raise found from error
    told = (agreed.audit_records, agreed.audit_head.hex(), agreed.generation)
    if told != (envelope.audit_count, envelope.audit_head, envelope.generation):
        raise rejected(Reason.SNAPSHOT_CHAIN, "the chain ends otherwise than the envelope says", 1)
    if store_digest(connection) != envelope.store_digest:
        raise rejected(Reason.SNAPSHOT_ENVELOPE, "the store's digest is another", 1)
    chain = ChainWriter(
        envelope.store_id,
        seq=agreed.audit_records,
        head=agreed.audit_head,
        generation=agreed.generation,
        at=in_utc(clock.now(), field="clock"),
        actor=caller.name,
    )
    connection.execute(
        AUDIT_INSERT, chain.seal(Operation.RESTORE.value, (), detail=envelope.envelope_sha256)
    )
    return chain


def _insert(connection: apsw.Connection, file: BinaryIO, sealed: str) -> dict[str, int]:
    """Insert every record; return how many there were of each type."""
    counts = Counter(dict.fromkeys(TYPES, 0))
    waiting: dict[str, list[tuple[Any, ...]]] = {}
    last: tuple[Any, ...] = ("",)
    seen = hashlib.sha256()
    for number, line in _lines(file):
        seen.update(line)
        kind, key, row, refs = _row(line, number)
        if (kind, *key) <= last:
            raise rejected(Reason.SNAPSHOT_RECORD, "the line is not in its place", number)
        last = (kind, *key)
        counts[kind] += 1
        waiting.setdefault(kind, []).append(row)
        waiting.setdefault("refs", []).extend(refs)
        if number % CHUNK == 0:
            _flush(connection, waiting)
    _flush(connection, waiting)
    if seen.hexdigest() != sealed:
        raise rejected(Reason.SNAPSHOT_HASH, "the file changed while it was read", None)
    return dict(counts)


def _flush(connection: apsw.Connection, waiting: dict[str, list[tuple[Any, ...]]]) -> None:
    for kind, rows in waiting.items():
        sql = _INSERTS.get(kind, "INSERT INTO refs (target, kind, id) VALUES (?, ?, ?)")
        try:
            connection.executemany(sql, rows)
        except (TypeError, OverflowError, ValueError) as error:
            raise rejected(
                Reason.SNAPSHOT_RECORD, f"a record of the type {kind} has parts of no type", None
            ) from error
    waiting.clear()


def _lines(file: BinaryIO) -> Iterator[tuple[int, bytes]]:
    file.readline(MAX_LINE)
    number = 1
    while line := file.readline(MAX_LINE):
        number += 1
        if not line.endswith(b"\n"):
            raise rejected(Reason.SNAPSHOT_RECORD, "the line does not end, or is too long", number)
        yield number, line


def _row(
    line: bytes, number: int
) -> tuple[str, tuple[Any, ...], tuple[Any, ...], list[tuple[str, str, str]]]:
    """Return type, sort key, table row and references of a line, whose id is its content's."""
    try:
        kind, record, data, sealed = parse_line(line)
        if kind == "audit":
            return kind, (_number(record["seq"]),), _audit_row(data, sealed), []
        refs: list[tuple[str, str, str]] = []
        revision, row = 1, tuple[Any, ...]()
        if kind == "trace":
            key: tuple[Any, ...] = (record.get(MARK, identifier("trace", data)),)
            if trace_of_record(record).id != key[0] or not isinstance(key[0], str):
                raise ValueError("not the trace of a recall")
            if MARK in record and record != blank_trace(record, key[0]):
                raise ValueError("an erased trace is blank")
            return kind, key, (*key, data), refs
        if kind == "cell":
            if is_blank(record):
                return _blank_row(record, data)
            found = Cell.model_validate(cell_of_record(record))
            if found.lifecycle is Lifecycle.ERASED:
                raise ValueError("an erased cell bears a mark")
            revision = _number(found.revision)
            identity = {field: record[field] for field in IDENTIFYING_FIELDS}
            name = cell_id(identity) if revision == 1 else found.id
            whole = record_of_cell(found)
            expires = due(found.expires_at)
            row = (found.id, revision, found.scope, found.lifecycle.value, expires, data)
            _check_kind(found)
        elif kind == "link":
            link = link_of_record(record)
            whole = record_of_link(link)
            identity = {field: record[field] for field in ("kind", "source_id", "target_id")}
            name = identifier("link", canonical(identity))
            row = (link.id, link.kind.value, link.source_id, link.target_id, data)
        else:
            filed = filed_of(data)
            whole = {**asdict(filed), "refs": list(filed.refs)}
            # What was erased left no content to make the id of: the chain alone tells of it.
            name = filed.id if filed.erased else record_id(filed.kind, filed.identity)
            row = (filed.id, filed.kind, filed.scope, filed.subject, data)
            refs = [(target, filed.kind, filed.id) for target in filed.refs]
        if canonical_of_checked(whole) != data:
            raise ValueError("the record does not have the parts of its type")
    except (CmaError, OverflowError, *DAMAGES) as error:
        raise rejected(
            Reason.SNAPSHOT_RECORD, "the line is no canonical record of a snapshot", number
        ) from error
    if name != row[0]:
        raise rejected(Reason.SNAPSHOT_IDENTITY, "the id is not that of the content", number)
    return kind, (name, revision), row, refs


def _blank_row(
    record: dict[str, Any], data: bytes
) -> tuple[str, tuple[Any, ...], tuple[Any, ...], list[tuple[str, str, str]]]:
    """Return what `_row` returns, of a revision that was erased."""
    left = cell_of_record(record)
    checked_scope(left.scope)
    whole = {**record_of_cell(left), MARK: record[MARK]}
    blank = record == blank_cell(record, record[MARK]) and is_identifier("cell", left.id)
    if not blank or canonical_of_checked(whole) != data:
        raise ValueError("an erased cell is blank")
    key = (left.id, _number(left.revision))
    return "cell", key, (*key, left.scope, left.lifecycle.value, due(left.expires_at), data), []


def _check_kind(cell: Cell) -> None:
    """Hold a cell to what a draft of its kind must have; raise ValueError or one of ours."""
    checked_scope(cell.scope)
    draft = CellDraft.model_validate(
        {
            **{name: getattr(cell, name) for name in CellDraft.model_fields if name != "origin"},
            "origin": cell.source.origin,
        }
    )
    ends = None
    if isinstance(draft.metadata, WorkingMetadata):
        ends = expiry(cell.created_at, draft.metadata.ttl_seconds)
        if cell.scope == GLOBAL:
            raise ValueError("a working cell belongs to a session")
    if cell.expires_at != ends or (cell.revision == 1 and cell.lifecycle is not Lifecycle.ACTIVE):
        raise ValueError("its life is not that of its kind")


def _audit_row(data: bytes, sealed: bytes | None) -> tuple[Any, ...]:
    told = audit_record(data, sealed or b"")
    first = next(iter(told.subjects), None)
    return told.seq, told.operation.value, first, told.generation, data, sealed


def _number(value: object) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise ValueError("no number")
    return value

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
from pathlib import Path
from typing import Any, BinaryIO

import apsw

from cma.orion.agreement import check_agreement
from cma.orion.anchor import anchor_path
from cma.orion.audit import ChainWriter, Operation
from cma.orion.authority import store_digest
from cma.orion.cells import Caller
from cma.orion.connection import database_errors
from cma.orion.opening import AUDIT_INSERT, publish_store, store_path
from cma.orion.records import DAMAGES, due, instant
from cma.orion.writing import CELL_INSERT
from cma.rosette.snapshot_form import (
    MAX_LINE,
    TYPES,
    Envelope,
    read_envelope,
    rejected,
)
from cma.rosette.snapshotting import target_exists
from cma.rosette.topology import check_topology
from cma.values.clock import Clock, in_utc
from cma.values.errors import (
    CmaError,
    InvalidValueError,
    Reason,
    SnapshotRejectedError,
    StoreRefusedError,
)
from cma.values.identity import canonical_of_checked, identifier, parse_canonical
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
    Reason.STATE_DISAGREES: Reason.SNAPSHOT_IDENTITY,
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
    if place.exists() or place.is_symlink() or anchor_path(place).exists():
        raise target_exists(place)
    with _opened(Path(snapshot)) as file:
        envelope, sealed = _read_through(file)
        file.seek(0)

        def fill(connection: apsw.Connection) -> ChainWriter:
            return _fill(connection, file, envelope, sealed, clock, caller)

        try:
            with database_errors(place):
                done = publish_store(place, envelope.store_id, fill, None)
        except BaseException as error:
            if not place.exists():
                anchor_path(place).unlink(missing_ok=True)
            if isinstance(error, StoreRefusedError) and error.reason is Reason.STORE_DAMAGED:
                raise rejected(
                    Reason.SNAPSHOT_RECORD, "the records do not fit into a store", None
                ) from error
            raise
    if not done:
        raise target_exists(place)
    return Restored(
        store_id=envelope.store_id,
        generation=envelope.generation,
        store_digest=envelope.store_digest,
        records=sum(envelope.counts.values()),
    )


def _opened(snapshot: Path) -> BinaryIO:
    try:
        descriptor = os.open(snapshot, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except (OSError, ValueError) as error:
        raise _no_file(snapshot) from error
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise _no_file(snapshot)
    return os.fdopen(descriptor, "rb")


def _no_file(snapshot: Path) -> SnapshotRejectedError:
    return SnapshotRejectedError(
        Reason.SNAPSHOT_NOT_FOUND,
        "there is no plain file of that name",
        field="snapshot",
        value=snapshot.name,
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
        agreed = check_agreement(connection, envelope.store_id)
        check_topology(connection)
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
    """Return type, sort key, table row and references of a line."""
    try:
        told = parse_canonical(line[:-1], limit=MAX_LINE)
        kind, record = told["type"], told["record"]
        parts = {"hash", "record", "type"} if kind == "audit" else {"record", "type"}
        if set(told) != parts or kind not in TYPES:
            raise ValueError("no record of a snapshot")
        data = canonical_of_checked(record)
        if kind == "audit":
            subject = next(iter(record["subjects"]), None)
            key: tuple[Any, ...] = (int(record["seq"]),)
            row: tuple[Any, ...] = (
                record["seq"],
                record["operation"],
                subject,
                record["generation"],
                data,
                bytes.fromhex(told["hash"]),
            )
            return kind, key, row, []
        if kind == "trace":
            name = identifier("trace", data)
            return kind, (name,), (name, data), []
        name = record["id"]
        if kind == "cell":
            expires = due(instant(record["expires_at"]))
            revision = record["revision"]
            row = (name, revision, record["scope"], record["lifecycle"], expires, data)
            return kind, (name, int(revision)), row, []
        if kind == "link":
            ends = (record["source_id"], record["target_id"])
            return kind, (name,), (name, record["kind"], *ends, data), []
        own = record["kind"]
        refs = [(str(target), str(own), str(name)) for target in record["refs"]]
        return kind, (name,), (name, own, record["scope"], record["subject"], data), refs
    except (InvalidValueError, *DAMAGES) as error:
        if isinstance(error, CmaError) and not isinstance(error, InvalidValueError):
            raise
        raise rejected(
            Reason.SNAPSHOT_RECORD, "the line is no canonical record of a snapshot", number
        ) from error

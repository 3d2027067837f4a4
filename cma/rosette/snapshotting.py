"""Taking a snapshot: the whole store, checked as it is written, into one new file."""

from __future__ import annotations

import hashlib
import os
import uuid
from collections import Counter
from contextlib import suppress
from pathlib import Path
from typing import Any

import apsw

from cma.orion.agreement import check_agreement
from cma.orion.analysis import ANALYSERS
from cma.orion.audit import Operation, audit_record
from cma.orion.authority import store_digest
from cma.orion.cells import Caller
from cma.orion.connection import database_errors
from cma.orion.opening import store_path
from cma.orion.store import Store
from cma.rosette.snapshot_form import FORMAT, TYPES, VERSION, envelope_line, record_lines
from cma.rosette.topology import check_topology
from cma.values.clock import utc_text
from cma.values.errors import CmaError, InvalidValueError, Reason, StoreUnavailableError
from cma.values.validation import Value


class SnapshotReceipt(Value):
    """What was written: the file's digest goes into the audit."""

    file: str
    sha256: str
    store_id: str
    generation: int
    store_digest: str
    records: int
    bytes: int


def write_snapshot(
    store: Store, path: str | os.PathLike[str], *, caller: Caller
) -> SnapshotReceipt:
    """Write the whole store to a new file `*.cma.jsonl` and record it in the audit.

    The store is checked whole first; what is written is one consistent state. Memory needed does
    not grow with contents. The file is readable by its owner alone.

    Raises InvalidValueError (`snapshot-target-exists`), StoreRefusedError for a store that is not
    sound, StoreUnavailableError (`store-io`): a file that is there then is whole, on record or not.
    """
    place = store_path(path)
    check_folder(place)
    if place.exists() or place.is_symlink():
        raise target_exists(place)
    _check_name(place)
    store.flush_reads()
    draft = place.with_name(f".{place.name}.{uuid.uuid4().hex[:8]}")
    try:
        with database_errors(store.path), store.reading() as connection:
            agreed = check_agreement(connection, store.store_id)
            check_topology(connection)
            sealed = hashlib.sha256()
            counts: Counter[str] = Counter(dict.fromkeys(TYPES, 0))
            for kind, line in record_lines(connection):
                sealed.update(line)
                counts[kind] += 1
            fields: dict[str, Any] = {
                "audit_count": agreed.audit_records,
                "audit_head": agreed.audit_head.hex(),
                "counts": dict(counts),
                "created_at": utc_text(store.now()),
                "format": FORMAT,
                "generation": agreed.generation,
                "previous": _previous(connection),
                "records_sha256": sealed.hexdigest(),
                "store_digest": store_digest(connection),
                "store_id": store.store_id,
                "version": VERSION,
            }
            digest, size = _write(draft, envelope_line(fields), connection)
        try:
            os.link(draft, place)  # unlike a rename, this never replaces a file
        except FileExistsError as error:
            raise target_exists(place) from error
        _sync_folder(place.parent)
    except OSError as error:
        if isinstance(error, StoreUnavailableError):
            raise
        raise StoreUnavailableError(
            Reason.STORE_IO,
            f"the disk refused: {error}",
            field="snapshot",
            value=place.name,
            remedy="see to the disk and its permissions, then try again",
        ) from error
    finally:
        with suppress(OSError):
            draft.unlink()
    try:
        with store.transition(caller.name) as transition:
            transition.record(Operation.SNAPSHOT, (), detail=digest)
    except CmaError as error:
        # What is not on record was not taken. After a failure of the disk the record may be there
        # all the same, and a file without its record is better than a record without its file.
        if error.reason is not Reason.STORE_IO:
            with suppress(OSError):
                place.unlink()
        raise
    return SnapshotReceipt(
        file=place.name.encode(errors="backslashreplace").decode(),
        sha256=digest,
        store_id=store.store_id,
        generation=fields["generation"],
        store_digest=fields["store_digest"],
        records=sum(counts.values()),
        bytes=size,
    )


def check_folder(place: Path) -> None:
    """Refuse to write into a folder that is not there, and say so by its name."""
    if not place.parent.is_dir():
        raise InvalidValueError(
            Reason.FIELD_INVALID,
            "there is no folder of that name",
            field="target",
            value=str(place.parent),
            remedy="make the folder first, or name another",
        )


def _check_name(place: Path) -> None:
    """Refuse a name that belongs to a store beside it: opening that store would remove the file."""
    kept = [f".index-{analyser}" for analyser in ANALYSERS]
    for end in ("-journal", "-wal", "-shm", ".head", *kept):
        if place.name.endswith(end) and place.with_name(place.name.removesuffix(end)).exists():
            raise InvalidValueError(
                Reason.FIELD_INVALID,
                "a store keeps its own files under that name",
                field="target",
                value=place.name,
                remedy="give another name, such as backup.cma.jsonl",
            )


def target_exists(place: Path) -> InvalidValueError:
    """Return the refusal to write where something is."""
    return InvalidValueError(
        Reason.SNAPSHOT_TARGET_EXISTS,
        "a file of that name is there already",
        field="target",
        value=place.name,
        remedy="give another name; nothing is overwritten",
    )


def _write(draft: Path, envelope: bytes, connection: apsw.Connection) -> tuple[str, int]:
    """Write a file line by line, synced; return its digest and size."""
    sealed = hashlib.sha256(envelope)
    size = len(envelope)
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(envelope)
        for _, line in record_lines(connection):
            file.write(line)
            sealed.update(line)
            size += len(line)
        file.flush()
        os.fsync(file.fileno())
    return sealed.hexdigest(), size


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _previous(connection: apsw.Connection) -> str | None:
    row = connection.execute(
        "SELECT record, hash FROM audit WHERE operation = ? ORDER BY seq DESC LIMIT 1",
        (Operation.SNAPSHOT.value,),
    ).fetchone()
    return None if row is None else audit_record(row[0], row[1]).detail

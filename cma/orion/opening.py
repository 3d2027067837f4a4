"""How a store comes to be and how a file is accepted as one.

A new store appears under its name only when it and its anchor are whole. A file is accepted when
it is a CMA store, its anchor names a record that it holds, and what lies behind that record is
its unbroken continuation. A refused file is left as it was.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import apsw

from cma.orion.anchor import Anchor, anchor_path, locked, newest, read_slots, write_anchor
from cma.orion.audit import FIRST_HASH, ChainWriter, Operation, verified
from cma.orion.authority import audit_rows
from cma.orion.cleaning import clean
from cma.orion.connection import (
    APPLICATION_ID,
    allow_checkpoint,
    check_identity,
    connect,
    migrate,
    use_write_ahead_log,
)
from cma.values.clock import Clock, in_utc
from cma.values.errors import InvalidValueError, Reason, StoreRefusedError, StoreUnavailableError

AUDIT_INSERT = (
    "INSERT INTO audit (seq, operation, subject, generation, record, hash)"
    " VALUES (?, ?, ?, ?, ?, ?)"
)
STORE_ACTOR = "cma"


def head_of(connection: apsw.Connection) -> tuple[int, bytes, int]:
    """Return number, hash and generation of the last audit record."""
    row = connection.execute(
        "SELECT seq, hash, generation FROM audit ORDER BY seq DESC LIMIT 1"
    ).fetchone()
    return row if row is not None else (0, FIRST_HASH, 0)


def create_store(path: Path, store_id: str, clock: Clock, vfs: str | None) -> None:
    """Build the file under another name and move it into place when it and its anchor are whole."""
    if not path.parent.is_dir():
        raise StoreRefusedError(
            Reason.STORE_NOT_FOUND,
            "the folder for the store does not exist",
            field="store",
            value=path.parent.name,
            remedy="create the folder first",
        )

    def begin(connection: apsw.Connection) -> ChainWriter:
        chain = ChainWriter(
            store_id,
            seq=0,
            head=FIRST_HASH,
            generation=0,
            at=in_utc(clock.now(), field="clock"),
            actor=STORE_ACTOR,
        )
        connection.execute("INSERT INTO store (only_row, store_id) VALUES (1, ?)", (store_id,))
        connection.execute(AUDIT_INSERT, chain.seal(Operation.CREATE.value, ()))
        return chain

    publish_store(path, store_id, begin, vfs)


def publish_store(
    path: Path,
    store_id: str,
    fill: Callable[[apsw.Connection], ChainWriter],
    vfs: str | None,
) -> bool:
    """Fill a new file and move it and its anchor into place; tell whether it was this call's.

    `fill` writes into an empty store within one transaction and returns the chain as it left it.
    Whatever it raises leaves nothing at the path. Where another process was first, nothing is done.
    """
    draft = path.with_name(f".{path.name}.new")
    with locked(anchor_path(path), create=True) as anchor_file:
        if os.fstat(anchor_file).st_nlink == 0:
            raise StoreUnavailableError(
                Reason.STORE_BUSY,
                "another process began a store there and gave up",
                field="store",
                value=path.name,
                remedy="try again",
            )
        if path.exists():  # another process was first
            return False
        left = newest(read_slots(anchor_file))
        # A draft beside it is a restoring that was interrupted right before the move.
        if left is not None and left.seq > 1 and not draft.exists():
            raise StoreRefusedError(
                Reason.STORE_NOT_FOUND,
                f"the store is gone, but its anchor tells of {left.seq} records",
                field="store",
                value=path.name,
                remedy="put the store file back, or remove the .head file to begin anew",
            )
        _remove(draft)
        os.close(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))  # never readable
        connection = connect(draft, vfs=vfs, create=True)
        try:
            connection.execute(f"PRAGMA application_id={APPLICATION_ID}")
            migrate(connection, 0)
            connection.execute("BEGIN")
            chain = fill(connection)
            connection.execute("COMMIT")
            connection.close()
            os.ftruncate(anchor_file, 0)
            write_anchor(anchor_file, Anchor(store_id, chain.seq, chain.head), (None, None))
            os.replace(draft, path)
        except BaseException:
            connection.close()
            _remove(draft)
            if not path.exists():  # an anchor without a store would stand in the way of the next
                anchor_path(path).unlink(missing_ok=True)
            raise
        folder = os.open(path.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)
    return True


def _remove(draft: Path) -> None:
    for leftover in (draft, Path(f"{draft}-journal")):
        leftover.unlink(missing_ok=True)


def accepted_store(path: Path, vfs: str | None) -> str:
    """Return the id of a store whose file, anchor and chain agree; leave the files as they are."""
    if path.is_symlink() or not path.is_file():
        raise StoreRefusedError(
            Reason.STORE_NOT_CMA,
            "a store is a plain file",
            field="store",
            value=path.name,
            remedy="name the file itself, not a folder or a link to it",
        )
    try:
        connection = connect(path, vfs=vfs)
        version = check_identity(connection, path)
    except apsw.NotADBError as error:
        raise StoreRefusedError(
            Reason.STORE_NOT_CMA,
            "the file is no CMA store, or its head is damaged",
            field="store",
            value=path.name,
            remedy="name the file that Memory.open created, or go back to a backup",
        ) from error
    try:
        named = connection.execute("SELECT store_id FROM store").fetchone()
        if named is None:
            raise StoreRefusedError(
                Reason.STORE_DAMAGED,
                "the store has lost its name",
                field="store",
                value=path.name,
                remedy="keep the file as it is and go back to a backup of both files",
            )
        store_id = str(named[0])
        with locked(anchor_path(path)) as anchor_file:
            _agree_with_anchor(connection, anchor_file, store_id, path)
        use_write_ahead_log(connection, path)
        migrate(connection, version)
        allow_checkpoint(connection)
        clean(connection)  # where an erasure was interrupted before its bytes were overwritten
    finally:
        connection.close()
    return store_id


def _agree_with_anchor(
    connection: apsw.Connection, anchor_file: int, store_id: str, path: Path
) -> None:
    slots = read_slots(anchor_file)
    anchor = newest(slots)
    if anchor is None:
        raise StoreRefusedError(
            Reason.ANCHOR_MISSING,
            "the anchor file holds no valid anchor",
            field="anchor",
            value=anchor_path(path).name,
            remedy="put the right .head file back, or go back to a backup",
        )
    row = connection.execute("SELECT hash FROM audit WHERE seq = ?", (anchor.seq,)).fetchone()
    if anchor.store_id != store_id or row is None or row[0] != anchor.head:
        found = "another store" if anchor.store_id != store_id else "another history"
        raise StoreRefusedError(
            Reason.ANCHOR_DISAGREES,
            f"the anchor belongs to {found}: it names record {anchor.seq}, which the store "
            + ("does not hold" if row is None else "holds differently"),
            field="anchor",
            value=anchor_path(path).name,
            remedy="keep both files as they are; put the matching pair back or go back to a backup",
        )
    seq, head, _ = head_of(connection)
    if seq > anchor.seq:
        rows = audit_rows(connection, after=anchor.seq)
        for _ in verified(rows, store_id, seq=anchor.seq, head=anchor.head):
            pass
        write_anchor(anchor_file, Anchor(store_id, seq, head), slots)


def store_path(path: object) -> Path:
    """Return where a store lies, its folder without links; refuse what is no path."""
    try:
        if not isinstance(path, str | os.PathLike) or "\0" in os.fspath(path):
            raise ValueError("not a path")
        os.fsencode(path)  # a lone surrogate names no file
        place = Path(path)
        place = place.parent.resolve() / place.name
        place.exists()
    except (OSError, ValueError, TypeError) as error:
        raise InvalidValueError(
            Reason.FIELD_INVALID,
            f"no store can lie there: {error}",
            field="store",
            value=path,
            remedy="give the path of a file in a folder that you may use",
        ) from error
    return place


def file_identity(path: Path) -> tuple[int, int] | None:
    """Return device and number of the file at a path, None where none is."""
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_dev, found.st_ino

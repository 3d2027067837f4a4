"""Opening a database to look at it: nothing beside or in it is created, changed or locked for long.

Three states of the files, three ways. Without a log the file is all there is, and it is read as one
that nobody changes. With a log and its index the database reads along with whoever writes. A log
without its index (files copied after a crash) cannot be read in place: a private copy is.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import quote

import apsw


@contextmanager
def looking_at(path: Path) -> Iterator[apsw.Connection]:
    """Give a connection that cannot write, in one consistent view."""
    log, index = (path.with_name(path.name + end) for end in ("-wal", "-shm"))
    if not log.exists() or not log.stat().st_size:
        with _connected(path, "immutable=1") as connection:
            yield connection
    elif index.exists():
        with _connected(path, "readonly_shm=1") as connection:
            yield connection
    else:
        with tempfile.TemporaryDirectory(prefix="cma-doctor-") as folder:
            copy = Path(folder) / "store"
            shutil.copyfile(path, copy)
            shutil.copyfile(log, copy.with_name("store-wal"))
            flags = apsw.SQLITE_OPEN_READWRITE  # the copy's index must be made; the copy goes
            with _settled(apsw.Connection(str(copy), flags=flags)) as connection:
                yield connection


@contextmanager
def _connected(path: Path, how: str) -> Iterator[apsw.Connection]:
    flags = apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI | apsw.SQLITE_OPEN_NOFOLLOW
    connection = apsw.Connection(f"file:{quote(str(path))}?mode=ro&{how}", flags=flags)
    with _settled(connection) as settled:
        yield settled


@contextmanager
def _settled(connection: apsw.Connection) -> Iterator[apsw.Connection]:
    try:
        connection.config(apsw.SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0)
        connection.config(apsw.SQLITE_DBCONFIG_DEFENSIVE, 1)
        connection.set_busy_timeout(10_000)
        connection.execute("PRAGMA query_only=ON; BEGIN")
        yield connection
    finally:
        connection.close()

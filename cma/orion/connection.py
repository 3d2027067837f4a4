"""Opening the database file: settings that durability rests on, and what a file must be.

Everything is checked before anything is read, and a file that is refused is left as it was.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import resources
from pathlib import Path

import apsw

from cma.values.errors import (
    CmaError,
    InvalidValueError,
    Reason,
    StoreRefusedError,
    StoreUnavailableError,
)

APPLICATION_ID = 0x434D4131  # "CMA1"
BUSY_TIMEOUT_MILLISECONDS = 10_000
_MIGRATION = re.compile(r"(\d{4})_\w+\.sql")


def migrations() -> list[tuple[int, str]]:
    """Return the numbered migrations with their SQL, in order."""
    folder = resources.files("cma.orion") / "migrations"
    found = []
    for entry in folder.iterdir():
        match = _MIGRATION.fullmatch(entry.name)
        if match:
            found.append((int(match[1]), entry.read_text(encoding="utf-8")))
    return sorted(found)


def newest_version() -> int:
    """Return the version of store files that this release writes."""
    return migrations()[-1][0]


_DAMAGE = (
    apsw.NotADBError,
    apsw.CorruptError,
    apsw.SQLError,
    apsw.ConstraintError,
    UnicodeDecodeError,
)
_DISK = (apsw.IOError, apsw.FullError, apsw.CantOpenError, apsw.ReadOnlyError, OSError)


@contextmanager
def database_errors(path: Path) -> Iterator[None]:
    """Turn the database's errors into ours."""
    try:
        yield
    except CmaError:
        raise
    except apsw.ConnectionClosedError as error:
        raise StoreUnavailableError(
            Reason.STORE_CLOSED,
            "the store was closed meanwhile",
            field="store",
            value=path.name,
            remedy="open it again",
        ) from error
    except apsw.BusyError as error:
        raise StoreUnavailableError(
            Reason.STORE_BUSY,
            f"locked by another process for over {BUSY_TIMEOUT_MILLISECONDS // 1000} s",
            field="store",
            value=path.name,
            remedy="try again when the other writer has finished",
        ) from error
    except UnicodeEncodeError as error:
        raise InvalidValueError(
            Reason.FIELD_INVALID,
            "a lone surrogate is no text, and no id holds one",
            value=error.object,
            remedy="decode the text properly first",
        ) from error
    except _DAMAGE as error:
        raise StoreRefusedError(
            Reason.STORE_DAMAGED,
            f"the database cannot be read: {error}",
            field="store",
            value=path.name,
            remedy="keep the file as it is and go back to a backup of both files",
        ) from error
    except _DISK as error:
        raise StoreUnavailableError(
            Reason.STORE_IO,
            f"the disk refused: {error}",
            field="store",
            value=path.name,
            remedy="nothing was acknowledged; see to the disk and its permissions, then try again",
        ) from error


def connect(path: Path, *, vfs: str | None = None, create: bool = False) -> apsw.Connection:
    """Open a connection with the settings that every connection of a store has.

    The connection does not fold its log into the file when it closes until `allow_checkpoint`
    is called: a store that is refused keeps its evidence.
    """
    flags = apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_NOFOLLOW
    flags |= apsw.SQLITE_OPEN_CREATE if create else 0
    connection = apsw.Connection(str(path), flags=flags, vfs=vfs)
    connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
    connection.config(apsw.SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0)
    connection.config(apsw.SQLITE_DBCONFIG_DEFENSIVE, 1)
    connection.set_busy_timeout(BUSY_TIMEOUT_MILLISECONDS)
    connection.execute("PRAGMA foreign_keys=ON; PRAGMA synchronous=FULL; PRAGMA cache_size=-65536")
    return connection


def allow_checkpoint(connection: apsw.Connection) -> None:
    """Let the connection fold its log into the file when it closes."""
    connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 0)


def use_write_ahead_log(connection: apsw.Connection, path: Path) -> None:
    """Switch to the write-ahead log and make sure that the switch was made."""
    mode = connection.pragma("journal_mode", "wal")
    if mode != "wal":
        raise StoreUnavailableError(
            Reason.STORE_IO,
            f"the database would not use a write-ahead log (it answered {mode!r})",
            field="store",
            value=path.name,
            remedy="keep the store on a local file system",
        )


def check_identity(connection: apsw.Connection, path: Path) -> int:
    """Return the file's version; refuse what is no CMA store or was written by a later release."""
    application, version = connection.pragma("application_id"), connection.pragma("user_version")
    if application != APPLICATION_ID:
        raise StoreRefusedError(
            Reason.STORE_NOT_CMA,
            "the file is no CMA store",
            field="store",
            value=path.name,
            remedy="name the file that Memory.open created",
        )
    if version > newest_version():
        raise StoreRefusedError(
            Reason.STORE_NEWER,
            f"written by a later release (format {version}, this one reads up to "
            f"{newest_version()})",
            field="store",
            value=path.name,
            remedy="upgrade: pip install --upgrade civilization-memory",
        )
    return int(version)


def migrate(connection: apsw.Connection, version: int) -> None:
    """Bring the schema from `version` to the newest, each step in a transaction of its own."""
    for number, sql in migrations():
        if number <= version:
            continue
        connection.execute("BEGIN IMMEDIATE")
        try:
            if connection.pragma("user_version") < number:
                connection.execute(sql)
                connection.execute(f"PRAGMA user_version={number}")
            connection.execute("COMMIT")
        except BaseException:
            if connection.in_transaction:  # some errors of the disk end it at once
                connection.execute("ROLLBACK")
            raise

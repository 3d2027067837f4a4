"""Physical erasure: no page, no log and no free space of a store keeps bytes of erased records.

The file is built anew from what stands (VACUUM), the log is folded in and cut to nothing, and
indexes that are kept beside the store are removed. That a cleaning is owed is written in the
transition that erases, so what a crash interrupts is done at the next opening. What lies outside of
the store's files is beyond its reach: snapshots and copies that were made before, and blocks that a
file system or a disk keeps of its own accord.
"""

from __future__ import annotations

from pathlib import Path

import apsw

from cma.orion.index_keeping import remove_kept

INTERRUPTIONS = (
    apsw.BusyError,
    apsw.LockedError,
    apsw.FullError,
    apsw.IOError,
    apsw.CantOpenError,
    apsw.ReadOnlyError,
    OSError,
)
"""What keeps a cleaning from its end, and leaves it owed."""


def owe_cleaning(connection: apsw.Connection) -> None:
    """Write, within a transaction, that a cleaning is owed once it is committed."""
    connection.execute("INSERT OR IGNORE INTO cleaning (only_row) VALUES (1)")


def is_owed(connection: apsw.Connection) -> bool:
    """Tell whether bytes of erased records may still lie in the store's files."""
    return connection.execute("SELECT 1 FROM cleaning").fetchone() is not None


def clean(connection: apsw.Connection) -> bool:
    """Overwrite what was erased, if that is owed; tell whether nothing is owed any more.

    Needs as much room on the disk again as the store takes, and no reader in the way: where it
    cannot be done it stays owed.
    """
    try:
        if is_owed(connection):
            _rebuild(connection)
            _fold_in(connection)
            # It holds terms of what it indexed. Whoever read what stood before the erasure, and may
            # have kept an index meanwhile, is done by now: the folding waits for them.
            remove_kept(Path(connection.filename))
            _strike_off(connection)
            _fold_in(connection)
    except INTERRUPTIONS:
        return False
    return True


def _rebuild(connection: apsw.Connection) -> None:
    connection.execute("VACUUM")


def _strike_off(connection: apsw.Connection) -> None:
    connection.execute("DELETE FROM cleaning")


def _fold_in(connection: apsw.Connection) -> None:
    connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)

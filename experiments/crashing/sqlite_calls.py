"""SQLite's calls, seen through a file system that stands before the system's own.

Shared memory is mapped past that interface: the system call itself is replaced while it is watched.
"""

from __future__ import annotations

import ctypes
import itertools
import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import apsw

from experiments.crashing.calls import Call, Fate, Watch, die

_CODES = {Fate.IO_ERROR: apsw.SQLITE_IOERR, Fate.FULL: apsw.SQLITE_FULL}
_SYNCED_NAMES = apsw.SQLITE_OPEN_WAL | apsw.SQLITE_OPEN_MAIN_JOURNAL
_numbers = itertools.count()
_MMAP = ctypes.CFUNCTYPE(
    ctypes.c_void_p,
    ctypes.c_void_p,
    ctypes.c_size_t,
    ctypes.c_int,
    ctypes.c_int,
    ctypes.c_int,
    ctypes.c_int64,
)
_FAILED = ctypes.c_void_p(-1).value


@contextmanager
def sqlite_watched(watch: Watch) -> Iterator[None]:
    """Make the watching file system the default, for connections opened within the block."""
    system = WatchedDisk(f"watched-{os.getpid()}-{next(_numbers)}", watch)
    try:
        with _mapping_watched(system):
            yield
    finally:
        system.unregister()


@contextmanager
def _mapping_watched(system: WatchedDisk) -> Iterator[None]:
    """Show the mappings of shared memory, which belong to no file by name, as calls of `-shm`."""
    address = system.xGetSystemCall("mmap")
    if address is None:  # a build of SQLite without it
        yield
        return
    real = _MMAP(address)

    def mapped(*arguments: int) -> int | None:
        refused = system.watch.fate(Call("map", "-shm")) is not Fate.PASS
        return _FAILED if refused else real(*arguments)

    replaced = _MMAP(mapped)  # held by this frame for as long as SQLite may call it
    system.xSetSystemCall("mmap", ctypes.cast(replaced, ctypes.c_void_p).value)
    try:
        yield
    finally:
        system.xSetSystemCall("mmap", address)


class WatchedDisk(apsw.VFS):  # type: ignore[misc]
    """A file system that shows its calls."""

    def __init__(self, name: str, watch: Watch) -> None:
        """Register before the default one."""
        self.watch = watch
        self.system = apsw.vfs_names()[0]
        super().__init__(name, self.system, makedefault=True)

    def xOpen(self, name: Any, flags: list[int]) -> apsw.VFSFile:  # noqa: N802
        """Open a file; one that is created is a call of its own kind."""
        path = name.filename() if isinstance(name, apsw.URIFilename) else name
        file = self.watch.name(path)
        if file is None:
            return apsw.VFSFile(self.system, name, flags)
        creates = bool(flags[0] & apsw.SQLITE_OPEN_CREATE) and not os.path.exists(path)
        kind = "create" if creates else "open"
        refused(self.watch.fate(Call(kind, file)))
        return WatchedFile(self, file, name, flags, creates)

    def xDelete(self, name: str, syncdir: bool) -> None:  # noqa: N802
        """Delete a file, and make that durable when asked."""
        file = self.watch.name(name)
        if file is not None:
            fate = self.watch.fate(Call("delete", file, syncs_name=bool(syncdir)))
            refused(fate)
            if fate is Fate.DROP:
                return
        super().xDelete(name, syncdir)


class WatchedFile(apsw.VFSFile):  # type: ignore[misc]
    """A file that shows its calls."""

    def __init__(
        self, disk: WatchedDisk, file: str, name: Any, flags: list[int], new: bool
    ) -> None:
        """Open the system's own file beneath."""
        self.watch = disk.watch
        self.file = file
        self.new = new and bool(flags[0] & _SYNCED_NAMES)
        super().__init__(disk.system, name, flags)

    def xRead(self, amount: int, offset: int) -> bytes:  # noqa: N802
        """Read; what the disk drops or cuts short is a failed read."""
        fate = self.watch.fate(Call("read", self.file, offset))
        refused(Fate.IO_ERROR if fate in (Fate.SHORT, Fate.FULL) else fate)
        return bytes(super().xRead(amount, offset))

    def xWrite(self, data: Any, offset: int) -> None:  # noqa: N802
        """Write all of it, half of it, or nothing."""
        whole = bytes(data)
        fate = self.watch.fate(Call("write", self.file, offset, whole))
        if fate in (Fate.SHORT, Fate.TEAR):
            super().xWrite(whole[: len(whole) // 2], offset)
            if fate is Fate.TEAR:
                die()
            raise apsw.exception_for(apsw.SQLITE_FULL)
        refused(fate)
        if fate is not Fate.DROP:
            super().xWrite(whole, offset)

    def xTruncate(self, newsize: int) -> None:  # noqa: N802
        """Set the size."""
        fate = self.watch.fate(Call("truncate", self.file, newsize))
        refused(fate)
        if fate is not Fate.DROP:
            super().xTruncate(newsize)

    def xSync(self, flags: int) -> None:  # noqa: N802
        """Sync; the first sync of a new log or journal makes its name durable too."""
        fate = self.watch.fate(Call("sync", self.file, syncs_name=self.new))
        refused(fate)
        if fate is not Fate.DROP:
            self.new = False
            super().xSync(flags)


def refused(fate: Fate) -> None:
    """Raise what SQLite is told of a call that the disk refuses; a cut call is a full disk."""
    if fate is Fate.TEAR:
        die()
    if fate in (Fate.IO_ERROR, Fate.FULL, Fate.SHORT):
        raise apsw.exception_for(_CODES.get(fate, apsw.SQLITE_FULL))

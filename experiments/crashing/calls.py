"""What a disk is asked to do, and what it may do instead.

An observer is shown every call that changes files in one folder, whether SQLite makes it or Python,
and SQLite's reads and mappings of shared memory; it answers with a fate. What is written to shared
memory is no call and is not seen: a crash begins it anew.
"""

from __future__ import annotations

import errno
import os
import signal
from collections.abc import Callable
from enum import StrEnum
from pathlib import Path
from typing import NamedTuple


class Fate(StrEnum):
    """What becomes of a call."""

    PASS = "done"  # noqa: S105 (no password)
    IO_ERROR = "I/O error"
    FULL = "disk full"
    SHORT = "cut short"
    """Half is written. SQLite is told so; Python gets a count, as the system call gives it."""
    DROP = "dropped"
    """The disk says that it did it and did not."""
    KILL = "killed before"
    TEAR = "killed half-way"


class Call(NamedTuple):
    """One call. `file` is a name in the watched folder, `.` the folder itself."""

    kind: str
    """read, write, truncate, sync, create, open, delete, rename, link or map."""
    file: str
    at: int = 0
    """Offset of a write, new size of a truncation."""
    data: bytes = b""
    to: str = ""
    """New name of a rename or link."""
    syncs_name: bool = False
    """A sync of a new file, or a deletion, that SQLite makes durable in the folder as well."""


Observer = Callable[[Call], Fate]


class Watch:
    """The folder that is watched, and who watches. Holds which descriptors lie in it."""

    def __init__(self, folder: Path, observer: Observer) -> None:
        """Watch the folder for an observer."""
        self.folder = os.path.realpath(folder)
        self.observer = observer
        self.descriptors: dict[int, str] = {}

    def name(self, path: object) -> str | None:
        """Return a path's name in the folder, None where it lies elsewhere."""
        if not isinstance(path, str | os.PathLike):
            return None
        text = os.path.abspath(os.fspath(path))
        if text == self.folder:
            return "."
        return os.path.basename(text) if os.path.dirname(text) == self.folder else None

    def fate(self, call: Call) -> Fate:
        """Ask the observer; die here when it says so."""
        found = self.observer(call)
        if found is Fate.KILL:
            die()
        return found


def die() -> None:
    """End this process as `kill -9` does."""
    os.kill(os.getpid(), signal.SIGKILL)


def os_error(fate: Fate) -> OSError:
    """Return what Python raises for a call with that fate."""
    code = errno.ENOSPC if fate is Fate.FULL else errno.EIO
    return OSError(code, os.strerror(code))

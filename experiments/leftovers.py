"""Hidden folders of runs that were killed: found by their names, removed at a later start.

Rules:
- A folder is a leftover when nothing in it changed for a day and no living run holds its lock; a
  lock lies on the folder itself and ends with the process, whoever killed it.
- An earlier run that a killed one had just moved aside goes back to its place if that is free.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

try:
    import fcntl
except ImportError:  # no such locks on this system: age alone decides
    fcntl = None  # type: ignore[assignment]

PATIENCE = 24 * 60 * 60.0
"""Seconds without any change after which an unlocked folder is a leftover."""
_NAME = re.compile(r"\.(?P<run>[0-9a-f]{16})-(?P<aside>old-)?\w+")


@contextmanager
def locked(folder: Path) -> Iterator[bool]:
    """Hold the folder's lock while the block runs; yields False where another process holds it."""
    if fcntl is None:
        yield True
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield False
        except OSError:  # a file system without locks: age alone decides
            yield True
        else:
            yield True
    finally:
        os.close(descriptor)


def remove(folder: Path) -> list[str]:
    """Remove leftovers among one experiment's run directories; return their names."""
    removed = []
    for path in sorted(folder.glob(".*-*")) if folder.is_dir() else []:
        parts = _NAME.fullmatch(path.name)
        if parts is None or path.is_symlink() or not path.is_dir():
            continue
        with contextlib.suppress(OSError), locked(path) as free:
            if free and time.time() - _changed(path) > PATIENCE:
                if parts["aside"]:
                    _put_back(path / "run", folder / parts["run"])
                shutil.rmtree(path)
                removed.append(path.name)
    return removed


def _changed(folder: Path) -> float:
    """Return when the folder or anything in it last changed."""
    return max(path.lstat().st_mtime for path in (folder, *folder.rglob("*")))


def _put_back(run: Path, place: Path) -> None:
    if run.is_dir() and not place.exists():
        run.rename(place)

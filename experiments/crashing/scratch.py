"""Where crashes are played through: a folder in memory where the system has one.

Power cuts and killed processes are judged by what was asked of the disk, so nothing here has to
outlive the machine, and a sync that does not wait for a real disk lets ten times as many be tried.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

IN_MEMORY = Path("/dev/shm")  # noqa: S108 (a folder of its own is made in it)
ROOM_BYTES = 256 * 1024 * 1024


@contextmanager
def scratch() -> Iterator[Path]:
    """Yield an empty folder that vanishes with the block."""
    roomy = (
        IN_MEMORY.is_dir()
        and os.access(IN_MEMORY, os.W_OK | os.X_OK)
        and shutil.disk_usage(IN_MEMORY).free >= ROOM_BYTES
    )
    with tempfile.TemporaryDirectory(dir=IN_MEMORY if roomy else None) as folder:
        yield Path(folder)

"""What the files around a store tell without being opened as a store: modes, leftovers, room."""

from __future__ import annotations

import re
import stat
from collections.abc import Callable, Iterator
from pathlib import Path

from cma.doctor.findings import Code, Finding, finding
from cma.orion.anchor import anchor_path
from cma.orion.index_keeping import drafts_of_kept, kept_files

ENDINGS = ("", "-wal", "-shm", ".head")
ROOM_BESIDE = 64 * 2**20
"""Bytes that a disk should have beside room for a copy of the store."""
_SNAPSHOT_DRAFT = re.compile(r"\..+\.[0-9a-f]{8}")
State = dict[str, tuple[int, int]]


def state_of(path: Path) -> State:
    """Return size and time of change of a store's files, without its log's index."""
    places = (path, path.with_name(f"{path.name}-wal"), anchor_path(path))
    found = {place.name: place.stat() for place in places if place.exists()}
    return {name: (each.st_size, each.st_mtime_ns) for name, each in found.items()}


def modes(path: Path) -> Iterator[Finding]:
    """Yield which files others can get at, and which their owner cannot write."""
    for place in (*(path.with_name(path.name + end) for end in ENDINGS), *kept_files(path)):
        if not place.exists():
            continue
        mode = stat.S_IMODE(place.stat().st_mode)
        if mode & 0o077:
            yield finding(Code.MODE_OPEN, place.name, f"its mode is {mode:03o}")
        if not mode & stat.S_IWUSR:
            yield finding(Code.MODE_UNWRITABLE, place.name, f"its mode is {mode:03o}")


def leftovers(path: Path) -> Iterator[Finding]:
    """Yield files in the store's folder that a process which was stopped left behind."""
    for end in ("", "-journal"):
        place = path.with_name(f".{path.name}.new{end}")
        if place.exists():
            yield finding(Code.LEFTOVER_DRAFT, place.name, "a store that was begun")
    journal = path.with_name(f"{path.name}-journal")
    if journal.exists():
        yield finding(Code.LEFTOVER_JOURNAL, journal.name, f"{journal.stat().st_size:,} bytes")
    for place in drafts_of_kept(path):
        yield finding(Code.LEFTOVER_DRAFT, place.name, "an index that was begun")
    for place in sorted(path.parent.iterdir()):
        if _SNAPSHOT_DRAFT.fullmatch(place.name) and place.is_file() and _begins_snapshot(place):
            yield finding(Code.LEFTOVER_DRAFT, place.name, "a snapshot that was begun")


def log_pending(path: Path) -> Iterator[Finding]:
    """Yield that the log holds what the file does not."""
    log = path.with_name(f"{path.name}-wal")
    if log.exists() and log.stat().st_size:
        yield finding(Code.LOG_PENDING, log.name, f"{log.stat().st_size:,} bytes")


def room(path: Path, free: Callable[[Path], int]) -> Iterator[Finding]:
    """Yield that the disk has less free bytes than the store and its log take, and some more."""
    state = state_of(path)
    needed = sum(size for size, _ in state.values()) + ROOM_BESIDE
    left = free(path.parent)
    if left < needed:
        message = f"{left / 2**20:,.0f} MiB are free, {needed / 2**20:,.0f} MiB should be"
        yield finding(Code.SPACE_LOW, path.name, message)


def _begins_snapshot(place: Path) -> bool:
    with place.open("rb") as file:
        return file.read(2) in (b"", b'{"')

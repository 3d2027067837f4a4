"""The anchor: a small file beside the store that says how far its history had come.

Why it exists: cut or flipped bytes at the end of a write-ahead log read as the end of the log,
so the database drops acknowledged transitions and calls itself intact. The anchor is synced
before a write is acknowledged; a store that has less history than its anchor is refused.

Two slots of fixed size are written in turn, in place, each with a checksum: one sync a write, and
a torn write leaves the other slot. The store may be ahead of the anchor (a crash between the
two), never behind it.
"""

from __future__ import annotations

import errno
import fcntl
import hashlib
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from time import monotonic, sleep
from typing import NamedTuple

from cma.values.errors import Reason, StoreRefusedError, StoreUnavailableError

SLOT_SIZE = 256
LOCK_TIMEOUT_SECONDS = 10.0
_LOCK_PAUSE_SECONDS = 0.002
_MAGIC = "cma-anchor/1"
_sync = getattr(os, "fdatasync", os.fsync)  # macOS has no fdatasync


class Anchor(NamedTuple):
    """How far a store's history had come when a write was last acknowledged."""

    store_id: str
    seq: int
    head: bytes


def anchor_path(store: Path) -> Path:
    """Return where the anchor of a store lies."""
    return store.with_name(store.name + ".head")


@contextmanager
def locked(path: Path, *, create: bool = False) -> Iterator[int]:
    """Open the anchor file under an exclusive lock; yield its descriptor.

    Raises StoreRefusedError (`anchor-missing`) when no plain file is there, and
    StoreUnavailableError when the system will not open it (`store-io`) or another process keeps
    it locked for longer than the bounded wait (`store-busy`).
    """
    mode = os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW | (os.O_CREAT if create else 0)
    try:
        descriptor = os.open(path, mode, 0o600)
    except OSError as error:
        if error.errno not in (errno.ENOENT, errno.ELOOP, errno.EISDIR):
            raise _io_failed(path, error) from error
        raise StoreRefusedError(
            Reason.ANCHOR_MISSING,
            f"cannot open the anchor file: {error.strerror}",
            field="anchor",
            value=path.name,
            remedy="restore the file together with its store, or go back to a backup",
        ) from error
    try:
        _lock(descriptor, path)
        yield descriptor
    finally:
        os.close(descriptor)


Slots = tuple[Anchor | None, Anchor | None]


def read_slots(descriptor: int) -> Slots:
    """Return what the two slots hold; None for one that is empty, torn or foreign."""
    data = os.pread(descriptor, 2 * SLOT_SIZE, 0)
    return _parse(data[:SLOT_SIZE]), _parse(data[SLOT_SIZE:])


def newest(slots: Slots) -> Anchor | None:
    """Return the slot with the longer history, or None when neither is valid."""
    return max(filter(None, slots), key=lambda slot: slot.seq, default=None)


def write_anchor(descriptor: int, anchor: Anchor, slots: Slots) -> None:
    """Write over the older slot and sync; the newer one stays whole whatever happens."""
    first, second = (slot.seq if slot else -1 for slot in slots)
    place = 0 if first < second else 1
    if os.pwrite(descriptor, _format(anchor), place * SLOT_SIZE) != SLOT_SIZE:
        raise OSError(errno.ENOSPC, "the anchor was written in part")
    _sync(descriptor)


@contextmanager
def advancing(path: Path, store_id: str, base: int) -> Iterator[Callable[[Anchor], None]]:
    """Hold the anchor over a commit; yield what moves it forward once the commit is durable.

    `base` is the record on which the transition builds. Everything that can be wrong with the
    anchor is found here, before the commit, so that a refusal leaves the store as it was. Raises
    StoreRefusedError (`anchor-disagrees`) when the file is another store's, or names more history
    than the store holds.
    """
    with locked(path) as descriptor:
        slots = read_slots(descriptor)
        present = newest(slots)
        if present is None or present.store_id != store_id or present.seq > base:
            raise StoreRefusedError(
                Reason.ANCHOR_DISAGREES,
                "the anchor, or the store under it, was replaced while the store was open",
                field="anchor",
                value=path.name,
                remedy="keep both files as they are; put the matching pair back",
            )

        def move(anchor: Anchor) -> None:
            try:
                write_anchor(descriptor, anchor, slots)
            except OSError as error:
                raise _io_failed(path, error) from error

        yield move


def _lock(descriptor: int, path: Path) -> None:
    deadline = monotonic() + LOCK_TIMEOUT_SECONDS
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            if monotonic() >= deadline:
                raise StoreUnavailableError(
                    Reason.STORE_BUSY,
                    f"another process kept the anchor locked for over {LOCK_TIMEOUT_SECONDS:g} s",
                    field="anchor",
                    value=path.name,
                    remedy="try again when the other process has finished",
                ) from error
            sleep(_LOCK_PAUSE_SECONDS)
        else:
            return


def _io_failed(path: Path, error: OSError) -> StoreUnavailableError:
    return StoreUnavailableError(
        Reason.STORE_IO,
        f"the anchor file could not be used: {error.strerror}",
        field="anchor",
        value=path.name,
        remedy="the change may or may not be there: see to the disk, reopen the store and look",
    )


def _format(anchor: Anchor) -> bytes:
    body = f"{_MAGIC} {anchor.store_id} {anchor.seq} {anchor.head.hex()}"
    line = f"{body} {hashlib.sha256(body.encode()).hexdigest()[:32]}\n"
    return line.encode().ljust(SLOT_SIZE, b"\n")


def _parse(slot: bytes) -> Anchor | None:
    try:
        body, _, checksum = slot.decode("ascii").rstrip("\n").rpartition(" ")
        magic, store_id, seq, head = body.split(" ")
        anchor = Anchor(store_id, int(seq), bytes.fromhex(head))
    except ValueError:
        return None
    good = magic == _MAGIC and hashlib.sha256(body.encode()).hexdigest()[:32] == checksum
    return anchor if good and _format(anchor) == slot else None

"""The anchor: a small file beside the store that says how far its history had come.

Why it exists: cut or flipped bytes at the end of a write-ahead log read as the end of the log,
so the database drops acknowledged transitions and calls itself intact. The anchor is synced
before a write is acknowledged; a store that has less history than its anchor is refused.

Two slots of fixed size are written in turn, in place, each with a checksum: one sync a write, and
a torn write leaves the other slot. The store may be ahead of the anchor (a crash between the
two), never behind it.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from cma.values.errors import Reason, StoreRefusedError

SLOT_SIZE = 256
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
    """Open the anchor file under an exclusive lock; yield its descriptor."""
    mode = os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW | (os.O_CREAT if create else 0)
    try:
        descriptor = os.open(path, mode, 0o600)
    except OSError as error:
        raise StoreRefusedError(
            Reason.ANCHOR_MISSING,
            f"cannot open the anchor file: {error.strerror}",
            field="anchor",
            value=path.name,
            remedy="restore the file together with its store, or restore a snapshot",
        ) from error
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
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
    os.pwrite(descriptor, _format(anchor), place * SLOT_SIZE)
    _sync(descriptor)


def advance_anchor(path: Path, anchor: Anchor) -> None:
    """Move the anchor forward; leave it when another process has moved it further."""
    with locked(path) as descriptor:
        slots = read_slots(descriptor)
        present = newest(slots)
        if present is None or present.store_id != anchor.store_id:
            raise StoreRefusedError(
                Reason.ANCHOR_DISAGREES,
                "the anchor file was replaced while the store was open",
                field="anchor",
                value=path.name,
                remedy="put the file back, or restore a snapshot",
            )
        if present.seq < anchor.seq:
            write_anchor(descriptor, anchor, slots)


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

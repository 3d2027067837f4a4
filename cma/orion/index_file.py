"""A file of arrays that is opened by memory map: what an index is kept in between processes.

Layout: 16 bytes of name and version; the length of the header, 8 bytes; the header, canonical JSON
with the facts and where each array lies; the arrays, each with room to grow; SHA-256 of all of it.
The file is written beside its place and renamed into it, readable by its owner alone. It is opened
privately: what a process changes in memory never reaches the file.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import uuid
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import orjson
from numpy.typing import NDArray

from cma.orion.columns import Column

__all__ = ["Image", "NotAnImageError", "read_image", "write_image"]

MAGIC = b"cma.index/1\n\0\0\0\0"
_LENGTH = 8
_STEP = 64
_DIGEST = 32
_BLOCK = 1 << 22
_HEADER_LIMIT = 1 << 30
_DTYPES = frozenset({"|b1", "|u1", "<u2", "<i4", "<i8", "<u8", "<f8"})


class Image(NamedTuple):
    """Facts (plain JSON values) and arrays by name; see `read_image` for their room."""

    facts: dict[str, Any]
    arrays: Mapping[str, NDArray[Any]]
    used: Mapping[str, int]
    """Rows of each array; what lies beyond them is room."""
    place: Path
    spots: Mapping[str, int]
    """Where in the file each array begins."""

    def column(self, name: str) -> Column:
        """Return an array as a column that can grow."""
        return Column.over(self.arrays[name], self.used[name])

    def numbers(self, name: str, low: int, high: int) -> NDArray[Any]:
        """Return the used rows of an array of whole numbers, each from `low` to below `high`.

        They are read, not mapped, to be looked at: a page that is mapped counts as memory. Raises
        ValueError for others, since compiled loops trust them.
        """
        values, count = self.arrays[name], self.used[name]
        each = max(1, _row(values) // values.dtype.itemsize)
        with self.place.open("rb") as file:
            file.seek(self.spots[name])
            left = count * each
            while left > 0:
                some = np.fromfile(file, values.dtype, min(left, _BLOCK))
                if not len(some) or int(some.min()) < low or int(some.max()) >= high:
                    raise ValueError(f"array {name!r} points outside")
                left -= len(some)
        return values[:count]


class NotAnImageError(ValueError):
    """A file that is not whole, or not of this form."""


def write_image(place: Path, facts: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> None:
    """Write facts and arrays, each array with an eighth more rows of room."""
    laid, offset = [], 0
    for name, values in sorted(arrays.items()):
        room = len(values) + len(values) // 8 + _STEP
        told = {"name": name, "dtype": values.dtype.str, "used": len(values), "at": offset}
        laid.append((values, room, told | {"shape": [room, *values.shape[1:]]}))
        offset += _up(room * _row(values))
    header = orjson.dumps({"arrays": [told for _, _, told in laid], "facts": dict(facts)})
    start = _up(len(MAGIC) + _LENGTH + len(header))
    draft = place.with_name(f".{place.name}.{uuid.uuid4().hex[:8]}")
    digest = hashlib.sha256()
    try:
        with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:

            def put(data: Any) -> None:
                digest.update(data)
                file.write(data)

            head = MAGIC + len(header).to_bytes(_LENGTH, "big") + header
            put(head + bytes(start - len(head)))
            for values, room, _ in laid:
                data = np.ascontiguousarray(values).view(np.uint8).reshape(-1)
                put(data.data)
                put(bytes(_up(room * _row(values)) - len(data)))
            file.write(digest.digest())
            file.flush()
            os.fsync(file.fileno())
        draft.replace(place)
    finally:
        with contextlib.suppress(FileNotFoundError):
            draft.unlink()


def read_image(place: Path) -> Image:
    """Check the digest of a whole file and return what it holds, arrays mapped with their room.

    Raises NotAnImageError for a file that is not whole or of another form, OSError as opening does.
    """
    with place.open("rb") as file:
        size = os.fstat(file.fileno()).st_size
        if size < len(MAGIC) + _LENGTH + _DIGEST or file.read(len(MAGIC)) != MAGIC:
            raise NotAnImageError("not an index file of this version")
        digest = hashlib.sha256(MAGIC)
        for block in _blocks(file, size - len(MAGIC) - _DIGEST):
            digest.update(block)
        if file.read(_DIGEST + 1) != digest.digest():
            raise NotAnImageError("its digest is not that of its bytes")
        file.seek(len(MAGIC))
        length = int.from_bytes(file.read(_LENGTH), "big")
        if length > min(size, _HEADER_LIMIT):
            raise NotAnImageError("its header is longer than the file")
        try:
            header = orjson.loads(file.read(length))
            start = _up(len(MAGIC) + _LENGTH + length)
            arrays = {
                told["name"]: _mapped(place, told, start, size - _DIGEST)
                for told in header["arrays"]
            }
            used = {told["name"]: int(told["used"]) for told in header["arrays"]}
            spots = {told["name"]: start + int(told["at"]) for told in header["arrays"]}
            facts = dict(header["facts"])
        except (ValueError, KeyError, TypeError) as error:
            raise NotAnImageError(f"its header is not one: {error}") from error
    return Image(facts, arrays, used, place, spots)


def _mapped(place: Path, told: Mapping[str, Any], start: int, end: int) -> NDArray[Any]:
    shape = tuple(int(each) for each in told["shape"])
    if told["dtype"] not in _DTYPES or min(shape) < 0 or not 0 <= told["used"] <= shape[0]:
        raise ValueError(f"array {told['name']!r}")
    dtype = np.dtype(told["dtype"])
    offset = start + int(told["at"])
    if offset < start or offset + dtype.itemsize * int(np.prod(shape)) > end:
        raise ValueError(f"array {told['name']!r} lies outside")
    return np.memmap(place, dtype, "c", offset, shape).view(np.ndarray)


def _blocks(file: Any, count: int) -> Iterator[bytes]:
    while count > 0:
        block = file.read(min(count, _BLOCK))
        if not block:
            raise NotAnImageError("it ends too early")
        count -= len(block)
        yield block


def _row(values: NDArray[Any]) -> int:
    return int(values.dtype.itemsize * np.prod(values.shape[1:], dtype=np.int64))


def _up(count: int) -> int:
    return -(-count // _STEP) * _STEP

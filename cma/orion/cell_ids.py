"""Cell ids as packed digits: 20 bytes a row in place of a string, and the way back to the row.

Rows are those of `entries`; a cell that was replaced has several, and its id leads to the latest.
Ids that came lately stand in a dictionary; the others in an order of their first 16 digits, which
is searched. So a million ids take 24 MB.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cma.orion.columns import Column
from cma.orion.index_file import Image

__all__ = ["CellIds", "Packed", "packed"]

_HEX = 40
_ID = "cell-"
_RECENT = 1 << 16
_SHARE = 8
_FIRST = 8
Integers = NDArray[np.int64]


class Packed(NamedTuple):
    """Ids of some rows as numbers: the first 16 digits, and 12 bytes of the rest each."""

    prefixes: NDArray[np.uint64]
    rests: NDArray[np.uint8]


def packed(ids: Sequence[str]) -> Packed:
    """Return ids as numbers. Raises ValueError for what is no cell id."""
    joined = "".join([text[len(_ID) :] for text in ids])
    try:
        data = bytes.fromhex(joined)
    except ValueError as error:
        raise ValueError(f"id: digits must be hex; {error}") from error
    if (
        len(data) * 2 != len(joined)  # blanks are skipped
        or joined != joined.lower()
        or not all(len(text) == len(_ID) + _HEX and text.startswith(_ID) for text in ids)
    ):
        raise ValueError(
            f"id: must be {_ID!r} and {_HEX} lower-case hex digits; one of {ids[:3]!r}"
        )
    digits = np.frombuffer(data, np.uint8).reshape(len(ids), _HEX // 2)
    first = np.ascontiguousarray(digits[:, :_FIRST]).view(">u8")[:, 0].astype(np.uint64)
    return Packed(first, digits[:, _FIRST:])


class CellIds(Sequence[str]):
    """The id of each row, and the latest row of each id."""

    def __init__(self) -> None:
        """Begin without rows."""
        self._prefixes = Column(np.uint64)
        self._rests = Column(np.uint8, _HEX // 2 - _FIRST)
        self._order = np.empty(0, np.int32)
        self._recent: dict[str, int] = {}

    def __len__(self) -> int:
        """How many rows there are."""
        return len(self._prefixes)

    def __getitem__(self, row: int) -> str:  # type: ignore[override]
        """The id of a row."""
        first, rest = self._prefixes.values[row], self._rests.values[row]
        return f"{_ID}{int(first):016x}{rest.tobytes().hex()}"

    @property
    def prefixes(self) -> NDArray[np.uint64]:
        """The first 16 hex digits of each id, in the order that the ids have as text."""
        return self._prefixes.values

    def names(self, rows: Integers) -> list[str]:
        """The ids of many rows."""
        told = np.empty((len(rows), _HEX // 2), np.uint8)
        first = self._prefixes.values[rows].astype(">u8")
        told[:, :_FIRST] = first.view(np.uint8).reshape(-1, _FIRST)
        told[:, _FIRST:] = self._rests.values[rows]
        digits = told.tobytes().hex()
        return [_ID + digits[at : at + _HEX] for at in range(0, len(digits), _HEX)]

    def extend(self, ids: Sequence[str], numbers: Packed) -> None:
        """Append rows. numbers: the same ids, packed."""
        start = len(self)
        self._prefixes.extend(numbers.prefixes, len(ids))
        self._rests.extend(numbers.rests, len(ids))
        self._recent.update(zip(ids, range(start, start + len(ids)), strict=True))
        if len(self._recent) > max(_RECENT, len(self) // _SHARE):
            self._settle()

    def saved(self) -> dict[str, NDArray[Any]]:
        """Return all ids as arrays."""
        self._settle()
        return {"prefixes": self.prefixes, "rests": self._rests.values, "order": self._order}

    @classmethod
    def loaded(cls, image: Image) -> CellIds:
        """Return the ids that were saved."""
        ids = cls()
        ids._prefixes = image.column("prefixes")
        ids._rests = image.column("rests")
        ids._order = image.numbers("order", 0, len(ids))
        if len(ids._rests) != len(ids) or len(ids._order) != len(ids):
            raise ValueError("ids: of different lengths")
        return ids

    def _settle(self) -> None:
        self._order = np.argsort(self.prefixes, kind="stable").astype(np.int32)
        self._recent.clear()

    def latest(self, cell_id: object) -> int:
        """Return the latest row of an id, -1 where it is not here."""
        row = self._recent.get(cell_id, -1) if isinstance(cell_id, str) else -1
        if row >= 0 or not len(self._order):
            return row
        try:
            numbers = packed([str(cell_id)])
        except ValueError:
            return -1
        return int(self._searched(numbers)[0])

    def latest_of(self, ids: Sequence[str], numbers: Packed) -> Integers:
        """Return the latest row of each of many ids, -1 where one is not here."""
        recent = np.fromiter((self._recent.get(each, -1) for each in ids), np.int64, len(ids))
        if not len(self._order):
            return recent
        return np.where(recent >= 0, recent, self._searched(numbers))

    def _searched(self, numbers: Packed) -> Integers:
        """Return the latest row in the order of each id, -1 for none."""
        wanted, known = numbers.prefixes, self._prefixes.values[: len(self._order)]
        places = known.searchsorted(wanted, "right", sorter=self._order) - 1
        rows = np.full(len(wanted), -1, np.int64)
        left = np.flatnonzero(places >= 0)
        # Equal prefixes stand in the order of their rows, so the first that fits is the latest.
        while len(left):
            found = self._order[places[left]].astype(np.int64)
            near = known[found] == wanted[left]
            same = near & (self._rests.values[found] == numbers.rests[left]).all(axis=1)
            rows[left[same]] = found[same]
            places[left] -= 1
            left = left[near & ~same & (places[left] >= 0)]
        return rows

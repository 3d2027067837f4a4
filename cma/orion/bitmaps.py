"""Bitmaps: for each of the commonest terms asked for, one bit a cell, beside the postings."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from cma.orion.postings import Postings

__all__ = ["Bitmaps", "words_of"]

_MOST = 256
"""Rows, at most: 32 bytes a cell. A commoner term takes the row of the least common one."""
Words = NDArray[np.uint64]


def words_of(size: int) -> int:
    """How many words of 64 bits hold a bit for each of so many cells."""
    return (size + 63) // 64


class Bitmaps:
    """Rows of bits by term code; what they hold follows the postings."""

    def __init__(self, kernels: Any) -> None:
        """Begin with none; `kernels` is the module of compiled loops."""
        self.kernels = kernels
        self._slots: dict[int, int] = {}
        self._counts: dict[int, int] = {}
        self._table: Words = np.zeros((4, 64), np.uint64)
        self._followed = 0
        self._purges = -1

    @property
    def table(self) -> Words:
        """The rows, with spare room at both ends."""
        return self._table

    def follow(self, postings: Postings) -> None:
        """Take in the cells that were appended, and begin anew after a purge."""
        if self._purges != postings.purges:
            self._purges = postings.purges
            self._slots.clear()
            self._counts.clear()
            self._table[:] = 0
        if self._followed == postings.sealed:
            return
        words = words_of(postings.sealed)
        if words > self._table.shape[1]:
            self._grow(len(self._table), max(words, self._table.shape[1] * 3 // 2))
        codes = np.array(list(self._slots), np.int64)
        self._set(postings, codes, self._followed)
        self._followed = postings.sealed

    def row(self, code: int, count: int, postings: Postings) -> int:
        """The row of a term that `count` cells hold; -1 if all rows have commoner ones."""
        slot = self._slots.get(code)
        if slot is not None:
            return slot
        if len(self._slots) < _MOST:
            slot = len(self._slots)
            if slot == len(self._table):
                self._grow(2 * slot, self._table.shape[1])
        else:
            least = min(self._counts, key=self._counts.__getitem__)
            if self._counts[least] >= count:
                return -1
            slot = self._slots.pop(least)
            del self._counts[least]
            self._table[slot] = 0
        self._slots[code], self._counts[code] = slot, count
        self._set(postings, np.array([code], np.int64), 0)
        return slot

    def _set(self, postings: Postings, codes: NDArray[np.int64], first_cell: int) -> None:
        if not len(codes):
            return
        slots = np.array([self._slots[code] for code in codes.tolist()], np.int64)
        for run in postings.runs:
            if run.end > first_cell:
                starts, stops = run.ranges(codes)
                self.kernels.set_bits(self._table, slots, run.cells, starts, stops, first_cell)

    def _grow(self, rows: int, words: int) -> None:
        wider = np.zeros((rows, words), np.uint64)
        wider[: self._table.shape[0], : self._table.shape[1]] = self._table
        self._table = wider

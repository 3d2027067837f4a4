"""Bounds: what no cell of each word of 64 surpasses, so that a search can pass over whole words."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from cma.orion.bitmaps import words_of
from cma.orion.entries import Entries
from cma.orion.scoring import Floats

__all__ = ["Bounds"]


class Bounds:
    """The bounds of columns that only grow: shares, recency and the prefix of the id."""

    def __init__(self, entries: Entries, kernels: Any) -> None:
        """Follow these columns; `kernels` is the module of compiled loops."""
        self._entries = entries
        self._kernels = kernels
        self._values: Floats = np.empty((0, 4))
        self._latest: NDArray[np.int64] = np.empty(0, np.int64)
        self._done = 0
        self._most = np.zeros(3)
        self._origin: tuple[float, int] = (0.0, 0)

    def get(self, half_life_seconds: float, origin_us: int) -> tuple[Floats, list[float]]:
        """Return the bounds of every word, and the greatest of the first three kinds."""
        size, origin = len(self._entries), (half_life_seconds, origin_us)
        words = words_of(size)
        if self._done != size or self._origin != origin:
            entries, first = self._entries, self._done // 64
            if words > len(self._values):
                wider, later = np.empty((2 * words, 4)), np.empty(2 * words, np.int64)
                wider[:first], later[:first] = self._values[:first], self._latest[:first]
                self._values, self._latest = wider, later
            self._kernels.word_bounds(
                entries.confidence, entries.importance, entries.observed, entries.prefixes,
                first, self._values, self._latest[:words],
            )  # fmt: skip
            if self._origin != origin:
                self._origin, self._most, first = origin, np.zeros(3), 0
            with np.errstate(over="ignore", under="ignore"):
                halvings = (self._latest[first:words] - origin_us) / (half_life_seconds * 1e6)
                self._values[first:words, 2] = np.exp2(halvings)
            self._most = np.maximum(self._most, self._values[first:words, :3].max(axis=0))
            self._done = size
        return self._values[:words], self._most.tolist()

"""Pruning: the exact best of a large index without looking at every cell that matches.

It serves the lexical parts that are sums of one weight a term (`overlap`, `idf_overlap`), with
coefficients of at least zero, no parts of context and no links, where numba is installed;
`searching` answers all else, and gives the same answer. Every one of the best is among the cells
that it returns.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cma.orion.bitmaps import Bitmaps, words_of
from cma.orion.entries import Entries
from cma.orion.kernel_inputs import Columns, Common, Held, How, Room
from cma.orion.postings import Postings
from cma.orion.query import Query
from cma.orion.resolving import Asked, Filter, Share, resolved, shares
from cma.orion.scoring import GRAIN, Floats
from cma.orion.word_bounds import Bounds

__all__ = ["LARGE", "TINY", "Found", "Origin", "Pruner", "packed"]

LARGE = 20_000
"""Fewer cells than these are scored one and all: that is quick, and needs no compiler."""
_ROOM = 4096
_WORTH = 50_000
"""Words and postings to look at, below which more threads would only wait for each other."""
_SLACK = 1e-12
TINY = 1e-300
"""Slack for weights so small that a product keeps few digits, or none."""
_FADED = 0.25 / GRAIN
"""A recency below this settles to zero, whatever its last bits."""
_EVERYONE = np.empty(0, np.uint64)
Integers = NDArray[np.int64]


class Found(NamedTuple):
    """Cells among which the best are, their lexical parts, and how many cells match in all."""

    ordinals: Integers
    lexical: Floats
    matching: int


class Origin(NamedTuple):
    """When the kept recency of `Bounds` counts from, and what brings it to a query's time."""

    us: int
    shift: float
    """2^((origin - at) / half-life)."""


def packed(values: NDArray[np.bool_]) -> Filter:
    """One bit for each value, in words."""
    room = np.zeros(8 * words_of(len(values)), np.uint8)
    bits = np.packbits(values, bitorder="little")
    room[: len(bits)] = bits
    return room.view(np.uint64)


def _room(places: int) -> Room:
    return Room(np.empty(places, np.int32), np.empty(places), np.empty(places))


class Pruner:
    """Finds the candidates of one index; what it keeps between searches only saves time.

    One that was interrupted is of no use any more: marks of that search are left in it.
    """

    def __init__(self, postings: Postings, entries: Entries) -> None:
        """Search these postings and columns. Raises ImportError without numba."""
        from cma.orion import kernels

        self._kernels: Any = kernels
        self._postings = postings
        self._bitmaps = Bitmaps(kernels)
        self._entries = entries
        self._bounds = Bounds(entries, kernels)
        self._pools: dict[int, ThreadPoolExecutor] = {}
        self._narrow: NDArray[Any] = np.zeros(0, np.uint8)
        self._wide: NDArray[Any] = np.zeros(0, np.uint64)
        self._met = self._again = np.empty(0, np.int32)
        self._unions = np.empty(0, np.uint64)
        self._rooms: list[Room] = []

    def asked(self, terms: Sequence[str], lexical: str, seen: int, visible: Filter | None) -> Asked:
        """Resolve the distinct terms of a query, given in their order.

        seen: how many cells the viewer sees; visible: which, if not all.
        """
        return resolved(self._postings, self._bitmaps, terms, lexical, seen, visible)

    def best(
        self, asked: Asked, allowed: Filter | None, query: Query, origin: Origin, count: int
    ) -> Found:
        """The cells that may be among the `count` best of those allowed.

        Each of the query's threads takes a share of the cells where that is worth a handover.
        """
        size = len(self._entries)
        words = words_of(size)
        threads = min(query.threads, words) if asked.worth >= _WORTH else 1
        masks = self._masks(size, wide=len(asked.weights) > 8)
        filtered = _EVERYONE if allowed is None else allowed
        how, columns = self._how(query, origin)
        parts = shares(asked, words, threads, self._kernels)
        self._rooms += [_room(_ROOM) for _ in range(threads - len(self._rooms))]

        def found_in(place: int) -> Found:
            return self._within(parts[place], place, asked, masks, filtered, how, columns, count)

        if threads == 1:
            return found_in(0)
        others = [self._pool(threads - 1).submit(found_in, place) for place in range(1, threads)]
        found = [found_in(0), *(each.result() for each in others)]
        return Found(
            np.concatenate([each.ordinals for each in found]),
            np.concatenate([each.lexical for each in found]),
            sum(each.matching for each in found),
        )

    def _within(
        self,
        share: Share,
        place: int,
        asked: Asked,
        masks: NDArray[Any],
        allowed: Filter,
        how: How,
        columns: Columns,
        count: int,
    ) -> Found:
        """The same of one share of the cells."""
        own = slice(64 * share.first, 64 * share.last)
        met, again, known, repeated = self._met[own], self._again[own], 0, 0
        rare = len(asked.rare_bits)
        ends = np.empty(len(share.postings) * rare, np.int64)
        for each, (cells, starts, stops) in enumerate(share.postings):
            known, repeated = self._kernels.gather(
                cells, starts, stops, asked.rare_bits, allowed, masks, met, again,
                known, repeated, ends[each * rare :],
            )  # fmt: skip
        held = Held(
            asked.weights, asked.whole, masks, met, again, ends, asked.rare_bits, known, repeated
        )
        common = Common(self._bitmaps.table, asked.slots, asked.common_bits, self._unions)
        room = self._rooms[place]
        ordinals, lexical, matching, needed = self._kernels.rank(
            held, common, how, columns, room, allowed, count, share.first, share.last
        )
        if needed > len(room.picked):  # many came before the best of them
            self._rooms[place] = _room(2 * needed)
            return self._within(share, place, asked, masks, allowed, how, columns, count)
        return Found(ordinals, lexical, matching)

    def _pool(self, others: int) -> ThreadPoolExecutor:
        if others not in self._pools:
            self._pools[others] = ThreadPoolExecutor(others, "cma-search")
        return self._pools[others]

    def _how(self, query: Query, origin: Origin) -> tuple[How, Columns]:
        entries, weights = self._entries, query.weights
        bounds, most = self._bounds.get(query.half_life_seconds, origin.us)
        recent = min(1.0, most[2] * origin.shift)
        faded = recent < _FADED
        slack = _SLACK * sum(weights) + TINY
        how = How(
            lexical=float(weights.lexical),
            confidence=float(weights.confidence),
            importance=float(weights.importance),
            recency=0.0 if faded else float(weights.recency),
            at_us=query.at_us,
            half_life_us=query.half_life_seconds * 1e6,
            shift=origin.shift,
            reach=weights.confidence * most[0]
            + weights.importance * most[1]
            + weights.recency * (recent + 1.0 / GRAIN)
            + slack,
            slack=slack,
        )
        return how, Columns(
            entries.confidence, entries.importance, entries.observed, entries.prefixes, bounds
        )

    def _masks(self, size: int, *, wide: bool) -> NDArray[Any]:
        if len(self._met) < size:
            room = 64 * words_of(size + size // 2)
            self._met, self._again = np.empty(room, np.int32), np.empty(room, np.int32)
            self._unions = np.empty(room // 64, np.uint64)
        masks: NDArray[Any] = self._wide if wide else self._narrow
        if len(masks) < len(self._met):
            masks = np.zeros(len(self._met), np.uint64 if wide else np.uint8)
            if wide:
                self._wide = masks
            else:
                self._narrow = masks
        return masks

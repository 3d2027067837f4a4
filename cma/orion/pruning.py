"""Pruning: the exact best of a large index without looking at every cell that matches.

It serves the lexical parts that are sums of one weight a term (`overlap`, `idf_overlap`), with
coefficients of at least zero, no parts of context and no links, where numba is installed;
`searching` answers all else, and gives the same answer. Every one of the best is among the cells
that it returns.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cma.orion.bitmaps import Bitmaps, words_of
from cma.orion.entries import Entries
from cma.orion.kernel_inputs import Columns, Common, Held, How, Room
from cma.orion.postings import Postings, Run
from cma.orion.scoring import Floats, Weights, idf

__all__ = ["LARGE", "TERMS", "WEIGHED", "Filter", "Found", "Priors", "Pruner", "packed"]

LARGE = 20_000
"""Fewer cells than these are scored one and all: that is quick, and needs no compiler."""
TERMS = 48
"""Distinct terms of a query, at most: a bit each, and room for their quanta."""
WEIGHED: dict[str, Callable[[int, int], float]] = {
    "overlap": lambda _size, _holding: 1.0,
    "idf_overlap": idf,
}
_COMMON_SHARE = 64
_COMMON_LEAST = 2048
_ROOM = 4096
_SLACK = 1e-12
_GRAIN = 2.0**-30
_FADED = 2.0**-32
"""A recency below this settles to zero, whatever its last bits."""
_EVERYONE = np.empty(0, np.uint64)
_NO_ROWS = np.empty(0, np.int64)
_POWERS = np.left_shift(1, np.arange(TERMS, dtype=np.uint64))
_BITS: tuple[NDArray[Any], NDArray[Any]] = (_POWERS[:8].astype(np.uint8), _POWERS)
Filter = NDArray[np.uint64]
Integers = NDArray[np.int64]


class Found(NamedTuple):
    """Cells among which the best are, their lexical parts, and how many cells match in all."""

    ordinals: Integers
    lexical: Floats
    matching: int


class Priors(NamedTuple):
    """What a cell's score has beside its lexical part: coefficients, and how recency is told."""

    weights: Weights
    at_us: int
    half_life_seconds: float
    origin_us: int
    """When the kept recency of `Bounds` counts from."""
    shift: float
    """What brings it to that at `at_us`: 2^((origin - at) / half-life)."""


class Asked(NamedTuple):
    """A query's terms, resolved: rare ones as ranges of the postings, common ones as rows."""

    weights: Floats
    whole: float
    rare: list[tuple[Run, Integers, Integers]]
    """Where in each run the cells of the rare terms begin and end."""
    rare_bits: NDArray[Any]
    slots: Integers
    common_bits: NDArray[Any]


def packed(values: NDArray[np.bool_]) -> Filter:
    """One bit for each value, in words."""
    room = np.zeros(8 * words_of(len(values)), np.uint8)
    bits = np.packbits(values, bitorder="little")
    room[: len(bits)] = bits
    return room.view(np.uint64)


def _room(places: int) -> Room:
    return Room(np.empty(places, np.int32), np.empty(places), np.empty(places))


class _Bounds:
    """What no cell of each 64 surpasses, of columns that only grow."""

    def __init__(self, entries: Entries, kernels: Any) -> None:
        self._entries = entries
        self._kernels = kernels
        self._values: Floats = np.empty((0, 4))
        self._latest: Integers = np.empty(0, np.int64)
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
            halvings = (self._latest[first:words] - origin_us) / (half_life_seconds * 1e6)
            with np.errstate(over="ignore", under="ignore"):
                self._values[first:words, 2] = np.exp2(halvings)
            self._most = np.maximum(self._most, self._values[first:words, :3].max(axis=0))
            self._done = size
        return self._values[:words], self._most.tolist()


class Pruner:
    """Finds the candidates of one index; what it keeps between searches only saves time."""

    def __init__(self, postings: Postings, entries: Entries) -> None:
        """Search these postings and columns. Raises ImportError without numba."""
        from cma.orion import kernels

        self._kernels: Any = kernels
        self._postings = postings
        self._bitmaps = Bitmaps(kernels)
        self._entries = entries
        self._bounds = _Bounds(entries, kernels)
        self._narrow: NDArray[Any] = np.zeros(0, np.uint8)
        self._wide: NDArray[Any] = np.zeros(0, np.uint64)
        self._met = self._again = np.empty(0, np.int32)
        self._unions = np.empty(0, np.uint64)
        self._room = _room(_ROOM)

    def asked(self, terms: Sequence[str], lexical: str, seen: int, visible: Filter | None) -> Asked:
        """Resolve the distinct terms of a query, given in their order.

        seen: how many cells the viewer sees; visible: which, if not all.
        """
        postings, bitmaps = self._postings, self._bitmaps
        bitmaps.follow(postings)
        codes = postings.codes(terms)
        ranges = [(run, *run.ranges(codes)) for run in postings.runs]
        counts = np.zeros(len(terms), np.int64)
        for _, starts, stops in ranges:
            counts += stops - starts
        bits = _BITS[len(terms) > 8][: len(terms)]
        least = max(_COMMON_LEAST, postings.sealed // _COMMON_SHARE)
        rows = None
        if counts.max() >= least:
            rows = np.array(
                [
                    bitmaps.row(code, count, postings) if count >= least else -1
                    for code, count in zip(codes.tolist(), counts.tolist(), strict=True)
                ],
                np.int64,
            )
            kept = rows[rows >= 0].tolist()
            if len(set(kept)) < len(kept):  # given away while later terms were resolved
                rows = None
        if visible is not None and lexical != "overlap":
            counts = self._held(ranges, rows, visible)
        weigh, whole = WEIGHED[lexical], 0.0
        weights = [weigh(seen, count) for count in counts.tolist()]
        for weight in weights:  # one after the other, as the lexical parts do
            whole += weight
        if rows is None:
            return Asked(np.array(weights), whole, ranges, bits, _NO_ROWS, bits[:0])
        rare = rows < 0
        return Asked(
            np.array(weights),
            whole,
            [(run, starts[rare], stops[rare]) for run, starts, stops in ranges],
            bits[rare],
            rows[~rare],
            bits[~rare],
        )

    def best(
        self, asked: Asked, size: int, allowed: Filter | None, priors: Priors, count: int
    ) -> Found:
        """The cells that may be among the `count` best of those allowed."""
        masks = self._masks(size, wide=len(asked.weights) > 8)
        filtered = _EVERYONE if allowed is None else allowed
        met, again, known, repeated = self._met, self._again, 0, 0
        rare = len(asked.rare_bits)
        ends = np.empty(len(asked.rare) * rare, np.int64)
        for place, (run, starts, stops) in enumerate(asked.rare):
            known, repeated = self._kernels.gather(
                run.cells, starts, stops, asked.rare_bits, filtered, masks, met, again,
                known, repeated, ends[place * rare :],
            )  # fmt: skip
        how, columns = self._how(priors)
        held = Held(
            asked.weights, asked.whole, masks, met, again, ends, asked.rare_bits, known, repeated
        )
        unions = self._unions[: words_of(size)]
        common = Common(self._bitmaps.table, asked.slots, asked.common_bits, unions)
        ordinals, lexical, matching, needed = self._kernels.rank(
            held, common, how, columns, self._room, filtered, count
        )
        if needed > len(self._room.picked):  # many came before the best of them
            self._room = _room(2 * needed)
            return self.best(asked, size, allowed, priors, count)
        return Found(ordinals, lexical, matching)

    def _how(self, priors: Priors) -> tuple[How, Columns]:
        entries, weights = self._entries, priors.weights
        bounds, most = self._bounds.get(priors.half_life_seconds, priors.origin_us)
        recent = min(1.0, most[2] * priors.shift)
        faded = recent < _FADED
        slack = _SLACK * sum(weights)
        how = How(
            lexical=float(weights.lexical),
            confidence=float(weights.confidence),
            importance=float(weights.importance),
            recency=0.0 if faded else float(weights.recency),
            at_us=priors.at_us,
            half_life_us=priors.half_life_seconds * 1e6,
            shift=priors.shift,
            reach=weights.confidence * most[0]
            + weights.importance * most[1]
            + weights.recency * (recent + _GRAIN)
            + slack,
            slack=slack,
        )
        return how, Columns(
            entries.confidence, entries.importance, entries.observed, entries.prefixes, bounds
        )

    def _held(
        self,
        ranges: list[tuple[Run, Integers, Integers]],
        rows: Integers | None,
        visible: Filter,
    ) -> Integers:
        """How many visible cells hold each term."""
        counts = np.zeros(len(ranges[0][1]), np.int64)
        for run, starts, stops in ranges:
            ends = stops if rows is None else np.where(rows < 0, stops, starts)
            self._kernels.count_allowed(run.cells, starts, ends, visible, counts)
        for place, row in enumerate([] if rows is None else rows.tolist()):
            if row >= 0:
                held = self._bitmaps.table[row, : len(visible)] & visible
                counts[place] = int(np.bitwise_count(held).sum(dtype=np.int64))
        return counts

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

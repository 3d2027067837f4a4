"""Pruning: the exact best of a large index without looking at every cell that matches.

It serves the lexical parts that are sums of one weight a term (`overlap`, `idf_overlap`), with
coefficients of at least zero, no parts of context and no links, where numba is installed;
`searching` answers all else, and gives the same answer. Every one of the best is among the cells
that it returns.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cma.orion.bitmaps import Bitmaps, words_of
from cma.orion.postings import Postings, Run
from cma.orion.scoring import Floats, idf

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
    """What a cell's score has beside its lexical part, roughly: static + weight * decay * shift."""

    static: Floats
    static_key: Hashable
    decay: Floats
    decay_key: Hashable
    recency_weight: float
    shift: float


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


class _Maxima:
    """The greatest of each 64 values of a column that only grows."""

    def __init__(self, kernels: Any) -> None:
        self._kernels = kernels
        self._key: Hashable = None
        self._values: Floats = np.empty(0)
        self._done = 0
        self._most = -math.inf

    def get(self, key: Hashable, values: Floats) -> tuple[Floats, float]:
        if key != self._key:
            self._key, self._done, self._most = key, 0, -math.inf
        if self._done != len(values):
            words, first = words_of(len(values)), self._done // 64
            if words > len(self._values):
                wider = np.empty(2 * words)
                wider[:first] = self._values[:first]
                self._values = wider
            self._kernels.word_maxima(values, first, self._values[:words])
            self._most = max(self._most, float(self._values[first:words].max()))
            self._done = len(values)
        return self._values[: words_of(len(values))], self._most


class Pruner:
    """Finds the candidates of one index; what it keeps between searches only saves time."""

    def __init__(self, postings: Postings) -> None:
        """Search these postings. Raises ImportError without numba."""
        from cma.orion import kernels

        self._kernels: Any = kernels
        self._postings = postings
        self._bitmaps = Bitmaps(kernels)
        self._static, self._decay = _Maxima(kernels), _Maxima(kernels)
        self._narrow: NDArray[Any] = np.zeros(0, np.uint8)
        self._wide: NDArray[Any] = np.zeros(0, np.uint64)
        self._met = np.empty(0, np.int32)
        self._unions = np.empty(0, np.uint64)
        self._make_room(_ROOM)

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
        self,
        asked: Asked,
        size: int,
        allowed: Filter | None,
        priors: Priors,
        *,
        lexical_weight: float,
        count: int,
        margin: float,
    ) -> Found:
        """The cells that may be among the `count` best of those allowed.

        margin: how far two rough scores may be from their exact order.
        """
        masks = self._masks(size, wide=len(asked.weights) > 8)
        filtered = _EVERYONE if allowed is None else allowed
        met = 0
        for run, starts, stops in asked.rare:
            met = self._kernels.gather(
                run.cells, starts, stops, asked.rare_bits, filtered, masks, self._met, met
            )
        static_words, static_most = self._static.get(priors.static_key, priors.static)
        decay_words, decay_most = self._decay.get(priors.decay_key, priors.decay)
        bound = static_most + priors.recency_weight * min(1.0, decay_most * priors.shift)
        ordinals, lexical, matching, needed = self._kernels.rank(
            masks,
            self._met,
            met,
            self._picked,
            self._rough,
            self._lexicals,
            self._unions[: words_of(size)],
            self._bitmaps.table,
            asked.slots,
            asked.common_bits,
            asked.weights,
            asked.whole,
            lexical_weight,
            priors.static,
            static_words,
            priors.decay,
            decay_words,
            priors.recency_weight,
            priors.shift,
            bound,
            filtered,
            count,
            margin,
        )
        if needed > len(self._picked):  # very many equals: they are told apart by id, so all count
            self._make_room(2 * needed)
            return self.best(
                asked,
                size,
                allowed,
                priors,
                lexical_weight=lexical_weight,
                count=count,
                margin=margin,
            )
        return Found(ordinals, lexical, matching)

    def _make_room(self, places: int) -> None:
        self._picked, self._rough = np.empty(places, np.int32), np.empty(places)
        self._lexicals = np.empty(places)

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
            self._met = np.empty(room, np.int32)
            self._unions = np.empty(room // 64, np.uint64)
        masks: NDArray[Any] = self._wide if wide else self._narrow
        if len(masks) < len(self._met):
            masks = np.zeros(len(self._met), np.uint64 if wide else np.uint8)
            if wide:
                self._wide = masks
            else:
                self._narrow = masks
        return masks

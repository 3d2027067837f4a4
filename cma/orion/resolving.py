"""Resolving: from a query's terms to their weights, their postings and their rows of bits."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cma.orion.bitmaps import Bitmaps, words_of
from cma.orion.postings import Postings, Run
from cma.orion.scoring import Floats, idf

__all__ = ["TERMS", "WEIGHED", "Asked", "Filter", "Share", "resolved", "shares"]

TERMS = 48
"""Distinct terms of a query, at most: a bit each, and room for their quanta."""
WEIGHED: dict[str, Callable[[int, int], float]] = {
    "overlap": lambda _size, _holding: 1.0,
    "idf_overlap": idf,
}
_COMMON_SHARE = 64
_COMMON_LEAST = 2048
_NO_ROWS = np.empty(0, np.int64)
_POWERS = np.left_shift(1, np.arange(TERMS, dtype=np.uint64))
_BITS: tuple[NDArray[Any], NDArray[Any]] = (_POWERS[:8].astype(np.uint8), _POWERS)
Filter = NDArray[np.uint64]
Integers = NDArray[np.int64]
Ordinals = NDArray[np.int32]


class Asked(NamedTuple):
    """A query's terms, resolved: rare ones as ranges of the postings, common ones as rows."""

    weights: Floats
    whole: float
    rare: list[tuple[Run, Integers, Integers]]
    """Where in each run the cells of the rare terms begin and end."""
    rare_bits: NDArray[Any]
    slots: Integers
    common_bits: NDArray[Any]
    worth: int
    """How many postings of rare terms and words of common ones there are to look at."""


class Share(NamedTuple):
    """Some words of 64 cells, and the postings of the rare terms in them."""

    first: int
    last: int
    postings: list[tuple[Ordinals, Integers, Integers]]
    """For each run its cells, and where in it those of each term begin and end."""


def resolved(
    postings: Postings,
    bitmaps: Bitmaps,
    terms: Sequence[str],
    lexical: str,
    seen: int,
    visible: Filter | None,
) -> Asked:
    """Resolve the distinct terms of a query, given in their order.

    seen: how many cells the viewer sees; visible: which, if not all.
    """
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
    worth = int(counts.sum())
    if rows is not None:
        worth = int(counts[rows < 0].sum()) + int((rows >= 0).sum()) * words_of(postings.sealed)
    if visible is not None and lexical != "overlap":
        counts = _held(bitmaps, ranges, rows, visible)
    weigh, whole = WEIGHED[lexical], 0.0
    weights = [weigh(seen, count) for count in counts.tolist()]
    for weight in weights:  # one after the other, as the lexical parts do
        whole += weight
    if rows is None:
        return Asked(np.array(weights), whole, ranges, bits, _NO_ROWS, bits[:0], worth)
    rare = rows < 0
    return Asked(
        np.array(weights),
        whole,
        [(run, starts[rare], stops[rare]) for run, starts, stops in ranges],
        bits[rare],
        rows[~rare],
        bits[~rare],
        worth,
    )


def shares(asked: Asked, words: int, threads: int, kernels: Any) -> list[Share]:
    """Divide the words of cells, and the rare terms' postings with them."""
    edges = [words * each // threads for each in range(threads + 1)]
    rare = asked.rare
    cuts = [[starts for _, starts, _ in rare]]
    cuts += [
        [kernels.cut(run.cells, starts, stops, 64 * edge) for run, starts, stops in rare]
        for edge in edges[1:-1]
    ]
    cuts += [[stops for _, _, stops in rare]]
    cells = [run.cells for run, _, _ in rare]
    return [
        Share(first, last, list(zip(cells, starts, stops, strict=True)))
        for (first, last), (starts, stops) in zip(pairwise(edges), pairwise(cuts), strict=True)
    ]


def _held(
    bitmaps: Bitmaps,
    ranges: list[tuple[Run, Integers, Integers]],
    rows: Integers | None,
    visible: Filter,
) -> Integers:
    """How many visible cells hold each term."""
    counts = np.zeros(len(ranges[0][1]), np.int64)
    for run, starts, stops in ranges:
        ends = stops if rows is None else np.where(rows < 0, stops, starts)
        bitmaps.kernels.count_allowed(run.cells, starts, ends, visible, counts)
    for place, row in enumerate([] if rows is None else rows.tolist()):
        if row >= 0:
            held = bitmaps.table[row, : len(visible)] & visible
            counts[place] = int(np.bitwise_count(held).sum(dtype=np.int64))
    return counts

"""Scoring: the named parts of a score, each a small pure function over arrays.

`score = w.lexical*lexical + w.confidence*c + w.importance*i + w.recency*2^(-age/half_life)
+ w.link*support`, added from left to right in float64. Every part lies in [0, 1]. The parts of
`CONTEXT_PARTS` follow where one of their weights is not zero; `surroundings` works them out.

So that two machines agree to the last bit, each value of a transcendental function is rounded to
a multiple of 2^-30 (`settle`) and each sum over query terms runs in the order of the terms.

The lexical part is one of `LEXICAL`. `matches` holds one `Match` for each distinct query term, in
term order, an unknown term with no cells. A function adds into `out` (zero at first, one place
for each cell) and finishes only the places `cells`, which include every matched one.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "CONTEXT_PARTS",
    "EVERY_PART",
    "GRAIN",
    "LEXICAL",
    "PARTS",
    "Collection",
    "Lexical",
    "Match",
    "Weights",
    "bm25",
    "idf",
    "idf_overlap",
    "jaccard",
    "overlap",
    "recency",
    "settle",
    "total",
]

Floats = NDArray[np.float64]
Cells = slice | NDArray[np.int64]
PARTS = ("lexical", "confidence", "importance", "recency", "link")
CONTEXT_PARTS = (
    "two_links",
    "reply",
    "session",
    "bigrams",
    "speaker",
    "statement",
    "month",
    "moment",
    "feedback",
)
EVERY_PART = PARTS + CONTEXT_PARTS
GRAIN = float(1 << 30)
"""Of what is settled: so many steps from 0 to 1."""
_K1 = 1.5
_B = 0.75


class Weights(NamedTuple):
    """The coefficient of each part; any finite number, negative ones too."""

    lexical: float = 0.6
    confidence: float = 0.1
    importance: float = 0.1
    recency: float = 0.1
    link: float = 0.1
    two_links: float = 0.0
    reply: float = 0.0
    session: float = 0.0
    bigrams: float = 0.0
    speaker: float = 0.0
    statement: float = 0.0
    month: float = 0.0
    moment: float = 0.0
    feedback: float = 0.0

    @property
    def of_context(self) -> bool:
        """Whether a part of `CONTEXT_PARTS` counts."""
        return any(self[len(PARTS) :])


class Match(NamedTuple):
    """One distinct query term: how often it is asked, and the visible cells that hold it."""

    repeats: int
    cells: NDArray[Any]
    shapes: NDArray[Any]


class Collection(NamedTuple):
    """What the lexical functions may know of the cells a viewer can see.

    `shapes` index `frequencies` and `lengths`: how often the term stands in the cell, and how
    many terms the cell has. `distinct` counts the distinct terms of each cell.
    """

    size: int
    mean_length: float
    frequencies: Floats
    lengths: Floats
    distinct: NDArray[np.int64]


Lexical = Callable[[Sequence[Match], Collection, Cells, Floats], None]


def settle(values: Floats) -> Floats:
    """`values` rounded to multiples of 2^-30, where last-bit differences of libraries vanish."""
    return np.rint(values * GRAIN) / GRAIN


def idf(size: int, holding: int) -> float:
    """Lucene's inverse document frequency, settled, and never zero.

    `ln(1 + (N - df + 0.5) / (df + 0.5))`: Robertson and Zaragoza (2009), "The Probabilistic
    Relevance Framework", with the 1 that Lucene's BM25Similarity adds to keep it positive.
    """
    value = math.log(1.0 + (size - holding + 0.5) / (holding + 0.5))
    return max(1.0, float(round(value * GRAIN))) / GRAIN


def overlap(matches: Sequence[Match], _: Collection, cells: Cells, out: Floats) -> None:
    """Share of the distinct query terms that the cell holds: the paper's lexical part."""
    for match in matches:
        np.add.at(out, match.cells, 1.0)
    out[cells] /= float(len(matches))


def idf_overlap(
    matches: Sequence[Match], collection: Collection, cells: Cells, out: Floats
) -> None:
    """The same share with each term counted by its idf (Sparck Jones 1972).

    A term that no cell holds still counts in the denominator.
    """
    whole = 0.0
    for match in matches:
        weight = idf(collection.size, len(match.cells))
        np.add.at(out, match.cells, weight)
        whole += weight
    out[cells] /= whole


def jaccard(matches: Sequence[Match], collection: Collection, cells: Cells, out: Floats) -> None:
    """Shared distinct terms over all distinct terms of question and cell (Jaccard 1901)."""
    for match in matches:
        np.add.at(out, match.cells, 1.0)
    shared = out[cells]
    out[cells] = shared / (float(len(matches)) + collection.distinct[cells] - shared)


def bm25(matches: Sequence[Match], collection: Collection, cells: Cells, out: Floats) -> None:
    """BM25 as Lucene and `bm25s` compute it (Kamphuis et al. 2020), scaled into [0, 1].

    `sum idf * tf / (tf + k1 * (1 - b + b * length / mean length))` over the query terms, a
    repeated one repeated, with k1 = 1.5 and b = 0.75, divided by the sum of their idf: the
    bound that no cell reaches. The division changes no order.
    """
    mean = collection.mean_length or 1.0
    norms = _K1 * ((1.0 - _B) + _B * (collection.lengths / mean))
    saturation = collection.frequencies / (norms + collection.frequencies)
    whole = 0.0
    for match in matches:
        weight = match.repeats * idf(collection.size, len(match.cells))
        np.add.at(out, match.cells, weight * saturation[match.shapes])
        whole += weight
    out[cells] /= whole


LEXICAL: Mapping[str, Lexical] = MappingProxyType(
    {"overlap": overlap, "idf_overlap": idf_overlap, "jaccard": jaccard, "bm25": bm25}
)


def recency(observed_us: NDArray[np.int64], at_us: int, half_life_seconds: float) -> Floats:
    """`2^(-age / half_life)`, settled: 1 if observed now or later, halved at each half-life.

    Exponential forgetting after Ebbinghaus (1885), by half-life so that its one constant is read.
    """
    age = np.maximum(at_us - observed_us, 0).astype(np.float64)
    with np.errstate(over="ignore", under="ignore"):
        return settle(np.exp2(-(age / (half_life_seconds * 1e6))))


def total(weights: Weights, parts: Mapping[str, Floats]) -> Floats:
    """The weighted sum of the parts, added in the order of `EVERY_PART`.

    Those of `CONTEXT_PARTS` may be missing; their weights are zero then.
    """
    score = weights.lexical * parts["lexical"]
    score = score + weights.confidence * parts["confidence"]
    score = score + weights.importance * parts["importance"]
    score = score + weights.recency * parts["recency"]
    score = score + weights.link * parts["link"]
    if len(parts) > len(PARTS):
        for name in CONTEXT_PARTS:
            if name in parts:
                score = score + getattr(weights, name) * parts[name]
    return score

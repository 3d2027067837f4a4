"""What `kernel_ranking` is given: a query's terms, its coefficients, the columns, and room."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

__all__ = ["Best", "Columns", "Common", "Held", "How", "Room"]

Floats = NDArray[np.float64]


class Held(NamedTuple):
    """The query's terms, their weights in order and in sum, and what is held of them."""

    weights: Floats
    whole: float
    masks: NDArray[Any]
    """For each cell, the terms it is known to hold; all zero between searches."""
    met: NDArray[np.int32]
    """Cells with a term that few hold; so many as `known`."""
    again: NDArray[np.int32]
    """Those of them with a second such term; so many as `repeated`."""
    ends: NDArray[np.int64]
    """Where in `met` those of each rare term end, one run of the postings after the other."""
    rare_bits: NDArray[Any]
    known: int
    repeated: int


class Common(NamedTuple):
    """The terms that many hold: rows of a table, one bit a cell, and their bits in a mask."""

    table: NDArray[np.uint64]
    slots: NDArray[np.int64]
    bits: NDArray[Any]
    unions: NDArray[np.uint64]
    """Room for the cells that hold any of them."""


class How(NamedTuple):
    """The coefficients (recency's is zero where every recency settles to zero), and the time."""

    lexical: float
    confidence: float
    importance: float
    recency: float
    at_us: int
    half_life_us: float
    shift: float
    """What brings the kept recency of `bounds` to that at the query's time."""
    reach: float
    """The most that a cell has beside its lexical part, and `slack` more."""
    slack: float
    """More than what sums in another order may differ by."""


class Columns(NamedTuple):
    """What a score is made of, by ordinal, and the bounds of each word of 64."""

    confidence: Floats
    importance: Floats
    observed: NDArray[np.int64]
    prefixes: NDArray[np.uint64]
    bounds: Floats
    """Greatest confidence, importance and kept recency; least prefix, eleven bits cut off."""


class Room(NamedTuple):
    """Places for cells that may be among the best."""

    picked: NDArray[np.int32]
    scores: Floats
    lexicals: Floats


class Best(NamedTuple):
    """The best pairs of score and prefix so far: a heap whose first is the worst of them."""

    scores: Floats
    prefixes: NDArray[np.uint64]
    held: NDArray[np.int64]
    """How many are in the heap, and how many cells were picked."""

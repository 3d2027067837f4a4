"""Brute force: the paper's score of every cell, without an index, as an independent control."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

import numpy as np
from numpy.typing import NDArray

from cma import Retrieval
from cma.orion.scoring import recency
from experiments.scaling.engines import LIMIT
from experiments.scaling.texts import SPACING, START, Codes

CONFIDENCE, IMPORTANCE = 1.0, 0.5
"""What every cell has by default."""
_MICROSECOND = timedelta(microseconds=1)


def observed(count: int) -> NDArray[np.int64]:
    """Return when each cell was observed, in microseconds."""
    return np.arange(count, dtype=np.int64) * (SPACING // _MICROSECOND) + microseconds(START)


def microseconds(at: datetime) -> int:
    """Return an instant as microseconds since 1970."""
    return (at - datetime.fromtimestamp(0, at.tzinfo)) // _MICROSECOND


def best(
    cells: Codes, ids: Sequence[str], question: Codes, at: datetime, how: Retrieval
) -> list[tuple[str, float]]:
    """Return ids and scores of the best cells: overlap, the shares, recency; ties by id."""
    terms = sorted(set(question.tolist()))
    shared = np.zeros(len(cells))
    for term in terms:
        shared += (cells == term).any(axis=1)
    weights = how.coefficients
    scores = weights.lexical * (shared / len(terms))
    scores += weights.confidence * CONFIDENCE
    scores += weights.importance * IMPORTANCE
    scores += weights.recency * recency(
        observed(len(cells)), microseconds(at), how.half_life_seconds
    )
    scores[shared == 0] = -1.0
    found = np.flatnonzero(scores >= np.partition(scores, -LIMIT)[-LIMIT])
    order = sorted(found.tolist(), key=lambda place: (-scores[place], ids[place]))
    return [(ids[place], float(scores[place])) for place in order[:LIMIT] if shared[place]]

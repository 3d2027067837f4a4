"""Ranks: how many candidates stand above an evidence turn, for many coefficient vectors at once.

No sorting: the rank of a turn is the count of scores above its own, an equal score counting where
its cell comes first by id. Scores are added as `cma.orion.scoring.total` adds them, part by part
in float64, so that they are a recall's to the last bit.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

import numba
import numpy as np
from numpy.typing import NDArray

from experiments.bootstrap import Floats
from experiments.sweeping.features import Features, opened

Ranks = NDArray[np.int32]
Found = TypeVar("Found")
NEVER = 2**30
"""The rank of what is not found at all."""
BLOCK = 512
"""Coefficient vectors taken at once: few enough that their scores stay in a core's own cache."""


def ranks(features: Features, weights: Floats) -> Ranks:
    """Return the rank, from 0, of each evidence turn (rows) under each row of `weights`."""
    used = np.flatnonzero(weights.any(axis=0))  # adding a zero changes no score
    used = used if len(used) else np.zeros(1, np.int64)
    found = np.zeros((len(features.evidence), len(weights)), np.int32)
    count = _count if len(weights) > 1 else _count_one
    count(
        features.parts,
        features.reach,
        features.starts,
        features.evidence,
        features.evidence_starts,
        np.ascontiguousarray(weights.T[used]),
        used,
        np.array([opened(own) for own in weights], np.int32),
        found,
    )
    return found


def in_blocks(
    weights: Floats,
    work: Callable[[Floats], Found],
    *,
    threads: int,
    advance: Callable[[int], None] = lambda _: None,
) -> Iterator[Found]:
    """Yield what `work` makes of each block of coefficient vectors, in their order.

    threads: how many blocks at once (0: one for each processor); results do not depend on it.
    """
    blocks = [weights[first : first + BLOCK] for first in range(0, len(weights), BLOCK)]
    workers = min(threads or os.cpu_count() or 1, max(len(blocks), 1))
    with ThreadPoolExecutor(workers) as pool:
        made = pool.map(work, blocks)
        for block, found in zip(blocks, made, strict=True):
            advance(len(block))
            yield found


@numba.njit(nogil=True, cache=True)
def _scores(part: Floats, columns: Floats, used: NDArray[np.int64], out: Floats) -> None:
    """Add up one candidate's score under every setting, from left to right, two parts at a time."""
    first, p = part[used[0]], 1
    if len(used) > 1:
        second, p = part[used[1]], 2
        for s in range(len(out)):
            out[s] = columns[0, s] * first + columns[1, s] * second
    else:
        for s in range(len(out)):
            out[s] = columns[0, s] * first
    while p + 1 < len(used):
        first, second = part[used[p]], part[used[p + 1]]
        for s in range(len(out)):
            out[s] = (out[s] + columns[p, s] * first) + columns[p + 1, s] * second
        p += 2
    if p < len(used):
        first = part[used[p]]
        for s in range(len(out)):
            out[s] += columns[p, s] * first


@numba.njit(nogil=True, cache=True)
def _count(
    parts: Floats,
    reach: NDArray[np.int32],
    starts: NDArray[np.int64],
    evidence: NDArray[np.int64],
    evidence_starts: NDArray[np.int64],
    columns: Floats,
    used: NDArray[np.int64],
    doors: NDArray[np.int32],
    out: Ranks,
) -> None:
    size = columns.shape[1]
    most = 1
    for q in range(len(starts) - 1):
        most = max(most, evidence_starts[q + 1] - evidence_starts[q])
    score = np.empty(size)
    wanted = np.empty((most, size))
    for q in range(len(starts) - 1):
        first, last = evidence_starts[q], evidence_starts[q + 1]
        for e in range(first, last):
            if evidence[e] >= 0:
                _scores(parts[evidence[e]], columns, used, wanted[e - first])
        for c in range(starts[q], starts[q + 1]):
            _scores(parts[c], columns, used, score)
            for e in range(first, last):
                place = evidence[e]
                if place < 0 or place == c:
                    continue
                own, count = wanted[e - first], out[e]
                if reach[c] & 1 and c < place:
                    for s in range(size):
                        count[s] += score[s] >= own[s]
                elif reach[c] & 1:
                    for s in range(size):
                        count[s] += score[s] > own[s]
                elif c < place:
                    for s in range(size):
                        count[s] += (doors[s] & reach[c] != 0) & (score[s] >= own[s])
                else:
                    for s in range(size):
                        count[s] += (doors[s] & reach[c] != 0) & (score[s] > own[s])
        for e in range(first, last):
            place = evidence[e]
            for s in range(size):
                if place < 0 or reach[place] & doors[s] == 0:
                    out[e, s] = NEVER


@numba.njit(nogil=True, cache=True)
def _count_one(
    parts: Floats,
    reach: NDArray[np.int32],
    starts: NDArray[np.int64],
    evidence: NDArray[np.int64],
    evidence_starts: NDArray[np.int64],
    columns: Floats,
    used: NDArray[np.int64],
    doors: NDArray[np.int32],
    out: Ranks,
) -> None:
    """The same for one setting: a question's scores side by side, not a candidate's."""
    weights, door = columns[:, 0].copy(), doors[0]
    most = 1
    for q in range(len(starts) - 1):
        most = max(most, starts[q + 1] - starts[q])
    score = np.empty(most)
    for q in range(len(starts) - 1):
        start, size = starts[q], starts[q + 1] - starts[q]
        for c in range(size):
            own = weights[0] * parts[start + c, used[0]]
            for p in range(1, len(used)):
                own += weights[p] * parts[start + c, used[p]]
            score[c] = own if reach[start + c] & door != 0 else -np.inf
        for e in range(evidence_starts[q], evidence_starts[q + 1]):
            place = evidence[e]
            if place < 0 or reach[place] & door == 0:
                out[e, 0] = NEVER
                continue
            mine, count = score[place - start], 0
            for c in range(place - start):
                count += score[c] >= mine
            for c in range(place - start + 1, size):
                count += score[c] > mine
            out[e, 0] = count

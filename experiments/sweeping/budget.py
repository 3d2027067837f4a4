"""Evidence within a token budget: the share of a question's evidence turns in its packet.

Packing is Rosette's: whole records in rank order, what does not fit is left out, and a smaller one
further down may still fit. Nothing is sorted: a heap holds the candidates that stand at or above
the last evidence turn, and gives them up only until every turn is settled or nothing more fits.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numba
import numpy as np
from numpy.typing import NDArray

from experiments.bootstrap import Floats
from experiments.failures import ExperimentError
from experiments.rungs import Packing, Served, packed, packet_packing
from experiments.sweeping.features import Features, Held, Integers, opened

NAME = "budget_recall"


@dataclass(frozen=True, slots=True)
class BudgetRecall:
    """The share of a question's evidence turns in the packet of its first `hits` cells."""

    budget: int
    """Tokens of the packet's whole text, by the plain counter."""
    hits: int
    packing: Packing
    costs: Integers
    """Tokens of each candidate's record, in the order of the features."""

    @property
    def name(self) -> str:
        """The name of this objective."""
        return NAME

    def measured(self, features: Features, weights: Floats) -> Floats:
        """Return the value of each question (rows) under each coefficient vector."""
        used = np.flatnonzero(weights.any(axis=0))  # adding a zero changes no score
        used = used if len(used) else np.zeros(1, np.int64)
        found = np.zeros((len(features.questions), len(weights)))
        _pack(
            features.parts,
            features.reach,
            self.costs,
            features.starts,
            features.evidence,
            features.evidence_starts,
            np.ascontiguousarray(weights[:, used]),
            used,
            np.array([opened(own) for own in weights], np.int32),
            self.hits,
            self.budget - self.packing.overhead,
            found,
        )
        return found

    def served(self, ranking: Sequence[str]) -> Served:
        """Return what of a ranking, best first, the packet holds."""
        return packed(ranking[: self.hits], self.packing, self.budget)


def budget_recall(
    held: Sequence[Held], features: Features, *, budget: int, hits: int
) -> BudgetRecall:
    """Return the objective, with the tokens of every cell's record.

    Raises ExperimentError where conflict links stand: a packet takes their cells together, and
    records then have no costs of their own.
    """
    cells = []
    for conversation, ingested in held:
        if ingested.memory.conflicts():
            raise ExperimentError(
                f"{conversation.id}: its store holds conflict links, whose cells go into a packet "
                f"together or not at all; {NAME} packs cell by cell, so give another "
                "sweep.objective"
            )
        cells += [ingested.memory.get(cell) for cell in ingested.turn_of_cell]
    packing = packet_packing(cells)
    costs = np.array([packing.costs[cell] for cell in features.cells], np.int64)
    return BudgetRecall(budget, hits, packing, costs)


@numba.njit(nogil=True, cache=True)
def _before(score: Floats, one: int, other: int) -> bool:
    """Say whether a candidate is served before another: equal scores go by place, that is by id."""
    return bool(score[one] > score[other] or (score[one] == score[other] and one < other))


@numba.njit(nogil=True, cache=True)
def _sink(heap: NDArray[np.int64], size: int, at: int, score: Floats) -> None:
    own = heap[at]
    while 2 * at + 1 < size:
        child = 2 * at + 1
        if child + 1 < size and _before(score, heap[child + 1], heap[child]):
            child += 1
        if not _before(score, heap[child], own):
            break
        heap[at] = heap[child]
        at = child
    heap[at] = own


@numba.njit(nogil=True, cache=True)
def _pack(
    parts: Floats,
    reach: NDArray[np.int32],
    costs: Integers,
    starts: Integers,
    evidence: Integers,
    evidence_starts: Integers,
    weights: Floats,
    used: Integers,
    doors: NDArray[np.int32],
    hits: int,
    room: int,
    out: Floats,
) -> None:
    most = 1
    for q in range(len(starts) - 1):
        most = max(most, starts[q + 1] - starts[q])
    columns = np.empty((len(used), most))
    score = np.empty(most)
    heap = np.empty(most, np.int64)
    for q in range(len(starts) - 1):
        first, count = starts[q], starts[q + 1] - starts[q]
        wanted = evidence[evidence_starts[q] : evidence_starts[q + 1]]
        for p in range(len(used)):
            for c in range(count):
                columns[p, c] = parts[first + c, used[p]]
        for s in range(len(weights)):
            # Added part by part, from left to right, as `cma.orion.scoring.total` adds.
            for c in range(count):
                score[c] = weights[s, 0] * columns[0, c]
            for p in range(1, len(used)):
                weight = weights[s, p]
                for c in range(count):
                    score[c] += weight * columns[p, c]
            waiting, last = 0, -1
            for place in wanted:
                if place >= 0 and reach[place] & doors[s] != 0 and costs[place] <= room:
                    waiting += 1
                    if last < 0 or _before(score, last, place - first):
                        last = place - first
            if waiting == 0:
                continue
            size, least = 0, room + 1
            for c in range(count):
                if reach[first + c] & doors[s] != 0 and not _before(score, last, c):
                    heap[size] = c
                    size += 1
                    least = min(least, costs[first + c])
            for at in range(size // 2 - 1, -1, -1):
                _sink(heap, size, at, score)
            left, seen, served = room, 0, 0
            while size > 0 and seen < hits and waiting > 0 and least <= left:
                own = first + heap[0]
                size -= 1
                heap[0] = heap[size]
                _sink(heap, size, 0, score)
                seen += 1
                fits = costs[own] <= left
                if fits:
                    left -= costs[own]
                for place in wanted:
                    if place == own:
                        waiting -= costs[own] <= room  # what never fits was not waited for
                        served += fits
            out[q, s] = served / len(wanted)

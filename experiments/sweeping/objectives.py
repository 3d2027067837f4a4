"""Objectives: what a question is worth under the ranks of its evidence turns.

Each is a gain by rank, zero from some rank on, and a rule to join the gains of one question: their
sum over what the best ranking would get (recall, nDCG), or the greatest (reciprocal rank). They
are the metrics of `experiments.evaluation`, value for value.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from experiments.bootstrap import Floats
from experiments.evaluation import METRICS
from experiments.sweeping.features import Features
from experiments.sweeping.ranks import Ranks, ranks

_NDCG_CUTOFF = 10
SETTLED = 12
"""Decimals to which means are compared: summing in another order makes no better setting."""


class Aim(Protocol):
    """What settings are compared by: a number for every question."""

    @property
    def name(self) -> str:
        """What tables call it."""

    def measured(self, features: Features, weights: Floats) -> Floats:
        """Return the value of each question (rows) under each coefficient vector."""


@dataclass(frozen=True, slots=True)
class Objective:
    """One metric of `METRICS`."""

    name: str
    gains: Floats
    """The gain at each rank, a zero at the end for every later one."""
    greatest: bool
    """Whether the greatest gain counts and not the sum."""

    def worths(self, features: Features) -> Floats:
        """Return by what each evidence turn's gain is multiplied: its grade, in nDCG alone."""
        return features.grades if self.name == "ndcg@10" else np.ones(len(features.grades))

    def norms(self, features: Features) -> Floats:
        """Return what each question's gains are divided by."""
        starts = features.evidence_starts
        if self.greatest:
            return np.ones(len(starts) - 1)
        if self.name != "ndcg@10":
            return np.diff(starts).astype(np.float64)
        ideal = np.zeros(len(starts) - 1)
        for question, (first, last) in enumerate(pairwise(starts.tolist())):
            grades = np.sort(features.grades[first:last])[::-1][: len(self.gains) - 1]
            ideal[question] = (grades * self.gains[: len(grades)]).sum()
        return ideal

    def values(self, features: Features, found: Ranks) -> Floats:
        """Return the value of each question (rows) under each column of ranks."""
        gains = self.gains[np.minimum(found, len(self.gains) - 1)]
        gains = gains * self.worths(features)[:, np.newaxis]
        join = np.maximum if self.greatest else np.add
        joined = join.reduceat(gains, features.evidence_starts[:-1], axis=0)
        return np.asarray(joined / self.norms(features)[:, np.newaxis])

    def measured(self, features: Features, weights: Floats) -> Floats:
        """Return the value of each question (rows) under each coefficient vector."""
        return self.values(features, ranks(features, weights))


def objective(name: str, limit: int) -> Objective:
    """Return a metric by name; `limit` is how many recalled cells the reciprocal rank looks at."""
    if name not in METRICS:
        raise ValueError(f"objective: {name!r} is unknown; use one of {', '.join(METRICS)}")
    if name == "mrr":
        return Objective(name, _ended(1.0 / np.arange(1, limit + 1)), greatest=True)
    if name == "ndcg@10":
        discounts = 1.0 / np.log2(np.arange(2, _NDCG_CUTOFF + 2))
        return Objective(name, _ended(discounts), greatest=False)
    return Objective(name, _ended(np.ones(int(name.removeprefix("recall@")))), greatest=False)


def settled(means: Floats) -> Floats:
    """Return means as they are compared."""
    return np.round(means, SETTLED)


def _ended(gains: NDArray[np.float64]) -> Floats:
    return np.append(gains, 0.0)

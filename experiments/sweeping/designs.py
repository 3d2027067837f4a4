"""Designs: which coefficient vectors a sweep looks at.

A score's order stays when all its coefficients are multiplied, so the lexical one is held at 1 and
the others go from `low` to `high`; on the simplex all of them are shares that sum to 1.
Coefficients have six decimals, as the tables that name them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, product

import numpy as np
from scipy.stats import qmc

from cma.orion.scoring import EVERY_PART
from experiments.bootstrap import Floats
from experiments.result import DIGITS
from experiments.sweeping.features import LEXICAL


@dataclass(frozen=True, slots=True)
class Space:
    """What may vary: the places of parts beside the lexical one, and their common range."""

    varied: tuple[int, ...]
    low: float
    high: float


def space(names: Sequence[str], low: float, high: float) -> Space:
    """Return the space of these parts, in the order of `EVERY_PART`."""
    return Space(tuple(sorted(EVERY_PART.index(name) for name in names)), low, high)


def lexical_alone() -> Floats:
    """Return the coefficients of the lexical part alone."""
    weights = np.zeros(len(EVERY_PART))
    weights[LEXICAL] = 1.0
    return weights


def design(name: str, asked: Space, points: int, seed: int) -> Floats:
    """Return coefficient vectors, at most `points` of them, a row each."""
    if not asked.varied:
        return lexical_alone()[np.newaxis]
    return rounded(DESIGNS[name](asked, points, seed))


def rounded(weights: Floats) -> Floats:
    """Return coefficients as tables show them, without negative zeros."""
    return np.round(weights, DIGITS) + 0.0


def _grid(asked: Space, points: int, _: int) -> Floats:
    count = len(asked.varied)
    levels = 1
    while (levels + 1) ** count <= points:
        levels += 1
    values = np.linspace(asked.low, asked.high, levels)
    return _placed(asked, np.array(list(product(values, repeat=count))))


def _simplex(asked: Space, points: int, _: int) -> Floats:
    count = len(asked.varied) + 1
    steps = 0
    while math.comb(steps + count, count - 1) <= points:
        steps += 1
    # Bars between stars: each choice of bars is one way to share `steps` among the coefficients.
    bars = np.array(list(combinations(range(steps + count - 1), count - 1)), np.int64)
    ends = np.column_stack([np.full(len(bars), -1), bars, np.full(len(bars), steps + count - 1)])
    shares = (np.diff(ends, axis=1) - 1) / steps
    weights = np.zeros((len(shares), len(EVERY_PART)))
    weights[:, [LEXICAL, *asked.varied]] = shares
    return weights


def _random(asked: Space, points: int, seed: int) -> Floats:
    drawn = np.random.default_rng(seed).random((points, len(asked.varied)))
    return _placed(asked, asked.low + (asked.high - asked.low) * drawn)


def _sobol(asked: Space, points: int, seed: int) -> Floats:
    """Scrambled Sobol points (Owen 1998): even in every projection, so that few points go far."""
    sequence = qmc.Sobol(len(asked.varied), scramble=True, rng=seed)
    drawn = sequence.random_base2(max(points - 1, 1).bit_length())[:points]
    return _placed(asked, asked.low + (asked.high - asked.low) * drawn)


def _placed(asked: Space, values: Floats) -> Floats:
    weights = np.tile(lexical_alone(), (len(values), 1))
    weights[:, list(asked.varied)] = values
    return weights


DESIGNS: Mapping[str, Callable[[Space, int, int], Floats]] = {
    "grid": _grid,
    "simplex": _simplex,
    "random": _random,
    "sobol": _sobol,
    "line_search": _sobol,  # where the search starts from
}

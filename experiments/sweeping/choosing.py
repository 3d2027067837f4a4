"""Choosing: the best setting of a design, by all questions and by those of all folds but one.

Leave-one-conversation-out: what a fold is judged with was chosen on the others alone, and a fold is
a conversation (see `Features.fold_starts`). Among equal settings the first of the design is taken.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cma.orion.scoring import EVERY_PART
from experiments.bootstrap import Floats
from experiments.sweeping.designs import Space, lexical_alone
from experiments.sweeping.features import Features
from experiments.sweeping.lines import lines
from experiments.sweeping.objectives import Aim, Objective, settled
from experiments.sweeping.ranks import in_blocks

ROUNDS_LIMIT = 30
STARTS = 2
"""Settings of the design from which a line search starts, beside the lexical part alone."""


@dataclass(frozen=True, slots=True)
class Choice:
    """A setting and its mean over the questions that chose it."""

    weights: Floats
    value: float


def sums(
    features: Features,
    weights: Floats,
    aim: Aim,
    *,
    threads: int,
    advance: Callable[[int], None] = lambda _: None,
) -> Floats:
    """Return the objective's sum over each fold (rows) under each setting."""

    def summed(block: Floats) -> Floats:
        values = aim.measured(features, block)
        return np.asarray(np.add.reduceat(values, features.fold_starts[:-1], axis=0))

    blocks = in_blocks(weights, summed, threads=threads, advance=advance)
    return np.concatenate(list(blocks), axis=1)


def counted(features: Features, without: int | None) -> NDArray[np.bool_]:
    """Return which questions count: all but those of fold number `without`."""
    kept = np.ones(len(features.questions), np.bool_)
    if without is not None:
        first, last = features.fold_starts[without : without + 2]
        kept[first:last] = False
    return kept


def means(features: Features, totals: Floats, without: int | None) -> Floats:
    """Return the mean of each setting over the questions that count."""
    own = np.arange(len(totals)) != (-1 if without is None else without)
    return settled(totals[own].sum(axis=0) / max(int(counted(features, without).sum()), 1))


def best_of_design(
    features: Features, weights: Floats, totals: Floats, without: int | None
) -> Choice:
    """Return the best setting of a design."""
    found = means(features, totals, without)
    place = int(found.argmax())
    return Choice(weights[place], float(found[place]))


def best_by_lines(
    features: Features,
    weights: Floats,
    totals: Floats,
    objective: Objective,
    asked: Space,
    without: int | None,
) -> Choice:
    """Return the best that line searches reach from the lexical part and the design's best."""
    order = np.argsort(-means(features, totals, without), kind="stable")[:STARTS]
    starts = [lexical_alone(), *weights[order]]
    reached = [ascended(features, start, objective, asked, without) for start in starts]
    return max(reached, key=lambda choice: choice.value)


def ascended(
    features: Features,
    start: Floats,
    objective: Objective,
    asked: Space,
    without: int | None = None,
) -> Choice:
    """Return where exact line searches along one coefficient after another come to rest.

    A coordinate ascent after Metzler and Croft (2007), "Linear feature-based models for information
    retrieval", with the exact best of each line in place of samples of it.
    """
    kept = counted(features, without)
    best = Choice(start, _mean(features, start, objective, kept))
    searched: dict[int, bytes] = {}
    for _ in range(ROUNDS_LIMIT):
        before = best.value
        for part in asked.varied:
            others = np.delete(best.weights, part).tobytes()
            if searched.get(part) == others:  # the same line once more has nothing better
                continue
            searched[part] = others
            best = _along(features, best, part, objective, asked, kept)
        if best.value <= before:
            break
    return best


def _along(
    features: Features,
    best: Choice,
    part: int,
    objective: Objective,
    asked: Space,
    kept: NDArray[np.bool_],
) -> Choice:
    span = (asked.low, asked.high)
    found = [each.best() for each in lines(features, best.weights, part, span, objective, kept)]
    tried = [value for value, mean in filter(None, found) if mean > best.value]
    # An edge of its own: a part that is left out.
    if asked.low <= 0.0 <= asked.high and best.weights[part] != 0.0:
        tried.append(0.0)
    for value in tried:
        weights = best.weights.copy()
        weights[part] = value
        mean = _mean(features, weights, objective, kept)
        if mean > best.value:
            best = Choice(weights, mean)
    return best


def _mean(
    features: Features, weights: Floats, objective: Objective, kept: NDArray[np.bool_]
) -> float:
    values = objective.measured(features, weights[np.newaxis])[kept, 0]
    return float(settled(values.mean()))


def named(weights: Floats) -> dict[str, float]:
    """Return coefficients by part."""
    return dict(zip(EVERY_PART, weights.tolist(), strict=True))


def held_out(features: Features, choices: Sequence[Choice], aim: Aim) -> Floats:
    """Return each question's value under the setting chosen without its fold."""
    found = np.empty(len(features.questions))
    edges = features.fold_starts
    for place, choice in enumerate(choices):
        own = slice(edges[place], edges[place + 1])
        found[own] = aim.measured(features, choice.weights[np.newaxis])[own, 0]
    return found

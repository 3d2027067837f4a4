"""Ranking: the exact best of many, equal scores by id, without sorting them all."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cma.orion.scoring import Floats

__all__ = ["Ranking", "best", "plausible"]

Integers = NDArray[np.int64]
_GROUPS = 64


@dataclass(frozen=True, slots=True)
class Ranking:
    """The best cells in order of score, then id, and what was left out.

    `parts` has an array for each of `scoring.PARTS`. `exclusions` lists, best first and bounded,
    visible cells that matched: "inactive" ones (expired, or by lifecycle), then those
    "below_limit". `excluded` counts both, and as "other_scope" all live cells of scopes the
    viewer does not see, whatever was asked, so that the count tells nothing of their content.
    """

    ordinals: Integers
    ids: tuple[str, ...]
    scores: Floats
    parts: dict[str, Floats]
    exclusions: tuple[tuple[str, str], ...]
    excluded: dict[str, int]


def plausible(rough: Floats, count: int, slack: float) -> Integers:
    """Places whose exact value may be among the `count` greatest.

    `rough` is within `slack` of exact, and -inf for what is out. The bound comes from the
    greatest of each of many groups: the `count`-th of those is no more than the `count`-th of all.
    """
    size = len(rough)
    if size > 8 * _GROUPS * count:
        even = size - size % _GROUPS
        tops = rough[:even].reshape(_GROUPS, -1).max(axis=0)
        tops = np.concatenate([tops, rough[even:]])
    else:
        tops = rough
    bound = (
        np.partition(tops, len(tops) - count)[len(tops) - count] if len(tops) > count else -np.inf
    )
    if bound == -np.inf:
        return np.flatnonzero(rough > -np.inf)
    return np.flatnonzero(rough >= bound - 2.0 * slack)


def best(
    scores: Floats, prefixes: NDArray[np.uint64], name: Callable[[int], str], count: int
) -> list[int]:
    """The places of the `count` best in order of score (greatest first), then id."""
    chosen = np.arange(len(scores))
    if len(scores) > count:
        last = np.partition(scores, len(scores) - count)[len(scores) - count]
        above, level = np.flatnonzero(scores > last), np.flatnonzero(scores == last)
        room = count - len(above)
        if len(level) > room:
            near = prefixes[level]
            level = level[near <= np.partition(near, room - 1)[room - 1]]
        chosen = np.concatenate([above, level])
    own, near = -scores[chosen], prefixes[chosen]
    order = np.lexsort((near, own))
    own, near = own[order], near[order]
    if ((own[1:] == own[:-1]) & (near[1:] == near[:-1])).any():  # only whole ids tell them apart
        values = scores.tolist()
        return sorted(chosen.tolist(), key=lambda place: (-values[place], name(place)))[:count]
    places: list[int] = chosen[order[:count]].tolist()
    return places

"""Line search: the exact value of an objective along one coefficient.

With the others held, each score is a line in the coefficient, so that the order of two candidates
changes only where their lines cross. The crossings with an evidence turn, sorted, give the
objective as a step function; nothing is sampled. Kept are those that can matter: from some rank on
a turn gains nothing, so of what overtakes it only the first few count, and of what falls behind it
only the last few.
"""

from __future__ import annotations

from dataclasses import dataclass

import numba
import numpy as np
from numpy.typing import NDArray

from experiments.bootstrap import Floats
from experiments.result import DIGITS
from experiments.sweeping.features import SUPPORTS, Features, opened
from experiments.sweeping.objectives import Objective, settled
from experiments.sweeping.ranks import NEVER


@dataclass(frozen=True, slots=True)
class Line:
    """An objective along one coefficient: `values[i]` between `edges[i]` and `edges[i + 1]`.

    At an edge itself two scores are equal, and ids decide.
    """

    edges: Floats
    values: Floats

    def best(self) -> tuple[float, float] | None:
        """Return the middle of the widest best interval that a table can name, and its value."""
        middles = np.round((self.edges[:-1] + self.edges[1:]) / 2, DIGITS) + 0.0
        inside = (self.edges[:-1] < middles) & (middles < self.edges[1:])
        if not inside.any():
            return None
        top = self.values[inside].max()
        widths = np.where(inside & (self.values == top), np.diff(self.edges), -1.0)
        place = int(widths.argmax())
        return float(middles[place]), float(top)

    def around(self, at: float, least: float) -> tuple[float, float]:
        """Return how far the value stays at `least` or above, to both sides of `at`."""
        place = int(np.clip(np.searchsorted(self.edges, at) - 1, 0, len(self.values) - 1))
        low = high = place
        while low > 0 and self.values[low - 1] >= least:
            low -= 1
        while high < len(self.values) - 1 and self.values[high + 1] >= least:
            high += 1
        return float(self.edges[low]), float(self.edges[high + 1])


def lines(
    features: Features,
    weights: Floats,
    part: int,
    span: tuple[float, float],
    objective: Objective,
    counted: NDArray[np.bool_],
) -> list[Line]:
    """Return the mean over the counted questions along one part's coefficient within `span`.

    Along a part of `SUPPORTS` there are two lines where the span has zero inside: up to zero, it
    makes no candidates.
    """
    low, high = span
    if part not in SUPPORTS:
        return [_line(features, weights, part, span, objective, counted)]
    spans = [(low, min(high, 0.0)), (max(low, 0.0), high)]
    return [
        _line(features, weights, part, (start, end), objective, counted)
        for start, end in spans
        if start < end
    ]


def _line(
    features: Features,
    weights: Floats,
    part: int,
    span: tuple[float, float],
    objective: Objective,
    counted: NDArray[np.bool_],
) -> Line:
    others = weights.copy()
    others[part] = (span[0] + span[1]) / 2
    doors = opened(others)
    others[part] = 0.0
    used = np.flatnonzero(others)
    places, changes, start = _steps(
        features.parts,
        others[used],
        used,
        part,
        features.reach,
        doors,
        features.starts,
        features.evidence,
        features.evidence_starts,
        counted,
        objective.worths(features),
        objective.norms(features),
        objective.gains,
        objective.greatest,
        span[0],
        span[1],
    )
    order = np.argsort(places, kind="stable")
    places, changes = places[order], changes[order]
    last = np.flatnonzero(np.append(places[1:] != places[:-1], True)[: len(places)])
    count = max(int(counted.sum()), 1)
    values = settled(np.concatenate(([start], start + np.cumsum(changes)[last])) / count)
    # Crossings that change nothing together are no edges.
    real = np.flatnonzero(values[1:] != values[:-1])
    edges = np.concatenate(([span[0]], places[last][real], [span[1]]))
    return Line(edges, values[np.concatenate(([0], real + 1))])


@numba.njit(nogil=True, cache=True)
def _value(
    own: NDArray[np.int64],
    worths: Floats,
    gains: Floats,
    greatest: bool,
    norm: float,
) -> float:
    found = 0.0
    for e in range(len(worths)):
        gain = gains[min(own[e], len(gains) - 1)] * worths[e]
        found = max(found, gain) if greatest else found + gain
    return found / norm


@numba.njit(nogil=True, cache=True)
def _kept(nearest: Floats, count: int, crossing: float) -> int:
    """Put a crossing among the least ones, which stay in order; return how many there are."""
    if count == len(nearest):
        if crossing >= nearest[count - 1]:
            return count
        count -= 1
    at = count
    while at > 0 and nearest[at - 1] > crossing:
        nearest[at] = nearest[at - 1]
        at -= 1
    nearest[at] = crossing
    return count + 1


@numba.njit(nogil=True, cache=True)
def _steps(
    parts: Floats,
    others: Floats,
    used: NDArray[np.int64],
    part: int,
    reach: NDArray[np.int32],
    doors: int,
    starts: NDArray[np.int64],
    evidence: NDArray[np.int64],
    evidence_starts: NDArray[np.int64],
    counted: NDArray[np.bool_],
    worths: Floats,
    norms: Floats,
    gains: Floats,
    greatest: bool,
    low: float,
    high: float,
) -> tuple[Floats, Floats, float]:
    """Return where the sum over questions changes, by how much, and its value just after `low`."""
    wide, widest, turns = 1, 1, 0
    for q in range(len(counted)):
        wide = max(wide, starts[q + 1] - starts[q])
        widest = max(widest, evidence_starts[q + 1] - evidence_starts[q])
        turns += evidence_starts[q + 1] - evidence_starts[q]
    top = len(gains) - 1  # from this rank on, a turn gains nothing
    places, changes, used_up = np.empty(2 * top * turns), np.empty(2 * top * turns), 0
    most = 2 * top * widest
    at, whose, step = np.empty(most), np.empty(most, np.int64), np.empty(most, np.int64)
    base, slope, place_of = np.empty(wide), np.empty(wide), np.empty(wide, np.int64)
    rises, falls = np.empty(top), np.empty(top)
    own = np.empty(widest, np.int64)
    whole = 0.0
    for q in range(len(counted)):
        if not counted[q]:
            continue
        first, count = evidence_starts[q], evidence_starts[q + 1] - evidence_starts[q]
        worth = worths[first : first + count]
        size = 0
        for c in range(starts[q], starts[q + 1]):
            if reach[c] & doors == 0:
                continue
            score = 0.0
            for p in range(len(used)):
                score += others[p] * parts[c, used[p]]
            base[size], slope[size], place_of[size] = score, parts[c, part], c
            size += 1
        met = 0
        for e in range(count):
            own[e] = NEVER
            mine = np.searchsorted(place_of[:size], evidence[first + e])
            if mine == size or place_of[mine] != evidence[first + e]:
                continue
            above, rising, falling = 0, 0, 0
            for c in range(size):
                rise = slope[c] - slope[mine]
                lead = base[c] - base[mine]
                if rise == 0.0:
                    above += lead > 0.0 or (lead == 0.0 and c < mine)
                    continue
                crossing = -lead / rise
                # Above before the crossing if it falls, after it if it rises.
                if rise > 0.0:
                    if crossing <= low:
                        above += 1
                    elif crossing < high:
                        rising = _kept(rises, rising, crossing)
                elif crossing >= high:
                    above += 1
                elif crossing > low:
                    falling = _kept(falls, falling, -crossing)
            own[e] = above + falling
            if above >= top:
                continue  # out of reach all along
            for i in range(rising):
                at[met], whose[met], step[met] = rises[i], e, 1
                met += 1
            for i in range(falling):
                at[met], whose[met], step[met] = -falls[i], e, -1
                met += 1
        value = _value(own, worth, gains, greatest, norms[q])
        whole += value
        order = np.argsort(at[:met])
        for i in range(met):
            event = order[i]
            own[whose[event]] += step[event]
            if i + 1 < met and at[order[i + 1]] == at[event]:
                continue
            after = _value(own, worth, gains, greatest, norms[q])
            if after != value:
                places[used_up] = at[event]
                changes[used_up] = after - value
                used_up += 1
                value = after
    return places[:used_up].copy(), changes[:used_up].copy(), whole

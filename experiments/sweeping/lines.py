"""Line search: the exact value of an objective along one coefficient.

With the others held, each score is a line in the coefficient, so that the order of two candidates
changes only where their lines cross. All crossings with an evidence turn, sorted, give the
objective as a step function; nothing is sampled.
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
    base = np.zeros(len(features.parts))
    for place in np.flatnonzero(others):
        base += others[place] * features.parts[:, place]
    places, changes, start = _steps(
        base,
        np.ascontiguousarray(features.parts[:, part]),
        (features.reach & doors) != 0,
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
def _steps(
    base: Floats,
    slope: Floats,
    present: NDArray[np.bool_],
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
    most, room, widest = 0, 0, 1
    for q in range(len(counted)):
        wanted = evidence_starts[q + 1] - evidence_starts[q]
        widest = max(widest, wanted)
        most = max(most, wanted * (starts[q + 1] - starts[q]))
        room += wanted * (starts[q + 1] - starts[q])
    places, changes, used = np.empty(room), np.empty(room), 0
    at, whose, step = np.empty(most), np.empty(most, np.int64), np.empty(most, np.int64)
    own = np.empty(widest, np.int64)
    whole = 0.0
    for q in range(len(counted)):
        if not counted[q]:
            continue
        first, count = evidence_starts[q], evidence_starts[q + 1] - evidence_starts[q]
        worth = worths[first : first + count]
        met = 0
        for e in range(count):
            place = evidence[first + e]
            if place < 0 or not present[place]:
                own[e] = NEVER
                continue
            own[e] = 0
            for c in range(starts[q], starts[q + 1]):
                if c == place or not present[c]:
                    continue
                rise = slope[c] - slope[place]
                lead = base[c] - base[place]
                if rise == 0.0:
                    own[e] += lead > 0.0 or (lead == 0.0 and c < place)
                    continue
                crossing = -lead / rise
                # Above before the crossing if it falls, after it if it rises.
                if (rise > 0.0 and crossing <= low) or (rise < 0.0 and crossing > low):
                    own[e] += 1
                if low < crossing < high:
                    at[met] = crossing
                    whose[met] = e
                    step[met] = 1 if rise > 0.0 else -1
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
                places[used] = at[event]
                changes[used] = after - value
                used += 1
                value = after
    return places[:used].copy(), changes[:used].copy(), whole

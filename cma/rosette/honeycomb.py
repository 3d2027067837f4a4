"""A hexagon for each node: control in the middle, schemas around it, episodes outside.

Axial coordinates (q, r). Each scale begins on a ring of its own; within it nodes follow by id, so
the same graph has the same picture everywhere.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice

Axial = tuple[int, int]
DIRECTIONS: tuple[Axial, ...] = ((1, 0), (0, 1), (-1, 1), (-1, 0), (0, -1), (1, -1))


def ring(radius: int) -> Iterator[Axial]:
    """Yield the hexagons of a ring, once around; the ring of radius 0 is the middle alone."""
    if radius == 0:
        yield 0, 0
        return
    q, r = 0, -radius
    for step_q, step_r in DIRECTIONS:
        for _ in range(radius):
            yield q, r
            q, r = q + step_q, r + step_r


def hexes(scale_of: Mapping[str, str], scales: Sequence[str]) -> dict[str, Axial]:
    """Return the place of each node, one hexagon a node, by scale from the middle outwards."""
    places: dict[str, Axial] = {}
    names: dict[str, list[str]] = {scale: [] for scale in scales}
    for name, own in scale_of.items():
        names[own].append(name)
    radius = 0
    for scale in scales:
        waiting = deque(sorted(names[scale]))
        while waiting:
            for spot in islice(ring(radius), len(waiting)):
                places[waiting.popleft()] = spot
            radius += 1
    return places

"""Rungs of the version ladder: which cells a version offers for a question, and what of them fits.

A list is cell ids, best first, none twice. Every rung is packed by one rule, Rosette's: whole
items in order, what does not fit is left out, and a smaller item further down may still fit.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from cma.orion.cells import Cell
from cma.rosette.quoting import HEADER, render
from cma.rosette.tokens import PLAIN


@dataclass(frozen=True, slots=True)
class Packing:
    """How cells become text: `overhead` tokens of any text at all, and a cost for each cell."""

    name: str
    overhead: int
    costs: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Served:
    """What of a list fits a budget, in order, and the tokens of the whole text."""

    cells: tuple[str, ...]
    tokens: int


def text_packing(cells: Iterable[Cell]) -> Packing:
    """Bare contents, one a line: all that a version below Rosette can hand over."""
    return Packing("text", 0, {cell.id: PLAIN.count(cell.content) for cell in cells})


def packet_packing(cells: Iterable[Cell]) -> Packing:
    """Rosette's text: heading, sources and bars counted.

    The plain counter lets no token reach over a line break and counts any number of up to four
    digits once, so the tokens of a packet without conflicts are the sum of its records' and those
    of the heading; the Rosette rung is held against the real packet.
    """
    heading = PLAIN.count(HEADER)
    return Packing(
        "packet", heading, {cell.id: PLAIN.count(render([[cell]])) - heading for cell in cells}
    )


def packed(offered: Sequence[str], packing: Packing, budget: int) -> Served:
    """Return what of a list fits the budget."""
    chosen: list[str] = []
    used = packing.overhead
    for cell in offered:
        tokens = used + packing.costs[cell]
        if tokens <= budget:
            chosen.append(cell)
            used = tokens
    return Served(tuple(chosen), used if chosen else 0)


def spread(hits: Iterable[str], brings: Mapping[str, Sequence[str]]) -> list[str]:
    """Return the hits, each followed by what it brings, in rank order and none twice."""
    found: dict[str, None] = {}
    for hit in hits:
        found.setdefault(hit)
        for brought in brings.get(hit, ()):
            found.setdefault(brought)
    return list(found)


def neighbours(frames: Iterable[Sequence[str]], each_side: int) -> dict[str, tuple[str, ...]]:
    """Return what each cell brings from its frame: the nearer first, the earlier before."""
    found: dict[str, tuple[str, ...]] = {}
    for frame in frames:
        for at, cell in enumerate(frame):
            beside = [at + side * far for far in range(1, each_side + 1) for side in (-1, 1)]
            found[cell] = tuple(frame[place] for place in beside if 0 <= place < len(frame))
    return found


def best_sources(
    sources: Mapping[str, Sequence[str]], hits: Sequence[str], most: int
) -> dict[str, tuple[str, ...]]:
    """Return what each claim among the hits brings: its sources, the best ranked first.

    sources: of each claim, in observed order, which also orders those that are no hits themselves.
    """
    rank = {hit: place for place, hit in enumerate(hits)}
    return {
        hit: tuple(sorted(sources[hit], key=lambda cell: rank.get(cell, len(rank)))[:most])
        for hit in hits
        if hit in sources
    }

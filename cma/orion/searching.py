"""Searching: from query terms to the exact best cells of an index.

Four steps: the lexical part of each matched cell is added up; each candidate gets a rough score,
from kept values, that is within `_SLACK` of exact; the few that may be among the best by it get
their exact parts; those are ordered. The rough values decide no order.

Large indexes take a shorter way to the few where they can (`pruning`), with the same answer.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Hashable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import DTypeLike, NDArray

from cma.orion import pruning
from cma.orion.columns import Column
from cma.orion.entries import Entries
from cma.orion.neighbours import Neighbours
from cma.orion.ordering import Ordered, ordered, ranking_of
from cma.orion.postings import Postings
from cma.orion.pruning import TINY, Origin, Pruner
from cma.orion.query import Query
from cma.orion.ranking import Ranking, plausible
from cma.orion.resolving import TERMS, WEIGHED, Filter
from cma.orion.scoring import LEXICAL, Cells, Floats, Match, recency

__all__ = ["Searcher"]

_SLACK = 2e-9  # for weights of sum 1; recency is settled to within 2^-31
_SPARSE = 8
_FAR = 500.0  # half-lives
_NEAR = 100.0
_NO_SUMS = np.zeros(1)
Booleans = NDArray[np.bool_]
Integers = NDArray[np.int64]


class _Kept:
    """A column worked out once for a key and only continued for rows that are new."""

    def __init__(self, dtype: DTypeLike) -> None:
        self._dtype = dtype
        self._key: Hashable = None
        self._column = Column(dtype)

    def get(self, key: Hashable, size: int, work: Callable[[slice], NDArray[Any]]) -> NDArray[Any]:
        if key != self._key:
            self._key, self._column = key, Column(self._dtype)
        have = len(self._column)
        if have < size:
            self._column.extend(work(slice(have, size)), size - have)
        return self._column.values


class _Best(NamedTuple):
    """Cells that may be among the best, their lexical parts and support, and all that match."""

    ordinals: Integers
    lexical: Floats
    link: Floats
    matching: int


class _Found(NamedTuple):
    """The cells looked at, and by ordinal: lexical parts, and those a link may lend."""

    cells: Cells
    lexical: Floats
    lendable: Floats
    visible: Booleans | None
    active: Booleans | None


class Searcher:
    """Searches one index; what it keeps between searches only saves time."""

    def __init__(self, entries: Entries, postings: Postings, neighbours: Neighbours) -> None:
        """Search these columns, postings and links."""
        self._entries = entries
        self._postings = postings
        self._neighbours = neighbours
        self._visible = _Kept(np.bool_)
        self._static = _Kept(np.float64)
        self._decay = _Kept(np.float64)
        self._origin_us = 0
        self._sums = _NO_SUMS
        self._packed: tuple[Hashable, Filter] = (None, np.empty(0, np.uint64))
        self._pruner: Pruner | None = None
        self._without_pruner = False

    def search(self, query: Query) -> Ranking:
        """Rank the cells for a checked query."""
        seen, words = self._entries.extent(query.viewer)
        count = min(query.limit + query.exclusion_limit, len(self._entries) + 1)
        origin = self._prunable(query)
        pruner = None if origin is None else self._compiled()
        if origin is not None and pruner is not None:
            # Out of reach while it works: whatever stops it, marks may be left in it.
            self._pruner = None
            served, idle = self._pruned(pruner, query, origin, seen, count)
            self._pruner = pruner
        else:
            served, idle = self._scored(query, seen, words, count)
        left_out = idle.ordinals
        if len(left_out):
            left_out = self._exact(query, idle, query.exclusion_limit).ordinals
        return ranking_of(
            self._entries,
            query,
            self._exact(query, served, count),
            left_out,
            seen=seen,
            matching=served.matching,
            inactive=idle.matching,
        )

    def _scored(self, query: Query, seen: int, words: int, count: int) -> tuple[_Best, _Best]:
        """Score every cell that matches; return the served and the inactive ones."""
        size = len(self._entries)
        # Out of reach while it is used: whatever stops this, sums may be left in it.
        room, self._sums = self._sums, _NO_SUMS
        if len(room) < size + 1:
            room = np.zeros(2 * size + 1)
        sums = room[: size + 1]
        found = self._lexical(query, sums, seen, words)
        rough, candidate = self._rough(query, found)
        cells, active = found.cells, found.active
        served = candidate if active is None else candidate & active[cells]
        rough[~served] = -np.inf
        slack = _SLACK * sum(map(abs, query.weights)) + TINY
        ordinals = _ordinals(cells, plausible(rough, count, slack))
        idle: Integers = np.empty(0, np.int64)
        if active is not None:
            idle = _ordinals(cells, np.flatnonzero(candidate & ~active[cells]))
        best = (
            self._looked_at(found, ordinals, int(np.count_nonzero(served))),
            self._looked_at(found, idle, len(idle)),
        )
        sums.fill(0.0)
        self._sums = room
        return best

    def _looked_at(self, found: _Found, ordinals: Integers, matching: int) -> _Best:
        link = np.zeros(len(ordinals))
        if self._neighbours.used:
            link = self._neighbours.best(found.lendable, ordinals)
        return _Best(ordinals, found.lexical[ordinals], link, matching)

    def _prunable(self, query: Query) -> Origin | None:
        """From when on pruning counts, or None where it cannot serve the query."""
        weights, size = query.weights, len(self._entries)
        if (
            size < pruning.LARGE
            or query.lexical not in WEIGHED
            or weights.lexical <= 0.0
            or min(weights) < 0.0
            or weights.of_context
            or self._neighbours.used
            or len(query.terms) > TERMS
        ):
            return None
        shift = self._shift(query)
        if abs(shift) > _FAR:
            return None
        return Origin(self._origin_us, math.exp2(shift))

    def _compiled(self) -> Pruner | None:
        if self._pruner is None and not self._without_pruner:
            try:
                self._pruner = Pruner(self._postings, self._entries)
            except ImportError:
                self._without_pruner = True
        return self._pruner

    def _pruned(
        self, pruner: Pruner, query: Query, origin: Origin, seen: int, count: int
    ) -> tuple[_Best, _Best]:
        """The same as `_scored`, without a look at every cell that matches."""
        entries, size = self._entries, len(self._entries)
        visible: Filter | None = None
        if entries.retired or seen < entries.cells:
            key = (query.viewer, entries.version)
            if self._packed[0] != (key, size):
                rows = self._visible.get(
                    key, size, lambda rows: entries.visible(query.viewer, rows)
                )
                self._packed = ((key, size), pruning.packed(rows))
            visible = self._packed[1]
        asked = pruner.asked(sorted(set(query.terms)), query.lexical, seen, visible)

        def best_of(allowed: Filter | None, wanted: int) -> _Best:
            found = pruner.best(asked, allowed, query, origin, max(wanted, 1))
            return _Best(
                found.ordinals, found.lexical, np.zeros(len(found.ordinals)), found.matching
            )

        active = None if query.include_inactive else entries.active(query.at_us)
        if active is None:
            nothing = np.empty(0)
            return best_of(visible, count), _Best(np.empty(0, np.int64), nothing, nothing, 0)
        awake = pruning.packed(active)
        asleep = pruning.packed(~active)
        return (
            best_of(awake if visible is None else awake & visible, count),
            best_of(
                asleep if visible is None else asleep & visible,
                min(query.exclusion_limit, size),
            ),
        )

    def _lexical(self, query: Query, sums: Floats, seen: int, words: int) -> _Found:
        entries, postings, size = self._entries, self._postings, len(self._entries)
        repeats = Counter(query.terms)
        terms = sorted(repeats)
        holding = postings.find(terms)
        visible: Booleans | None = None
        if entries.retired or seen < entries.cells:
            key = (query.viewer, entries.version)
            visible = self._visible.get(key, size, lambda rows: entries.visible(query.viewer, rows))
            keeps = [visible[cells] for cells, _ in holding]
            holding = [(c[keep], s[keep]) for (c, s), keep in zip(holding, keeps, strict=True)]
        matches = [Match(repeats[t], *held) for t, held in zip(terms, holding, strict=True)]
        collection = postings.collection(seen, words)
        linked, crowded = self._linked(query), self._neighbours.crowded
        cells: Cells = slice(0, size)
        if _SPARSE * sum(len(match.cells) for match in matches) < size and not (linked and crowded):
            cells = np.unique(np.concatenate([match.cells for match in matches])).astype(np.int64)
        LEXICAL[query.lexical](matches, collection, cells, sums)
        active = None if query.include_inactive else entries.active(query.at_us)
        lendable = sums
        if active is not None and self._neighbours.used:
            lendable = sums.copy()
            lendable[:-1][~active] = 0.0
        if linked and not isinstance(cells, slice):
            cells = self._neighbours.around(cells)
        return _Found(cells, sums, lendable, visible, active)

    def _linked(self, query: Query) -> bool:
        return query.weights.link > 0.0 and self._neighbours.used > 0

    def _rough(self, query: Query, found: _Found) -> tuple[Floats, Booleans]:
        weights, cells, size = query.weights, found.cells, len(self._entries)
        lexical = found.lexical[:-1][cells]
        candidate: Booleans = lexical > 0.0
        rough = weights.lexical * lexical
        if weights.confidence or weights.importance:
            rough += self._priors(query, size)[cells]
        if weights.recency:
            rough += weights.recency * self._rough_recency(query, cells)
        if weights.link and self._neighbours.used:
            support = self._neighbours.best(found.lendable, cells)
            rough += weights.link * support
            if weights.link > 0.0:
                near = support > 0.0
                candidate |= near if found.visible is None else near & found.visible[cells]
        return rough, candidate

    def _priors(self, query: Query, size: int) -> Floats:
        """The confidence and importance of each cell, weighed."""
        entries, weights = self._entries, query.weights
        return self._static.get(
            (weights.confidence, weights.importance),
            size,
            lambda rows: (
                weights.confidence * entries.confidence[rows]
                + weights.importance * entries.importance[rows]
            ),
        )

    def _rough_recency(self, query: Query, cells: Cells) -> Floats:
        """2^((observed - origin) / h) is kept, so a search multiplies by 2^((origin - at) / h)."""
        entries, shift = self._entries, self._shift(query)
        if abs(shift) > _FAR:
            return recency(entries.observed[cells], query.at_us, query.half_life_seconds)
        with np.errstate(over="ignore", under="ignore"):
            decay = self._decayed(query, len(entries))[cells] * math.exp2(shift)
        return decay if query.at_us >= entries.latest_us else np.minimum(decay, 1.0)

    def _shift(self, query: Query) -> float:
        """How many half-lives the origin of kept values lies after the query's time."""
        half_life_us, latest_us = query.half_life_seconds * 1e6, self._entries.latest_us
        if abs(latest_us - self._origin_us) / half_life_us > _NEAR:
            self._origin_us = latest_us
        return (self._origin_us - query.at_us) / half_life_us

    def _decayed(self, query: Query, size: int) -> Floats:
        """The recency that each cell would have at the origin."""
        entries, origin = self._entries, self._origin_us
        half_life_us = query.half_life_seconds * 1e6
        return self._decay.get(
            (query.half_life_seconds, origin),
            size,
            lambda rows: np.exp2((entries.observed[rows] - origin) / half_life_us),
        )

    def _exact(self, query: Query, found: _Best, count: int) -> Ordered:
        """The `count` best of these cells in order, with their exact scores and parts."""
        entries = self._entries
        ordinals, lexical, link = found.ordinals, found.lexical, found.link
        if not count:
            ordinals, lexical, link = ordinals[:0], lexical[:0], link[:0]
        parts: dict[str, Floats] = {
            "lexical": lexical,
            "confidence": entries.confidence[ordinals],
            "importance": entries.importance[ordinals],
            "recency": recency(entries.observed[ordinals], query.at_us, query.half_life_seconds),
            "link": link,
        }
        return ordered(entries, query, ordinals, parts, count)


def _ordinals(cells: Cells, places: Integers) -> Integers:
    return places if isinstance(cells, slice) else cells[places].astype(np.int64)

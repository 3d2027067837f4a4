"""Searching: from query terms to the exact best cells of an index.

Four steps: the lexical part of each matched cell is added up; each candidate gets a rough score,
from kept values, that is within `_SLACK` of exact; the few that may be among the best by it get
their exact parts; those are ordered. The rough values decide no order.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Hashable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import DTypeLike, NDArray

from cma.orion.columns import Column
from cma.orion.entries import Entries
from cma.orion.neighbours import Neighbours
from cma.orion.postings import Postings
from cma.orion.ranking import Ranking, best, plausible
from cma.orion.scoring import LEXICAL, Cells, Collection, Floats, Match, Weights, recency, total

__all__ = ["Query", "Searcher"]

_SLACK = 2e-9  # for weights of sum 1; recency is settled to within 2^-31
_SPARSE = 8
_FAR = 500.0  # half-lives
_NEAR = 100.0
Booleans = NDArray[np.bool_]
Integers = NDArray[np.int64]


class Query(NamedTuple):
    """What is asked of an index, and by whom."""

    terms: tuple[str, ...]
    viewer: frozenset[int]
    at_us: int
    limit: int
    lexical: str
    weights: Weights
    half_life_seconds: float
    include_inactive: bool
    exclusion_limit: int

    def checked(self) -> Query:
        """This query. Raises ValueError if it has no answer."""
        if not self.terms:
            raise ValueError("query_terms: empty; ask with at least one term")
        if self.limit < 1 or self.exclusion_limit < 0:
            raise ValueError(
                f"limit: {self.limit}, exclusion_limit: {self.exclusion_limit}; "
                "must be at least 1 and at least 0"
            )
        if self.lexical not in LEXICAL:
            raise ValueError(
                f"lexical: {self.lexical!r} is unknown; use one of {', '.join(LEXICAL)}"
            )
        if not all(map(math.isfinite, self.weights)):
            raise ValueError(f"weights: {self.weights} must be finite")
        if not (self.half_life_seconds > 0 and math.isfinite(self.half_life_seconds)):
            raise ValueError(f"half_life_seconds: {self.half_life_seconds} must be above zero")
        return self


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
        self._sums = np.zeros(1)

    def search(self, query: Query) -> Ranking:
        """Rank the cells for a checked query."""
        size = len(self._entries)
        if len(self._sums) < size + 1:
            self._sums = np.zeros(2 * size + 1)
        sums = self._sums[: size + 1]
        try:
            return self._rank(query, sums)
        finally:
            sums.fill(0.0)

    def _rank(self, query: Query, sums: Floats) -> Ranking:
        entries, count = self._entries, min(query.limit + query.exclusion_limit, len(sums))
        seen, words = entries.extent(query.viewer)
        found = self._lexical(query, sums, seen, words)
        rough, candidate = self._rough(query, found)
        cells, active = found.cells, found.active
        served = candidate if active is None else candidate & active[cells]
        rough[~served] = -np.inf
        slack = _SLACK * sum(map(abs, query.weights))
        ordinals = _ordinals(cells, plausible(rough, count, slack))
        chosen, scores, parts = self._exact(query, found, ordinals, count)
        hits, rest = slice(query.limit), slice(query.limit, count)
        idle: Integers = np.empty(0, np.int64)
        if active is not None:
            idle = _ordinals(cells, np.flatnonzero(candidate & ~active[cells]))
        left_out, _, _ = self._exact(query, found, idle, query.exclusion_limit)
        ids = entries.ids
        return Ranking(
            ordinals=chosen[hits],
            ids=tuple(ids[ordinal] for ordinal in chosen[hits].tolist()),
            scores=scores[hits],
            parts={name: values[hits] for name, values in parts.items()},
            exclusions=(
                *((ids[ordinal], "inactive") for ordinal in left_out.tolist()),
                *((ids[ordinal], "below_limit") for ordinal in chosen[rest].tolist()),
            ),
            excluded={
                "other_scope": len(entries.ordinals) - seen,
                "inactive": len(idle),
                "below_limit": int(np.count_nonzero(served)) - len(chosen[hits]),
            },
        )

    def _lexical(self, query: Query, sums: Floats, seen: int, words: int) -> _Found:
        entries, postings, size = self._entries, self._postings, len(self._entries)
        repeats = Counter(query.terms)
        terms = sorted(repeats)
        holding = postings.find(terms)
        visible: Booleans | None = None
        if entries.retired or seen < len(entries.ordinals):
            key = (query.viewer, entries.version)
            visible = self._visible.get(key, size, lambda rows: entries.visible(query.viewer, rows))
            keeps = [visible[cells] for cells, _ in holding]
            holding = [(c[keep], s[keep]) for (c, s), keep in zip(holding, keeps, strict=True)]
        matches = [Match(repeats[t], *held) for t, held in zip(terms, holding, strict=True)]
        collection = Collection(
            size=seen,
            mean_length=words / max(1, seen),
            frequencies=postings.frequencies,
            lengths=postings.lengths,
            distinct=postings.distinct,
        )
        linked, crowded = self._linked(query), self._neighbours.crowded
        cells: Cells = slice(0, size)
        if _SPARSE * sum(len(match.cells) for match in matches) < size and not (linked and crowded):
            cells = np.unique(np.concatenate([match.cells for match in matches]))
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
        entries, weights, cells = self._entries, query.weights, found.cells
        size = len(entries)
        lexical = found.lexical[:-1][cells]
        candidate: Booleans = lexical > 0.0
        rough = weights.lexical * lexical
        if weights.confidence or weights.importance:
            key = (weights.confidence, weights.importance)
            rough += self._static.get(
                key,
                size,
                lambda rows: (
                    weights.confidence * entries.confidence[rows]
                    + weights.importance * entries.importance[rows]
                ),
            )[cells]
        if weights.recency:
            rough += weights.recency * self._rough_recency(query, cells)
        if weights.link and self._neighbours.used:
            support = self._neighbours.best(found.lendable, cells)
            rough += weights.link * support
            if weights.link > 0.0:
                near = support > 0.0
                candidate |= near if found.visible is None else near & found.visible[cells]
        return rough, candidate

    def _rough_recency(self, query: Query, cells: Cells) -> Floats:
        """2^((observed - origin) / h) is kept, so a search multiplies by 2^((origin - at) / h)."""
        entries, half_life_us = self._entries, query.half_life_seconds * 1e6
        if abs(entries.latest_us - self._origin_us) / half_life_us > _NEAR:
            self._origin_us = entries.latest_us
        origin = self._origin_us
        shift = (origin - query.at_us) / half_life_us
        if abs(shift) > _FAR:
            return recency(entries.observed[cells], query.at_us, query.half_life_seconds)
        with np.errstate(over="ignore", under="ignore"):
            decay = self._decay.get(
                (query.half_life_seconds, origin),
                len(entries),
                lambda rows: np.exp2((entries.observed[rows] - origin) / half_life_us),
            )[cells]
            decay = decay * math.exp2(shift)
        return decay if query.at_us >= entries.latest_us else np.minimum(decay, 1.0)

    def _exact(
        self, query: Query, found: _Found, ordinals: Integers, count: int
    ) -> tuple[Integers, Floats, dict[str, Floats]]:
        """The `count` best of these ordinals in order, with their exact scores and parts."""
        entries = self._entries
        if not count:
            ordinals = ordinals[:0]
        link = np.zeros(len(ordinals))
        if self._neighbours.used:
            link = self._neighbours.best(found.lendable, ordinals)
        parts: dict[str, Floats] = {
            "lexical": found.lexical[ordinals],
            "confidence": entries.confidence[ordinals],
            "importance": entries.importance[ordinals],
            "recency": recency(entries.observed[ordinals], query.at_us, query.half_life_seconds),
            "link": link,
        }
        scores = total(query.weights, parts)
        ids, names = entries.ids, ordinals.tolist()
        places = best(scores, entries.prefixes[ordinals], lambda place: ids[names[place]], count)
        order = np.array(places, np.int64)
        chosen = {name: values[order] for name, values in parts.items()}
        return ordinals[order], scores[order], chosen


def _ordinals(cells: Cells, places: Integers) -> Integers:
    return places if isinstance(cells, slice) else cells[places]

"""Recall with a cell's surroundings: every part worked out for every candidate, exactly.

The parts beyond the paper's five are those of `context_parts`. A cell without a shared term is a
candidate only by support: of `link` or `two_links`, while that weight is above zero.

This takes a pass over all cells of the index; `searching` serves the five parts without one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from cma.orion.context import Asked, Context
from cma.orion.context_parts import CONTEXT, Around
from cma.orion.entries import Entries
from cma.orion.neighbours import Neighbours
from cma.orion.ordering import Ordered, ordered, ranking_of
from cma.orion.postings import Postings
from cma.orion.query import Query
from cma.orion.ranking import Ranking
from cma.orion.scoring import (
    CONTEXT_PARTS,
    LEXICAL,
    Floats,
    Match,
    recency,
)

__all__ = ["Surroundings", "rank"]


class Surroundings(NamedTuple):
    """What a question is held against beside the index: its context, and what it asks of it."""

    context: Context
    asked: Asked


def rank(
    entries: Entries,
    postings: Postings,
    neighbours: Neighbours,
    around: Surroundings,
    query: Query,
) -> Ranking:
    """Return the exact ranking of all candidates by all parts; see `Ranking`."""
    size = len(entries)
    visible = entries.visible(query.viewer, slice(0, size))
    active = None if query.include_inactive else entries.active(query.at_us)
    present = visible if active is None else visible & active
    seen, words = entries.extent(query.viewer)
    repeats = Counter(query.terms)
    terms = sorted(repeats)
    matches = [
        Match(repeats[term], cells[visible[cells]], shapes[visible[cells]])
        for term, (cells, shapes) in zip(terms, postings.find(terms), strict=True)
    ]
    collection = postings.collection(seen, words)
    lexical = np.zeros(size + 1)
    LEXICAL[query.lexical](matches, collection, slice(0, size), lexical)
    lendable = lexical.copy()
    lendable[:-1][~present] = 0.0
    looked = Around(
        around.asked, around.context, entries, postings, seen, matches, visible, present,
        lexical[:-1], lendable, neighbours.pairs(), entries.observed,
    )  # fmt: skip
    weights = query.weights
    found: dict[str, Floats] = {
        "lexical": lexical[:-1],
        "confidence": entries.confidence,
        "importance": entries.importance,
        "recency": recency(entries.observed, query.at_us, query.half_life_seconds),
        "link": neighbours.best(lendable, slice(0, size)),
    }
    for name in CONTEXT_PARTS:
        if getattr(weights, name):
            found[name] = CONTEXT[name](looked)
    candidate = lexical[:-1] > 0.0
    for name in ("link", "two_links"):
        if getattr(weights, name) > 0.0:
            candidate = candidate | (found[name] > 0.0)
    candidate &= visible
    served, idle = np.flatnonzero(candidate & present), np.flatnonzero(candidate & ~present)
    count = query.limit + query.exclusion_limit
    return ranking_of(
        entries,
        query,
        _best(entries, found, query, served, count),
        _best(entries, found, query, idle, query.exclusion_limit).ordinals,
        seen=seen,
        matching=len(served),
        inactive=len(idle),
    )


def _best(
    entries: Entries, found: Mapping[str, Floats], query: Query, ordinals: Any, count: int
) -> Ordered:
    """Return the `count` best of these ordinals in order, with their scores and parts."""
    if not count:
        ordinals = ordinals[:0]
    parts = {name: values[ordinals] for name, values in found.items()}
    return ordered(entries, query, ordinals, parts, count)

"""Recall with a cell's surroundings: every part worked out for every candidate, exactly.

The parts beyond the paper's five, each from 0 to 1 and each a named function below:

`two_links`   the best lexical part two temporal links away: a talk goes on around its evidence
`reply`       the lexical part of the linked cell before, where that one asks: answers repeat little
`session`     idf overlap of the question with the whole session, with idf over sessions
`bigrams`     share of the question's pairs of adjacent terms that stand in the cell
`speaker`     whether the question names the cell's speaker
`statement`   whether the cell asks nothing: evidence is told, not asked
`month`       whether the cell was observed in a month that the question names
`moment`      whether the cell says a time and the question asks for one

None is learned; none looks at a cell that the viewer does not see, and links and sessions lend
nothing of an inactive cell unless such cells are asked for. A cell without a shared term is a
candidate only by support: of `link` or `two_links`, while that weight is above zero.

This takes a pass over all cells of the index; `searching` serves the five parts without one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cma.orion.context import NOBODY, Asked, Context
from cma.orion.entries import Entries
from cma.orion.neighbours import Neighbours
from cma.orion.postings import Postings
from cma.orion.ranking import Ranking, best
from cma.orion.scoring import (
    CONTEXT_PARTS,
    LEXICAL,
    Collection,
    Floats,
    Match,
    idf,
    recency,
    total,
)
from cma.orion.searching import Query

__all__ = ["Surroundings", "rank"]

Booleans = NDArray[np.bool_]


class Surroundings(NamedTuple):
    """What a question is held against beside the index: its context, and what it asks of it."""

    context: Context
    asked: Asked


class _Around(NamedTuple):
    """What the parts of a context may look at; arrays have a place for each ordinal."""

    asked: Asked
    context: Context
    matches: list[Match]
    visible: Booleans
    present: Booleans
    """Visible, and active where only active cells count."""
    lexical: Floats
    lendable: Floats
    """The lexical part where it is present, and a zero at the end."""
    pairs: tuple[NDArray[np.int64], NDArray[np.int64]]
    observed: NDArray[np.int64]


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
    collection = Collection(
        size=seen,
        mean_length=words / max(1, seen),
        frequencies=postings.frequencies,
        lengths=postings.lengths,
        distinct=postings.distinct,
    )
    lexical = np.zeros(size + 1)
    LEXICAL[query.lexical](matches, collection, slice(0, size), lexical)
    lendable = lexical.copy()
    lendable[:-1][~present] = 0.0
    looked = _Around(
        around.asked, around.context, matches, visible, present, lexical[:-1], lendable,
        neighbours.pairs(), entries.observed,
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
    chosen, scores, parts = _best(entries, found, query, served, count)
    left_out, _, _ = _best(entries, found, query, idle, query.exclusion_limit)
    hits, rest = slice(query.limit), slice(query.limit, count)
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
            "below_limit": len(served) - len(chosen[hits]),
        },
    )


def _best(
    entries: Entries, found: Mapping[str, Floats], query: Query, ordinals: Any, count: int
) -> tuple[NDArray[np.int64], Floats, dict[str, Floats]]:
    """Return the `count` best of these ordinals in order, with their scores and parts."""
    parts = {name: values[ordinals] for name, values in found.items()}
    scores = total(query.weights, parts)
    ids, names = entries.ids, ordinals.tolist()
    if not count or not names:
        places: list[int] = []
    else:
        places = best(scores, entries.prefixes[ordinals], lambda at: ids[names[at]], count)
    order = np.array(places, np.int64)
    return ordinals[order], scores[order], {name: own[order] for name, own in parts.items()}


def two_links(around: _Around) -> Floats:
    """Return the best lexical part of a cell two temporal links away, and not the cell itself.

    Support over links goes on, weaker: spreading activation (Collins and Loftus 1975) by two
    steps. The cell between must be visible and active, as the one that lends.
    """
    cells, near = around.pairs
    out = np.zeros(len(around.lexical))
    lends = around.lendable[near]
    # For each cell the two best of its neighbours: one of them is not where a walk came from.
    order = np.lexsort((near, -lends, cells))
    order = order[lends[order] > 0.0]
    holders, starts = np.unique(cells[order], return_index=True)
    first, second = np.full(len(out), -1), np.full(len(out), -1)
    first[holders] = near[order[starts]]
    more = starts + 1 < np.append(starts[1:], len(order))
    second[holders[more]] = near[order[starts[more] + 1]]
    best_there = first[near]
    lender = np.where(best_there == cells, second[near], best_there)
    # What the viewer does not see, or no longer counts, is no way to anywhere.
    lender[~around.present[near]] = -1
    np.maximum.at(out, cells, around.lendable[lender])
    return out


def reply(around: _Around) -> Floats:
    """Return the lexical part of a linked cell that was observed before and asks something.

    An answer says little of what was asked (adjacency pairs: Schegloff and Sacks 1973).
    """
    cells, near = around.pairs
    out = np.zeros(len(around.lexical))
    asks = around.context.asks[near] & (around.observed[near] < around.observed[cells])
    np.maximum.at(out, cells[asks], around.lendable[near[asks]])
    return out


def session(around: _Around) -> Floats:
    """Return the idf overlap of the question with all that the cell's session says.

    A passage is found by the document it stands in (Callan 1994), here a sitting by its turns.
    """
    of_cell, present = around.context.session, around.present
    whole, held = 0.0, np.zeros(around.context.sessions + 1)
    count = len(np.unique(of_cell[present & (of_cell != NOBODY)]))
    for match in around.matches:
        codes = np.unique(of_cell[match.cells[present[match.cells]]])
        codes = codes[codes != NOBODY]
        weight = idf(count, len(codes))
        held[codes] += weight
        whole += weight
    return np.asarray((held / whole)[of_cell])  # -1 reads the last place, which holds nothing


def bigrams(around: _Around) -> Floats:
    """Return the share of the question's pairs of adjacent terms that the cell holds.

    The ordered pairs of the sequential dependence model (Metzler and Croft 2005), unweighted.
    """
    out = np.zeros(len(around.lexical))
    asked = around.asked.bigrams
    for cells, _ in around.context.bigrams.find(asked) if asked else ():
        out[cells] += 1.0
    return out / float(max(1, len(asked)))


def speaker(around: _Around) -> Floats:
    """Return 1 where the question names the one who spoke (its metadata says who), else 0."""
    named = around.context.named(around.asked.terms)
    return np.isin(around.context.speaker, named).astype(np.float64)


def statement(around: _Around) -> Floats:
    """Return 1 where no question mark stands in the cell, else 0: what is asked tells nothing."""
    return (~around.context.asks).astype(np.float64)


def month(around: _Around) -> Floats:
    """Return 1 where the cell was observed in a month that the question names, else 0.

    Temporal expressions as in time-aware retrieval (Campos et al. 2014), months alone.
    """
    return np.isin(around.context.month, list(around.asked.months)).astype(np.float64)


def moment(around: _Around) -> Floats:
    """Return 1 where the cell says a time and the question asks when or how long, else 0.

    The expected type of an answer (Prager et al. 2000), for times alone.
    """
    if not around.asked.moment:
        return np.zeros(len(around.lexical))
    return around.context.timed.astype(np.float64)


CONTEXT: Mapping[str, Callable[[_Around], Floats]] = {
    "two_links": two_links,
    "reply": reply,
    "session": session,
    "bigrams": bigrams,
    "speaker": speaker,
    "statement": statement,
    "month": month,
    "moment": moment,
}

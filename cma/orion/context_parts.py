"""The parts of a score that look around a cell: a function each, from 0 to 1.

`two_links`   the best lexical part two temporal links away: a talk goes on around its evidence
`reply`       the lexical part of the linked cell before, where that one asks: answers repeat little
`session`     idf overlap of the question with the whole session, with idf over sessions
`bigrams`     share of the question's pairs of adjacent terms that stand in the cell
`speaker`     whether the question names the cell's speaker
`statement`   whether the cell asks nothing: evidence is told, not asked
`month`       whether the cell was observed in a month that the question names
`moment`      whether the cell says a time and the question asks for one
`feedback`    overlap with the terms that tell the best cells by the lexical part from all others

None is learned; none looks at a cell that the viewer does not see, and links and sessions lend
nothing of an inactive cell unless such cells are asked for.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from cma.orion.context import NOBODY, Asked, Context
from cma.orion.entries import Entries
from cma.orion.postings import Postings
from cma.orion.ranking import best
from cma.orion.scoring import Floats, Match, idf

__all__ = ["CONTEXT", "Around"]

Booleans = NDArray[np.bool_]
TELLING_CELLS = 5
TELLING_TERMS = 10
"""From how many of the best cells feedback takes how many terms."""


class Around(NamedTuple):
    """What the parts of a context may look at; arrays have a place for each ordinal."""

    asked: Asked
    context: Context
    entries: Entries
    postings: Postings
    seen: int
    """How many cells the viewer sees."""
    matches: list[Match]
    visible: Booleans
    present: Booleans
    """Visible, and active where only active cells count."""
    lexical: Floats
    lendable: Floats
    """The lexical part where it is present, and a zero at the end."""
    pairs: tuple[NDArray[np.int64], NDArray[np.int64]]
    observed: NDArray[np.int64]


def two_links(around: Around) -> Floats:
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


def reply(around: Around) -> Floats:
    """Return the lexical part of a linked cell that was observed before and asks something.

    An answer says little of what was asked (adjacency pairs: Schegloff and Sacks 1973).
    """
    cells, near = around.pairs
    out = np.zeros(len(around.lexical))
    asks = around.context.asks[near] & (around.observed[near] < around.observed[cells])
    np.maximum.at(out, cells[asks], around.lendable[near[asks]])
    return out


def session(around: Around) -> Floats:
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


def bigrams(around: Around) -> Floats:
    """Return the share of the question's pairs of adjacent terms that the cell holds.

    The ordered pairs of the sequential dependence model (Metzler and Croft 2005), unweighted.
    """
    out = np.zeros(len(around.lexical))
    asked = around.asked.bigrams
    for cells, _ in around.context.bigrams.find(asked) if asked else ():
        out[cells] += 1.0
    return out / float(max(1, len(asked)))


def speaker(around: Around) -> Floats:
    """Return 1 where the question names the one who spoke (its metadata says who), else 0."""
    named = around.context.named(around.asked.terms)
    return np.isin(around.context.speaker, named).astype(np.float64)


def statement(around: Around) -> Floats:
    """Return 1 where no question mark stands in the cell, else 0: what is asked tells nothing."""
    return (~around.context.asks).astype(np.float64)


def month(around: Around) -> Floats:
    """Return 1 where the cell was observed in a month that the question names, else 0.

    Temporal expressions as in time-aware retrieval (Campos et al. 2014), months alone.
    """
    return np.isin(around.context.month, list(around.asked.months)).astype(np.float64)


def moment(around: Around) -> Floats:
    """Return 1 where the cell says a time and the question asks when or how long, else 0.

    The expected type of an answer (Prager et al. 2000), for times alone.
    """
    if not around.asked.moment:
        return np.zeros(len(around.lexical))
    return around.context.timed.astype(np.float64)


def feedback(around: Around) -> Floats:
    """Return the overlap with ten terms of the five best cells by the lexical part.

    A term counts by its idf times the lexical parts of those cells that hold it; the question's
    own terms are left out. Relevance feedback without a judge (Rocchio 1971; the weights are those
    of relevance models, Lavrenko and Croft 2001, with idf in place of a background model).
    """
    out = np.zeros(len(around.lexical))
    ids, lends = around.entries.ids, around.lendable
    able = np.flatnonzero(lends[:-1] > 0.0)
    names = able.tolist()
    first = best(
        lends[able], around.entries.prefixes[able], lambda at: ids[names[at]], TELLING_CELLS
    )
    told: dict[str, float] = {}
    for cell in able[first].tolist():
        for term in around.context.terms(cell):
            if term not in around.asked.terms:
                told[term] = told.get(term, 0.0) + float(lends[cell])
    terms = sorted(told)
    holding = [
        cells[around.visible[cells]] for cells, _ in (around.postings.find(terms) if terms else ())
    ]
    weighed = [
        (-told[term] * idf(around.seen, len(cells)), term, cells)
        for term, cells in zip(terms, holding, strict=True)
    ]
    weighed.sort(key=lambda each: each[:2])
    whole = 0.0
    for weight, _, cells in weighed[:TELLING_TERMS]:
        out[cells] -= weight
        whole -= weight
    return out / whole if whole else out


CONTEXT: Mapping[str, Callable[[Around], Floats]] = {
    "two_links": two_links,
    "reply": reply,
    "session": session,
    "bigrams": bigrams,
    "speaker": speaker,
    "statement": statement,
    "month": month,
    "moment": moment,
    "feedback": feedback,
}

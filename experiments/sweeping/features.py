"""Features: the parts of every candidate of every question, asked once of the store's own index.

A question's candidates stand in order of their id, so that equal scores are ordered by place. The
values are those that a recall reports, to the last bit: the index itself works them out.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from cma.orion.analysis import ANALYSERS
from cma.orion.index import Index
from cma.orion.indexes import Indexes
from cma.orion.scoring import PARTS, Weights, total
from cma.values.clock import microseconds
from experiments.bootstrap import Floats
from experiments.data.conversations import Conversation
from experiments.ingest import Ingested

Integers = NDArray[np.int64]
LEXICAL, LINK = PARTS.index("lexical"), PARTS.index("link")
EVERY_PART = Weights(*(1.0 for _ in PARTS))
"""Weights under which everything that any weights could serve is a candidate."""
SINGLE_FOLDS = 10
"""Folds of a corpus that is one conversation or one collection of documents."""


class How(NamedTuple):
    """What of a recall a sweep holds still."""

    analyser: str
    lexical: str
    half_life_seconds: float


class Held(NamedTuple):
    """A conversation and the open memory that holds it."""

    conversation: Conversation
    ingested: Ingested


@dataclass(frozen=True, slots=True)
class Features:
    """Questions one after another, each with its candidates and its evidence.

    `starts[q]:starts[q + 1]` are the candidates of question q, `evidence_starts` its evidence.
    `evidence` is a candidate's place, or -1 where the turn can never be found. `shares` says
    whether a candidate shares a term with the question: one that does not is a candidate only
    while the coefficient of link is above zero.
    """

    questions: tuple[str, ...]
    fold_starts: Integers
    """The first question of each fold, and their number at the end: a fold is a conversation, and
    of a single one a tenth of its questions."""
    parts: Floats
    """Candidates by parts, in the order of `PARTS`."""
    shares: NDArray[np.bool_]
    cells: tuple[str, ...]
    starts: Integers
    evidence: Integers
    evidence_starts: Integers
    grades: Floats
    """How relevant each evidence turn is: 1 where all are alike."""

    def ranking(self, question: int, weights: Floats, limit: int) -> list[str]:
        """Return the cells that a recall with these coefficients would serve, best first."""
        some = slice(self.starts[question], self.starts[question + 1])
        columns = {name: self.parts[some, place] for place, name in enumerate(PARTS)}
        scores = total(Weights(*weights.tolist()), columns)
        order = np.argsort(-scores, kind="stable")
        if not weights[LINK] > 0.0:
            order = order[self.shares[some][order]]
        first = int(self.starts[question])
        return [self.cells[first + place] for place in order[:limit].tolist()]

    def varying(self) -> tuple[str, ...]:
        """Return the parts that tell the candidates of some question apart."""
        rows = self.starts[:-1][np.diff(self.starts) > 0]
        if not len(rows):
            return ()
        spread = np.maximum.reduceat(self.parts, rows) - np.minimum.reduceat(self.parts, rows)
        return tuple(name for name, most in zip(PARTS, spread.max(axis=0), strict=True) if most > 0)


def gather(
    held: Sequence[Held],
    evidence: Mapping[str, Sequence[str]],
    how: How,
    advance: Callable[[int], None],
) -> Features:
    """Return the features of every question that has evidence, in the order of the questions."""
    questions: list[str] = []
    cells: list[str] = []
    parts: list[Floats] = []
    places: list[int] = []
    grades: list[int] = []
    starts, evidence_starts, fold_starts = [0], [0], [0]
    for conversation, ingested in held:
        memory = ingested.memory
        indexes = Indexes()
        index, _, _ = indexes.in_step(memory.store, how.analyser)
        viewer, at = indexes.codes(memory.scope), microseconds(memory.store.now())
        cell_of_turn = {turn: cell for cell, turn in ingested.turn_of_cell.items()}
        for question in conversation.questions:
            key = f"{conversation.id} {question.id}"
            if key not in evidence:
                continue
            ids, found = _candidates(index, question.text, viewer, at, how)
            at_place = {name: len(cells) + place for place, name in enumerate(ids)}
            places += [at_place.get(cell_of_turn[turn], -1) for turn in evidence[key]]
            graded = evidence[key] == question.evidence and question.grades
            grades += graded or [1] * len(evidence[key])
            questions.append(key)
            cells += ids
            parts.append(found)
            starts.append(len(cells))
            evidence_starts.append(len(places))
            advance(1)
        fold_starts.append(len(questions))
    if len(held) == 1:
        folds = min(SINGLE_FOLDS, len(questions))
        fold_starts = [len(questions) * fold // folds for fold in range(folds + 1)]
    table = np.concatenate(parts) if parts else np.empty((0, len(PARTS)))
    return Features(
        questions=tuple(questions),
        fold_starts=np.unique(fold_starts),
        parts=table,
        shares=table[:, LEXICAL] > 0.0,
        cells=tuple(cells),
        starts=np.array(starts),
        evidence=np.array(places, np.int64),
        evidence_starts=np.array(evidence_starts),
        grades=np.array(grades, np.float64),
    )


def _candidates(
    index: Index, text: str, viewer: tuple[int, ...], at_us: int, how: How
) -> tuple[list[str], Floats]:
    """Return the ids of all that could be served, in order, and their parts."""
    terms = ANALYSERS[how.analyser](text)
    if not terms:  # nothing but stop words: a recall is refused, and finds nothing
        return [], np.empty((0, len(PARTS)))
    found = index.search(
        terms,
        viewer=viewer,
        at_us=at_us,
        limit=max(len(index), 1),
        lexical=how.lexical,
        weights=EVERY_PART,
        half_life_seconds=how.half_life_seconds,
        exclusion_limit=0,
    )
    order = sorted(range(len(found.ids)), key=found.ids.__getitem__)
    columns = np.column_stack([found.parts[name] for name in PARTS])
    return [found.ids[place] for place in order], columns[order]

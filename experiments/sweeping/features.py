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

from cma import Memory
from cma.orion.analysis import ANALYSERS
from cma.orion.index import Index
from cma.orion.indexes import Indexes
from cma.orion.scoring import EVERY_PART, PARTS, Weights, total
from cma.values.clock import microseconds
from experiments.bootstrap import Floats
from experiments.data.conversations import Conversation
from experiments.ingest import Ingested

Integers = NDArray[np.int64]
LEXICAL = EVERY_PART.index("lexical")
SUPPORTS = (EVERY_PART.index("link"), EVERY_PART.index("two_links"))
"""Parts that make a candidate of a cell without a shared term while their weight is above zero."""
_ALL = Weights(*(1.0 for _ in EVERY_PART))
_FIVE = Weights(*(1.0 for _ in PARTS))
SINGLE_FOLDS = 10
"""Folds of a corpus that is one conversation or one collection of documents."""


class How(NamedTuple):
    """What of a recall a sweep holds still."""

    analyser: str
    lexical: str
    half_life_seconds: float
    context: bool = False
    """Whether a part that looks around a cell may get a weight: its features are asked for."""


class Held(NamedTuple):
    """A conversation and the open memory that holds it."""

    conversation: Conversation
    ingested: Ingested


@dataclass(frozen=True, slots=True)
class Features:
    """Questions one after another, each with its candidates and its evidence.

    `starts[q]:starts[q + 1]` are the candidates of question q, `evidence_starts` its evidence.
    `evidence` is a candidate's place, or -1 where the turn can never be found. `reach` says in
    bits by what a cell becomes a candidate: 1 for a shared term, 2 and 4 for the two `SUPPORTS`.
    """

    questions: tuple[str, ...]
    fold_starts: Integers
    """The first question of each fold, and their number at the end: a fold is a conversation, and
    of a single one a tenth of its questions."""
    parts: Floats
    """Candidates by parts, in the order of `EVERY_PART`."""
    reach: NDArray[np.int32]
    cells: tuple[str, ...]
    starts: Integers
    evidence: Integers
    evidence_starts: Integers
    grades: Floats
    """How relevant each evidence turn is: 1 where all are alike."""

    def ranking(self, question: int, weights: Floats, limit: int) -> list[str]:
        """Return the cells that a recall with these coefficients would serve, best first."""
        some = slice(self.starts[question], self.starts[question + 1])
        columns = {name: self.parts[some, place] for place, name in enumerate(EVERY_PART)}
        scores = total(Weights(*weights.tolist()), columns)
        order = np.argsort(-scores, kind="stable")
        order = order[(self.reach[some][order] & opened(weights)) != 0]
        first = int(self.starts[question])
        return [self.cells[first + place] for place in order[:limit].tolist()]

    def varying(self) -> tuple[str, ...]:
        """Return the parts that tell the candidates of some question apart."""
        rows = self.starts[:-1][np.diff(self.starts) > 0]
        if not len(rows):
            return ()
        spread = np.maximum.reduceat(self.parts, rows) - np.minimum.reduceat(self.parts, rows)
        return tuple(
            name for name, most in zip(EVERY_PART, spread.max(axis=0), strict=True) if most > 0
        )


def opened(weights: Floats) -> int:
    """Return the bits of `Features.reach` that make a candidate under these coefficients."""
    return 1 + sum(2 << place for place, part in enumerate(SUPPORTS) if float(weights[part]) > 0.0)


def gather(
    held: Sequence[Held],
    evidence: Mapping[str, Sequence[str]],
    how: How,
    advance: Callable[[int], None],
) -> Features:
    """Return the features of every question that has evidence, in the order of the questions.

    Those of `scoring.CONTEXT_PARTS` are zero unless `how.context`.
    """
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
        asking = _Asking(index, indexes, memory, viewer, at, how)
        cell_of_turn = {turn: cell for cell, turn in ingested.turn_of_cell.items()}
        for question in conversation.questions:
            key = f"{conversation.id} {question.id}"
            if key not in evidence:
                continue
            ids, found = asking.candidates(question.text)
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
    table = np.concatenate(parts) if parts else np.empty((0, len(EVERY_PART)))
    return Features(
        questions=tuple(questions),
        fold_starts=np.unique(fold_starts),
        parts=table,
        reach=_reach(table),
        cells=tuple(cells),
        starts=np.array(starts),
        evidence=np.array(places, np.int64),
        evidence_starts=np.array(evidence_starts),
        grades=np.array(grades, np.float64),
    )


def _reach(parts: Floats) -> NDArray[np.int32]:
    bits = (parts[:, LEXICAL] > 0.0).astype(np.int32)
    for place, part in enumerate(SUPPORTS):
        bits |= (parts[:, part] > 0.0).astype(np.int32) << (place + 1)
    return bits


@dataclass(frozen=True, slots=True)
class _Asking:
    """One conversation's index, and how it is asked."""

    index: Index
    indexes: Indexes
    memory: Memory
    viewer: tuple[int, ...]
    at_us: int
    how: How

    def candidates(self, text: str) -> tuple[list[str], Floats]:
        """Return the ids of all that could be served, in order, and their parts."""
        how = self.how
        terms = ANALYSERS[how.analyser](text)
        if not terms:  # nothing but stop words: a recall is refused, and finds nothing
            return [], np.empty((0, len(EVERY_PART)))
        around = None
        if how.context:
            around = self.indexes.surroundings(self.memory.store, how.analyser, text, terms)
        found = self.index.search(
            terms,
            viewer=self.viewer,
            at_us=self.at_us,
            limit=max(len(self.index), 1),
            lexical=how.lexical,
            weights=_ALL if how.context else _FIVE,
            half_life_seconds=how.half_life_seconds,
            exclusion_limit=0,
            surroundings=around,
        )
        order = sorted(range(len(found.ids)), key=found.ids.__getitem__)
        columns = np.zeros((len(order), len(EVERY_PART)))
        for name, values in found.parts.items():
            columns[:, EVERY_PART.index(name)] = values[order]
        return [found.ids[place] for place in order], columns

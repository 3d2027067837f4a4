"""What is compared: every way that CMA recalls, and peers from outside: bm25s and a dense model.

An engine answers one question with cell ids, best first. The peer sees the same texts through the
same analysers, and its ties are broken as CMA's are: by cell id.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Literal

import bm25s
import numpy as np
from numpy.typing import NDArray

from cma import CmaError, Coefficients, Reason, Retrieval
from cma.orion.analysis import ANALYSERS
from experiments import dense
from experiments.ingest import Ingested
from experiments.settings import EvaluationSettings, RetrievalSettings

LEXICAL_ONLY = Coefficients(lexical=1.0, confidence=0.0, importance=0.0, recency=0.0, link=0.0)
TIE_DIGITS = 9
"""The peer's scores are compared to so many decimals: summing in another order is no difference."""
DENSE_TIE_DIGITS = 5

Answer = Callable[[str], list[str]]
Engine = Literal["cma", "bm25s", "minilm", "bm25s+minilm"]

logging.getLogger("bm25s").setLevel(logging.WARNING)  # it speaks once for every index it builds


@dataclass(frozen=True, slots=True)
class Row:
    """One row of the comparison, before it is bound to a conversation."""

    scorer: str
    analyser: str
    engine: Engine
    bind: Callable[[Ingested, int], Answer]

    @property
    def name(self) -> str:
        """Scorer, analyser and engine in one word."""
        return f"{self.scorer}/{self.analyser}/{self.engine}"


def rows(evaluation: EvaluationSettings, hand_set: RetrievalSettings) -> tuple[Row, ...]:
    """Return every row that the settings ask for."""
    asked: list[Row] = []
    for analyser in evaluation.analysers:
        asked += [
            _cma(scorer, retrieval(analyser, scorer, LEXICAL_ONLY)) for scorer in evaluation.scorers
        ]
        if evaluation.hand_set and hand_set.analyser in (None, analyser):
            asked.append(_cma(hand_set.name, retrieval_of(hand_set, analyser)))
        if evaluation.peer:
            asked.append(_bm25s(analyser, evaluation.peer_k1, evaluation.peer_b))
    own = hand_set.analyser
    if evaluation.hand_set and own is not None and own not in evaluation.analysers:
        asked.append(_cma(hand_set.name, retrieval_of(hand_set, own)))
    if evaluation.dense:
        encoder = dense.Encoder(dense.model_folder())
        asked.append(_dense(encoder))
        if evaluation.peer:
            asked += [_sum(encoder, analyser, evaluation) for analyser in evaluation.analysers]
    return tuple(asked)


def retrieval(
    analyser: str,
    lexical: str,
    coefficients: Coefficients,
    half_life_seconds: float = 604_800.0,
) -> Retrieval:
    """Return checked settings of one recall."""
    return Retrieval.model_validate(
        {
            "analyser": analyser,
            "lexical": lexical,
            "coefficients": coefficients,
            "half_life_seconds": half_life_seconds,
        }
    )


def retrieval_of(settings: RetrievalSettings, analyser: str) -> Retrieval:
    """Return the hand-set recall of the `retrieval` group under one analyser."""
    return retrieval(
        analyser,
        settings.lexical,
        Coefficients.model_validate(asdict(settings.coefficients)),
        settings.half_life_seconds,
    )


def peer_scores(
    texts: Sequence[str], analyser: str, k1: float, b: float
) -> Callable[[str], NDArray[np.float64]]:
    """Index texts with bm25s (Lucene's BM25); the result scores all of them for a question."""
    analyse = ANALYSERS[analyser]
    index = bm25s.BM25(method="lucene", k1=k1, b=b, dtype="float64")
    index.index([analyse(text) for text in texts], show_progress=False)

    def scores(question: str) -> NDArray[np.float64]:
        terms = analyse(question)
        if not terms:
            return np.zeros(len(texts))
        return np.asarray(index.get_scores(terms), dtype=np.float64)

    return scores


def _cma(name: str, how: Retrieval) -> Row:
    def bind(ingested: Ingested, limit: int) -> Answer:
        def answer(question: str) -> list[str]:
            try:
                found = ingested.memory.recall(question, limit=limit, retrieval=how)
            except CmaError as error:
                if error.reason is Reason.QUERY_EMPTY:  # nothing but stop words: nothing is found
                    return []
                raise
            return [hit.cell.id for hit in found.hits]

        return answer

    return Row(name, how.analyser, "cma", bind)


def _bm25s(analyser: str, k1: float, b: float) -> Row:
    def bind(ingested: Ingested, limit: int) -> Answer:
        cells = sorted(ingested.text_of_cell)
        scores = peer_scores([ingested.text_of_cell[cell] for cell in cells], analyser, k1, b)

        def answer(question: str) -> list[str]:
            found = scores(question)
            return _ordered(cells, found, found.round(TIE_DIGITS) > 0.0, TIE_DIGITS, limit)

        return answer

    return Row("bm25", analyser, "bm25s", bind)


def _dense(encoder: dense.Encoder) -> Row:
    def bind(ingested: Ingested, limit: int) -> Answer:
        cells = sorted(ingested.text_of_cell)
        scores = dense.dense_scores(encoder, [ingested.text_of_cell[cell] for cell in cells])
        everything = np.ones(len(cells), np.bool_)
        return lambda question: _ordered(
            cells, scores(question), everything, DENSE_TIE_DIGITS, limit
        )

    return Row("dense", "wordpiece", "minilm", bind)


def _sum(encoder: dense.Encoder, analyser: str, asked: EvaluationSettings) -> Row:
    def bind(ingested: Ingested, limit: int) -> Answer:
        cells = sorted(ingested.text_of_cell)
        texts = [ingested.text_of_cell[cell] for cell in cells]
        lexical = peer_scores(texts, analyser, asked.peer_k1, asked.peer_b)
        similar = dense.dense_scores(encoder, texts)
        everything = np.ones(len(cells), np.bool_)

        def answer(question: str) -> list[str]:
            found = dense.summed(lexical(question), similar(question))
            return _ordered(cells, found, everything, DENSE_TIE_DIGITS, limit)

        return answer

    return Row("bm25+dense", analyser, "bm25s+minilm", bind)


def _ordered(
    cells: Sequence[str],
    scores: NDArray[np.float64],
    served: NDArray[np.bool_],
    digits: int,
    limit: int,
) -> list[str]:
    """Return the best of the served cells; they come sorted, so that ties go by id."""
    order = np.argsort(-scores.round(digits), kind="stable")
    return [cells[place] for place in order[served[order]][:limit].tolist()]

"""Metrics of rankings against evidence, by pytrec_eval (the trec_eval of the retrieval field).

pytrec_eval sorts by score, then by document id, and would so break ties its own way; it is
therefore given scores made from ranks, which keeps the order that the engine returned. Relevance is
binary unless grades are given, which weigh in nDCG alone. Of nothing recalled every metric is zero.
MRR looks at the recalled cells and no further.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pytrec_eval
from numpy.typing import NDArray

CUTOFFS = (1, 5, 10, 20)
METRICS = (*(f"recall@{cutoff}" for cutoff in CUTOFFS), "ndcg@10", "mrr")
_TREC_NAMES = (*(f"recall_{cutoff}" for cutoff in CUTOFFS), "ndcg_cut_10", "recip_rank")
_TREC_MEASURES = {f"recall.{','.join(map(str, CUTOFFS))}", "ndcg_cut.10", "recip_rank"}


class Judge:
    """Judges rankings of one set of questions; a question needs at least one evidence turn."""

    def __init__(
        self,
        evidence: Mapping[str, Sequence[str]],
        grades: Mapping[str, Sequence[int]] | None = None,
    ) -> None:
        """Take the evidence turns of each question, and the grades of those that have any."""
        empty = [question for question, turns in evidence.items() if not turns]
        if empty:
            raise ValueError(f"questions without evidence cannot be judged: {empty[:3]}")
        self.questions = tuple(evidence)
        graded = grades or {}
        relevance = {
            question: dict(zip(turns, graded.get(question) or [1] * len(turns), strict=True))
            for question, turns in evidence.items()
        }
        self._evaluator = pytrec_eval.RelevanceEvaluator(relevance, _TREC_MEASURES)

    def values(self, rankings: Mapping[str, Sequence[str]]) -> NDArray[np.float64]:
        """Return one row a question, in the order of `questions`, and one column a metric."""
        missing = [question for question in self.questions if question not in rankings]
        if missing:
            raise ValueError(f"questions were not asked: {missing[:3]}")
        run = {
            question: {turn: float(-rank) for rank, turn in enumerate(rankings[question])}
            for question in self.questions
        }
        judged = self._evaluator.evaluate(run)
        return np.array(
            [[judged[question][name] for name in _TREC_NAMES] for question in self.questions]
        )

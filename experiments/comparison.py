"""Rows compared under one set of labels: tables with intervals, paired differences, headlines."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from experiments.bootstrap import Bootstrap, Interval
from experiments.data.conversations import CATEGORIES, Corpus, Question
from experiments.engines import Row
from experiments.evaluation import METRICS, Judge
from experiments.failures import ExperimentError
from experiments.result import Figure
from experiments.settings import Settings

HEADLINE = "recall@10"
GRADED_HEADLINE = "ndcg@10"


@dataclass(frozen=True, slots=True)
class Judged:
    """One row's values under one set of labels: questions by metrics."""

    row: Row
    values: NDArray[np.float64]


class Comparison:
    """Tables and figures of every row under one set of labels."""

    def __init__(
        self,
        settings: Settings,
        corpus: Corpus,
        labels: str,
        evidence_of: Callable[[Question], tuple[str, ...]],
    ) -> None:
        """Take the questions that these labels give evidence for, and draw their resamples."""
        self._data, self._labels = corpus.name, labels
        evidence: dict[str, tuple[str, ...]] = {}
        grades: dict[str, tuple[int, ...]] = {}
        categories: list[str | None] = []
        for conversation in corpus.conversations:
            for question in conversation.questions:
                if evidence_of(question):
                    name = f"{conversation.id} {question.id}"
                    evidence[name] = evidence_of(question)
                    if evidence[name] == question.evidence:
                        grades[name] = question.grades
                    categories.append(question.category)
        if not evidence:
            raise ExperimentError(f"no question of {corpus.name} has resolvable evidence")
        self._left_out = corpus.question_count - len(evidence)
        self.evidence = evidence
        self.judge = Judge(evidence, grades)
        of_category = np.array([category or "" for category in categories])
        self.members = {"all": np.arange(len(categories))} | {
            category: np.flatnonzero(of_category == category)
            for category in CATEGORIES
            if category in categories
        }
        self.bootstraps = {
            category: Bootstrap(
                len(members),
                resamples=settings.evaluation.resamples,
                confidence=settings.evaluation.confidence,
                seed=settings.seed,
                name=f"{labels} {category}",
            )
            for category, members in self.members.items()
        }

    def note(self) -> str:
        """Say how many questions were judged and how many left out."""
        return (
            f"{self._labels} labels: {len(self.judge.questions):,} questions judged, "
            f"{self._left_out} left out because no turn is named as evidence."
        )

    def recall(self, judged: list[Judged]) -> list[dict[str, Any]]:
        """One line for each row, category and metric."""
        lines = []
        for category, members in self.members.items():
            values = np.hstack([each.values[members] for each in judged])
            intervals = iter(self.bootstraps[category].intervals(values))
            for each in judged:
                for place, metric in enumerate(METRICS):
                    found = next(intervals)
                    lines.append(
                        self._line(each.row)
                        | {
                            "category": category,
                            "metric": metric,
                            **_bounds(found),
                            "n": len(members),
                            "numerator": float(each.values[members, place].sum()),
                        }
                    )
        return lines

    def differences(self, judged: list[Judged]) -> list[dict[str, Any]]:
        """Each row less the best row of the peer, on the same questions and the same resamples."""
        return [
            line
            for metric in (HEADLINE, GRADED_HEADLINE)
            for line in self._differences(judged, metric)
        ]

    def _differences(self, judged: list[Judged], metric: str) -> list[dict[str, Any]]:
        best = best_of(judged, engine="bm25s", metric=metric)
        if best is None:
            return []
        place = METRICS.index(metric)
        others = [each for each in judged if each is not best]
        lines = []
        for category, members in self.members.items():
            gains = np.column_stack(
                [each.values[members, place] - best.values[members, place] for each in others]
            )
            found = self.bootstraps[category].intervals(gains)
            lines += [
                self._line(each.row)
                | {"against": best.row.name, "category": category, "metric": metric}
                | _bounds(interval)
                | {"n": len(members)}
                for each, interval in zip(others, found, strict=True)
            ]
        return lines

    def figures(self, judged: list[Judged]) -> dict[str, Figure]:
        """Headline figures: every row by name, and one each for plain overlap and BM25."""
        return self._figures(judged, HEADLINE) | self._figures(judged, GRADED_HEADLINE)

    def _figures(self, judged: list[Judged], metric: str) -> dict[str, Figure]:
        place = METRICS.index(metric)
        prefix = f"{self._data}.{metric.replace('@', '')}"
        columns = np.column_stack([each.values[:, place] for each in judged])
        found = dict(
            zip(
                (each.row.name for each in judged),
                self.bootstraps["all"].intervals(columns),
                strict=True,
            )
        )
        figures = {
            f"{prefix}.{name.replace('/', '.')}": self._figure(interval)
            for name, interval in found.items()
        }
        if "overlap/unicode/cma" in found:
            figures[f"{prefix}.overlap"] = self._figure(found["overlap/unicode/cma"])
        best = best_of(judged, engine="bm25s", metric=metric)
        if best is not None:
            figures[f"{prefix}.bm25"] = self._figure(found[best.row.name])
        return figures

    def _figure(self, found: Interval) -> Figure:
        return Figure(found.mean, "share", len(self.judge.questions), (found.low, found.high))

    def _line(self, row: Row) -> dict[str, Any]:
        return {
            "data": self._data,
            "labels": self._labels,
            "scorer": row.scorer,
            "analyser": row.analyser,
            "engine": row.engine,
        }


def best_of(judged: list[Judged], *, engine: str, metric: str = HEADLINE) -> Judged | None:
    """Return the engine's row with the highest mean of a metric, or None if it has none."""
    place = METRICS.index(metric)
    rivals = [each for each in judged if each.row.engine == engine]
    return max(rivals, key=lambda each: float(each.values[:, place].mean()), default=None)


def _bounds(found: Interval) -> dict[str, float]:
    return {"value": found.mean, "low": found.low, "high": found.high}

"""Evidence retrieval: for each question, the annotated turns among the cells that a scorer recalls.

Every conversation goes into a real store of its own; every question is recalled, audited, from it
by every scorer. Judged are the labels as published and, where there is an audit, as corrected.
Questions without any resolvable evidence leave the denominator, and the notes count them.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pandas as pd

from cma.orion.analysis import ANALYSERS
from cma.orion.scoring import LEXICAL
from experiments import ranges
from experiments.comparison import Comparison, Judged
from experiments.data.conversations import Corpus, Question
from experiments.engines import Row, rows
from experiments.evaluation import CUTOFFS
from experiments.failures import UsageError
from experiments.ingest import ingested
from experiments.progress import progress
from experiments.result import Figure, Result
from experiments.settings import Settings

Rankings = Mapping[str, list[str]]
LIMIT = 1_000_000
RESAMPLES_LIMIT = 1_000_000
K1_LIMIT = 1000.0
HALF_LIFE_LIMIT = 1e12
WEIGHT_LIMIT = 1e6
"""Ends of ranges; weights and half-life end where CMA's own do."""


def check(settings: Settings) -> None:
    """Refuse settings that make no comparison."""
    asked, hand_set = settings.evaluation, settings.retrieval
    ranges.whole("seed", settings.seed, 0, ranges.SEED_LIMIT)
    ranges.whole("evaluation.limit", asked.limit, max(CUTOFFS), LIMIT)
    ranges.whole("evaluation.resamples", asked.resamples, 1, RESAMPLES_LIMIT)
    ranges.between("evaluation.confidence", asked.confidence, 0.0, 1.0)
    ranges.number("evaluation.peer_k1", asked.peer_k1, 0.0, K1_LIMIT)
    ranges.number("evaluation.peer_b", asked.peer_b, 0.0, 1.0)
    ranges.names("evaluation.analysers", asked.analysers, ANALYSERS)
    ranges.names("evaluation.scorers", asked.scorers, LEXICAL)
    if hand_set.analyser is not None:
        ranges.names("retrieval.analyser", [hand_set.analyser], ANALYSERS)
    ranges.names("retrieval.lexical", [hand_set.lexical], LEXICAL)
    ranges.above("retrieval.half_life_seconds", hand_set.half_life_seconds, 0.0, HALF_LIFE_LIMIT)
    for name, weight in asdict(hand_set.coefficients).items():
        ranges.number(f"retrieval.coefficients.{name}", weight, -WEIGHT_LIMIT, WEIGHT_LIMIT)
    found = rows(asked, hand_set)
    if not found:
        raise UsageError("nothing to compare: give at least one analyser and one scorer")
    names = [row.name for row in found]
    if len(set(names)) != len(names):
        raise UsageError(f"two rows have one name: {', '.join(names)}; set retrieval.name")


def run(settings: Settings, corpus: Corpus, folder: Path) -> Result:
    """Recall every question by every row and judge the rankings."""
    asked = settings.evaluation
    compared = rows(asked, settings.retrieval)
    with ExitStack() as stack:
        if settings.store.keep:
            stores = folder / "stores"
            stores.mkdir()
        else:
            stores = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        rankings = rank(corpus, compared, asked.limit, stores)
    tables: dict[str, list[dict[str, Any]]] = {"recall": [], "differences": []}
    figures: dict[str, Figure] = {}
    counts: list[str] = []
    labellings: list[tuple[str, Callable[[Question], tuple[str, ...]]]] = [
        ("published", lambda question: question.evidence)
    ]
    if corpus.corrected_labels:
        labellings.append(("corrected", lambda question: question.corrected))
    for labels, evidence_of in labellings:
        report = Comparison(settings, corpus, labels, evidence_of)
        judged = [Judged(row, report.judge.values(rankings[row.name])) for row in compared]
        tables["recall"] += report.recall(judged)
        tables["differences"] += report.differences(judged)
        counts.append(report.note())
        if labels == "published":
            figures = report.figures(judged)
    return Result(
        figures=figures,
        tables={
            **{name: pd.DataFrame(lines) for name, lines in tables.items() if lines},
            "evidence_problems": _evidence_problems(corpus),
            **({"label_corrections": _corrections(corpus)} if corpus.corrected_labels else {}),
        },
        data=corpus.records,
        notes=(*corpus.notes, *counts, *_notes(settings, corpus)),
    )


def rank(
    corpus: Corpus, compared: tuple[Row, ...], limit: int, stores: Path
) -> dict[str, Rankings]:
    """Return, for each row, the turns recalled for each question, best first."""
    rankings: dict[str, dict[str, list[str]]] = {row.name: {} for row in compared}
    total = corpus.question_count * len(compared)
    with progress(f"recall on {corpus.name}", total, "recalls") as advance:
        for conversation in corpus.conversations:
            with ingested(conversation, corpus.name, stores) as held:
                for row in compared:
                    answer = row.bind(held, limit)
                    for question in conversation.questions:
                        rankings[row.name][f"{conversation.id} {question.id}"] = [
                            held.turn_of_cell[cell] for cell in answer(question.text)
                        ]
                        advance(1)
    return {name: dict(found) for name, found in rankings.items()}


def _evidence_problems(corpus: Corpus) -> pd.DataFrame:
    return pd.DataFrame(
        [
            (each.conversation, each.question, each.raw, each.kind, each.resolution)
            for each in corpus.problems
        ],
        columns=["conversation", "question", "raw", "kind", "resolution"],
    )


def _corrections(corpus: Corpus) -> pd.DataFrame:
    return pd.DataFrame(
        [
            (
                each.conversation,
                each.question,
                each.error_type,
                " ".join(each.published),
                " ".join(each.corrected),
                each.applied,
                each.why,
            )
            for each in corpus.corrections
        ],
        columns=[
            "conversation", "question", "error_type", "published", "corrected", "applied", "why",
        ],
    )  # fmt: skip


def _notes(settings: Settings, corpus: Corpus) -> list[str]:
    asked = settings.evaluation
    notes = [
        (
            f"{corpus.turn_count:,} documents, an episodic cell each, in one store."
            if corpus.documents
            else f"{corpus.turn_count:,} turns, {len(corpus.conversations)} conversations, "
            "a store each."
        ),
        f"All metrics look at the {asked.limit} recalled cells: MRR counts no later rank.",
        (
            "Equal scores are ordered by cell id, for the peer too; overlap and jaccard have many, "
            "so another order among equals gives other figures."
        ),
        (
            f"Intervals: {asked.confidence:.0%} percentile bootstrap over questions, "
            f"{asked.resamples:,} resamples, shared by all rows; conversations are taken as given."
        ),
    ]
    if asked.peer:
        notes.append(
            "The headline of BM25 is its best analyser's row; that of overlap, the paper's lexical "
            "part alone, is the plain analyser's."
        )
    if corpus.problems:
        notes.append(
            f"{len(corpus.problems)} oddities of published evidence are listed in "
            "evidence_problems.csv."
        )
    if corpus.corrected_labels:
        applied = sum(each.applied for each in corpus.corrections)
        notes.append(
            f"The audit changes the evidence of {applied} questions; "
            f"{len(corpus.corrections) - applied} of its entries could not be applied."
        )
    return notes

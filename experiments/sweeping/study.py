"""The study: features, sweep, choice, re-run through recall, and what they are held against."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from time import perf_counter

import numpy as np

from cma.orion.scoring import CONTEXT_PARTS
from experiments.bootstrap import Floats
from experiments.comparison import Comparison
from experiments.data.conversations import Corpus
from experiments.engines import Answer, Engine, Row, rows
from experiments.ingest import Ingested, ingested
from experiments.progress import progress
from experiments.result import Result
from experiments.settings import Settings
from experiments.sweeping import tables
from experiments.sweeping.budget import NAME, BudgetRecall, budget_recall
from experiments.sweeping.choosing import Choice, best_by_lines, best_of_design, sums
from experiments.sweeping.designs import Space, design, lexical_alone, space
from experiments.sweeping.features import Features, Held, How, gather
from experiments.sweeping.objectives import Aim, Objective, objective
from experiments.sweeping.packets import check_packets, packets
from experiments.sweeping.rerun import Rankings, always, check_equal, recalled

TUNED, IN_SAMPLE = "tuned", "tuned_in_sample"
"""Rows: chosen without the conversation that is asked about, and chosen on all of them."""


@dataclass(frozen=True, slots=True)
class Swept:
    """What a sweep found: its settings, their sums, and the choices made from them."""

    features: Features
    objective: Aim
    space: Space
    constant: tuple[str, ...]
    """Parts that were asked for and tell no two candidates apart."""
    weights: Floats
    sums: Floats
    optimum: Choice
    chosen: tuple[Choice, ...]
    """For each fold, by the questions of the others."""
    limit: int
    """Cells that are recalled for a question wherever settings are run again."""

    def weights_for(self, key: str) -> Floats:
        """Return the setting that was chosen without a question's own fold."""
        place = self.features.questions.index(key)
        fold = int(np.searchsorted(self.features.fold_starts, place, side="right")) - 1
        return self.chosen[fold].weights


@dataclass(frozen=True, slots=True)
class Speed:
    """Seconds of a sweep, and of recalls that do the same for a sample of its settings."""

    settings: int
    sweep: float
    recalls: float
    """Seconds of all recalls under one setting, on average."""


def run(settings: Settings, corpus: Corpus) -> Result:
    """Return everything that a sweep finds on a corpus."""
    asked = settings.sweep
    report = Comparison(settings, corpus, "published", lambda question: question.evidence)
    around = any(name in CONTEXT_PARTS for name in asked.parts)
    how = How(asked.analyser, asked.lexical, asked.half_life_seconds, around)
    with ingested_all(corpus) as held:
        swept, seconds = sweep(settings, held, report, how)
        optimum, folds = swept.optimum.weights, _of_folds(swept)
        count = 2 + asked.sample
        with progress("the same through recall", corpus.question_count * count, "recalls") as step:
            tuned = _rerun(swept, held, folds, how, step)
            in_sample = _rerun(swept, held, always(optimum), how, step)
            speed = _speed(swept, held, how, asked.sample, seconds, step)
        others = _others(settings, held, how, swept.limit)
    turns = {cell: turn for _, each in held for cell, turn in each.turn_of_cell.items()}
    cells = dict(
        [
            (_row(TUNED, asked.analyser), tuned),
            (_row(IN_SAMPLE, asked.analyser), in_sample),
            *others,
        ]
    )
    looked_at = settings.evaluation.limit
    rankings = {
        row: {key: [turns[cell] for cell in own[:looked_at]] for key, own in found.items()}
        for row, found in cells.items()
    }
    aim = swept.objective
    filled = packets(cells, turns, aim) if isinstance(aim, BudgetRecall) else None
    return tables.result(settings, corpus, report, swept, rankings, speed, filled)


@contextmanager
def ingested_all(corpus: Corpus) -> Iterator[list[Held]]:
    """Yield every conversation with a memory that holds it, open until the end."""
    with ExitStack() as stack:
        stores = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        yield [
            Held(each, stack.enter_context(ingested(each, corpus.name, stores)))
            for each in corpus.conversations
        ]


def sweep(
    settings: Settings, held: Sequence[Held], report: Comparison, how: How
) -> tuple[Swept, float]:
    """Return what the sweep found, and the seconds of its features and ranks."""
    asked = settings.sweep
    with progress("features", len(report.evidence), "questions") as advance:
        started = perf_counter()
        features = gather(held, report.evidence, how, advance)
        seconds = perf_counter() - started
    limit = settings.evaluation.limit
    aim: Objective | BudgetRecall
    if asked.objective == NAME:
        aim = budget_recall(held, features, budget=asked.budget, hits=asked.hits)
        limit = aim.hits
    else:
        aim = objective(asked.objective, limit)
    varying = features.varying()
    within = space([name for name in asked.parts if name in varying], asked.low, asked.high)
    weights = design(asked.design, within, asked.points, settings.seed)
    aim.measured(features, weights[:1])  # compiled outside the clock: once for a machine, then kept
    with progress(f"sweep of {asked.design}", len(weights), "settings") as advance:
        started = perf_counter()
        found = sums(features, weights, aim, threads=asked.threads, advance=advance)
        seconds += perf_counter() - started
    folds: list[int | None] = [None, *range(len(features.fold_starts) - 1)]
    if asked.design == "line_search" and within.varied:
        if not isinstance(aim, Objective):
            raise TypeError(f"{aim.name} has no line search")  # `coefficient_sweep.check` says so
        choices = _by_lines(features, weights, found, aim, within, folds, asked.threads)
    else:
        choices = [best_of_design(features, weights, found, fold) for fold in folds]
    constant = tuple(name for name in asked.parts if name not in varying)
    first, *others = choices
    return Swept(
        features, aim, within, constant, weights, found, first, tuple(others), limit
    ), seconds


def _by_lines(
    features: Features,
    weights: Floats,
    totals: Floats,
    aim: Objective,
    within: Space,
    folds: Sequence[int | None],
    threads: int,
) -> list[Choice]:
    workers = min(threads or os.cpu_count() or 1, len(folds))
    choices = []
    with (
        progress("line searches", len(folds), "choices") as advance,
        ThreadPoolExecutor(workers) as pool,
    ):
        for choice in pool.map(
            lambda fold: best_by_lines(features, weights, totals, aim, within, fold), folds
        ):
            choices.append(choice)
            advance(1)
    return choices


def _of_folds(swept: Swept) -> Callable[[str], Floats]:
    """Return each question's setting; one that is not judged by these labels gets the optimum."""
    own = {key: swept.weights_for(key) for key in swept.features.questions}
    return lambda key: own.get(key, swept.optimum.weights)


def _rerun(
    swept: Swept,
    held: Sequence[Held],
    weights_of: Callable[[str], Floats],
    how: How,
    advance: Callable[[int], None],
) -> Rankings:
    if isinstance(swept.objective, BudgetRecall):
        found = check_packets(swept.features, held, weights_of, how, swept.objective, advance)
    else:
        found, _ = recalled(held, weights_of, how, swept.limit, advance)
    check_equal(swept.features, weights_of, found, swept.limit)
    return found


def _speed(
    swept: Swept,
    held: Sequence[Held],
    how: How,
    sample: int,
    seconds: float,
    advance: Callable[[int], None],
) -> Speed | None:
    """Recall a sample of the design's settings, spread over it; each must rank as the sweep."""
    places = np.unique(np.linspace(0, len(swept.weights) - 1, sample).astype(np.int64))
    taken = []
    for weights in swept.weights[places]:
        found, each = recalled(held, always(weights), how, swept.limit, advance)
        check_equal(swept.features, always(weights), found, swept.limit)
        taken.append(each)
    return Speed(len(swept.weights), seconds, float(np.mean(taken))) if taken else None


def _others(
    settings: Settings, held: Sequence[Held], how: How, limit: int
) -> list[tuple[Row, Rankings]]:
    """Return what the lexical part alone, the hand-set score and the peer recall."""
    alone, _ = recalled(held, always(lexical_alone()), how, limit)
    found = [(_row(how.lexical, how.analyser), alone)]
    compared = rows(replace(settings.evaluation, scorers=[]), settings.retrieval)
    with progress("what it is held against", len(compared) * len(held), "passes") as advance:
        for row in compared:
            ranked: Rankings = {}
            for conversation, each in held:
                answer = row.bind(each, limit)
                for question in conversation.questions:
                    ranked[f"{conversation.id} {question.id}"] = answer(question.text)
                advance(1)
            found.append((row, ranked))
    return found


def _row(name: str, analyser: str, engine: Engine = "cma") -> Row:
    return Row(name, analyser, engine, _unbound)


def _unbound(_: Ingested, __: int) -> Answer:
    raise TypeError("these rankings were made by the sweep")

"""The coefficient sweep: many settings of a score at once, the best chosen on other conversations.

What is asked is checked here; `experiments.sweeping` does the work, and is imported only then.
"""

from __future__ import annotations

from cma.orion.analysis import ANALYSERS
from cma.orion.scoring import EVERY_PART, LEXICAL
from experiments import ranges, retrieval
from experiments.data.conversations import Corpus
from experiments.evaluation import METRICS
from experiments.failures import UsageError
from experiments.result import Result
from experiments.retrieval import HALF_LIFE_LIMIT, WEIGHT_LIMIT
from experiments.settings import Settings

POINTS_LIMIT = 1_000_000
SAMPLE_LIMIT = 100
THREADS_LIMIT = 1_024
LINE_SEARCH = "line_search"
DESIGNS = ("grid", "simplex", "random", "sobol", LINE_SEARCH)
BUDGET_RECALL = "budget_recall"
OBJECTIVES = (*METRICS, BUDGET_RECALL)
BUDGET_LIMIT = 1_000_000
HITS_LIMIT = 9_999
"""Longest list that is packed: a record's number counts as one token up to four digits."""
MEASURE = "lexical"
"""The part whose coefficient is held at 1: only the ratio of coefficients orders anything."""


def check(settings: Settings) -> None:
    """Refuse settings that make no sweep."""
    retrieval.check(settings)
    asked = settings.sweep
    ranges.names("sweep.design", [asked.design], DESIGNS)
    ranges.whole("sweep.points", asked.points, 1, POINTS_LIMIT)
    ranges.names("sweep.objective", [asked.objective], OBJECTIVES)
    ranges.whole("sweep.budget", asked.budget, 1, BUDGET_LIMIT)
    ranges.whole("sweep.hits", asked.hits, settings.evaluation.limit, HITS_LIMIT)
    if asked.objective == BUDGET_RECALL and asked.design == LINE_SEARCH:
        raise UsageError(
            "sweep.objective=budget_recall has no line search: what fits a packet changes wherever "
            "any two cells change places, and not at crossings with evidence alone; "
            "give sweep.design=sobol, random, grid or simplex"
        )
    ranges.names("sweep.analyser", [asked.analyser], ANALYSERS)
    ranges.names("sweep.lexical", [asked.lexical], LEXICAL)
    ranges.above("sweep.half_life_seconds", asked.half_life_seconds, 0.0, HALF_LIFE_LIMIT)
    ranges.number("sweep.low", asked.low, -WEIGHT_LIMIT, WEIGHT_LIMIT)
    ranges.above("sweep.high", asked.high, asked.low, WEIGHT_LIMIT)
    ranges.whole("sweep.sample", asked.sample, 0, SAMPLE_LIMIT)
    ranges.whole("sweep.threads", asked.threads, 0, THREADS_LIMIT)
    ranges.names("sweep.parts", asked.parts, [name for name in EVERY_PART if name != MEASURE])
    if not asked.parts or len(set(asked.parts)) != len(asked.parts):
        raise UsageError(f"sweep.parts={asked.parts}: name at least one part, and each once")
    least = {"grid": 2 ** len(asked.parts), "simplex": len(asked.parts) + 1}.get(asked.design, 1)
    if asked.points < least:
        raise UsageError(
            f"sweep.points={asked.points} is too few for a {asked.design} over "
            f"{len(asked.parts)} parts: give at least {least}, or sweep.design=sobol"
        )
    if not settings.evaluation.peer:
        raise UsageError("evaluation.peer=false leaves a sweep nothing to be held against")


def run(settings: Settings, corpus: Corpus) -> Result:
    """Sweep, choose, run what was chosen through the audited recall, and judge it."""
    from experiments.sweeping import study

    return study.run(settings, corpus)

"""The version ladder: the same questions to Orion, + Trifid, + Lagoon, + Rosette.

A rung is judged by the share of a question's evidence turns that it serves within a token budget.
Each rung keeps all of the one below; what it adds or costs is its paired difference to that rung,
whichever sign it has. Only turns are evidence: a claim takes room and counts by the sources that
it brings.
"""

from __future__ import annotations

import importlib.util
import logging
import tempfile
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from cma.orion.analysis import ANALYSERS
from cma.orion.scoring import LEXICAL
from experiments import ranges
from experiments.bootstrap import Floats, Interval
from experiments.climbing import PACKINGS, PASSES, RUNGS, Climbed, climb
from experiments.comparison import HEADLINE, Comparison
from experiments.data.conversations import Corpus
from experiments.engines import LEXICAL_ONLY, retrieval
from experiments.evaluation import METRICS
from experiments.failures import ExperimentError, UsageError
from experiments.progress import progress
from experiments.result import Figure, Result
from experiments.retrieval import LIMIT, RESAMPLES_LIMIT
from experiments.settings import Settings

BUDGET_LIMIT = 1_000_000
CLAIMS_LIMIT = 1_000
HEADLINE_BUDGET = 1024
VERSIONS: tuple[tuple[str, str, str], ...] = (
    ("sun", "memory through a narrow path into a frozen model", "it carries what is served"),
    ("orion", "typed cells and lexical recall", ""),
    ("trifid", "frames of episodes", ""),
    ("lagoon", "claims under approval", ""),
    ("eagle", "skills from executions", "conversations hold no executions"),
    ("rosette", "packets under a token budget", ""),
)
"""The versions in their order: what each adds, and why it has no rung where it has none."""
STEPS: tuple[tuple[tuple[str, str], tuple[str, str]], ...] = (
    (("trifid", "text"), ("orion", "text")),
    (("lagoon", "text"), ("trifid", "text")),
    (("rosette", "packet"), ("lagoon", "text")),
    (("trifid", "packet"), ("orion", "packet")),
    (("rosette", "packet"), ("trifid", "packet")),
)
"""Which measurement is held against which: the ladder, then its lists in one packing."""
_log = logging.getLogger(__name__)


def check(settings: Settings) -> None:
    """Refuse settings that make no ladder."""
    asked, judged = settings.ladder, settings.evaluation
    ranges.whole("seed", settings.seed, 0, ranges.SEED_LIMIT)
    ranges.whole("evaluation.resamples", judged.resamples, 1, RESAMPLES_LIMIT)
    ranges.between("evaluation.confidence", judged.confidence, 0.0, 1.0)
    if not asked.budgets:
        raise UsageError("ladder.budgets is empty: give at least one number of tokens")
    for budget in asked.budgets:
        ranges.whole("ladder.budgets", budget, 1, BUDGET_LIMIT)
    if len(set(asked.budgets)) != len(asked.budgets):
        raise UsageError(f"ladder.budgets={asked.budgets} names a budget twice")
    ranges.names("ladder.analyser", [asked.analyser], ANALYSERS)
    ranges.names("ladder.lexical", [asked.lexical], LEXICAL)
    ranges.whole("ladder.hits", asked.hits, 10, LIMIT)
    ranges.whole("ladder.window", asked.window, 1, 1_000)
    ranges.whole("ladder.neighbours", asked.neighbours, 0, 1_000)
    ranges.whole("ladder.frames", asked.frames, 1, 1_000)
    ranges.whole("ladder.sessions", asked.sessions, asked.frames, 1_000)
    ranges.whole("ladder.claims", asked.claims, 0, CLAIMS_LIMIT)
    ranges.whole("ladder.sources", asked.sources, 0, 1_000)


def run(settings: Settings, corpus: Corpus, folder: Path) -> Result:  # noqa: ARG001
    """Take every conversation up the ladder and judge the rungs."""
    asked = settings.ladder
    if corpus.documents:
        raise ExperimentError(
            f"{corpus.name} is a collection of documents: its rungs need speakers and sessions; "
            "take data=locomo or data=generated"
        )
    how = retrieval(asked.analyser, asked.lexical, LEXICAL_ONLY)
    report = Comparison(settings, corpus, "published", lambda question: question.evidence)
    climbed = []
    total = PASSES * corpus.question_count
    with (
        tempfile.TemporaryDirectory() as stores,
        progress(f"ladder on {corpus.name}", total, "recalls and packets") as advance,
    ):
        for conversation in corpus.conversations:
            climbed.append(climb(conversation, corpus.name, asked, how, Path(stores), advance))
            _log.info("%s: seconds %s", conversation.id, _seconds(climbed[-1]))
    tables = Tables(settings, corpus.name, report, climbed)
    return Result(
        figures=tables.figures(),
        tables={
            "ladder": pd.DataFrame(tables.ladder()),
            "differences": pd.DataFrame(tables.differences()),
            "costs": pd.DataFrame(tables.costs()),
            "versions": pd.DataFrame(versions()),
        },
        data=corpus.records,
        notes=(*corpus.notes, report.note(), *_notes(settings)),
    )


def versions() -> list[dict[str, Any]]:
    """Return the named versions: whether each has its package, and a rung here."""
    return [
        {
            "version": name,
            "package": importlib.util.find_spec(f"cma.{name}") is not None,
            "adds": adds,
            "rung": name in RUNGS,
            "why": why,
        }
        for name, adds, why in VERSIONS
    ]


class Tables:
    """The rungs of all conversations, judged question by question."""

    def __init__(
        self, settings: Settings, data: str, report: Comparison, climbed: Sequence[Climbed]
    ) -> None:
        """Take what was served and hold it against the evidence."""
        self._data, self._report, self._budgets = data, report, settings.ladder.budgets
        self._turns = {cell: turn for each in climbed for cell, turn in each.turn_of_cell.items()}
        self._counts: Counter[str] = sum((Counter(each.counts) for each in climbed), Counter())
        self._served = {
            key: {name: found for each in climbed for name, found in each.served[key].items()}
            for key in climbed[0].served
        }
        self._recall = {key: self._within(key) for key in self._served}
        self._at_ten = {
            rung: self._ranked(
                {n: cells for each in climbed for n, cells in each.lists[rung].items()}
            )
            for rung in climbed[0].lists
        }

    def ladder(self) -> list[dict[str, Any]]:
        """One line for each measurement, budget and category; recall@10 has no budget."""
        lines = []
        for (rung, packing, budget), values in self._recall.items():
            about: dict[str, Any] = {"rung": rung, "packing": packing, "budget": budget}
            lines += self._lines(about, "recall", values)
        for rung, values in self._at_ten.items():
            about = {"rung": rung, "packing": "none", "budget": 0}
            lines += self._lines(about, HEADLINE, values)
        return lines

    def differences(self) -> list[dict[str, Any]]:
        """What each rung adds to the one below, paired by question."""
        lines = []
        for (rung, packing), (below, other) in STEPS:
            for budget in self._budgets:
                about: dict[str, Any] = {"rung": rung, "packing": packing, "against": below}
                about |= {"against_packing": other, "budget": budget}
                gains = self._recall[rung, packing, budget] - self._recall[below, other, budget]
                lines += self._lines(about, "recall", gains)
        for rung, below in (("trifid", "orion"), ("lagoon", "trifid")):
            about = {"rung": rung, "packing": "none", "against": below}
            about |= {"against_packing": "none", "budget": 0}
            lines += self._lines(about, HEADLINE, self._at_ten[rung] - self._at_ten[below])
        return lines

    def costs(self) -> list[dict[str, Any]]:
        """What each measurement keeps in the stores, and serves for a question on average."""
        kept = {rung: self._kept(place) for place, rung in enumerate(RUNGS)}
        lines = []
        for (rung, packing, budget), found in self._served.items():
            own = [found[name] for name in self._report.judge.questions]
            turns = [sum(cell in self._turns for cell in each.cells) for each in own]
            cells = [len(each.cells) for each in own]
            lines.append(
                {"data": self._data, "rung": rung, "packing": packing, "budget": budget}
                | kept[rung]
                | {
                    "tokens": float(np.mean([each.tokens for each in own])),
                    "cells_served": float(np.mean(cells)),
                    "turns_served": float(np.mean(turns)),
                    "claims_served": float(np.mean(cells) - np.mean(turns)),
                    "n": len(own),
                }
            )
        return lines

    def figures(self) -> dict[str, Figure]:
        """Versions that have a package, rungs measured, and each rung's recall at the headline."""
        told = versions()
        found = {
            "ladder.versions": Figure(
                sum(each["package"] for each in told), "versions with a package", len(told)
            ),
            "ladder.rungs": Figure(len(RUNGS), "versions measured", len(told)),
        }
        prefix = "" if self._data == "locomo" else f"{self._data}."
        if HEADLINE_BUDGET in self._budgets:
            for rung, packing in PACKINGS[: len(RUNGS)]:
                [interval] = self._intervals("all", self._recall[rung, packing, HEADLINE_BUDGET])
                found[f"{prefix}ladder.recall_{HEADLINE_BUDGET}.{rung}"] = Figure(
                    interval.mean,
                    "share",
                    len(self._report.judge.questions),
                    (interval.low, interval.high),
                )
        return found

    def _kept(self, place: int) -> dict[str, int]:
        counts = self._counts
        frames = counts["frames"] if place >= RUNGS.index("trifid") else 0
        claiming = place >= RUNGS.index("lagoon")
        return {
            "cells": counts["cells"] + (counts["claims"] if claiming else 0),
            "frames": frames + (counts["claim_frames"] if claiming else 0),
            "proposals": counts["proposals"] if claiming else 0,
            "claims": counts["claims"] if claiming else 0,
        }

    def _within(self, key: tuple[str, str, int]) -> Floats:
        found = self._served[key]
        return np.array(
            [
                len({self._turns.get(cell) for cell in found[name].cells} & set(turns)) / len(turns)
                for name, turns in self._report.evidence.items()
            ]
        )

    def _ranked(self, lists: dict[str, Sequence[str]]) -> Floats:
        rankings = {
            name: [self._turns.get(cell, cell) for cell in cells] for name, cells in lists.items()
        }
        return self._report.judge.values(rankings)[:, METRICS.index(HEADLINE)]

    def _intervals(self, category: str, values: Floats) -> list[Interval]:
        members = self._report.members[category]
        return self._report.bootstraps[category].intervals(values[members][:, np.newaxis])

    def _lines(self, about: dict[str, Any], metric: str, values: Floats) -> list[dict[str, Any]]:
        lines = []
        for category, members in self._report.members.items():
            [found] = self._intervals(category, values)
            lines.append(
                {"data": self._data}
                | about
                | {"category": category, "metric": metric, "value": found.mean}
                | {"low": found.low, "high": found.high, "n": len(members)}
            )
        return lines


def _seconds(climbed: Climbed) -> str:
    return ", ".join(f"{rung} {seconds:.1f}" for rung, seconds in climbed.seconds.items())


def _notes(settings: Settings) -> list[str]:
    asked = settings.ladder
    return [
        (
            f"Orion: {asked.lexical} by the {asked.analyser} analyser alone, {asked.hits} cells a "
            "question; a strong start, so that no rung gains from a weak one."
        ),
        (
            f"Trifid: a frame a session (at most {asked.window} turns); a hit brings "
            f"{asked.neighbours} on each side within its frame."
        ),
        (
            f"Lagoon: a word that a speaker says in {asked.frames} to {asked.sessions} sessions is "
            f"proposed as a claim, at most {asked.claims} a speaker, those of most turns first; "
            f"every proposal is approved by rule, and a claim brings {asked.sources} of its "
            "sources, the best ranked first."
        ),
        (
            "Rosette: the same list as Lagoon, through the packet builder, nothing delivered; what "
            "a rung brings beside its hits is offered as further hits of the same recall."
        ),
        (
            "Packing is one rule for all: whole items in rank order while the whole text fits, and "
            "a smaller item further down may still fit. Rungs below Rosette hand over bare "
            "contents (packing text), Rosette headings, sources and bars too (packing packet); the "
            "lower rungs' lists in Rosette's packing stand beside."
        ),
        "Every setting was chosen before it was measured; none was tuned on these questions.",
        (
            f"Intervals: {settings.evaluation.confidence:.0%} percentile bootstrap over questions, "
            f"{settings.evaluation.resamples:,} resamples, shared by all rungs."
        ),
    ]

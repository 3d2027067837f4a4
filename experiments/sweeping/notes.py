"""Notes of a sweep: what was chosen by what, what was held still, and what was run again."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cma.orion.scoring import EVERY_PART
from experiments.data.conversations import Corpus
from experiments.settings import Settings
from experiments.sweeping.budget import BudgetRecall

if TYPE_CHECKING:
    from experiments.sweeping.study import Swept


def notes(settings: Settings, corpus: Corpus, swept: Swept) -> list[str]:
    """Return what a reader of the tables has to know."""
    asked, judged = settings.sweep, settings.evaluation
    fold = "conversation" if len(corpus.conversations) > 1 else "tenth of the questions"
    return [
        (
            f"{len(swept.weights):,} settings ({asked.design}) of "
            f"{_told(swept) or 'nothing'} beside lexical: "
            f"{asked.lexical}, {asked.analyser} analyser, half-life "
            f"{asked.half_life_seconds:g} s. The lexical coefficient is 1, the others lie from "
            f"{asked.low:g} to {asked.high:g}"
            + (", but on the simplex, where all sum to 1." if asked.design == "simplex" else ".")
        ),
        *(
            [f"Left at 0, since no two candidates differ in it: {', '.join(swept.constant)}."]
            if swept.constant
            else []
        ),
        (
            f"tuned: each {fold} is recalled with the setting that was chosen on the others. "
            "tuned in sample: the setting chosen on all questions, which it flatters. Design, "
            "parts, analyser and lexical function were not chosen inside the folds."
        ),
        (
            "Both, and the sampled settings, were run again through the audited Memory.recall: "
            f"the first {swept.limit} cells of every question are the same, in the same order."
        ),
        *_of_packets(swept),
        (
            f"Intervals: {judged.confidence:.0%} percentile bootstrap over questions, "
            f"{judged.resamples:,} resamples, shared by all rows."
        ),
    ]


def _of_packets(swept: Swept) -> list[str]:
    aim = swept.objective
    if not isinstance(aim, BudgetRecall):
        return []
    return [
        (
            f"{aim.name}: the share of a question's evidence turns that stand in the packet of its "
            f"first {aim.hits:,} cells under {aim.budget:,} tokens (plain counter; headings and "
            "sources count). Whole records in rank order; what does not fit is left out, and a "
            "smaller one further down may still fit. tuned and tuned in sample were built by "
            "Memory.packet and hold the same cells; other rows, BM25's too, are packed by the "
            "same sum of records."
        ),
        (
            "The best of the design: what fits changes wherever any two cells change places, so "
            "there is no exact line along a coefficient, and no table of how far one can go."
        ),
    ]


def _told(swept: Swept) -> str:
    return ", ".join(EVERY_PART[part] for part in swept.space.varied)

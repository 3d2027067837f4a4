"""The table of experiments: what each is called, reads and runs. Nothing is found by magic."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from experiments import contract_tally, graph_fixture, recovery, retrieval
from experiments.data.conversations import Corpus
from experiments.failures import UsageError
from experiments.result import Result
from experiments.settings import Settings


@dataclass(frozen=True, slots=True)
class Experiment:
    """One experiment: the settings it reads, whether it needs conversations, and its function."""

    sections: tuple[str, ...]
    """Sections of `Settings` that can change its result, and so enter its run id."""
    needs_corpus: bool
    check: Callable[[Settings], None]
    """Raises UsageError for settings that make no sense, before anything is written."""
    run: Callable[[Settings, Corpus | None, Path], Result]


EXPERIMENTS: dict[str, Experiment] = {
    "contract_tally": Experiment(
        sections=("tally",),
        needs_corpus=False,
        check=contract_tally.check,
        run=lambda settings, _, folder: contract_tally.run(settings, folder),
    ),
    "graph_fixture": Experiment(
        sections=(),
        needs_corpus=False,
        check=graph_fixture.check,
        run=lambda settings, _, folder: graph_fixture.run(settings, folder),
    ),
    "recovery": Experiment(
        sections=(),
        needs_corpus=False,
        check=recovery.check,
        run=lambda settings, _, folder: recovery.run(settings, folder),
    ),
    "retrieval": Experiment(
        sections=("data", "retrieval", "store", "evaluation"),
        needs_corpus=True,
        check=retrieval.check,
        run=lambda settings, corpus, folder: retrieval.run(settings, _given(corpus), folder),
    ),
}


def lookup(name: str) -> Experiment:
    """Return the experiment of that name."""
    try:
        return EXPERIMENTS[name]
    except KeyError:
        raise UsageError(
            f"experiment={name!r} is unknown; there are: {', '.join(EXPERIMENTS)}"
        ) from None


def _given(corpus: Corpus | None) -> Corpus:
    if corpus is None:
        raise TypeError("this experiment needs a corpus")
    return corpus

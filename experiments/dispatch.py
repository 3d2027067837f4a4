"""The table of experiments: what each is called, reads and runs. Nothing is found by magic."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from experiments import (
    coefficient_sweep,
    concurrency,
    contract_tally,
    explain,
    failure_matrix,
    fuzz,
    graph_fixture,
    models,
    recovery,
    retrieval,
    scale,
    stage150,
    version_ladder,
)
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
    inputs: Callable[[Settings], dict[str, Any]] = lambda _: {}
    """What else tells a run apart, such as the results of others that it reads."""
    whole: Callable[[Path], bool] = lambda _: True
    """Whether what a run wrote beside its result and tables is as it left it."""


def _sun(name: str) -> Callable[[Settings, Corpus | None, Path], Result]:
    """Return the run of an experiment that needs torch, which is imported only then."""

    def run(settings: Settings, _: Corpus | None, __: Path) -> Result:
        return cast(Result, importlib.import_module(f"experiments.{name}").run(settings))

    return run


EXPERIMENTS: dict[str, Experiment] = {
    "delta_norm": Experiment(
        sections=("model", "delta"),
        needs_corpus=False,
        check=models.check,
        run=_sun("delta_norm"),
    ),
    "task_gain": Experiment(
        sections=("model", "task_gain"),
        needs_corpus=False,
        check=models.check_task_gain,
        run=_sun("task_gain"),
    ),
    "model_transfer": Experiment(
        sections=("model", "delta", "transfer"),
        needs_corpus=False,
        check=models.check_transfer,
        run=_sun("model_transfer"),
    ),
    "contract_tally": Experiment(
        sections=("tally",),
        needs_corpus=False,
        check=contract_tally.check,
        run=lambda settings, _, folder: contract_tally.run(settings, folder),
    ),
    "explain": Experiment(
        sections=(),
        needs_corpus=False,
        check=explain.check,
        run=lambda settings, _, folder: explain.run(settings, folder),
    ),
    "failure_matrix": Experiment(
        sections=(),
        needs_corpus=False,
        check=failure_matrix.check,
        run=lambda settings, _, folder: failure_matrix.run(settings, folder),
    ),
    "graph_fixture": Experiment(
        sections=(),
        needs_corpus=False,
        check=graph_fixture.check,
        run=lambda settings, _, folder: graph_fixture.run(settings, folder),
    ),
    "concurrency": Experiment(
        sections=("concurrency",),
        needs_corpus=False,
        check=concurrency.check,
        run=lambda settings, _, folder: concurrency.run(settings, folder),
    ),
    "fuzz": Experiment(
        sections=("fuzz",),
        needs_corpus=False,
        check=fuzz.check,
        run=lambda settings, _, folder: fuzz.run(settings, folder),
    ),
    "recovery": Experiment(
        sections=("recovery",),
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
    "coefficient_sweep": Experiment(
        sections=("data", "retrieval", "evaluation", "sweep"),
        needs_corpus=True,
        check=coefficient_sweep.check,
        run=lambda settings, corpus, _: coefficient_sweep.run(settings, _given(corpus)),
    ),
    "scale": Experiment(
        sections=("scale",),
        needs_corpus=False,
        check=scale.check,
        run=lambda settings, _, __: scale.run(settings),
    ),
    "stage150": Experiment(
        sections=(),
        needs_corpus=False,
        check=stage150.check,
        run=lambda settings, _, folder: stage150.run(settings, folder),
        inputs=stage150.inputs,
        whole=stage150.whole,
    ),
    "version_ladder": Experiment(
        sections=("data", "evaluation", "ladder"),
        needs_corpus=True,
        check=version_ladder.check,
        run=lambda settings, corpus, folder: version_ladder.run(settings, _given(corpus), folder),
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

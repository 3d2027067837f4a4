"""Does served memory change answers? A tiny frozen model, adapters trained over it, held-out facts.

The base model is trained here from scratch on the same kind of text, then frozen. Each seed trains
one adapter and asks about facts that it has not seen; the served cells come out of a memory that
holds them, by recall and packet, and reach the model as vectors or, for comparison, as text.
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from math import sqrt
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray
from scipy.stats import t as student

from cma import Caller, FixedClock, Memory
from cma.sun.adapter import MemoryAdapter
from cma.sun.attaching import attached
from cma.sun.interventions import Condition, Intervention
from cma.sun.runtime import FrozenRuntime
from experiments.facts import FACTS, Ints, Sample, sample, split
from experiments.models import settled
from experiments.progress import progress
from experiments.result import Figure, Result
from experiments.settings import Settings, TaskGainSettings
from experiments.training import context, fact_vectors, trained_adapter, trained_base

START = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
CALLER = Caller(name="ann", authority="user")
CONDITIONS: Mapping[str, Condition | None] = {
    "full": Condition(),
    "none": Condition(Intervention.NO_MEMORY),
    "shuffled": Condition(Intervention.SHUFFLED),
    "other": Condition(),
    "text": None,
}
"""`other` is full delivery of what was served for another question; `text` uses no adapter."""
CONFIDENCE = 0.95
METRICS = ("exact_match", "log_likelihood")
BUDGET = 4_096
DIGITS = 4


def run(settings: Settings) -> Result:
    """Train, ask, and compare; every figure is a mean over seeds with its interval.

    One thread: matrices this small are slower on several, and their sums would depend on them.
    """
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        return _run(settings)
    finally:
        torch.set_num_threads(threads)


def _run(settings: Settings) -> Result:
    task, device = settings.task_gain, settled(settings.model).device
    generator = np.random.default_rng(settings.seed)
    pool, held = split(generator)
    steps = task.base_steps + task.seeds * task.adapter_steps
    with progress("task_gain", steps, "steps") as advance:
        every = np.ones_like(pool)
        runtime = trained_base(task, every, seed=settings.seed, device=device, advance=advance)
        vectors = fact_vectors(runtime)
        rows: list[dict[str, Any]] = []
        for seed in range(settings.seed + 1, settings.seed + 1 + task.seeds):
            adapter = trained_adapter(runtime, vectors, task, pool, seed=seed, advance=advance)
            asked = served(sample(held, task.questions, task.facts, np.random.default_rng(seed)))
            rows += [
                {"seed": seed, "condition": name, **measured}
                for name, measured in answers(runtime, adapter, vectors, asked, seed).items()
            ]
    runtime.check_unchanged()
    found = pd.DataFrame(rows)
    sizes = [sum(each.numel() for each in part.parameters()) for part in (runtime.model, adapter)]
    return Result(
        figures=figures_of(found, task),
        tables={"answers": found.round(DIGITS), "summary": pd.DataFrame(intervals(found))},
        notes=(
            (
                f"Base model: {sizes[0]:,} parameters, {task.base_steps:,} steps; adapter: "
                f"{sizes[1]:,}, {task.adapter_steps:,} steps. The base model reads every fact "
                "equally often, so it can know none; a fifth of the values of each name and verb "
                "is held out of the adapters' training, and asked about."
            ),
            (
                "A toy task on generated facts: it shows that served vectors can carry an answer "
                "into a frozen model, and nothing about real tasks."
            ),
        ),
    )


def served(asked: Sample) -> Sample:
    """Return the questions with the facts in the order in which a packet serves them.

    Each question has a session of its own that holds its facts; the question is recalled there
    with the packet's groups as the answer, so that retrieval has its say.
    """
    by_text = {fact.text: place for place, fact in enumerate(FACTS)}
    shown = np.empty_like(asked.shown)
    with (
        tempfile.TemporaryDirectory() as folder,
        Memory.open(
            Path(folder) / "memory.cma", caller=CALLER, clock=FixedClock(START), store_id="facts"
        ) as memory,
    ):
        for number, facts in enumerate(asked.shown.tolist()):
            view = memory.within(f"session:q{number}")
            view.write_many(
                {
                    "kind": "episodic",
                    "content": FACTS[fact].text,
                    "origin": "generated",
                    "observed_at": START + timedelta(minutes=place),
                }
                for place, fact in enumerate(facts)
            )
            found = view.recall(FACTS[asked.asked[number]].question, limit=len(facts))
            packet = view.packet(found, budget=BUDGET)
            hits = [by_text[cell.content] for cell in packet.cells]
            # What shares no word with the question is not served; its place repeats what is.
            shown[number] = np.resize(hits, len(facts))
    return Sample(asked=asked.asked, shown=shown)


def answers(
    runtime: FrozenRuntime,
    adapter: MemoryAdapter,
    vectors: torch.Tensor,
    asked: Sample,
    seed: int,
) -> dict[str, dict[str, float]]:
    """Return exact match and the mean log-likelihood of the right word, by condition."""
    found = {}
    for name, condition in CONDITIONS.items():
        if condition is None:
            logits = _logits(runtime, asked.prompts(with_text=True))
        else:
            shown = np.roll(asked.shown, 1, axis=0) if name == "other" else asked.shown
            if condition.intervention is Intervention.SHUFFLED:
                condition = Condition(Intervention.SHUFFLED, seed=seed)
            with attached(runtime, adapter, context(vectors, shown), condition):
                logits = _logits(runtime, asked.prompts(with_text=False))
        found[name] = _scored(logits, asked.answers)
    return found


def intervals(rows: pd.DataFrame) -> list[dict[str, Any]]:
    """Return mean and interval over seeds, by metric and condition, and of full minus each."""
    found = []
    for metric in METRICS:
        by_seed = rows.pivot_table(index="seed", columns="condition", values=metric)
        columns = {name: by_seed[name] for name in CONDITIONS}
        less = {f"full - {name}": by_seed["full"] - by_seed[name] for name in CONDITIONS}
        del less["full - full"]
        found += [
            _interval(values.to_numpy(), condition=name, metric=metric)
            for name, values in {**columns, **less}.items()
        ]
    return found


def figures_of(rows: pd.DataFrame, task: TaskGainSettings) -> dict[str, Figure]:
    """Return the headline figures: exact match by condition, and what memory adds."""
    keys = {name: f"task_gain.exact_match.{name}" for name in CONDITIONS}
    keys["full - none"] = "task_gain.full_minus_none"
    return {
        keys[row["condition"]]: Figure(
            row["mean"],
            "share",
            task.seeds * task.questions,
            interval=None if np.isnan(row["low"]) else (row["low"], row["high"]),
        )
        for row in intervals(rows)
        if row["metric"] == METRICS[0] and row["condition"] in keys
    }


def _logits(runtime: FrozenRuntime, prompts: Ints) -> torch.Tensor:
    ids = torch.from_numpy(prompts).to(runtime.device)
    with torch.no_grad():
        logits: torch.Tensor = runtime.model(input_ids=ids).logits[:, -1].float().cpu()
    return logits


def _scored(logits: torch.Tensor, right: NDArray[np.int64]) -> dict[str, float]:
    wanted = torch.from_numpy(right)
    likely = logits.log_softmax(-1).gather(1, wanted[:, None]).mean()
    return {
        "exact_match": float((logits.argmax(-1) == wanted).float().mean()),
        "log_likelihood": float(likely),
    }


def _interval(values: NDArray[np.float64], **names: str) -> dict[str, Any]:
    """Return the mean over seeds with Student's interval; none from a single seed."""
    count = len(values)
    mean = float(values.mean())
    half = float("nan")
    if count > 1:
        spread = float(values.std(ddof=1)) / sqrt(count)
        half = float(student.ppf((1 + CONFIDENCE) / 2, count - 1)) * spread
    return {
        **names,
        "mean": round(mean, DIGITS),
        "low": round(mean - half, DIGITS),
        "high": round(mean + half, DIGITS),
        "seeds": count,
    }

"""Writers at once on one store: what was acknowledged is there, once, on one unbroken chain.

Processes, then threads of one process, do the same kinds of work together on a new store. When all
have closed it, a checker that shares no code with the library reads the file and the writers' logs.
Three faults are then written into copies, each with a chain made to fit: the checker must report
every one, or the run fails, since its silence about the store would mean nothing.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from experiments import ranges
from experiments.contending.running import Contest, contest
from experiments.failures import ExperimentError
from experiments.progress import progress
from experiments.result import Figure, Result
from experiments.settings import Settings

MOST_WRITERS = 64
MOST_OPERATIONS = 100_000
KINDS = {
    "lost": "acknowledged, and not there",
    "unacknowledged": "there, and acknowledged to nobody",
    "duplicate_approvals": "decided twice: a proposal, a claim, or an approval's name",
    "forks": "a head of the chain that is not on it",
    "one_sided_conflicts": "a contradiction without its other side, or its link",
    "disagreements": "a record that is not what the chain tells",
}
CONTROLS = ("lost", "duplicate_approvals", "forks")


@dataclass(frozen=True, slots=True)
class Checked:
    """What the checker said of a store: how much it looked at, and what was wrong, by kind."""

    looked: dict[str, int]
    wrong: dict[str, list[str]]


@dataclass(frozen=True, slots=True)
class Round:
    """One contest with its check. controls: the planted faults that the checker reported."""

    writers: str
    contest: Contest
    checked: Checked
    controls: tuple[str, ...]


def check(settings: Settings) -> None:
    """Refuse numbers out of range."""
    ranges.whole("seed", settings.seed, 0, ranges.SEED_LIMIT)
    ranges.whole("concurrency.writers", settings.concurrency.writers, 2, MOST_WRITERS)
    ranges.whole("concurrency.operations", settings.concurrency.operations, 1, MOST_OPERATIONS)


def run(settings: Settings, folder: Path) -> Result:  # noqa: ARG001
    """Hold both contests, check each store, and see that the checker can see."""
    names = [f"writer-{number}" for number in range(settings.concurrency.writers)]
    count = settings.concurrency.operations
    ways = {"processes": [[name] for name in names], "threads of one process": [names]}
    rounds = []
    with (
        tempfile.TemporaryDirectory() as temporary,
        progress("contests", len(ways) * len(names) * count, "operations") as advance,
    ):
        for place, (way, children) in enumerate(ways.items()):
            store = Path(temporary) / str(place)
            store.mkdir()
            held = contest(store, children, count, settings.seed)
            rounds.append(Round(way, held, checked(store), controls(store)))
            advance(len(held.answers))
    return result_of(len(names), rounds)


def checked(folder: Path) -> Checked:
    """Return what the checker says, from a process of its own."""
    return Checked(**json.loads(_child("experiments.contending.checking", folder)))


def controls(folder: Path) -> tuple[str, ...]:
    """Plant each fault into a copy of the store; return those that the checker reported.

    Raises ExperimentError where it does not report one.
    """
    seen = []
    for fault in CONTROLS:
        copy = folder.with_name(f"{folder.name}-{fault}")
        shutil.copytree(folder, copy)
        _child("experiments.contending.planting", copy, fault)
        if not checked(copy).wrong[fault]:
            raise ExperimentError(f"the checker does not see a planted fault: {fault}")
        shutil.rmtree(copy)
        seen.append(fault)
    return tuple(seen)


def _child(module: str, *arguments: object) -> str:
    done = subprocess.run(
        [sys.executable, "-m", module, *map(str, arguments)],
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        raise ExperimentError(f"{module} failed: {done.stderr.strip()[-400:]}")
    return done.stdout


def result_of(writers: int, rounds: Sequence[Round]) -> Result:
    """Return figures, what is wrong by kind, and what this machine took."""
    operations = sum(len(each.contest.answers) for each in rounds)
    figures = {"concurrency.operations": Figure(operations, "operations", operations)}
    rows, notes = [], []
    for kind, meaning in KINDS.items():
        wrong = [each.checked.wrong[kind] for each in rounds]
        seen = sum(kind in each.controls for each in rounds)
        figures[f"concurrency.{kind}"] = Figure(
            sum(map(len, wrong)), "cases", operations, control=seen or None
        )
        rows += [
            {
                "writers": f"{writers} {each.writers}",
                "operations": len(each.contest.answers),
                "kind": kind,
                "meaning": meaning,
                "cases": len(found),
            }
            for each, found in zip(rounds, wrong, strict=True)
        ]
        notes += [f"FAILED: {kind}: {what}." for found in wrong for what in found]
    return Result(
        figures=figures,
        tables={"concurrency": pd.DataFrame(rows)},
        notes=tuple(notes),
        measured=_measured(rounds),
        measured_tables={
            "concurrency_answers": pd.DataFrame(_answers(writers, rounds)),
            "concurrency_looks": pd.DataFrame(
                [
                    {"writers": f"{writers} {each.writers}", "what": what, "looks": looks}
                    for each in rounds
                    for what, looks in each.checked.looked.items()
                ]
            ),
        },
    )


def _measured(rounds: Sequence[Round]) -> dict[str, Figure]:
    processes, threads = rounds
    writes = _seconds(processes.contest.answers, "write")
    return {
        "concurrency.throughput": _throughput(processes.contest),
        "concurrency.throughput_threads": _throughput(threads.contest),
        "concurrency.write_p99_ms": Figure(
            1000 * float(np.quantile(writes, 0.99)), "ms", len(writes)
        ),
    }


def _throughput(held: Contest) -> Figure:
    return Figure(len(held.answers) / held.seconds, "operations a second", len(held.answers))


def _seconds(answers: Sequence[dict[str, Any]], operation: str) -> list[float]:
    return [each["seconds"] for each in answers if each["op"] == operation and "said" in each]


def _answers(writers: int, rounds: Sequence[Round]) -> list[dict[str, Any]]:
    """Return what was acknowledged and refused by operation, and how long answers took."""
    rows = []
    for each in rounds:
        refused: dict[str, Counter[str]] = {}
        for answer in each.contest.answers:
            codes = refused.setdefault(answer["op"], Counter())
            if "refused" in answer:
                codes[answer["refused"]] += 1
        for operation, codes in sorted(refused.items()):
            times = [1000 * seconds for seconds in _seconds(each.contest.answers, operation)]
            rows.append(
                {
                    "writers": f"{writers} {each.writers}",
                    "operation": operation,
                    "acknowledged": len(times),
                    "refused": codes.total(),
                    "codes": ", ".join(f"{code} {n}" for code, n in sorted(codes.items())),
                    "median_ms": float(np.median(times)) if times else None,
                    "p99_ms": float(np.quantile(times, 0.99)) if times else None,
                }
            )
    return rows

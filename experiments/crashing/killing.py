"""`kill -9`: writers are killed at random instants and at random calls to the disk, and judged.

A store is killed several times over: each writer goes on from where the one before was killed,
until the script is done. Half of the writers are killed from outside, the other half kill
themselves right before a call or half-way through a write.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, NamedTuple, cast

from experiments.crashing.calls import Fate
from experiments.crashing.judging import Verdict, left
from experiments.crashing.nursery import DONE, FIRST, LAST, Order
from experiments.crashing.script import Reference
from experiments.failures import ExperimentError
from experiments.runs import ROOT

LONGEST_LIFE_SECONDS = 0.03
"""Of a writer that is killed from outside; it takes a few thousandths to open its store."""
FARTHEST_CALL = 80
PATIENCE_SECONDS = 60.0


class Tally(NamedTuple):
    """Verdicts by how the writer was killed, and how many steps were acknowledged in all."""

    verdicts: Counter[tuple[str, Verdict]]
    acknowledged: int


@contextmanager
def nursery(folder: Path) -> Iterator[subprocess.Popen[str]]:
    """Start the process that forks writers; it ends with the block."""
    folder.mkdir()
    process = subprocess.Popen(
        [sys.executable, "-m", "experiments.crashing.nursery", str(folder)],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        if _line(process) != "ready":
            raise ExperimentError("the process that forks writers did not start")
        yield process
    finally:
        cast(IO[str], process.stdin).close()
        cast(IO[str], process.stdout).close()
        process.wait(PATIENCE_SECONDS)


def cycles(
    process: subprocess.Popen[str],
    reference: Reference,
    place: Path,
    *,
    count: int,
    seed: str,
    synchronous: str,
    advance: Callable[[int], None],
) -> Tally:
    """Kill so many writers and judge what each left."""
    chance = random.Random(seed)  # noqa: S311 (when to kill is no secret)
    verdicts: Counter[tuple[str, Verdict]] = Counter()
    acknowledged = stores = stands = 0
    folder = place / "0"
    for number in range(count):
        if stands in (0, len(reference.steps)):
            shutil.rmtree(folder, ignore_errors=True)
            stores, stands = stores + 1, 0
            folder = place / str(stores)
            folder.mkdir(parents=True)
        order, killed = _order(folder, stands, synchronous, chance, by_itself=bool(number % 2))
        told = life(process, order, chance.random() * LONGEST_LIFE_SECONDS)
        acknowledged += told - stands
        begun = min(told + 1, len(reference.steps))
        found = left(folder, reference, told, begun)
        verdicts[killed, found.verdict] += 1
        # Going on from what was left is part of the judgement, so the store stands one further.
        whole = found.verdict is Verdict.WHOLE
        stands = min((found.place or 0) + 1, len(reference.steps)) if whole else 0
        advance(1)
    return Tally(verdicts, acknowledged)


def _order(
    folder: Path, begin: int, synchronous: str, chance: random.Random, *, by_itself: bool
) -> tuple[Order, str]:
    if not by_itself:
        return Order(str(folder), begin, synchronous), "at any instant"
    fate = chance.choice((Fate.KILL, Fate.TEAR))
    at = chance.randint(1, FARTHEST_CALL)
    killed = "before a call" if fate is Fate.KILL else "half-way through a call"
    return Order(str(folder), begin, synchronous, at, fate.value), killed


def life(process: subprocess.Popen[str], order: Order, seconds: float) -> int:
    """Let a writer live; return after how many steps it stood by its own word."""
    orders = cast(IO[str], process.stdin)
    orders.write(json.dumps(order._asdict()) + "\n")
    orders.flush()
    done = order.begin
    while True:
        word, _, rest = _line(process).partition(" ")
        if word == FIRST and not order.dies_at:
            time.sleep(seconds)
            os.kill(int(rest), signal.SIGKILL)  # not reaped before the next order, so it is there
        elif word == DONE:
            done = int(rest)
        elif word == LAST:
            return done
        elif word != FIRST:
            raise ExperimentError(f"a writer {word} {rest}")


def _line(process: subprocess.Popen[str]) -> str:
    line = cast(IO[str], process.stdout).readline()
    if not line:
        raise ExperimentError("the process that forks writers has ended")
    return line.rstrip("\n")

"""A contest: children begin together, work on one store, and all have closed it at the end."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from experiments.contending.operations import prepare
from experiments.failures import ExperimentError

PATIENCE_SECONDS = 1800.0
TOLD = 400


@dataclass(frozen=True, slots=True)
class Contest:
    """What was done, in the order of each log, and how long all of it took."""

    answers: tuple[dict[str, Any], ...]
    seconds: float


def contest(folder: Path, children: Sequence[Sequence[str]], count: int, seed: int) -> Contest:
    """Let children work on a new store in this folder; each has the contenders that it names.

    count: operations of each contender. Raises ExperimentError where a child ends otherwise than
    by having done its work, as it would for an error that is none of the library's.
    """
    prepare(folder)
    child = (sys.executable, "-m", "experiments.contending.child", str(folder))
    with ExitStack() as stack:
        processes = []
        for names in children:
            process = stack.enter_context(_child((*child, str(count), str(seed), *names)))
            stack.callback(process.kill)
            processes.append(process)
        for process in processes:
            if process.stdout is None or process.stdout.readline() != "ready\n":
                raise ExperimentError(f"a contender could not begin: {_last_words(process)}")
        began = time.perf_counter()
        for process in processes:
            if process.stdin is not None:
                process.stdin.write("go\n")
                process.stdin.flush()
        for process in processes:
            words = _last_words(process)
            if process.returncode != 0:
                raise ExperimentError(f"a contender gave up: {words}")
        seconds = time.perf_counter() - began
    answers = [
        json.loads(line)
        for names in children
        for name in names
        for line in (folder / f"{name}.log").read_text(encoding="utf-8").splitlines()
    ]
    return Contest(tuple(answers), seconds)


def _child(command: Sequence[str]) -> subprocess.Popen[str]:
    pipe = subprocess.PIPE
    return subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, text=True)


def _last_words(process: subprocess.Popen[str]) -> str:
    try:
        _, said = process.communicate(timeout=PATIENCE_SECONDS)
    except subprocess.TimeoutExpired as error:
        raise ExperimentError("a contender did not come to an end") from error
    return said.strip()[-TOLD:]

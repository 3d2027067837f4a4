"""One child: opens the store, waits for the word, does its operations, and logs every answer.

`python -m experiments.contending.child FOLDER COUNT SEED NAME...`: one contender a name. Several
names share one open memory, each in a thread of its own. The log has one JSON line an operation:
what was acknowledged, or the code of the refusal.
"""

from __future__ import annotations

import json
import random
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, TextIO

from cma import Caller, CmaError, Memory
from cma.values.errors import StoreRefusedError, StoreUnavailableError
from experiments.contending.operations import OPERATIONS, SCOPE, STORE, WORLD, Contender


def main(arguments: list[str]) -> None:
    """Work as the arguments say; print `ready` and wait for a line before the first operation."""
    folder, count, seed = Path(arguments[0]), int(arguments[1]), arguments[2]
    names = arguments[3:]
    world = json.loads((folder / WORLD).read_text(encoding="utf-8"))
    with Memory.open(folder / STORE) as memory, ThreadPoolExecutor(len(names)) as threads:
        together = threading.Barrier(len(names))

        def contend(name: str) -> None:
            view = memory.within(SCOPE).acting_as(Caller(name=name, authority="user"))
            by = Contender(name, view, random.Random(f"{seed} {name}"), world, folder)  # noqa: S311
            together.wait()
            with (folder / f"{name}.log").open("w", encoding="utf-8") as log:
                _work(by, count, log)

        sys.stdout.write("ready\n")
        sys.stdout.flush()
        sys.stdin.readline()
        for done in [threads.submit(contend, name) for name in names]:
            done.result()


def _work(by: Contender, count: int, log: TextIO) -> None:
    weights = [weight for weight, _ in OPERATIONS.values()]
    for name in by.chance.choices(list(OPERATIONS), weights, k=count):
        answer: dict[str, Any] = {"by": by.name, "op": name}
        began = time.perf_counter()
        try:
            answer["said"] = OPERATIONS[name][1](by)
        except CmaError as error:
            answer["refused"] = error.code
            # A store that could not answer, or that is refused, takes no record of it.
            unrecorded = isinstance(error, StoreUnavailableError | StoreRefusedError)
            answer["on_record"] = not unrecorded
        answer["seconds"] = time.perf_counter() - began
        log.write(json.dumps(answer) + "\n")
        log.flush()


if __name__ == "__main__":
    main(sys.argv[1:])

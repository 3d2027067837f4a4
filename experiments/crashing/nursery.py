"""A process that forks writers to be killed, so that none of them needs to start an interpreter.

One line of JSON on standard input asks for a writer. Its process number comes back, then one line
for each step that it was told is done, and `ended` when it is dead. A writer opens the store
itself: nothing of a store is carried over a fork.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from experiments.crashing import script
from experiments.crashing.calls import Call, Fate
from experiments.crashing.watching import watched

CHANGING = ("create", "write", "truncate", "sync", "delete", "rename", "link")
FIRST = "pid"
DONE = "done"
LAST = "ended"
FAILED = "failed:"


class Order(NamedTuple):
    """What a writer is to do: from which step on, and at which call it is to kill itself."""

    folder: str
    begin: int
    synchronous: str = script.FULL
    dies_at: int = 0
    """The changing call at which it kills itself (0: it waits to be killed)."""
    fate: str = Fate.KILL.value


def serve() -> None:
    """Run the script once for what its steps need to know, then fork a writer for each order."""
    known = script.reference(Path(sys.argv[1])).known
    tell("ready")
    child = 0
    for line in sys.stdin:
        if child:  # reaped no earlier, so that whoever kills it by number meets no other process
            os.waitpid(child, 0)
        alive, held = os.pipe()
        child = os.fork()
        if child == 0:
            os.close(alive)
            try:
                _write(Order(**json.loads(line)), known)
            except BaseException as error:  # whatever it is, the parent is told and nothing runs on
                tell(f"{FAILED} {type(error).__name__}: {error}")
            finally:
                os._exit(0)
        os.close(held)
        tell(f"{FIRST} {child}")
        os.read(alive, 1)  # returns when the last holder of the other end is dead
        os.close(alive)
        tell(LAST)
    if child:
        os.waitpid(child, 0)


def tell(line: str) -> None:
    """Write one line past every buffer: a killed process leaves none half-full."""
    os.write(1, f"{line}\n".encode())


def _write(order: Order, known: Mapping[str, Any]) -> None:
    seen = 0

    def observe(call: Call) -> Fate:
        nonlocal seen
        if call.kind not in CHANGING:
            return Fate.PASS
        seen += 1
        return Fate(order.fate) if seen == order.dies_at else Fate.PASS

    def play() -> None:
        script.play(
            Path(order.folder),
            dict(known),
            begin=order.begin,
            prepare=lambda memory: script.sync_by(memory, order.synchronous),
            done=lambda number, _: tell(f"{DONE} {number}"),
        )

    if order.dies_at:
        with watched(Path(order.folder), observe):
            play()
    else:
        play()


if __name__ == "__main__":
    serve()

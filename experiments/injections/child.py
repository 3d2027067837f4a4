"""Jobs for child processes of the failure matrix; each says that it is ready and waits for a line.

Run as `python -m experiments.injections.child JOB ...` by the rows that need a second process.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from datetime import datetime
from pathlib import Path

from cma import FixedClock, Memory
from experiments.injections.bench import CALLER, START, STORE_ID, remember

READY = "ready"


def write_events(path: str, name: str, count: str) -> None:
    """Write events one after another to a store that others write to as well."""
    with Memory.open(path, caller=CALLER, clock=FixedClock(START)) as memory:
        _wait()
        for number in range(int(count)):
            remember(memory, f"event {number} of writer {name}", number)


def write_at_two(path: str) -> None:
    """Write one event of 02:00Z to a new store; print its digest and the head of its chain."""
    _wait()
    clock = FixedClock(datetime.fromisoformat("2026-03-08T02:30:00-08:00"))
    with Memory.open(Path(path), caller=CALLER, clock=clock, store_id=STORE_ID) as memory:
        memory.write(
            "the clocks are changed",
            kind="episodic",
            origin="matrix",
            observed_at="2026-03-08T02:00:00Z",
        )
        sys.stdout.write(f"{memory.digest()} {memory.verify().audit_head}\n")


def _wait() -> None:
    sys.stdout.write(f"{READY}\n")
    sys.stdout.flush()
    sys.stdin.readline()


JOBS: dict[str, Callable[..., None]] = {"write": write_events, "zone": write_at_two}

if __name__ == "__main__":
    JOBS[sys.argv[1]](*sys.argv[2:])

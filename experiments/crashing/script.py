"""The script: the steps one after another, and where a clean run of them stands after each.

Clock, ids and contents depend on the step alone, so a store that was interrupted must stand exactly
where the clean run stood before or after the interrupted step.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, cast
from unittest.mock import patch

from cma import FixedClock, Memory
from cma.orion import reads
from experiments.crashing.steps import (
    CALLER,
    PAUSE,
    RESTORED,
    SCOPE,
    SNAPSHOT,
    START,
    STORE,
    STORE_ID,
    Known,
    Step,
    every_step,
)

FULL = "FULL"
"""How a store has SQLite sync by its own choice; any other setting is a control."""


@dataclass(frozen=True, slots=True)
class State:
    """Where a store stands, as its verification tells."""

    records: int
    head: str
    generation: int
    digest: str


@dataclass(frozen=True, slots=True)
class Reference:
    """The clean run: `states[k]` is the store after k steps; none before the first."""

    steps: tuple[Step, ...]
    states: tuple[State | None, ...]
    known: Mapping[str, Any]
    snapshot: str
    """SHA-256 of the file."""
    restored: str
    """Digest of the store that was restored."""

    def place(self, name: str) -> int:
        """Return how many steps are done when the step of that name is."""
        return 1 + [step.name for step in self.steps].index(name)


def play(
    folder: Path,
    known: Known,
    *,
    begin: int = 0,
    end: int | None = None,
    prepare: Callable[[Memory], None] = lambda _: None,
    done: Callable[[int, Memory], None] = lambda *_: None,
) -> None:
    """Open the store as it stands before step `begin` and run the script from there.

    `prepare` sees the open store first; `done` is called after each step with the number of steps
    done. Waiting reads are recorded where a step says so, and not by a timer of their own.
    """
    with opened(folder, begin) as view:
        prepare(view)
        clock = cast(FixedClock, view.store.clock)
        for number, step in enumerate(script()[begin:end], begin):
            step.run(view, known, folder)
            clock.advance(PAUSE)
            done(number + 1, view)


def sync_by(memory: Memory, synchronous: str) -> None:
    """Make a store a control that syncs otherwise; FULL leaves it as it opened."""
    if synchronous != FULL:
        memory.store.connection.pragma("synchronous", synchronous)


@contextmanager
def opened(folder: Path, step: int) -> Iterator[Memory]:
    """Open the store of a folder, or begin it, on the clock of a step; see it from the session."""
    clock = FixedClock(START + step * PAUSE)
    with (
        patch.object(reads, "WINDOW_SECONDS", 3600.0),
        Memory.open(folder / STORE, caller=CALLER, clock=clock, store_id=STORE_ID) as memory,
    ):
        yield memory.within(SCOPE)


def state_of(memory: Memory) -> State:
    """Verify a store and return where it stands."""
    found = memory.verify()
    return State(found.audit_records, found.audit_head, found.generation, found.store_digest)


def seen_by(memory: Memory) -> State:
    """Return where a store says that it stands, without looking at every record."""
    records, head, generation = memory.store.head()
    return State(records, head.hex(), generation, memory.digest())


def reference(folder: Path, keep: Callable[[int], None] = lambda _: None) -> Reference:
    """Run the script in an empty folder; `keep` is called after each step, the store still open."""
    states: list[State | None] = [None]
    known: Known = {}

    def done(number: int, memory: Memory) -> None:
        states.append(state_of(memory))
        keep(number)

    play(folder, known, done=done)
    return Reference(
        script(),
        tuple(states),
        known,
        hashlib.sha256((folder / SNAPSHOT).read_bytes()).hexdigest(),
        restored_digest(folder),
    )


def restored_digest(folder: Path) -> str:
    """Verify the restored store and return its digest."""
    with Memory.open(folder / RESTORED, caller=CALLER, clock=FixedClock(START)) as restored:
        return restored.verify().store_digest


@cache
def script() -> tuple[Step, ...]:
    """Return the steps, the creation of the store first."""
    return tuple(every_step())

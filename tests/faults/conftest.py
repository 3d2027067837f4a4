"""What the fault tests share: a memory on a clock that stands still, seen from three scopes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from cma import FixedClock, Memory
from tests.faults.injection import CALLER, START


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Where the store lies."""
    return tmp_path / "memory.cma"


@pytest.fixture
def clock() -> FixedClock:
    return FixedClock(START)


@pytest.fixture
def memory(path: Path, clock: FixedClock) -> Iterator[Memory]:
    """A new memory, seen from the global scope."""
    with Memory.open(path, caller=CALLER, clock=clock, store_id="store-one") as opened:
        yield opened


@pytest.fixture
def ann(memory: Memory) -> Memory:
    """The same memory seen from one session."""
    return memory.within("session:ann")


@pytest.fixture
def bob(memory: Memory) -> Memory:
    """The same memory seen from another session."""
    return memory.within("session:bob")

"""Reads wait and are recorded in groups: in order, none twice, none lost to a failing disk."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest

from cma import CmaError, FixedClock, Memory, Reason
from cma.orion import reads as reads_module
from cma.orion.reads import GROUP_SIZE, MAX_WAITING, Read, ReadQueue

AT = datetime(2026, 3, 1, 12, tzinfo=UTC)


def read(number: int) -> Read:
    return Read(f"trace-{number}", b"{}", "0" * 64, "me", AT)


class Sink:
    """Takes groups from a queue, and can be made to fail."""

    def __init__(self) -> None:
        self.groups: list[list[Read]] = []
        self.calls = 0
        self.failing = False
        self.queue = ReadQueue(self.flush)

    def flush(self) -> None:
        self.calls += 1
        taken: list[Read] = []
        self.queue.take(taken)
        if self.failing:
            self.queue.put_back(taken)
            raise OSError("no space left")
        if taken:
            self.groups.append(taken)

    @property
    def ids(self) -> list[str]:
        return [item.trace_id for group in self.groups for item in group]


@pytest.fixture
def sink(monkeypatch: pytest.MonkeyPatch) -> Sink:
    """A queue whose window is an hour, so that only what a test does can flush it."""
    monkeypatch.setattr(reads_module, "WINDOW_SECONDS", 3_600)
    return Sink()


def within(seconds: float, holds: Callable[[], bool]) -> bool:
    end = time.monotonic() + seconds
    while not holds():
        if time.monotonic() > end:
            return False
        time.sleep(0.002)
    return True


def test_nothing_is_flushed_before_the_group_is_full(sink: Sink) -> None:
    for number in range(GROUP_SIZE - 1):
        sink.queue.put(read(number))
    time.sleep(0.05)
    assert sink.groups == []
    assert not sink.queue.is_empty()
    sink.queue.put(read(GROUP_SIZE - 1))
    assert within(5, sink.queue.is_empty)
    sink.queue.close()
    assert sink.ids == [f"trace-{number}" for number in range(GROUP_SIZE)]


def test_a_window_that_passes_flushes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reads_module, "WINDOW_SECONDS", 0.01)
    sink = Sink()
    for number in range(3):
        sink.queue.put(read(number))
        assert within(5, sink.queue.is_empty)
    sink.queue.close()
    assert sink.ids == ["trace-0", "trace-1", "trace-2"]


def test_closing_stops_the_thread_and_leaves_the_rest_to_the_owner(sink: Sink) -> None:
    sink.queue.put(read(1))
    sink.queue.close()
    sink.queue.close()
    assert not sink.queue.is_empty()
    sink.flush()
    assert sink.ids == ["trace-1"]
    assert "cma-reads" not in [thread.name for thread in threading.enumerate()]


def test_closing_an_unused_queue_is_harmless(sink: Sink) -> None:
    sink.queue.close()
    assert sink.queue.is_empty()


def test_a_failing_flush_keeps_the_reads_in_order(sink: Sink) -> None:
    sink.failing = True
    for number in range(3):
        sink.queue.put(read(number))
    with pytest.raises(OSError, match="no space"):
        sink.flush()
    sink.queue.put(read(3))
    taken: list[Read] = []
    sink.queue.take(taken)
    sink.queue.put(read(4))  # comes while the others are on their way to the disk
    sink.queue.put_back(taken)
    sink.failing = False
    sink.flush()
    sink.queue.close()
    assert sink.ids == [f"trace-{number}" for number in range(5)]


def test_the_thread_outlives_a_failing_flush(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reads_module, "WINDOW_SECONDS", 0.01)
    sink = Sink()
    sink.failing = True
    sink.queue.put(read(0))
    assert within(5, lambda: sink.calls >= 3)
    assert not sink.queue.is_empty()
    sink.failing = False
    assert within(5, sink.queue.is_empty)
    sink.queue.close()
    assert sink.ids == ["trace-0"]


def test_when_too_many_wait_the_caller_flushes(sink: Sink, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reads_module, "GROUP_SIZE", 10**9)  # the thread does nothing
    for number in range(MAX_WAITING - 1):
        sink.queue.put(read(number))
    assert sink.groups == []
    sink.queue.put(read(MAX_WAITING - 1))
    assert sink.queue.is_empty()
    sink.queue.close()
    assert len(sink.ids) == MAX_WAITING


@pytest.fixture
def memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Memory:
    monkeypatch.setattr(reads_module, "WINDOW_SECONDS", 3_600)
    memory = Memory.open(tmp_path / "memory.cma", clock=FixedClock(AT))
    memory.write("an event", kind="episodic", origin="test", observed_at=AT)
    return memory


def operations(memory: Memory) -> list[str]:
    return [row[1] for row in memory.store.audit_rows()]


def test_reads_are_recorded_with_the_next_transition_before_it(memory: Memory) -> None:
    memory.recall("event")
    memory.recall("an")
    assert operations(memory) == ["create", "write"]
    memory.write("another", kind="episodic", origin="test", observed_at=AT)
    assert operations(memory) == ["create", "write", "read", "read", "write"]
    memory.close()


def test_reads_are_recorded_with_a_refused_transition_too(memory: Memory) -> None:
    memory.recall("event")
    with pytest.raises(CmaError):
        memory.update("cell-" + "0" * 40, confidence=0.5)
    assert operations(memory) == ["create", "write", "read", "reject"]
    memory.close()


def test_reads_are_recorded_at_closing(memory: Memory, tmp_path: Path) -> None:
    traces = [memory.recall(word).trace.id for word in ("event", "an", "event an")]
    assert operations(memory)[2:] == []
    memory.close()
    with Memory.open(tmp_path / "memory.cma") as again:
        rows = list(again.store.audit_rows())[2:]
        assert [row[2] for row in rows] == traces
        assert again.verify().traces == 3


def test_reads_are_recorded_when_someone_wants_them_explained(memory: Memory) -> None:
    trace = memory.recall("event").trace
    explained = memory.explain(trace.id)
    assert explained.verified
    assert explained.trace == trace
    assert operations(memory)[-1] == "read"
    memory.close()


def test_the_same_recall_twice_is_two_records_of_one_trace(memory: Memory) -> None:
    assert memory.recall("event").trace.id == memory.recall("event").trace.id
    assert memory.verify().traces == 1
    assert operations(memory)[2:] == ["read", "read"]
    memory.close()


def test_reading_raises_no_generation_and_changes_no_digest(memory: Memory) -> None:
    before = memory.digest(), memory.generation
    memory.recall("event")
    memory.verify()
    assert (memory.digest(), memory.generation) == before
    memory.close()


def test_a_store_that_cannot_be_written_keeps_its_reads(
    memory: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    memory.recall("event")

    def refuse(*_: object, **__: object) -> None:
        raise CmaError(Reason.STORE_IO, "injected")

    with monkeypatch.context() as patch:
        patch.setattr(type(memory.store), "_add_reads", refuse)
        with pytest.raises(CmaError, match="injected"):
            memory.store.flush_reads()
    assert operations(memory) == ["create", "write"]
    memory.store.flush_reads()
    assert operations(memory) == ["create", "write", "read"]
    memory.close()

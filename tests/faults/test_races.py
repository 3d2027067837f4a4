"""Threads and processes at once: one row for one cell, a bounded wait, an unbroken chain."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path
from typing import Any

import apsw
import pytest

from cma import CmaError, FixedClock, Memory, Reason
from cma.orion import connection as connection_module
from cma.orion.index import Index
from tests.faults.injection import START, answer, audit, child, draft, remember


def _together(jobs: list[Callable[[], Any]]) -> list[Any]:
    """Run jobs in threads that start at the same moment; return what they give."""
    barrier = threading.Barrier(len(jobs))

    def run(job: Callable[[], Any]) -> Any:
        barrier.wait()
        return job()

    with ThreadPoolExecutor(len(jobs)) as threads:
        return [future.result() for future in [threads.submit(run, job) for job in jobs]]


def test_two_threads_that_add_the_same_cells_make_one_row_each(memory: Memory) -> None:
    def add() -> list[str]:
        return [remember(memory, f"the same {number}").id for number in range(20)]

    one, two = _together([add, add])
    assert one == two
    assert memory.verify().revisions == 20
    assert memory.generation == 20
    _recorded_once(memory, one)


def test_two_memories_of_one_file_that_add_the_same_cells_make_one_row_each(
    path: Path, memory: Memory, clock: FixedClock
) -> None:
    with Memory.open(path, clock=clock) as other:
        jobs = [
            lambda view=view: [remember(view, f"the same {n}", origin="o").id for n in range(20)]
            for view in (memory, other.within("global"))
        ]
        one, two = _together(jobs)
        assert one != two  # the authority of the two callers differs
        other.caller = memory.caller
        jobs = [
            lambda view=view: [remember(view, f"alike {n}").id for n in range(20)]
            for view in (memory, other)
        ]
        one, two = _together(jobs)
        assert one == two
        _recorded_once(memory, one)
        assert memory.verify() == other.verify()


def test_two_processes_that_add_the_same_cells_make_one_row_each(path: Path) -> None:
    processes = [child("write", path, "the same", 20) for _ in range(2)]
    one, two = _answers(processes)
    assert one == two
    with Memory.open(path) as memory:
        assert memory.verify().revisions == 20
        _recorded_once(memory, one)


def test_two_writers_and_a_reader_wait_for_each_other(path: Path) -> None:
    with Memory.open(path) as memory:
        first = remember(memory, "writer event")
        processes = [child("write", path, f"writer {name}", 50) for name in ("one", "two")]
        stop = threading.Event()
        longest: list[float] = []
        seen: list[int] = []

        def read() -> None:
            while not stop.is_set():
                began = time.monotonic()
                assert memory.get(first.id) == first
                seen.append(len(memory.recall("writer", limit=1_000).hits))
                longest.append(time.monotonic() - began)
                memory.verify()

        reader = threading.Thread(target=read)
        reader.start()
        try:
            one, two = _answers(processes)
        finally:
            stop.set()
            reader.join()
        assert len({*one, *two}) == 100
        assert seen == sorted(seen)  # what was once seen stays
        assert max(longest) < connection_module.BUSY_TIMEOUT_MILLISECONDS / 1000
        verified = memory.verify()
        assert (verified.cells, verified.generation) == (101, 101)
        assert len(memory.recall("writer", limit=1_000).hits) == 101
        numbers = audit(memory, 0)
        assert numbers == list(range(1, len(numbers) + 1))
        assert Counter(audit(memory))["write"] == 101


def test_processes_that_begin_a_store_together_begin_one_store(path: Path) -> None:
    processes = [child("begin", path) for _ in range(3)]
    names = {lines[0] for lines in _answers(processes)}
    assert len(names) == 1
    with Memory.open(path) as memory:
        assert memory.store.store_id in names
        assert memory.verify().cells == 3
        assert Counter(audit(memory))["create"] == 1


def test_a_writer_that_waits_too_long_is_told_so(
    path: Path, memory: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    remember(memory, "first")
    memory.store.connection.set_busy_timeout(50)
    other = apsw.Connection(str(path))
    other.execute("BEGIN IMMEDIATE")
    before = memory.digest()
    began = time.monotonic()
    with pytest.raises(CmaError) as info:
        remember(memory, "second")
    assert info.value.reason is Reason.STORE_BUSY
    assert time.monotonic() - began < 5
    assert memory.digest() == before
    assert len(memory.recall("first").hits) == 1  # readers are not held up
    other.execute("ROLLBACK")
    other.close()
    remember(memory, "second")
    assert memory.verify().cells == 2


def test_one_memory_serves_several_threads(memory: Memory, clock: FixedClock) -> None:
    def work(name: int) -> list[str]:
        view = memory.within(f"session:{name}")
        ids = list(view.write_many([draft(f"{name} event {n}") for n in range(10)]).ids)
        ids.append(remember(view, f"{name} event ten").id)
        view.link("similarity", ids[0], ids[1])
        view.update(ids[2], importance=0.75)
        for _ in range(20):
            recollection = view.recall("event", limit=100)
            assert {hit.cell.id for hit in recollection.hits} == set(ids)
            assert {hit.cell.scope for hit in recollection.hits} == {view.scope}
        assert view.explain(recollection.trace.id).verified
        assert memory.verify().cells >= 11
        return ids

    found = _together([lambda name=name: work(name) for name in range(4)])
    assert len({cell_id for ids in found for cell_id in ids}) == 44
    clock.advance(timedelta(seconds=1))
    verified = memory.verify()
    assert (verified.cells, verified.revisions, verified.links) == (44, 48, 4)
    assert Counter(audit(memory))["read"] == 80


def test_a_batch_is_seen_whole_or_not_at_all(memory: Memory) -> None:
    stop = threading.Event()
    seen: set[int] = set()

    def look() -> None:
        while not stop.is_set():
            seen.add(len(memory.recall("event", limit=1_000).hits))

    reader = threading.Thread(target=look)
    reader.start()
    for batch in range(8):
        memory.write_many([draft(f"event {batch} {n}") for n in range(50)])
    stop.set()
    reader.join()
    assert all(count % 50 == 0 for count in seen)


def test_a_trace_names_the_generation_that_was_searched(
    memory: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another thread writes and recalls between the look at the generation and the search."""
    first = remember(memory, "event one")
    digest = memory.recall("event").trace.index_digest
    search = Index.search
    others: list[threading.Thread] = []

    def interrupted(index: Index, *arguments: Any, **options: Any) -> Any:
        if not others:
            others.append(threading.Thread(target=_write_and_recall, args=(memory,)))
            others[0].start()
            others[0].join(0.3)
        return search(index, *arguments, **options)

    monkeypatch.setattr(Index, "search", interrupted)
    recollection = memory.recall("event")
    others[0].join()
    assert [hit.cell.id for hit in recollection.hits] == [first.id]
    assert recollection.trace.generation == 1
    assert recollection.trace.index_digest == digest
    assert len(memory.recall("event").hits) == 2
    assert memory.verify().traces == 2  # the first and the interrupted one are the same


def _write_and_recall(memory: Memory) -> None:
    remember(memory, "event two")
    assert len(memory.recall("event").hits) == 2


def test_a_memory_is_refused_after_a_fork(path: Path) -> None:
    lines = [line.split() for line in answer(child("forked", path)).splitlines()[1:]]
    told = dict(lines)
    assert told.pop("parent") == "2"
    assert set(told.values()) == {"store-forked"}, told
    assert len(told) == 10


def test_a_closed_memory_is_refused(memory: Memory) -> None:
    cell = remember(memory, "event")
    memory.close()
    memory.close()
    uses: list[Callable[[], Any]] = [
        lambda: memory.get(cell.id),
        lambda: remember(memory, "another"),
        lambda: memory.recall("event"),
        lambda: memory.update(cell.id, confidence=0.5),
        lambda: memory.links_of(cell.id),
        memory.sweep,
        memory.verify,
        memory.digest,
        lambda: memory.generation,
        lambda: memory.within("session:a").get(cell.id),
    ]
    for use in uses:
        with pytest.raises(CmaError) as info:
            use()
        assert info.value.reason is Reason.STORE_CLOSED
    assert START.tzinfo is not None


def _answers(processes: list[Any]) -> list[list[str]]:
    """Let children begin together; return the lines that each printed."""
    for process in processes:
        assert process.stdout.readline() == "ready\n"
    for process in processes:
        process.stdin.write("go\n")
        process.stdin.flush()
    found = []
    for process in processes:
        out, _ = process.communicate(timeout=60)
        assert process.returncode == 0
        found.append(out.split())
    return found


def _recorded_once(memory: Memory, ids: list[str]) -> None:
    memory.store.flush_reads()
    for cell_id in ids:
        rows = [row for row in memory.store.audit_rows() if row[2] == cell_id]
        assert [b'"reason":"duplicate"' in row[4] for row in rows] == [False, True]

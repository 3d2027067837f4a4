"""A disk that refuses the Nth call, for every N until none is left to refuse."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import apsw
import pytest

from cma import Caller, CmaError, FixedClock, Memory, Reason, Retrieval
from cma.orion import anchor as anchor_module
from cma.orion.indexes import Indexes
from cma.orion.store import Store
from tests.faults.injection import START, Fault, FaultyDisk, audit, draft, hold, remember

CODES = {"disk-full": apsw.SQLITE_FULL, "io-error": apsw.SQLITE_IOERR}
Use = Callable[[Memory, list[str]], Any]
USES: dict[str, Use] = {
    "write": lambda view, _: remember(view, "new"),
    "write_many": lambda view, _: view.write_many([draft(f"new {n}") for n in range(30)]),
    "update": lambda view, ids: view.update(ids[0], confidence=0.125),
    "link": lambda view, ids: view.link("task", ids[0], ids[1]),
    "sweep": lambda view, _: view.sweep(),
    "reads": lambda view, _: (view.recall("first"), view.store.flush_reads()),
}


def _opened(path: Path, disk: str | None = None) -> Memory:
    clock = FixedClock(START)
    store = Store.open(path, clock=clock, store_id="store-one", vfs=disk)
    caller = Caller(name="tester", authority="user")
    return Memory(store, caller=caller, retrieval=Retrieval(), scope="session:a", indexes=Indexes())


def _prepared(view: Memory) -> list[str]:
    ids = [remember(view, "first").id, remember(view, "second").id]
    hold(view, "soon gone", ttl=1)
    view.store.clock.advance(START - START.replace(hour=11))  # type: ignore[attr-defined]
    return ids


@pytest.fixture
def disk(request: pytest.FixtureRequest) -> Iterator[tuple[str, Fault]]:
    """A registered file system that can fail, and the handle that makes it."""
    sticky, code = request.param
    fault = Fault(sticky=sticky, code=CODES[code])
    name = f"faulty-{os.getpid()}"
    vfs = FaultyDisk(name, fault)
    yield name, fault
    fault.disarm()
    vfs.unregister()


KINDS = [(sticky, code) for sticky in (False, True) for code in CODES]
NAMES = [f"{'stays' if sticky else 'once'}-{code}" for sticky, code in KINDS]


@pytest.mark.parametrize("use", USES)
@pytest.mark.parametrize("disk", KINDS, ids=NAMES, indirect=True)
def test_what_the_disk_refused_is_not_acknowledged(
    tmp_path: Path, disk: tuple[str, Fault], use: str
) -> None:
    name, fault = disk
    for number in range(1, 200):
        path = tmp_path / f"store-{number}.cma"
        view = _opened(path, name)
        ids = _prepared(view)
        if number % 2:  # a log folded into the file after each commit writes elsewhere
            view.store.connection.pragma("wal_autocheckpoint", 1)
        before = view.digest(), view.generation, len(audit(view))
        fault.arm(number)
        try:
            USES[use](view, ids)
        except CmaError as error:
            failed: CmaError | None = error
        else:
            failed = None
        refusals = fault.failed
        fault.disarm()
        if failed is not None:
            assert failed.reason is Reason.STORE_IO, str(failed)
            assert refusals
            # `reads` wait in the queue until they can be recorded: audit() flushes them
            assert (view.digest(), view.generation) == before[:2]
            assert len(audit(view)) == before[2] + (use == "reads")
        _is_free(path)
        remember(view, "afterwards")
        whole = view.verify()
        view.close()
        with Memory.open(path) as reopened:
            assert reopened.verify().store_digest == whole.store_digest
        if not refusals:
            assert failed is None
            assert number > 3
            return
    pytest.fail("the fault never ran out of calls to fail")


@pytest.mark.parametrize("disk", KINDS[1:3], ids=NAMES[1:3], indirect=True)
def test_a_store_that_cannot_begin_can_begin_later(tmp_path: Path, disk: tuple[str, Fault]) -> None:
    name, fault = disk
    for number in range(1, 200):
        path = tmp_path / f"store-{number}.cma"
        fault.arm(number)
        try:
            _opened(path, name).close()
        except CmaError as error:
            assert error.reason is Reason.STORE_IO, str(error)  # noqa: PT017 (some N succeed)
        refusals = fault.failed
        fault.disarm()
        view = _opened(path, name)
        remember(view, "at last")
        assert view.verify().cells == 1
        view.close()
        if not refusals:
            assert number > 5
            return
    pytest.fail("the fault never ran out of calls to fail")


@pytest.mark.parametrize("broken", ["sync", "write"])
def test_an_anchor_that_cannot_be_synced_acknowledges_nothing(
    path: Path, memory: Memory, monkeypatch: pytest.MonkeyPatch, broken: str
) -> None:
    """The change may be there, as the remedy says; it is never half there."""
    remember(memory, "first")

    def refuse(*_: object) -> None:
        raise OSError(errno.EIO, "input/output error")

    with monkeypatch.context() as patch:
        if broken == "sync":
            patch.setattr(anchor_module, "_sync", refuse)
        else:
            patch.setattr(os, "pwrite", refuse)
        with pytest.raises(CmaError) as info:
            remember(memory, "second")
        assert info.value.reason is Reason.STORE_IO
        assert "may or may not" in str(info.value)
    _is_free(path)
    remember(memory, "third")
    assert memory.verify().cells == 3
    assert memory.verify().tail_pinned


def test_a_failing_disk_at_closing_still_lets_go(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "store.cma"
    view = _opened(path)
    remember(view, "first")

    def refuse(*_: object) -> None:
        raise OSError(errno.ENOSPC, "no space left on device")

    view.recall("first")
    monkeypatch.setattr(anchor_module, "_sync", refuse)
    view.store.reads.close()
    try:
        view.close()
    except CmaError as error:
        assert error.reason is Reason.STORE_IO  # noqa: PT017 (the thread may have been first)
    monkeypatch.undo()
    _is_free(path)
    with Memory.open(path) as reopened:
        assert reopened.verify().cells == 1


def _is_free(path: Path) -> None:
    """Another connection can take the write lock at once."""
    other = apsw.Connection(str(path))
    other.execute("BEGIN IMMEDIATE; ROLLBACK")
    other.close()

"""Jobs for child processes of the fault tests; each waits for a line on its input, then works."""

from __future__ import annotations

import os
import signal
import sys
from datetime import UTC, datetime, timedelta
from typing import Any

from cma import Caller, CellDraft, CmaError, FixedClock, Memory
from cma.orion import anchor as anchor_module
from cma.orion import cleaning as cleaning_module

START = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)


def _wait() -> None:
    print("ready", flush=True)
    sys.stdin.readline()


def _write(view: Memory, content: str) -> str:
    return view.write(content, kind="episodic", origin="child", observed_at=START).id


def _die(*_: object, **__: object) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def write_cells(path: str, prefix: str, count: str) -> None:
    """Write cells one after another and print their ids."""
    _wait()
    with Memory.open(path) as memory:
        for number in range(int(count)):
            print(_write(memory, f"{prefix} {number}"), flush=True)


def begin(path: str) -> None:
    """Open a store that several processes open at once; print its id."""
    _wait()
    with Memory.open(path) as memory:
        _write(memory, f"from process {os.getpid()}")
        print(memory.store.store_id)


def fixed_bytes(path: str) -> None:
    """Write the same memory wherever the machine stands; print what the store holds."""
    _wait()
    clock = FixedClock(datetime.fromisoformat("2026-03-08T02:30:00-08:00"))
    with Memory.open(path, clock=clock, store_id="fixed") as memory:
        view = memory.within("session:a")
        view.write_many(
            [
                CellDraft(kind="episodic", content=f"at {at}", origin="zones", observed_at=at)
                for at in ("2026-03-08T02:00:00Z", "2026-03-08T02:30:00+09:00")
            ]
        )
        view.write("soon gone", kind="working", origin="zones", metadata={"ttl_seconds": 60})
        clock.advance(timedelta(days=200))
        memory.sweep()
        trace = view.recall("at").trace
        print(memory.digest(), memory.verify().audit_head, trace.id)


def killed_at(path: str, point: str) -> None:
    """Acknowledge three writes, then die inside the fourth at a named point."""
    _wait()
    memory = Memory.open(path)
    for number in range(3):
        print(_write(memory, f"acknowledged {number}"), flush=True)
    if point == "before-commit":
        memory.store.connection.exec_trace = lambda _cursor, sql, _values: (
            (_die() if sql == "COMMIT" else None) or True
        )
    elif point == "after-commit":
        anchor_module.write_anchor = _die
    elif point == "torn-anchor":
        pwrite = os.pwrite

        def tear(descriptor: int, data: bytes, place: int) -> int:
            pwrite(descriptor, data[: len(data) // 3], place)
            _die()
            return 0

        os.pwrite = tear
    elif point == "before-anchor-sync":
        anchor_module._sync = _die
    else:
        raise ValueError(point)
    _write(memory, "in flight")


def killed_erasing(path: str, point: str) -> None:
    """Write a cell that says `quagmire`, print its id, and die inside its erasure."""
    _wait()
    memory = Memory.open(path, caller=Caller(name="child", authority="user"))
    print(cell_id := _write(memory, "quagmire"), flush=True)
    memory.recall("quagmire")
    memory.store.flush_reads()
    if point == "anchor":
        anchor_module.write_anchor = _die
    elif point == "COMMIT":
        memory.store.connection.exec_trace = lambda _cursor, sql, _values: (
            (_die() if sql == "COMMIT" else None) or True
        )
    else:
        setattr(cleaning_module, point, _die)
    memory.erase(cell_id, reason="person-request")


def forked(path: str) -> None:
    """Use a memory in a fork; print the reason codes that the child meets."""
    _wait()
    memory = Memory.open(path)
    cell_id = _write(memory, "before the fork")
    uses: dict[str, Any] = {
        "get": lambda: memory.get(cell_id),
        "write": lambda: _write(memory, "in the fork"),
        "write_many": lambda: memory.write_many([]),
        "update": lambda: memory.update(cell_id, confidence=0.1),
        "link": lambda: memory.link("task", cell_id, cell_id),
        "recall": lambda: memory.recall("fork"),
        "sweep": memory.sweep,
        "verify": memory.verify,
        "explain": lambda: memory.explain("trace-" + "0" * 40),
        "digest": memory.digest,
    }
    sys.stdout.flush()
    child = os.fork()
    if child == 0:
        for name, use in uses.items():
            try:
                use()
            except CmaError as error:
                print(name, error.code)
            except BaseException as error:
                print(name, type(error).__name__)
            else:
                print(name, "no-error")
        memory.close()
        sys.stdout.flush()
        os._exit(0)
    os.waitpid(child, 0)
    _write(memory, "after the fork")
    print("parent", memory.verify().cells)
    memory.close()


JOBS = {
    "write": write_cells,
    "begin": begin,
    "fixed": fixed_bytes,
    "killed": killed_at,
    "killed-erasing": killed_erasing,
    "forked": forked,
}

if __name__ == "__main__":
    JOBS[sys.argv[1]](*sys.argv[2:])

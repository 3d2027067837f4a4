"""An exception at each statement of a transition: nothing of it is published."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import apsw
import pytest

from cma import FixedClock, LinkDraft, Memory
from tests.faults.injection import START, audit, draft, hold, remember


class InjectedError(Exception):
    """Raised by the tests alone."""


def _links(view: Memory, ids: list[str]) -> Any:
    return view.link_many(
        [
            LinkDraft(kind=kind, source_id=ids[0], target_id=ids[1])
            for kind in ("task", "temporal", "conflict")
        ]
    )


USES: dict[str, Callable[[Memory, list[str]], Any]] = {
    "write": lambda view, _: remember(view, "new"),
    "duplicate": lambda view, _: remember(view, "first"),
    "write_many": lambda view, _: view.write_many([draft(f"new {n}") for n in range(5)]),
    "update": lambda view, ids: view.update(ids[0], summary="in short"),
    "retract": lambda view, ids: view.update(ids[0], lifecycle="retracted"),
    "link_many": _links,
    "sweep": lambda view, _: view.sweep(),
    "reads": lambda view, _: view.store.flush_reads(),
}


@pytest.mark.parametrize("error", [InjectedError, KeyboardInterrupt, MemoryError])
@pytest.mark.parametrize("use", USES)
def test_an_exception_at_any_statement_publishes_nothing(
    path: Path, use: str, error: type[BaseException]
) -> None:
    clock = FixedClock(START)
    with Memory.open(path, clock=clock) as memory:
        view = memory.within("session:a")
        ids = [remember(view, "first").id, remember(view, "second", minutes=1).id]
        hold(view, "soon gone", ttl=1)
        hold(view, "gone as well", ttl=2)
        clock.advance(timedelta(minutes=1))
        connection = memory.store.connection
        for number in range(1, 200):
            before = memory.digest(), memory.generation, len(audit(memory))
            if use == "reads":
                view.recall("first")
            count, committed = 0, False

            def trace(_: object, sql: str, __: object, number: int = number) -> bool:
                nonlocal count, committed
                count += not committed
                if count == number and not committed:
                    raise error
                committed = committed or sql == "COMMIT"
                return True

            connection.exec_trace = trace
            try:
                USES[use](view, ids)
            except error:
                done = False
            else:
                done = True
            finally:
                connection.exec_trace = None
            assert not connection.in_transaction
            if done:
                assert count < number
                assert number > 3
                break
            _is_free(path)
            assert (memory.digest(), memory.generation) == before[:2]
            assert len(audit(memory)) == before[2] + (use == "reads")
        else:
            pytest.fail("the transition never ran to its end")
        assert memory.verify().tail_pinned
        assert memory.generation == before[1] + (use not in ("duplicate", "reads"))


def _is_free(path: Path) -> None:
    """Another connection can take the write lock at once."""
    other = apsw.Connection(str(path))
    other.execute("BEGIN IMMEDIATE; ROLLBACK")
    other.close()

"""An interrupt (Ctrl-C) anywhere in a transition: whole or no trace of it, and nothing is held.

The interpreter looks for signals when a function begins and when a built-in one has returned; an
interrupt is raised at a sample of just these points, where a real one would be.
"""

from __future__ import annotations

import fcntl
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import FrameType
from typing import Any, NamedTuple

import apsw
import pytest

import cma
from cma import TUNED, Caller, CellDraft, CmaError, Memory
from cma.doctor.examining import examine
from cma.orion.anchor import anchor_path
from cma.orion.audit import Operation
from cma.orion.reads import Read, ReadQueue
from cma.values.clock import FixedClock

START = datetime(2026, 7, 1, tzinfo=UTC)
CLOCK = FixedClock(START + timedelta(days=1))
OWNER = Caller(name="ada", authority="user")
OURS = str(Path(cma.__file__).parent)
STORE = tuple(f"{OURS}/orion/{name}.py" for name in ("anchor", "reads", "store"))
POINTS = 11
# An interrupt while a generator is let go of is no exception of anybody's.
pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
REPEATED = ("snapshot-target-exists", "proposal-decided", "cell-erased", "nothing-to-update")


class World(NamedTuple):
    """A store to copy, and the names of what is in it."""

    folder: Path
    cells: tuple[str, ...]
    frames: tuple[str, ...]
    pending: str
    conflict: str
    runs: tuple[str, ...]


Act = Callable[[Memory, Path, World], object]


def interrupted_at(
    point: int, do: Callable[[], object], within: str | tuple[str, ...] = OURS
) -> int:
    """Do it, interrupted at the so-manieth point in our code; return how many were passed."""
    passed = 0

    def watch(frame: FrameType, event: str, _: Any) -> None:
        nonlocal passed
        if event not in ("call", "c_return"):
            return
        ours = frame.f_code.co_filename.startswith(within)
        back = frame.f_back
        if not ours and (event != "call" or back is None):  # a context manager that is left
            return
        if ours or (back is not None and back.f_code.co_filename.startswith(within)):
            passed += 1
            if passed == point:
                raise KeyboardInterrupt

    before = sys.getprofile()
    sys.setprofile(watch)
    try:
        do()
    finally:
        sys.setprofile(before)
    return passed


def opened(folder: Path) -> Memory:
    return Memory.open(folder / "m.cma", clock=CLOCK, caller=OWNER)


def drafts(first: int, count: int) -> list[CellDraft]:
    return [
        CellDraft(
            kind="episodic",
            content=f"tea and mate {number}",
            origin="o",
            observed_at=START + timedelta(minutes=number),
        )
        for number in range(first, first + count)
    ]


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> World:
    folder = tmp_path_factory.mktemp("world")
    with Memory.open(folder / "m.cma", clock=CLOCK, store_id="s", caller=OWNER) as memory:
        cells = memory.write_many(drafts(0, 8)).ids
        frames = []
        for first in (0, 2, 4):
            frame = memory.bind(scene="kitchen", sources=cells[first : first + 2], outcome="done")
            memory.replay(frame.id)
            frames.append(frame.id)
        ids = [claim(memory, frames, each) for each in ("tea", "mate", "pie")]
        memory.approve_many(ids[:2], approval_id="first")
        runs = [
            memory.execute(task="brew", steps=["boil"], outcome=outcome, sources=[cells[number]]).id
            for number, outcome in enumerate(("success", "success", "failure"))
        ]
        conflict = memory.conflicts()[0].id
        memory.snapshot(folder / "base.cma.jsonl")
    return World(folder, tuple(cells), tuple(frames), ids[2], conflict, tuple(runs))


def claim(memory: Memory, frames: list[str] | tuple[str, ...], what: str) -> str:
    return memory.propose(
        frames=frames, content=f"ada likes {what}", subject="ada", predicate="likes", object=what
    ).candidate.id


def refused(memory: Memory, cell: str) -> None:
    with pytest.raises(CmaError):
        memory.update(cell, content="another tea")


def recorded(memory: Memory) -> None:
    memory.recall("tea", retrieval=TUNED)
    memory.store.flush_reads()


ACTS: dict[str, Act] = {
    "write": lambda m, _, w: m.write("new tea", kind="episodic", origin="o", observed_at=START),
    "write-many": lambda m, _, w: m.write_many(drafts(20, 3)),
    "link": lambda m, _, w: m.link("temporal", w.cells[0], w.cells[3]),
    "update": lambda m, _, w: m.update(w.cells[1], importance=0.9),
    "refused": lambda m, _, w: refused(m, w.cells[0]),
    "bind": lambda m, _, w: m.bind(scene="garden", sources=w.cells[5:7]),
    "replay": lambda m, _, w: m.replay(w.frames[0], sequence=w.cells[:1]),
    "propose": lambda m, _, w: claim(m, w.frames, "cake"),
    "approve": lambda m, _, w: m.approve(w.pending, approval_id="second"),
    "reject": lambda m, _, w: m.reject(w.pending, reason="no"),
    "execute": lambda m, _, w: m.execute(
        task="brew", steps=["stir"], outcome="success", sources=[w.cells[4]]
    ),
    "skill": lambda m, _, w: m.propose_skill(executions=w.runs),
    "decide": lambda m, _, w: m.decide(w.conflict, handling="prefer_recent"),
    "deliver": lambda m, _, w: m.deliver(m.packet(m.recall("tea"), budget=400)),
    "snapshot": lambda m, f, w: m.snapshot(f / "new.cma.jsonl"),
    "restore": lambda m, f, w: Memory.restore(f / "base.cma.jsonl", f / "r.cma").close(),
    "erase": lambda m, _, w: m.erase(w.cells[0], reason="person-request"),
    "keep-index": lambda m, _, w: m.keep_index(),
    "open": lambda m, f, w: opened(f).close(),
    "recall": lambda m, _, w: recorded(m),
    "digest": lambda m, _, w: m.digest(),
}


def nothing_is_held(memory: Memory, folder: Path) -> None:
    """No lock and no transaction is left: of this thread, of the file, of the anchor."""
    store = memory.store
    free: list[bool] = []

    def look() -> None:
        for lock in (store._writing, store.reads._held, memory._indexes.held()):
            free.append(lock.acquire(timeout=5))
            if free[-1]:
                lock.release()

    assert not store.connection.in_transaction
    other = threading.Thread(target=look)
    other.start()
    other.join()
    assert free == [True, True, True]
    with store._writing:  # so that no read is being recorded now
        connection = apsw.Connection(str(folder / "m.cma"))
        connection.execute("BEGIN IMMEDIATE; ROLLBACK")
        connection.close()
        with anchor_path(folder / "m.cma").open("rb") as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)


def repeated(do: Callable[[], object]) -> str | None:
    """Do it again; return the reason of the refusal, if it is refused."""
    try:
        do()
    except CmaError as error:
        return error.code
    return None


def all_is_found(memory: Memory) -> None:
    rows = memory.store.connection.execute(
        "SELECT id FROM cells GROUP BY id HAVING sum(lifecycle = 'erased') = 0"
    )
    found = memory.recall("tea mate ada brew", limit=1_000, include_inactive=True).hits
    assert sorted(hit.cell.id for hit in found) == sorted(name for (name,) in rows)


@pytest.mark.parametrize("kind", ACTS)
def test_an_interrupted_transition_is_whole_or_left_no_trace(
    kind: str, world: World, tmp_path: Path
) -> None:
    act = ACTS[kind]
    with opened(shutil.copytree(world.folder, tmp_path / "whole")) as memory:
        memory.recall("tea")
        before = memory.digest()
        passed = interrupted_at(-1, lambda: act(memory, tmp_path / "whole", world))
        after = memory.digest()
    interrupts = 0
    for turn in range(POINTS):
        folder = shutil.copytree(world.folder, tmp_path / f"{turn}")
        with opened(folder) as memory:
            memory.recall("tea")
            point = 1 + (passed * turn + list(ACTS).index(kind)) // POINTS
            try:
                interrupted_at(point, lambda: act(memory, folder, world))  # noqa: B023
            except KeyboardInterrupt:
                interrupts += 1
            nothing_is_held(memory, folder)
            assert memory.digest() in (before, after)
            memory.verify()
            assert examine(folder / "m.cma", clock=CLOCK).healthy
            assert not list(folder.glob(".*"))
            all_is_found(memory)
            assert repeated(lambda: act(memory, folder, world)) in (None, *REPEATED)  # noqa: B023
            assert memory.digest() == after
            memory.write("last tea", kind="episodic", origin="o", observed_at=START)
            all_is_found(memory)
        with opened(folder) as memory:
            memory.verify()
    assert interrupts > POINTS // 2


@pytest.mark.parametrize("kind", ["write", "digest"])
def test_an_interrupt_at_each_point_of_the_store_holds_nothing_and_loses_no_read(
    kind: str, world: World, tmp_path: Path
) -> None:
    folder = shutil.copytree(world.folder, tmp_path / "each")
    act, point, on = ACTS[kind], 0, True
    with opened(folder) as memory:
        while on:
            point += 1
            read = memory.recall(f"tea {point}").trace.id
            try:
                interrupted_at(point, lambda: act(memory, folder, world), STORE)
                on = False
            except KeyboardInterrupt:
                pass
            nothing_is_held(memory, folder)
            memory.store.flush_reads()
            ids = memory.store.connection.execute("SELECT id FROM traces").fetchall()
            assert (read,) in ids  # all fetched: a cursor left open would show an old view
        memory.verify()
    assert point > 10


def test_a_thread_that_an_interrupt_kept_from_starting_does_not_stop_the_closing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def interrupted(_: threading.Thread) -> None:
        raise KeyboardInterrupt

    queue = ReadQueue(lambda: None)
    with monkeypatch.context() as patched:
        patched.setattr(threading.Thread, "start", interrupted)
        with pytest.raises(KeyboardInterrupt):
            queue.put(Read("trace", b"{}", "0" * 64, "me", START))
    assert not queue.is_empty()
    queue.close()


LEFT = """
import sys
from cma import Memory
memory = Memory.open(sys.argv[1])
memory.recall("tea")
left = memory.store.transition("ada")  # as an interrupt on entering its exit leaves it
left.__enter__()
memory.close()
assert left.gen is not None
with Memory.open(sys.argv[1]) as again:
    again.write("more tea", kind="episodic", origin="o", observed_at="2026-07-01T09:00:00Z")
    assert again.verify().audit_records > 0
"""


def test_closing_ends_what_an_interrupt_left(world: World, tmp_path: Path) -> None:
    folder = shutil.copytree(world.folder, tmp_path / "left")
    with opened(folder) as memory:
        before = memory.verify().audit_records
    done = subprocess.run(
        [sys.executable, "-c", LEFT, str(folder / "m.cma")],
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
    with opened(folder) as memory:
        assert memory.verify().audit_records == before + 2  # the read and the write


def test_a_transition_within_another_is_refused_and_the_other_stays_whole(
    world: World, tmp_path: Path
) -> None:
    folder = shutil.copytree(world.folder, tmp_path / "within")
    with opened(folder) as memory:
        before = memory.verify().audit_records
        with memory.store.transition("ada") as outer:
            for _ in range(2):
                with pytest.raises(CmaError):
                    memory.write("tea", kind="episodic", origin="o", observed_at=START)
            assert outer.connection.in_transaction
            outer.record(Operation.REJECT, (), reason="field-invalid")
        assert memory.verify().audit_records == before + 1
    assert examine(folder / "m.cma", clock=CLOCK).healthy

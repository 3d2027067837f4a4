"""What a hostile reviewer did: each once broke a promise and is answered with a typed error now."""

from __future__ import annotations

import errno
import os
import pickle
import subprocess
import sys
import threading
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from time import process_time
from typing import Any

import pytest

from cma import CmaError, FixedClock, Memory, Reason, Retrieval
from cma.orion import indexes
from cma.orion.analysis import analyse_unicode

AT = datetime(2026, 3, 1, 12, tzinfo=UTC)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "memory.cma"


@pytest.fixture
def memory(path: Path) -> Iterator[Memory]:
    with Memory.open(path, clock=FixedClock(AT)) as opened:
        yield opened


def event(view: Memory, content: str = "an event") -> str:
    return view.write(content, kind="episodic", origin="test", observed_at=AT).id


def test_a_long_run_of_combining_marks_takes_linear_time() -> None:
    def seconds(count: int) -> float:
        text = "a" + "\u0301\u0316" * count
        start = process_time()
        analyse_unicode(text)
        return process_time() - start

    seconds(100)
    # 100 times the text: quadratic would take 10,000 times as long
    assert seconds(100_000) < 1_000 * max(seconds(1_000), 1e-4)


def test_a_fork_while_another_thread_writes_is_refused_at_once(memory: Memory) -> None:
    with memory.store._writing:  # as a thread that writes would hold it
        child = os.fork()
        if child == 0:
            worker = threading.Thread(target=lambda: None)
            worker.start()
            try:
                event(memory, "in the child")
            except CmaError as error:
                os._exit(0 if error.reason is Reason.STORE_FORKED else 1)
            os._exit(2)
    assert os.waitpid(child, 0)[1] == 0


def test_threads_that_end_leave_no_connection_open(memory: Memory) -> None:
    cell_id = event(memory)
    before = len(os.listdir("/dev/fd"))
    for _ in range(50):
        thread = threading.Thread(target=lambda: memory.get(cell_id))
        thread.start()
        thread.join()
    assert len(os.listdir("/dev/fd")) <= before + 6


def test_a_lost_anchor_leaves_memory_as_it_was(memory: Memory, path: Path) -> None:
    event(memory, "first")
    before, generation = memory.digest(), memory.generation
    head = path.with_name(path.name + ".head")
    away = head.rename(head.with_name("away"))
    for _ in range(2):
        with pytest.raises(CmaError) as info:
            event(memory, "second")
        assert info.value.reason is Reason.ANCHOR_MISSING
    assert (memory.digest(), memory.generation) == (before, generation)
    away.rename(head)
    event(memory, "third")
    assert memory.verify().cells == 2


def test_the_anchor_of_another_store_leaves_memory_as_it_was(
    memory: Memory, path: Path, tmp_path: Path
) -> None:
    event(memory, "first")
    before = memory.digest()
    with Memory.open(tmp_path / "other.cma") as other:
        event(other)
    head = path.with_name(path.name + ".head")
    kept = head.read_bytes()
    head.write_bytes((tmp_path / "other.cma.head").read_bytes())
    with pytest.raises(CmaError) as info:
        event(memory, "second")
    assert info.value.reason is Reason.ANCHOR_DISAGREES
    assert memory.digest() == before
    head.write_bytes(kept)
    assert memory.verify().cells == 1


def test_too_many_open_files_is_no_missing_anchor(
    memory: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    event(memory, "first")
    before = memory.digest()

    def refuse(*_: object) -> int:
        raise OSError(errno.EMFILE, "too many open files")

    with monkeypatch.context() as patch:
        patch.setattr(os, "open", refuse)
        with pytest.raises(CmaError) as info:
            event(memory, "second")
    assert info.value.reason is Reason.STORE_IO
    assert memory.digest() == before


def test_a_write_into_a_deleted_file_is_not_acknowledged(memory: Memory, path: Path) -> None:
    event(memory, "first")
    path.unlink()
    with pytest.raises(CmaError) as info:
        event(memory, "second")
    assert info.value.reason is Reason.STORE_NOT_FOUND


def test_an_interrupted_index_build_is_begun_anew(
    memory: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(5):
        event(memory, f"event {number}")
    add_many, calls = indexes.Index.add_many, [0]

    def interrupted(index: Any, entries: Any) -> Any:
        done = add_many(index, entries)
        calls[0] += 1
        if calls[0] == 1:
            raise KeyboardInterrupt
        return done

    monkeypatch.setattr(indexes.Index, "add_many", interrupted)
    with pytest.raises(KeyboardInterrupt):
        memory.recall("event")
    assert len(memory.recall("event").hits) == 5


def test_a_hidden_trace_reads_as_one_that_is_not_there(memory: Memory) -> None:
    ann, bob = memory.within("session:ann"), memory.within("session:bob")
    event(ann)
    hidden = ann.recall("event").trace.id
    told = []
    for trace_id in (hidden, "trace-" + "0" * 40):
        with pytest.raises(CmaError) as info:
            bob.explain(trace_id)
        told.append((info.value.reason, info.value.message, info.value.remedy))
    assert told[0] == told[1]
    assert told[0][0] is Reason.TRACE_NOT_FOUND


@pytest.mark.parametrize("bad", [object(), [], 2**70, None, "\ud800", b"cell"])
def test_what_is_no_id_is_refused_by_name(memory: Memory, bad: Any) -> None:
    before = memory.digest()
    for use in (memory.get, memory.links_of, memory.update, memory.explain):
        with pytest.raises(CmaError) as info:
            use(bad)
        assert info.value.reason is Reason.FIELD_INVALID
        assert info.value.field in ("cell_id", "trace_id")
    assert memory.digest() == before


@pytest.mark.parametrize("bad", [2**70, [], True, "1", 0.5])
def test_what_is_no_revision_is_refused(memory: Memory, bad: Any) -> None:
    with pytest.raises(CmaError) as info:
        memory.get(event(memory), revision=bad)
    assert info.value.field == "revision"


@pytest.mark.parametrize("bad", [b"x", None, 5, "nul\0", "x" * 5_000])
def test_what_is_no_path_is_refused(bad: Any) -> None:
    with pytest.raises(CmaError):
        Memory.open(bad)


def test_settings_may_be_mappings_and_are_checked(memory: Memory) -> None:
    event(memory)
    asked = {"lexical": "jaccard", "coefficients": {"link": 0}}
    trace = memory.recall("event", retrieval=asked).trace  # type: ignore[arg-type]
    assert trace.retrieval == Retrieval.model_validate(asked)
    for wrong in ({"lexical": "odd"}, "jaccard", {"coefficients": {"link": float("nan")}}):
        with pytest.raises(CmaError) as info:
            memory.recall("event", retrieval=wrong)  # type: ignore[arg-type]
        assert info.value.reason in (Reason.FIELD_INVALID, Reason.KIND_UNKNOWN)


class OddClock:
    """A clock that tells whatever it is given."""

    def __init__(self, told: Any) -> None:
        self.told = told

    def now(self) -> Any:
        return self.told


@pytest.mark.parametrize("told", [datetime(2026, 3, 1), 5.0, None])  # noqa: DTZ001
def test_a_clock_that_tells_no_instant_is_refused(path: Path, told: Any) -> None:
    with pytest.raises(CmaError):
        Memory.open(path, clock=OddClock(told))
    assert not path.exists()
    clock = OddClock(AT)
    with Memory.open(path, clock=clock) as memory:
        before = memory.digest()
        clock.told = told
        with pytest.raises(CmaError):
            event(memory)
        with pytest.raises(CmaError):
            memory.recall("event")
        clock.told = AT
        assert memory.digest() == before
        memory.verify()


def test_a_cell_that_outlives_the_calendar_is_refused(path: Path) -> None:
    with Memory.open(path, clock=FixedClock(datetime(9999, 12, 31, tzinfo=UTC))) as memory:
        with pytest.raises(CmaError) as info:
            memory.within("session:a").write(
                "note", kind="working", origin="test", metadata={"ttl_seconds": 10**8}
            )
        assert info.value.reason is Reason.FIELD_INVALID


def test_errors_travel_between_processes(memory: Memory) -> None:
    with pytest.raises(CmaError) as info:
        memory.get("cell-none")
    again = pickle.loads(pickle.dumps(info.value))
    assert type(again) is type(info.value)
    assert str(again) == str(info.value)
    assert again.reason is info.value.reason


def test_no_batch_leaves_its_failure_record(memory: Memory) -> None:
    for use in (memory.write_many, memory.link_many):
        before = memory.verify().audit_records
        with pytest.raises(CmaError):
            use(None)  # type: ignore[arg-type]
        assert memory.verify().audit_records == before + 1


def test_an_update_without_a_value_changes_nothing(memory: Memory) -> None:
    cell_id = memory.write(
        "said", kind="episodic", origin="t", observed_at=AT, metadata={"speaker": "Ada"}
    ).id
    for name in ("metadata", "summary", "confidence", "lifecycle"):
        with pytest.raises(CmaError) as info:
            memory.update(cell_id, **{name: None})
        assert info.value.field == name
    assert memory.get(cell_id).metadata.speaker == "Ada"  # type: ignore[union-attr]


def test_an_interpreter_that_ends_without_closing_records_its_reads(path: Path) -> None:
    script = (
        "import sys; from cma import Memory; memory = Memory.open(sys.argv[1]);"
        "memory.write('tea', kind='episodic', origin='o', observed_at='2026-01-01T00:00:00Z');"
        "print(memory.recall('tea').trace.id)"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, str(path)], capture_output=True, text=True, check=True
    )
    assert done.stderr == ""
    with Memory.open(path) as memory:
        assert memory.explain(done.stdout.strip()).verified

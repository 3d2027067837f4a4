"""A disk that refuses, cuts short or drops a call: never half done, never locked, never silent."""

from __future__ import annotations

import errno
import fcntl
import os
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import apsw
import pytest

from cma import CmaError, Memory, Reason
from cma.orion import anchor as anchor_module
from cma.orion.anchor import Anchor, anchor_path
from experiments.crashing import failing, script, steps
from experiments.crashing.calls import Call, Fate
from experiments.crashing.failing import BAD, Answer, Stood, Try, Way
from experiments.crashing.faults import FAULTS, Failing
from experiments.crashing.scratch import scratch
from experiments.crashing.script import Reference
from experiments.crashing.watching import watched
from tests.faults.injection import remember


@pytest.fixture
def place() -> Iterator[Path]:
    with scratch() as folder:
        yield folder


@pytest.fixture(scope="module")
def stood() -> tuple[Reference, Stood]:
    with scratch() as folder:
        return failing.stood_before(folder)


def _tries(
    folder: Path, stood: tuple[Reference, Stood], path: str, fault: str, log: str = "growing"
) -> list[Try]:
    return list(failing.tries(folder, *stood, path, Way(fault, log)))


@pytest.mark.parametrize(
    ("path", "fault", "log"),
    [
        ("write", "io", "growing"),
        ("write", "io-stays", "growing"),
        ("write", "full-stays", "folded"),
        ("write", "short", "growing"),
        ("write", "read", "growing"),
        ("admit", "short", "growing"),
        ("recall", "io", "folded"),
        ("snapshot", "io", "growing"),
        ("close", "io", "growing"),
        ("open", "full", "growing"),
        ("create", "short", "growing"),
    ],
)
def test_no_call_that_fails_leaves_half_a_step(
    place: Path, stood: tuple[Reference, Stood], path: str, fault: str, log: str
) -> None:
    tried = _tries(place, stood, path, fault, log)
    assert not [each for each in tried if each.answer in BAD]
    assert len(tried) > 3
    assert [each.number for each in tried] == list(range(1, len(tried) + 1))


def test_shared_memory_that_cannot_be_mapped_keeps_the_store_shut_and_whole(
    place: Path, stood: tuple[Reference, Stood]
) -> None:
    tried = _tries(place, stood, "open", "map")
    assert {each.call for each in tried} == {"map"}
    assert {each.answer for each in tried} <= {Answer.REFUSED, Answer.DONE}


def test_a_full_disk_still_lets_what_is_stored_be_read(place: Path) -> None:
    script.play(place, {}, end=6)
    full = Failing(FAULTS["full-stays"], 1)
    with watched(place, full), script.opened(place, 6) as memory:
        before = memory.generation
        full.armed = True
        hits = memory.recall("what does Ann drink").hits
        assert memory.get(hits[0].cell.id) == hits[0].cell
        with pytest.raises(CmaError) as info:
            remember(memory, "too late")
        assert info.value.reason is Reason.STORE_IO
        assert memory.generation == before
        full.armed = False
        remember(memory, "in time")
        assert memory.verify().generation == before + 1


@pytest.mark.parametrize("path", ["write", "snapshot", "sweep", "close"])
def test_what_a_disk_only_pretends_to_do_is_noticed(
    place: Path, stood: tuple[Reference, Stood], path: str
) -> None:
    answers = Counter(each.answer for each in _tries(place, stood, path, "dropped"))
    assert set(answers) <= {Answer.DONE, Answer.NOTICED}
    assert answers[Answer.NOTICED]


def test_an_anchor_written_in_part_is_no_anchor(
    memory: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    remember(memory, "first")
    pwrite = os.pwrite
    with monkeypatch.context() as patch:
        patch.setattr(os, "pwrite", lambda fd, data, at: pwrite(fd, data[:100], at))
        with pytest.raises(CmaError) as info:
            remember(memory, "second")
    assert info.value.reason is Reason.STORE_IO
    assert memory.verify().cells == 2  # as the remedy says, the change may be there
    remember(memory, "third")
    assert memory.verify().tail_pinned


def test_an_unnoticed_half_of_an_anchor_would_be_found_here(
    place: Path, stood: tuple[Reference, Stood], monkeypatch: pytest.MonkeyPatch
) -> None:
    def careless(descriptor: int, anchor: Anchor, _: object) -> None:
        os.pwrite(descriptor, anchor_module._format(anchor), 0)
        anchor_module._sync(descriptor)

    monkeypatch.setattr("cma.orion.opening.write_anchor", careless)
    tried = _tries(place, stood, "create", "short")
    assert [each.answer for each in tried if each.answer in BAD] == [Answer.PARTIAL]


def test_a_snapshot_stays_where_its_record_may_be_there(
    tmp_path: Path, stood: tuple[Reference, Stood]
) -> None:
    """A record whose file is gone would claim what nobody can check."""
    reference, before = stood
    begin = failing.paths(reference)["snapshot"]
    failing.lay_out(tmp_path, before[begin])
    syncs: list[Call] = []

    def last_sync_fails(call: Call) -> Fate:
        if call.kind == "sync" and call.file.endswith(".head"):
            syncs.append(call)
            return Fate.IO_ERROR
        return Fate.PASS

    with script.opened(tmp_path, begin) as memory, watched(tmp_path, last_sync_fails):
        with pytest.raises(CmaError) as info:
            memory.snapshot(tmp_path / "kept.cma.jsonl")
        assert info.value.reason is Reason.STORE_IO
    assert syncs
    assert (tmp_path / "kept.cma.jsonl").exists()
    with script.opened(tmp_path, begin) as memory:
        assert "snapshot" in [row[1] for row in memory.store.audit_rows()]


def test_a_snapshot_that_was_refused_leaves_no_file(memory: Memory, tmp_path: Path) -> None:
    remember(memory, "first")
    anchor_path(memory.store.path).write_bytes(b"")
    with pytest.raises(CmaError) as info:
        memory.snapshot(tmp_path / "gone.cma.jsonl")
    assert info.value.reason is Reason.ANCHOR_DISAGREES
    assert not (tmp_path / "gone.cma.jsonl").exists()


def test_reads_on_record_are_not_recorded_again_when_the_commit_is_interrupted(
    memory: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An interrupt can come right after the database has committed."""
    remember(memory, "tea")
    memory.recall("tea")
    connection = memory.store.connection

    def interrupt() -> bool:
        raise KeyboardInterrupt

    connection.set_wal_hook(lambda *_: interrupt())
    with pytest.raises(KeyboardInterrupt):
        memory.store.flush_reads()
    connection.set_wal_hook(None)
    memory.store.flush_reads()
    assert [row[1] for row in memory.store.audit_rows()].count("read") == 1


def test_a_lock_that_is_left_is_seen(tmp_path: Path) -> None:
    script.play(tmp_path, {}, end=1)
    store = tmp_path / steps.STORE
    assert not failing._locked(store)
    holder = apsw.Connection(str(store))
    holder.execute("BEGIN IMMEDIATE")
    assert failing._locked(store)
    holder.execute("ROLLBACK")
    holder.close()
    descriptor = os.open(anchor_path(store), os.O_RDWR)
    fcntl.flock(descriptor, fcntl.LOCK_EX)
    assert failing._locked(store)
    os.close(descriptor)
    assert not failing._locked(store)


def test_calls_of_database_and_anchor_are_seen_in_their_order(tmp_path: Path) -> None:
    """The log is synced before the anchor moves, and the anchor before the write returns."""
    seen: list[tuple[str, str]] = []

    def observe(call: Call) -> Fate:
        seen.append((call.kind, call.file.removeprefix(steps.STORE)))
        return Fate.PASS

    with watched(tmp_path, observe):
        script.play(tmp_path, {}, end=1)
        with script.opened(tmp_path, 1) as memory:
            memory.generation  # noqa: B018 (opens the connection)
            seen.clear()
            script.script()[1].run(memory, {}, tmp_path)
            changes = [each for each in seen if each[0] in ("write", "sync")]
    assert changes[-3:] == [("sync", "-wal"), ("write", ".head"), ("sync", ".head")]
    assert {"-wal"} == {file for _, file in changes[:-2]}
    assert "watched" not in " ".join(apsw.vfs_names())


def test_what_python_is_told_of_a_failing_call(tmp_path: Path) -> None:
    fates = {Fate.IO_ERROR: errno.EIO, Fate.FULL: errno.ENOSPC}
    for fate, code in fates.items():
        with (
            watched(tmp_path, lambda call, fate=fate: fate),
            pytest.raises(OSError, match=os.strerror(code)),
        ):
            os.open(tmp_path / "file", os.O_WRONLY | os.O_CREAT)
    assert not list(tmp_path.iterdir())

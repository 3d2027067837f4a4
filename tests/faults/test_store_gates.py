"""The store's own gates, each met alone: closed, forked, locked, half begun, damaged, replaced."""

from __future__ import annotations

import errno
import fcntl
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import apsw
import pytest

from cma import CmaError, Memory, Reason
from cma.orion import anchor as anchor_module
from cma.orion import opening, writing
from cma.orion.anchor import Anchor, anchor_path, write_anchor
from cma.orion.connection import database_errors, use_write_ahead_log
from cma.orion.records import record_of
from cma.values.errors import InvalidValueError, NotFoundError
from tests.faults.injection import draft, remember, tamper


def reason_of(use: Callable[[], Any]) -> Reason:
    with pytest.raises(CmaError) as info:
        use()
    return info.value.reason


def anchored(path: Path, anchor: Anchor) -> None:
    with anchor_path(path).open("wb+") as file:
        write_anchor(file.fileno(), anchor, (None, None))


def test_a_thread_that_comes_after_closing_opens_nothing(memory: Memory) -> None:
    cell = remember(memory, "event")
    memory.close()
    told: list[Reason] = []
    thread = threading.Thread(target=lambda: told.append(reason_of(lambda: memory.get(cell.id))))
    thread.start()
    thread.join()
    assert told == [Reason.STORE_CLOSED]


USES: dict[str, Callable[[Memory], Any]] = {
    "a transition": lambda memory: remember(memory, "another"),
    "a refusal": lambda memory: memory.write_many(5),  # type: ignore[arg-type]
    "waiting reads": lambda memory: memory.store.flush_reads(),
    "cleaning": lambda memory: memory.store.clean(),
}


@pytest.mark.parametrize("use", USES.values(), ids=USES)
def test_a_store_after_a_fork_is_refused_without_waiting(
    memory: Memory, monkeypatch: pytest.MonkeyPatch, use: Callable[[Memory], Any]
) -> None:
    """After a fork nobody is left to release a lock that another thread held."""
    holds, answered = threading.Event(), threading.Event()
    in_time: list[bool] = []

    def hold() -> None:
        with memory.store._writing:
            holds.set()
            in_time.append(answered.wait(5))

    thread = threading.Thread(target=hold)
    thread.start()
    holds.wait()
    with monkeypatch.context() as patch:
        patch.setattr(memory.store, "_process", -1)
        assert reason_of(lambda: use(memory)) is Reason.STORE_FORKED
        answered.set()
        thread.join()
    assert in_time == [True]


ERRORS: dict[str, tuple[BaseException, Reason]] = {
    "closed": (apsw.ConnectionClosedError(), Reason.STORE_CLOSED),
    "busy": (apsw.BusyError(), Reason.STORE_BUSY),
    "surrogate": (UnicodeEncodeError("utf-8", "\ud800", 0, 1, "no"), Reason.FIELD_INVALID),
    "damaged": (apsw.CorruptError(), Reason.STORE_DAMAGED),
    "no text": (UnicodeDecodeError("utf-8", b"\xff", 0, 1, "no"), Reason.STORE_DAMAGED),
    "full": (apsw.FullError(), Reason.STORE_IO),
    "disk": (OSError(errno.EIO, "no"), Reason.STORE_IO),
    "ours": (NotFoundError(Reason.CELL_NOT_FOUND, "no"), Reason.CELL_NOT_FOUND),
}


@pytest.mark.parametrize(("error", "reason"), ERRORS.values(), ids=ERRORS)
def test_errors_of_the_database_become_ours(
    path: Path, error: BaseException, reason: Reason
) -> None:
    def stumble() -> None:
        with database_errors(path):
            raise error

    assert reason_of(stumble) is reason


def test_a_database_without_a_write_ahead_log_is_refused(path: Path) -> None:
    connection = apsw.Connection(":memory:")
    assert reason_of(lambda: use_write_ahead_log(connection, path)) is Reason.STORE_IO


def test_a_store_is_begun_without_a_name_of_its_own(path: Path) -> None:
    with Memory.open(path) as memory:
        assert len(memory.store.store_id) == 32


def test_a_beginning_that_another_gave_up_is_busy(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    locked = opening.locked

    @contextmanager
    def given_up(place: Path, *, create: bool = False) -> Iterator[int]:
        with locked(place, create=create) as descriptor:
            place.unlink()
            yield descriptor

    monkeypatch.setattr(opening, "locked", given_up)
    assert reason_of(lambda: Memory.open(path)) is Reason.STORE_BUSY
    assert not path.exists()


def test_a_beginning_that_was_interrupted_is_begun_again(path: Path) -> None:
    anchored(path, Anchor("gone", 1, bytes(32)))
    with Memory.open(path) as memory:
        assert memory.verify().audit_records == 1


def test_a_restoring_that_was_interrupted_is_begun_again(path: Path) -> None:
    anchored(path, Anchor("gone", 7, bytes(32)))
    assert reason_of(lambda: Memory.open(path)) is Reason.STORE_NOT_FOUND
    path.with_name(f".{path.name}.new").write_bytes(b"")
    with Memory.open(path) as memory:
        assert memory.verify().audit_records == 1


def test_a_store_that_lost_its_name_is_damaged(path: Path, memory: Memory) -> None:
    memory.close()
    tamper(path, ("DELETE FROM store",))
    assert reason_of(lambda: Memory.open(path)) is Reason.STORE_DAMAGED


def test_an_index_that_lost_its_rows_is_damage(path: Path, memory: Memory) -> None:
    one, two = remember(memory, "one"), remember(memory, "two")
    memory.link("causal", one.id, two.id)
    memory.close()
    other = "CREATE INDEX links_by_source ON links (kind)"
    connection = apsw.Connection(str(path))
    connection.execute("PRAGMA writable_schema=ON")
    connection.execute("UPDATE sqlite_schema SET sql = ? WHERE name = 'links_by_source'", (other,))
    connection.close()
    with Memory.open(path) as again:
        assert reason_of(again.verify) is Reason.STORE_DAMAGED


@pytest.mark.parametrize("anchor", ["none", "another store's"])
def test_an_anchor_that_was_replaced_meanwhile_is_seen(
    path: Path, memory: Memory, anchor: str
) -> None:
    remember(memory, "one")
    seq, head, _ = memory.store.head()
    if anchor == "none":
        anchor_path(path).write_bytes(b"")
    else:
        anchored(path, Anchor("another", seq, head))
    assert reason_of(memory.verify) is Reason.ANCHOR_DISAGREES
    assert reason_of(lambda: remember(memory, "two")) is Reason.ANCHOR_DISAGREES


def test_an_anchor_that_stays_locked_is_busy(
    path: Path, memory: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    waits = []

    def sleep(_: float) -> None:
        waits.append(1)
        assert len(waits) < 5, "it waits for ever"

    times = iter(range(1, 100, 4))
    monkeypatch.setattr(anchor_module, "sleep", sleep)
    monkeypatch.setattr(anchor_module, "monotonic", lambda: next(times))
    with anchor_path(path).open("rb") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        assert reason_of(lambda: remember(memory, "one")) is Reason.STORE_BUSY
    remember(memory, "one")


def test_an_anchor_that_is_written_in_part_is_not_acknowledged(
    memory: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = os.pwrite
    monkeypatch.setattr(os, "pwrite", lambda file, data, place: whole(file, data[:100], place))
    assert reason_of(lambda: remember(memory, "one")) is Reason.STORE_IO


@pytest.mark.parametrize("data", [b"[]", b"1", b"{", b""])
def test_bytes_that_hold_no_record_are_damage(data: bytes) -> None:
    assert reason_of(lambda: record_of(data)) is Reason.STATE_DISAGREES


def test_a_cell_is_derived_from_what_its_scope_sees(
    memory: Memory, ann: Memory, bob: Memory
) -> None:
    own, other = remember(ann, "own"), remember(bob, "other")
    for name in (other.id, f"cell-{'0' * 40}"):
        asked = [draft("derived", derived_from=[own.id, name])]
        assert reason_of(lambda asked=asked: ann.write_many(asked)) is Reason.SOURCE_MISSING
    ann.write_many([draft("derived", derived_from=[own.id])])


def test_a_derived_cell_is_held_to_the_cap_on_records(
    memory: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    frames = []
    for number in range(2):
        cell = remember(memory, f"tea {number}")
        frames.append(memory.bind(scene="s", sources=[cell.id], actions=["tea"]).id)
        memory.replay(frames[-1])
    proposal = memory.propose(
        frames=frames, content="tea", subject="a", predicate="drinks", object="tea"
    )

    def too_large(*_: object, **__: object) -> bytes:
        raise InvalidValueError(Reason.CONTENT_TOO_LARGE, "no")

    monkeypatch.setattr(writing, "checked_size", too_large)
    approve = lambda: memory.approve(proposal.id, approval_id="CR-1")  # noqa: E731
    assert reason_of(approve) is Reason.CONTENT_TOO_LARGE


def test_a_lifecycle_is_text(memory: Memory) -> None:
    cell = remember(memory, "event")
    for value in ([], {}, 5, "expired"):
        change = lambda value=value: memory.update(cell.id, lifecycle=value)  # noqa: E731
        assert reason_of(change) is Reason.FIELD_INVALID


def test_nothing_is_linked_to_what_was_erased(memory: Memory) -> None:
    one, two = remember(memory, "one"), remember(memory, "two")
    memory.erase(two.id, reason="person-request")
    assert reason_of(lambda: memory.link("causal", one.id, two.id)) is Reason.LINK_ENDPOINT_MISSING


def test_a_commit_that_is_interrupted_is_not_acknowledged(memory: Memory) -> None:
    remember(memory, "one")
    before = memory.digest(), memory.store.head()

    def interrupt(_: Any, sql: str, __: Any) -> bool:
        if sql == "COMMIT":
            raise KeyboardInterrupt
        return True

    memory.store.connection.exec_trace = interrupt
    with pytest.raises(KeyboardInterrupt):
        remember(memory, "two")
    memory.store.connection.exec_trace = None
    assert (memory.digest(), memory.store.head()) == before
    remember(memory, "two")
    assert memory.verify().tail_pinned

"""Each gate of snapshots met alone: names, envelopes, lines, rows, disks, and others' haste."""

from __future__ import annotations

import hashlib
import io
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from cma import Caller, CmaError, FixedClock, Memory, Reason
from cma.rosette import restoring, snapshotting
from cma.rosette.snapshot_form import envelope_line, parse_line, read_envelope
from cma.values.errors import StoreRefusedError, StoreUnavailableError
from cma.values.identity import canonical
from tests.faults.injection import START, remember

CALLER = Caller(name="tester", authority="user")


def reason_of(use: Callable[[], Any]) -> Reason:
    with pytest.raises(CmaError) as info:
        use()
    return info.value.reason


@pytest.fixture
def target(tmp_path: Path) -> Path:
    return tmp_path / "taken.cma.jsonl"


@pytest.fixture
def snapshot(memory: Memory, target: Path) -> Path:
    """A snapshot with a cell, a working cell, a link and a trace."""
    one = remember(memory, "one event")
    two = remember(memory, "another event", minutes=1)
    memory.link("temporal", one.id, two.id)
    view = memory.within("session:a")
    view.write("a note", kind="working", origin="o", metadata={"ttl_seconds": 60})
    memory.recall("event")
    memory.snapshot(target)
    return target


def restored(snapshot: Path, path: Path) -> None:
    clock = FixedClock(START)
    Memory.restore(snapshot, path.with_name("restored.cma"), caller=CALLER, clock=clock).close()


def with_records(snapshot: Path, change: Callable[[list[bytes]], list[bytes]]) -> None:
    """Change the lines behind the envelope, and have it name what they are."""
    envelope, *lines = snapshot.read_bytes().splitlines(keepends=True)
    lines = change(lines)
    fields = json.loads(envelope)
    del fields["envelope_sha256"]
    fields["records_sha256"] = hashlib.sha256(b"".join(lines)).hexdigest()
    snapshot.write_bytes(envelope_line(fields) + b"".join(lines))


def test_a_name_that_is_taken_is_refused_whatever_takes_it(memory: Memory, target: Path) -> None:
    target.symlink_to(target.with_name("nowhere"))
    assert reason_of(lambda: memory.snapshot(target)) is Reason.SNAPSHOT_TARGET_EXISTS
    target.unlink()
    memory.snapshot(target)
    whole = target.read_bytes()
    assert reason_of(lambda: memory.snapshot(target)) is Reason.SNAPSHOT_TARGET_EXISTS
    assert target.read_bytes() == whole


def test_what_is_refused_at_once_is_not_looked_through_first(
    memory: Memory, target: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def looked(*_: object) -> None:
        raise AssertionError("the store was read for nothing")

    target.write_bytes(b"")
    monkeypatch.setattr(snapshotting, "check_agreement", looked)
    assert reason_of(lambda: memory.snapshot(target)) is Reason.SNAPSHOT_TARGET_EXISTS
    target.unlink()
    target.symlink_to(target.with_name("nowhere"))
    assert reason_of(lambda: memory.snapshot(target)) is Reason.SNAPSHOT_TARGET_EXISTS


def test_a_name_that_another_takes_meanwhile_is_left_to_it(
    memory: Memory, target: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    link = os.link

    def late(draft: Path, place: Path) -> None:
        place.write_bytes(b"another's")
        link(draft, place)

    monkeypatch.setattr(os, "link", late)
    assert reason_of(lambda: memory.snapshot(target)) is Reason.SNAPSHOT_TARGET_EXISTS
    assert target.read_bytes() == b"another's"
    assert sorted(each.name for each in target.parent.glob(".*")) == []


def test_a_name_of_the_stores_own_files_is_refused(memory: Memory, path: Path) -> None:
    own = path.with_name(f"{path.name}-journal")
    assert reason_of(lambda: memory.snapshot(own)) is Reason.FIELD_INVALID
    for name in ("other.cma-journal", f"{path.name}.copy"):
        assert memory.snapshot(path.with_name(name)).file == name


def test_a_disk_that_refuses_is_named_as_such(
    memory: Memory, target: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "no space left")

    monkeypatch.setattr(os, "fsync", full)
    assert reason_of(lambda: memory.snapshot(target)) is Reason.STORE_IO
    monkeypatch.undo()
    monkeypatch.setattr(snapshotting, "record_lines", full)
    assert reason_of(lambda: memory.snapshot(target)) is Reason.STORE_IO
    monkeypatch.undo()
    monkeypatch.setattr(os, "link", full)
    assert reason_of(lambda: memory.snapshot(target)) is Reason.STORE_IO
    assert not target.exists()


def test_a_busy_store_is_told_from_a_failing_disk(
    memory: Memory, target: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def busy(*_: object) -> None:
        raise StoreUnavailableError(Reason.STORE_BUSY, "no")

    monkeypatch.setattr(snapshotting, "check_agreement", busy)
    assert reason_of(lambda: memory.snapshot(target)) is Reason.STORE_BUSY


def test_a_store_whose_topology_is_wrong_is_not_taken(
    memory: Memory, target: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def wrong(_: object) -> None:
        raise StoreRefusedError(Reason.REFERENCE_MISSING, "no")

    monkeypatch.setattr(snapshotting, "check_topology", wrong)
    assert reason_of(lambda: memory.snapshot(target)) is Reason.REFERENCE_MISSING


def test_what_could_not_be_recorded_was_not_taken(
    memory: Memory, target: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(*_: object, **__: object) -> None:
        raise StoreRefusedError(Reason.STORE_DAMAGED, "no")

    monkeypatch.setattr(memory.store, "transition", refused)
    assert reason_of(lambda: memory.snapshot(target)) is Reason.STORE_DAMAGED
    assert not target.exists()


ENVELOPES: dict[str, Callable[[dict[str, Any]], object]] = {
    "a version that is no number": lambda told: told.update(version="2"),
    "a version that is true": lambda told: told.update(version=True),
    "a version below": lambda told: told.update(version=0),
    "another format": lambda told: told.update(format="cma.other"),
    "a type too few": lambda told: told["counts"].pop("trace"),
    "a type too many": lambda told: told["counts"].update(other=0),
}


@pytest.mark.parametrize("change", ENVELOPES.values(), ids=ENVELOPES)
def test_an_envelope_that_is_not_whole_is_refused(
    snapshot: Path, change: Callable[[dict[str, Any]], object]
) -> None:
    told = json.loads(snapshot.read_bytes().split(b"\n")[0])
    del told["envelope_sha256"]
    change(told)
    line = envelope_line(told)
    assert reason_of(lambda: read_envelope(line)) is Reason.SNAPSHOT_ENVELOPE


def test_an_envelope_without_an_end_or_of_a_later_release_is_refused(snapshot: Path) -> None:
    line = snapshot.read_bytes().split(b"\n")[0]
    read_envelope(line + b"\n")
    assert reason_of(lambda: read_envelope(line + b"x")) is Reason.SNAPSHOT_ENVELOPE
    told = json.loads(line)
    del told["envelope_sha256"]
    told["version"] = 2
    assert reason_of(lambda: read_envelope(envelope_line(told))) is Reason.SNAPSHOT_NEWER


@pytest.mark.parametrize(
    "line",
    [
        b"{}\n",
        b'{"record":{},"type":"other"}\n',
        b'{"hash":"%b","record":{},"type":"cell"}\n' % (b"0" * 64),
        b'{"record":{},"type":"audit"}\n',
        b'{"record":{},"type":"cell"}',
    ],
)
def test_what_is_no_line_is_refused(line: bytes) -> None:
    with pytest.raises(ValueError, match="no line of a snapshot"):
        parse_line(line)
    assert parse_line(b'{"record":{},"type":"cell"}\n')[0] == "cell"


def changed(kind: bytes, change: Callable[[dict[str, Any]], object]) -> Callable[..., list[bytes]]:
    """Return what changes the records of a type."""

    def apply(lines: list[bytes]) -> list[bytes]:
        found = []
        for line in lines:
            told = json.loads(line)
            if told["type"].encode() == kind:
                change(told["record"])
            found.append(canonical(told) + b"\n")
        return found

    return apply


ROWS: dict[str, tuple[Callable[[list[bytes]], list[bytes]], Reason]] = {
    "a trace of no recall": (
        changed(b"trace", lambda told: told.pop("query")),
        Reason.SNAPSHOT_RECORD,
    ),
    "a trace that bears a mark": (
        changed(b"trace", lambda told: told.update(erased="trace-0")),
        Reason.SNAPSHOT_RECORD,
    ),
    "a trace whose mark is no text": (
        changed(b"trace", lambda told: told.update(erased=1)),
        Reason.SNAPSHOT_RECORD,
    ),
    "a number that is none": (
        changed(b"audit", lambda told: told.update(seq="1")),
        Reason.SNAPSHOT_RECORD,
    ),
    "a number that is true": (
        changed(b"audit", lambda told: told.update(seq=True)),
        Reason.SNAPSHOT_RECORD,
    ),
    "a number below": (
        changed(b"audit", lambda told: told.update(seq=-1)),
        Reason.SNAPSHOT_RECORD,
    ),
    "a share above one": (
        changed(b"cell", lambda told: told.update(confidence=2_000_000)),
        Reason.SNAPSHOT_RECORD,
    ),
    "a cell that is erased without a mark": (
        changed(b"cell", lambda told: told.update(lifecycle="erased")),
        Reason.SNAPSHOT_RECORD,
    ),
    "a first revision that is retired": (
        changed(b"cell", lambda told: told.update(lifecycle="retracted")),
        Reason.SNAPSHOT_RECORD,
    ),
    "a last line without an end": (
        lambda lines: [*lines[:-1], lines[-1][:-1]],
        Reason.SNAPSHOT_RECORD,
    ),
    "a line twice": (lambda lines: [lines[0], *lines], Reason.SNAPSHOT_RECORD),
    "a line too few": (lambda lines: lines[:-1], Reason.SNAPSHOT_COUNTS),
}


@pytest.mark.parametrize(("change", "reason"), ROWS.values(), ids=ROWS)
def test_a_row_that_cannot_be_is_refused(
    snapshot: Path, path: Path, change: Callable[[list[bytes]], list[bytes]], reason: Reason
) -> None:
    with_records(snapshot, change)
    assert reason_of(lambda: restored(snapshot, path)) is reason


def test_a_restoring_that_finds_a_store_begun_meanwhile_is_refused(
    snapshot: Path, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(restoring, "publish_store", lambda *_: False)
    assert reason_of(lambda: restored(snapshot, path)) is Reason.SNAPSHOT_TARGET_EXISTS


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (StoreRefusedError(Reason.STORE_NOT_FOUND, "no"), Reason.STORE_NOT_FOUND),
        (StoreRefusedError(Reason.STORE_DAMAGED, "no"), Reason.SNAPSHOT_RECORD),
        (OSError(5, "no"), Reason.STORE_IO),
    ],
)
def test_what_hinders_a_restoring_is_named(
    snapshot: Path,
    path: Path,
    monkeypatch: pytest.MonkeyPatch,
    error: Exception,
    reason: Reason,
) -> None:
    def hindered(*_: object) -> bool:
        raise error

    monkeypatch.setattr(restoring, "publish_store", hindered)
    assert reason_of(lambda: restored(snapshot, path)) is reason
    monkeypatch.setattr(restoring, "_read_through", hindered)
    assert reason_of(lambda: restored(snapshot, path)) in (reason, Reason.STORE_DAMAGED)


def test_parts_that_no_table_takes_are_refused(snapshot: Path, path: Path) -> None:
    class Refusing:
        def executemany(self, *_: object) -> None:
            raise TypeError("no such type")

    with pytest.raises(CmaError) as info:
        restoring._flush(Refusing(), {"cell": [()]})  # type: ignore[arg-type]
    assert info.value.reason is Reason.SNAPSHOT_RECORD


def test_a_file_that_changes_while_it_is_read_is_refused(
    snapshot: Path, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = restoring._read_through

    def swapped(file: Any) -> Any:
        found = first(file)
        other = snapshot.read_bytes().replace(b"one event", b"two event")
        snapshot.write_bytes(other)
        return found

    monkeypatch.setattr(restoring, "_read_through", swapped)
    monkeypatch.setattr(restoring, "_row", lambda line, number: ("cell", (number,), (), []))
    monkeypatch.setattr(restoring, "_flush", lambda *_: None)
    assert reason_of(lambda: restored(snapshot, path)) is Reason.SNAPSHOT_HASH


def test_lines_are_read_up_to_their_longest() -> None:
    lines = restoring._lines(io.BytesIO(b"envelope\none\ntwo"))
    assert next(lines) == (2, b"one\n")
    assert reason_of(lambda: next(lines)) is Reason.SNAPSHOT_RECORD


@pytest.mark.parametrize("value", ["1", True, False, -1, 1.0, None])
def test_what_is_no_number_is_none(value: object) -> None:
    with pytest.raises(ValueError, match="no number"):
        restoring._number(value)
    assert restoring._number(0) == 0


def test_an_honest_snapshot_is_restored(snapshot: Path, path: Path) -> None:
    restored(snapshot, path)


@pytest.fixture
def erased(memory: Memory, target: Path) -> Path:
    """A snapshot of an erased cell and of an erased trace."""
    user = memory.acting_as(Caller(name="ann", authority="user"))
    cell = remember(user, "one event")
    user.recall("event")
    user.erase(cell.id, reason="person-request")
    user.snapshot(target)
    return target


def lines_of(snapshot: Path, kind: str) -> list[dict[str, Any]]:
    told = [json.loads(line) for line in snapshot.read_bytes().splitlines()[1:]]
    return [each for each in told if each["type"] == kind]


def cause_of(line: dict[str, Any]) -> str:
    """Return for what a line is refused; several checks give it one reason code."""
    with pytest.raises(CmaError) as info:
        restoring._row(canonical(line) + b"\n", 2)
    return str(info.value.__cause__)


LIVE: dict[str, tuple[str, dict[str, Any], str]] = {
    "erased without a mark": ("cell", {"lifecycle": "erased"}, "an erased cell bears a mark"),
    "another scope": ("cell", {"scope": "nowhere"}, "scope"),
}
BLANK: dict[str, tuple[str, dict[str, Any], str]] = {
    "words left": ("cell", {"summary": "one"}, "an erased cell is blank"),
    "a part too many": ("cell", {"extra": 1}, "an erased cell is blank"),
    "another scope": ("cell", {"scope": "nowhere"}, "scope"),
    "a mark that is no text": ("trace", {"erased": 1}, "not the trace of a recall"),
    "a query left": ("trace", {"query": "one"}, "an erased trace is blank"),
}


@pytest.mark.parametrize(("kind", "changes", "words"), LIVE.values(), ids=LIVE)
def test_a_line_is_refused_for_what_is_wrong_with_it(
    snapshot: Path, kind: str, changes: dict[str, Any], words: str
) -> None:
    line = lines_of(snapshot, kind)[0]
    line["record"] |= changes
    assert words in cause_of(line)


@pytest.mark.parametrize(("kind", "changes", "words"), BLANK.values(), ids=BLANK)
def test_a_blank_line_is_refused_for_what_is_left_in_it(
    erased: Path, kind: str, changes: dict[str, Any], words: str
) -> None:
    line = lines_of(erased, kind)[0]
    line["record"] |= changes
    assert words in cause_of(line)


def test_a_share_beyond_its_ends_is_refused(snapshot: Path) -> None:
    for name in ("confidence", "importance"):
        for value, words in ((1_000_001, "less than or equal to 1"), (-1, "greater than or equal")):
            line = lines_of(snapshot, "cell")[0]
            line["record"][name] = value
            assert words in cause_of(line)

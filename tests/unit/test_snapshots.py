"""Snapshots: one file that holds the whole store, and a store that comes back the same."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from cma import CmaError, FixedClock, Memory, Reason
from cma.rosette.restoring import restore_snapshot
from cma.rosette.snapshot_form import TYPES, record_lines
from cma.rosette.snapshotting import write_snapshot
from cma.values.errors import InvalidValueError, SnapshotRejectedError
from tests.faults.injection import CALLER, ROOT, START, hold, remember

QUERY = "who drinks tea"


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[Memory]:
    clock = FixedClock(START)
    with Memory.open(
        tmp_path / "memory.cma", caller=CALLER, clock=clock, store_id="store-one"
    ) as opened:
        yield opened


def live(memory: Memory) -> None:
    """Leave something of every kind in a memory: claims, a conflict, a skill, a delivery."""
    ann = memory.within("session:ann")
    frames = []
    for number in range(4):
        drink = "tea" if number < 2 else "mate"
        cell = remember(ann, f"Ann drinks {drink}, cup {number}", minutes=number)
        frame = ann.bind(scene=f"kitchen {number}", sources=[cell.id], actions=[f"drinks {drink}"])
        ann.replay(frame.id)
        frames.append(frame.id)
    for place, drink in ((0, "tea"), (2, "mate")):
        claim = ann.propose(
            frames=frames[place : place + 2],
            content=f"Ann drinks {drink}",
            subject="Ann",
            predicate="drinks",
            object=drink,
        )
        ann.approve(claim.id, approval_id=f"CR-{place}")
    ann.decide(ann.conflicts()[0].id, handling="preserve_both")
    runs = [
        ann.execute(
            task="deploy",
            steps=["build", "ship"],
            outcome=outcome,
            sources=[remember(ann, f"the deployment was a {outcome}", minutes=10).id],
        ).id
        for outcome in ("success", "failure")
    ]
    ann.approve(ann.propose_skill(executions=runs).id, approval_id="CR-9")
    other = ann.propose(
        frames=frames[:2], content="Ann likes tea", subject="Ann", predicate="likes", object="tea"
    )
    ann.reject(other.id, reason="nobody said so")
    packet = ann.packet(ann.recall(QUERY), budget=1024)
    ann.deliver(packet, recipient="model")
    held = hold(ann, "the kettle is on")
    ann.update(held.id, summary="kettle")


def test_a_restored_store_is_the_same_and_verifies(memory: Memory, tmp_path: Path) -> None:
    live(memory)
    place, target = tmp_path / "a.cma.jsonl", tmp_path / "restored.cma"
    receipt = write_snapshot(memory.store, place, caller=CALLER)
    assert receipt.store_digest == memory.digest()
    assert receipt.bytes == place.stat().st_size
    assert place.stat().st_mode & 0o777 == 0o600
    restored = restore_snapshot(place, target, caller=CALLER, clock=FixedClock(START))
    assert (restored.store_id, restored.store_digest) == ("store-one", memory.digest())
    assert target.stat().st_mode & 0o777 == 0o600
    with Memory.open(target, caller=CALLER, clock=FixedClock(START)) as again:
        assert again.verify().store_digest == memory.digest()
        assert again.generation == memory.generation
        before, after = (each.within("session:ann") for each in (memory, again))
        assert after.frames() == before.frames()
        assert after.proposals() == before.proposals()
        assert after.decisions() == before.decisions()
        one, two = before.recall(QUERY), after.recall(QUERY)
        assert [each.cell for each in one.hits] == [each.cell for each in two.hits]
        assert [each.score for each in one.hits] == [each.score for each in two.hits]
        remember(after, "life goes on", minutes=90)
        again.verify()


def test_the_file_is_sorted_and_tells_of_itself(memory: Memory, tmp_path: Path) -> None:
    live(memory)
    first = write_snapshot(memory.store, tmp_path / "a.cma.jsonl", caller=CALLER)
    second = write_snapshot(memory.store, tmp_path / "b.cma.jsonl", caller=CALLER)
    envelope, *lines = (tmp_path / "b.cma.jsonl").read_bytes().splitlines()
    told = json.loads(envelope)
    assert told["previous"] == first.sha256
    kinds = [json.loads(line)["type"] for line in lines]
    assert kinds == sorted(kinds)
    assert set(kinds) == set(TYPES)
    assert {kind: kinds.count(kind) for kind in TYPES} == told["counts"]
    assert second.records == len(lines)


def test_a_snapshot_of_the_restored_store_holds_the_same_records(
    memory: Memory, tmp_path: Path
) -> None:
    live(memory)
    write_snapshot(memory.store, tmp_path / "a.cma.jsonl", caller=CALLER)
    restore_snapshot(
        tmp_path / "a.cma.jsonl", tmp_path / "b.cma", caller=CALLER, clock=FixedClock(START)
    )
    with Memory.open(tmp_path / "b.cma", caller=CALLER, clock=FixedClock(START)) as again:
        sides = [
            [line for kind, line in record_lines(each.store.connection) if kind != "audit"]
            for each in (memory, again)
        ]
        assert sides[0] == sides[1]
        write_snapshot(again.store, tmp_path / "b.cma.jsonl", caller=CALLER)
    restore_snapshot(
        tmp_path / "b.cma.jsonl", tmp_path / "c.cma", caller=CALLER, clock=FixedClock(START)
    )


def test_a_restored_store_proposes_nothing_twice(memory: Memory, tmp_path: Path) -> None:
    live(memory)
    write_snapshot(memory.store, tmp_path / "a.cma.jsonl", caller=CALLER)
    restore_snapshot(
        tmp_path / "a.cma.jsonl", tmp_path / "b.cma", caller=CALLER, clock=FixedClock(START)
    )
    with Memory.open(tmp_path / "b.cma", caller=CALLER, clock=FixedClock(START)) as again:
        ann = again.within("session:ann")
        known, digest = ann.proposals(), again.digest()
        frames = [frame.id for frame in ann.frames() if "drinks tea" in frame.actions]
        ann.propose(
            frames=frames, content="Ann likes tea", subject="Ann", predicate="likes", object="tea"
        )
        assert ann.proposals() == known
        assert again.digest() == digest


def test_an_empty_store_and_waiting_reads(memory: Memory, tmp_path: Path) -> None:
    write_snapshot(memory.store, tmp_path / "a.cma.jsonl", caller=CALLER)
    restore_snapshot(
        tmp_path / "a.cma.jsonl", tmp_path / "b.cma", caller=CALLER, clock=FixedClock(START)
    )
    remember(memory, "Ann drinks tea")
    memory.recall(QUERY)
    write_snapshot(memory.store, tmp_path / "c.cma.jsonl", caller=CALLER)
    assert b'"type":"trace"' in (tmp_path / "c.cma.jsonl").read_bytes()


def test_nothing_is_overwritten(memory: Memory, tmp_path: Path) -> None:
    place = tmp_path / "a.cma.jsonl"
    write_snapshot(memory.store, place, caller=CALLER)
    before = place.read_bytes()
    with pytest.raises(InvalidValueError) as info:
        write_snapshot(memory.store, place, caller=CALLER)
    assert info.value.reason is Reason.SNAPSHOT_TARGET_EXISTS
    assert place.read_bytes() == before
    for name in ("there.cma", "dangling.cma", "log.cma-wal"):
        target = tmp_path / name
        target.symlink_to("nowhere") if "dangling" in name else target.write_bytes(b"mine")
        with pytest.raises(InvalidValueError) as info:
            restore_snapshot(
                place,
                tmp_path / name.removesuffix("-wal"),
                caller=CALLER,
                clock=FixedClock(START),
            )
        assert info.value.reason is Reason.SNAPSHOT_TARGET_EXISTS
    assert (tmp_path / "there.cma").read_bytes() == b"mine"


def test_a_snapshot_that_cannot_be_written_leaves_nothing(memory: Memory, tmp_path: Path) -> None:
    with pytest.raises(CmaError):
        write_snapshot(memory.store, tmp_path / "none" / "a.cma.jsonl", caller=CALLER)
    audit = memory.store.head()
    remember(memory, "Ann drinks tea")
    memory.store.connection.execute("UPDATE cells SET scope = 'session:eve'")
    before = sorted(tmp_path.iterdir())
    with pytest.raises(CmaError) as info:
        write_snapshot(memory.store, tmp_path / "a.cma.jsonl", caller=CALLER)
    assert info.value.reason is Reason.STATE_DISAGREES
    assert sorted(tmp_path.iterdir()) == before
    assert memory.store.head()[0] == audit[0] + 1  # the cell, and no snapshot


def test_links_folders_and_pipes_are_no_snapshot(memory: Memory, tmp_path: Path) -> None:
    write_snapshot(memory.store, tmp_path / "a.cma.jsonl", caller=CALLER)
    (tmp_path / "link").symlink_to("a.cma.jsonl")
    (tmp_path / "folder").mkdir()
    os.mkfifo(tmp_path / "pipe")
    for bad in ("link", "folder", "pipe", "none", "nul\0"):
        with pytest.raises(SnapshotRejectedError) as info:
            restore_snapshot(
                os.path.join(tmp_path, bad),
                tmp_path / "b.cma",
                caller=CALLER,
                clock=FixedClock(START),
            )
        assert info.value.reason is Reason.SNAPSHOT_NOT_FOUND
    for odd in (None, 5, b"bytes"):
        with pytest.raises(SnapshotRejectedError):
            restore_snapshot(
                odd,  # type: ignore[arg-type]
                tmp_path / "b.cma",
                caller=CALLER,
                clock=FixedClock(START),
            )
    assert not [each for each in tmp_path.iterdir() if "b.cma" in each.name]


def test_the_restore_is_on_record(memory: Memory, tmp_path: Path) -> None:
    write_snapshot(memory.store, tmp_path / "a.cma.jsonl", caller=CALLER)
    target = tmp_path / "b.cma"
    restore_snapshot(
        tmp_path / "a.cma.jsonl",
        target,
        caller=CALLER,
        clock=FixedClock(START + timedelta(days=1)),
    )
    with Memory.open(target) as again:
        row = again.store.connection.execute(
            "SELECT operation, record FROM audit ORDER BY seq DESC LIMIT 1"
        ).fetchone()
    assert row[0] == "restore"
    assert json.loads(row[1])["actor"] == CALLER.name


LARGE = """
import resource, sys
from pathlib import Path
from cma import Caller, FixedClock, Memory
from cma.rosette.restoring import restore_snapshot
from cma.rosette.snapshotting import write_snapshot
from tests.faults.injection import CALLER, START, draft
step, count, folder = sys.argv[1], int(sys.argv[2]), Path(sys.argv[3])
if step == "restore":
    restore_snapshot(
        folder / "a.cma.jsonl", folder / "b.cma", caller=CALLER, clock=FixedClock(START)
    )
else:
    with Memory.open(folder / "a.cma", caller=CALLER, clock=FixedClock(START)) as memory:
        if step == "fill":
            for start in range(0, count, 5000):
                memory.write_many(
                    draft(f"event {n} " + "of some length " * 20, origin=f"test {n}")
                    for n in range(start, min(count, start + 5000))
                )
        else:
            write_snapshot(memory.store, folder / "a.cma.jsonl", caller=CALLER)
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
"""


def peak(step: str, count: int, folder: Path) -> int:
    """Return the peak memory of a step in a process of its own, in KiB."""
    child = subprocess.run(
        [sys.executable, "-c", LARGE, step, str(count), str(folder)],
        capture_output=True,
        text=True,
        check=True,
        cwd=ROOT,
    )
    unit = 1024 if sys.platform == "darwin" else 1
    return int(child.stdout) // unit


def test_memory_grows_far_slower_than_the_file(tmp_path: Path) -> None:
    peaks = {}
    for count in (1_000, 15_000):
        folder = tmp_path / str(count)
        folder.mkdir()
        peak("fill", count, folder)
        peaks[count] = peak("write", count, folder), peak("restore", count, folder)
        size = (folder / "a.cma.jsonl").stat().st_size // 1024
    for small, large in zip(peaks[1_000], peaks[15_000], strict=True):
        assert large - small < 40 * 1024 + size, (peaks, size)

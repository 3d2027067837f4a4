"""Store and anchor tell different histories, or one of the two is gone."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from cma import CmaError, FixedClock, Memory, Reason
from cma.orion.anchor import SLOT_SIZE
from tests.faults.injection import START, refuses_to_open, remember, tamper


def test_an_anchor_that_is_missing_is_refused_and_not_made_anew(path: Path, memory: Memory) -> None:
    remember(memory, "event")
    memory.close()
    path.with_name(f"{path.name}.head").unlink()
    refuses_to_open(path, Reason.ANCHOR_MISSING)
    assert not path.with_name(f"{path.name}.head").exists()


@pytest.mark.parametrize(
    "data", [b"", b"\0" * 512, b"garbage", b"\n" * 512, b"\xff" * 512, b"cma-anchor/1 a 1 b c\n"]
)
def test_an_anchor_of_garbage_is_refused(path: Path, memory: Memory, data: bytes) -> None:
    remember(memory, "event")
    memory.close()
    path.with_name(f"{path.name}.head").write_bytes(data)
    refuses_to_open(path, Reason.ANCHOR_MISSING)


def test_an_anchor_with_one_torn_slot_still_speaks(path: Path, memory: Memory) -> None:
    """The torn slot is the one being written: the other names the write before it."""
    remember(memory, "first")
    remember(memory, "second")
    memory.close()
    head = path.with_name(f"{path.name}.head")
    whole = head.read_bytes()
    for slot in (0, 1):
        torn = bytearray(whole)
        torn[slot * SLOT_SIZE + 30 : (slot + 1) * SLOT_SIZE] = bytes(SLOT_SIZE - 30)
        head.write_bytes(torn)
        with Memory.open(path) as opened:
            assert opened.verify().cells == 2
            assert opened.verify().tail_pinned


def test_an_anchor_that_is_a_link_is_refused(path: Path, memory: Memory) -> None:
    remember(memory, "event")
    memory.close()
    head = path.with_name(f"{path.name}.head")
    elsewhere = path.with_name("elsewhere")
    head.rename(elsewhere)
    head.symlink_to(elsewhere)
    refuses_to_open(path, Reason.ANCHOR_MISSING)


def test_an_old_store_file_with_a_new_anchor_is_refused(path: Path, memory: Memory) -> None:
    remember(memory, "kept")
    memory.close()
    old = path.read_bytes()
    with Memory.open(path) as opened:
        remember(opened, "acknowledged")
    path.write_bytes(old)
    error = refuses_to_open(path, Reason.ANCHOR_DISAGREES)
    assert "does not hold" in str(error)


def test_an_anchor_of_another_store_is_refused(path: Path, memory: Memory, tmp_path: Path) -> None:
    remember(memory, "event")
    memory.close()
    other = tmp_path / "other.cma"
    with Memory.open(other, clock=FixedClock(START), store_id="store-two") as opened:
        remember(opened, "event")
    shutil.copyfile(other.with_name("other.cma.head"), path.with_name(f"{path.name}.head"))
    error = refuses_to_open(path, Reason.ANCHOR_DISAGREES)
    assert "another store" in str(error)


def test_a_twin_of_the_same_name_with_another_history_is_refused(
    path: Path, memory: Memory, tmp_path: Path
) -> None:
    remember(memory, "one history")
    memory.close()
    other = tmp_path / "other.cma"
    with Memory.open(other, clock=FixedClock(START), store_id="store-one") as opened:
        remember(opened, "another history")
    shutil.copyfile(other.with_name("other.cma.head"), path.with_name(f"{path.name}.head"))
    error = refuses_to_open(path, Reason.ANCHOR_DISAGREES)
    assert "holds differently" in str(error)


def test_a_store_ahead_of_its_anchor_is_accepted_as_its_continuation(
    path: Path, memory: Memory
) -> None:
    remember(memory, "first")
    head = path.with_name(f"{path.name}.head")
    behind = head.read_bytes()
    remember(memory, "second")
    remember(memory, "third")
    digest = memory.digest()
    memory.close()
    head.write_bytes(behind)
    with Memory.open(path) as opened:
        assert opened.digest() == digest
        assert opened.verify().tail_pinned
    assert head.read_bytes() != behind


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE audit SET hash = zeroblob(32) WHERE seq = 4",
        (
            "UPDATE audit SET record ="
            " CAST(replace(CAST(record AS TEXT), 'tester', 'wester') AS BLOB)"
            " WHERE seq = 3"
        ),
        "DELETE FROM audit WHERE seq = 3",
        "UPDATE audit SET seq = 9 WHERE seq = 4",
        "UPDATE audit SET generation = 9 WHERE seq = 4",
    ],
)
def test_what_lies_ahead_of_the_anchor_must_continue_the_chain(
    path: Path, memory: Memory, change: str
) -> None:
    remember(memory, "first")
    head = path.with_name(f"{path.name}.head")
    behind = head.read_bytes()
    remember(memory, "second")
    remember(memory, "third")
    memory.close()
    head.write_bytes(behind)
    tamper(path, (change,))
    refuses_to_open(path, Reason.CHAIN_BROKEN)


def test_a_store_that_is_gone_is_not_begun_anew_over_its_anchor(path: Path, memory: Memory) -> None:
    remember(memory, "event")
    memory.close()
    path.unlink()
    with pytest.raises(CmaError) as info:
        Memory.open(path)
    assert info.value.reason is Reason.STORE_NOT_FOUND
    assert not path.exists()


def test_an_anchor_replaced_while_the_store_is_open_stops_the_writer(
    path: Path, memory: Memory
) -> None:
    remember(memory, "first")
    head = path.with_name(f"{path.name}.head")
    behind = head.read_bytes()
    head.write_bytes(b"")
    with pytest.raises(CmaError) as info:
        remember(memory, "second")
    assert info.value.reason is Reason.ANCHOR_DISAGREES
    head.unlink()
    with pytest.raises(CmaError) as info:
        remember(memory, "third")
    assert info.value.reason is Reason.ANCHOR_MISSING
    head.write_bytes(behind)
    remember(memory, "fourth")
    assert memory.verify().tail_pinned

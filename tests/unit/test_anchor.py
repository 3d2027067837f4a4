"""The anchor: two slots written in turn, so that a torn write leaves the one before."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from cma.orion.anchor import (
    SLOT_SIZE,
    Anchor,
    advancing,
    anchor_path,
    locked,
    newest,
    read_slots,
    write_anchor,
)
from cma.values.errors import CmaError, Reason

HEADS = [bytes([number]) * 32 for number in range(8)]


def anchor(seq: int, store_id: str = "store") -> Anchor:
    return Anchor(store_id, seq, HEADS[seq % 8])


@pytest.fixture
def path(tmp_path: Path) -> Iterator[Path]:
    """An anchor file that was written three times."""
    path = anchor_path(tmp_path / "memory.cma")
    with locked(path, create=True) as descriptor:
        for seq in (1, 2, 3):
            write_anchor(descriptor, anchor(seq), read_slots(descriptor))
    return path


def present(path: Path) -> Anchor | None:
    with locked(path) as descriptor:
        return newest(read_slots(descriptor))


def test_the_file_lies_beside_the_store_for_its_owner_alone(path: Path) -> None:
    assert path.name == "memory.cma.head"
    assert path.stat().st_mode & 0o777 == 0o600
    assert path.stat().st_size == 2 * SLOT_SIZE


def test_slots_are_written_in_turn(path: Path) -> None:
    with locked(path) as descriptor:
        assert read_slots(descriptor) == (anchor(2), anchor(3))
        write_anchor(descriptor, anchor(4), read_slots(descriptor))
        assert read_slots(descriptor) == (anchor(4), anchor(3))
        write_anchor(descriptor, anchor(5), read_slots(descriptor))
        assert read_slots(descriptor) == (anchor(4), anchor(5))
    assert present(path) == anchor(5)


@pytest.mark.parametrize("cut", [0, 1, 13, 20, 40, 100, 117])
def test_a_torn_slot_leaves_the_one_before(path: Path, cut: int) -> None:
    data = path.read_bytes()
    with locked(path) as descriptor:
        write_anchor(descriptor, anchor(4), read_slots(descriptor))
    whole = path.read_bytes()
    assert whole[SLOT_SIZE:] == data[SLOT_SIZE:]
    path.write_bytes(whole[:cut] + data[cut:])
    assert present(path) == anchor(3)


def test_any_flipped_bit_of_a_slot_makes_it_void(path: Path) -> None:
    data = path.read_bytes()
    for at in range(SLOT_SIZE, 2 * SLOT_SIZE):
        changed = bytearray(data)
        changed[at] ^= 1 << (at % 8)
        path.write_bytes(changed)
        assert present(path) == anchor(2), at


def advance(path: Path, to: Anchor, base: int | None = None) -> None:
    with advancing(path, to.store_id, to.seq - 1 if base is None else base) as move:
        move(to)


def test_a_file_without_a_valid_slot_holds_no_anchor(path: Path) -> None:
    for data in (
        b"",
        b"x",
        b"\0" * 512,
        path.read_bytes().replace(b"cma-anchor/1", b"cma-anchor/2"),
    ):
        path.write_bytes(data)
        assert present(path) is None


def test_it_moves_forward_only(path: Path) -> None:
    advance(path, anchor(5))
    before = path.read_bytes()
    for behind in (3, 4):  # a store that holds less than the anchor names was rolled back
        with pytest.raises(CmaError) as info:
            advance(path, anchor(behind + 1), base=behind)
        assert info.value.reason is Reason.ANCHOR_DISAGREES
    assert path.read_bytes() == before
    assert present(path) == anchor(5)


def test_the_anchor_of_another_store_is_not_written_over(path: Path) -> None:
    before = path.read_bytes()
    with pytest.raises(CmaError) as info:
        advance(path, anchor(9, "another"))
    assert info.value.reason is Reason.ANCHOR_DISAGREES
    assert path.read_bytes() == before


def test_a_missing_anchor_is_not_made_in_passing(path: Path) -> None:
    path.unlink()
    with pytest.raises(CmaError) as info:
        advance(path, anchor(9))
    assert info.value.reason is Reason.ANCHOR_MISSING
    assert not path.exists()


def test_a_write_is_synced_before_it_returns(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    steps: list[str] = []
    pwrite = os.pwrite

    def noted(*arguments: object) -> int:
        steps.append("write")
        return pwrite(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr("cma.orion.anchor._sync", lambda _: steps.append("sync"))
    monkeypatch.setattr(os, "pwrite", noted)
    advance(path, anchor(6))
    assert steps == ["write", "sync"]


def test_the_longest_store_name_fits_into_a_slot(path: Path) -> None:
    with locked(path) as descriptor:
        long = Anchor("x" * 64, 2**63 - 1, bytes(32))
        write_anchor(descriptor, long, (None, None))
    assert path.stat().st_size == 2 * SLOT_SIZE
    assert present(path) == long

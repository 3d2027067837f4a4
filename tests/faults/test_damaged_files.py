"""Cut and flipped bytes in the log and in the database: refused, and never mended in silence."""

from __future__ import annotations

import random
import shutil
from pathlib import Path

import pytest

from cma import CmaError, FixedClock, Memory, Reason
from cma.orion.connection import newest_version
from tests.faults.injection import START, copied, files_of, refuses_to_open, remember, tamper

FRAME = 24 + 4096
DAMAGED = (
    Reason.STORE_DAMAGED,
    Reason.STORE_NOT_CMA,
    Reason.STORE_NEWER,
    Reason.CHAIN_BROKEN,
    Reason.STATE_DISAGREES,
    Reason.ANCHOR_DISAGREES,
)


@pytest.fixture
def log(memory: Memory, path: Path, tmp_path: Path) -> Path:
    """A copy of a store whose last writes stand in the log alone."""
    for number in range(6):
        remember(memory, f"event {number}")
    place = copied(path, tmp_path / "copy")
    assert place.with_name(f"{path.name}-wal").stat().st_size > 6 * FRAME
    return place


def _wal(path: Path) -> Path:
    return path.with_name(f"{path.name}-wal")


def _each(path: Path, folder: Path, name: str) -> Path:
    folder.mkdir()
    for file, data in files_of(path).items():
        (folder / file).write_bytes(data)
    return folder / name


def test_the_undamaged_copy_opens(log: Path) -> None:
    with Memory.open(log) as memory:
        assert memory.verify().cells == 6


def test_a_log_cut_anywhere_is_refused(log: Path, tmp_path: Path) -> None:
    size = _wal(log).stat().st_size
    whole = size - (size - 32) % FRAME
    cuts = {0, 1, 31, 32, 33, whole - 1, whole - FRAME, whole - FRAME + 1}
    cuts |= {random.Random(4).randrange(whole) for _ in range(8)}
    for cut in sorted(cuts):
        place = _each(log, tmp_path / f"cut-{cut}", log.name)
        with _wal(place).open("r+b") as file:
            file.truncate(cut)
        refuses_to_open(place, Reason.ANCHOR_DISAGREES)


def test_a_lost_log_is_refused(log: Path) -> None:
    _wal(log).unlink()
    refuses_to_open(log, Reason.ANCHOR_DISAGREES)


def test_a_flipped_bit_in_the_log_is_refused(log: Path, tmp_path: Path) -> None:
    size = _wal(log).stat().st_size
    chosen = random.Random(5)
    places = {8, 16, 24, 31, 32, 36, 40, 48, 56, size - 1, size - FRAME, size - FRAME + 4}
    places |= {chosen.randrange(32, size) for _ in range(20)}
    for at in sorted(places):
        place = _each(log, tmp_path / f"flip-{at}", log.name)
        _flip(_wal(place), at, 1 << chosen.randrange(8))
        refuses_to_open(place, Reason.ANCHOR_DISAGREES)


def test_a_refused_log_is_left_byte_for_byte(log: Path) -> None:
    _flip(_wal(log), _wal(log).stat().st_size - 7, 255)
    error = refuses_to_open(log, Reason.ANCHOR_DISAGREES)
    assert error.remedy is not None
    assert "keep both files" in error.remedy
    refuses_to_open(log, Reason.ANCHOR_DISAGREES)  # and again: looking changed nothing


def test_bytes_changed_anywhere_in_the_file_are_found_or_inert(path: Path, tmp_path: Path) -> None:
    with Memory.open(path, clock=FixedClock(START), store_id="store-one") as memory:
        memory.write_many(
            [
                {
                    "kind": "episodic",
                    "content": f"event number {number} of many",
                    "origin": "test",
                    "observed_at": START,
                }
                for number in range(40)
            ]
        )
        memory.recall("event")
        sound = memory.verify().store_digest
    size = path.stat().st_size
    chosen = random.Random(6)
    places = [
        0,
        17,
        18,
        24,
        28,
        56,
        59,
        60,
        63,
        68,
        71,
        92,
        96,
        100,
        105,
        108,
        *range(size - 4, size),
    ]
    places += [
        page * 4096 + chosen.randrange(4096) for page in range(size // 4096) for _ in range(6)
    ]
    found = 0
    for number, at in enumerate(places):
        place = _each(path, tmp_path / f"flip-{number}", path.name)
        _flip(place, at, 1 << chosen.randrange(8))
        before = files_of(place)
        try:
            with Memory.open(place) as memory:
                assert memory.verify().store_digest == sound
        except CmaError as error:
            found += 1
            assert error.reason in DAMAGED, (at, str(error))  # noqa: PT017 (some flips are inert)
            assert files_of(place) == before, at
        shutil.rmtree(place.parent)
    assert found > len(places) // 3


@pytest.mark.parametrize("size", [0, 1, 50, 99, 100, 512, 4096, 5000, 8192, 20_000])
def test_a_truncated_file_is_refused_and_never_reset(path: Path, size: int) -> None:
    with Memory.open(path, clock=FixedClock(START)) as memory:
        for number in range(9):
            remember(memory, f"event {number}")
    with path.open("r+b") as file:
        file.truncate(size)
    refuses_to_open(path, Reason.STORE_NOT_CMA, Reason.STORE_DAMAGED, Reason.ANCHOR_DISAGREES)
    assert path.stat().st_size == size


@pytest.mark.parametrize("version", [0, -1, -7])
def test_an_older_version_number_does_not_build_a_store_over_a_store(
    path: Path, version: int
) -> None:
    with Memory.open(path, clock=FixedClock(START)) as memory:
        cell = remember(memory, "event")
    tamper(path, (f"PRAGMA user_version = {version}",))
    with pytest.raises(CmaError) as info:
        Memory.open(path)
    assert info.value.reason is Reason.STORE_DAMAGED
    tamper(path, (f"PRAGMA user_version = {newest_version()}",))
    with Memory.open(path) as memory:
        assert memory.get(cell.id) == cell
        assert memory.verify().cells == 1


@pytest.mark.parametrize("table", ["store", "cells", "links", "audit", "traces"])
def test_a_store_without_one_of_its_tables_is_refused(path: Path, table: str) -> None:
    with Memory.open(path, clock=FixedClock(START)) as memory:
        remember(memory, "event")
    tamper(path, (f"DROP TABLE {table}",))
    before = files_of(path)
    with pytest.raises(CmaError) as info, Memory.open(path) as memory:
        memory.verify()
    assert info.value.reason is Reason.STORE_DAMAGED
    assert files_of(path) == before


def test_invalid_text_in_a_column_is_a_typed_error(path: Path) -> None:
    with Memory.open(path, clock=FixedClock(START)) as memory:
        cell = remember(memory, "event")
    tamper(path, ("UPDATE cells SET scope = CAST(x'ff' AS TEXT)",))
    tamper(path, ("UPDATE audit SET subject = CAST(x'fffe' AS TEXT) WHERE seq = 2",))
    with Memory.open(path) as memory:
        with pytest.raises(CmaError) as info:
            memory.verify()
        assert info.value.reason is Reason.STORE_DAMAGED
        with pytest.raises(CmaError):
            memory.link("task", cell.id, cell.id)


def _flip(path: Path, at: int, bits: int) -> None:
    with path.open("r+b") as file:
        file.seek(at)
        (byte,) = file.read(1)
        file.seek(at)
        file.write(bytes([byte ^ bits]))

"""What is no store, or not one for this release, is refused and left alone."""

from __future__ import annotations

import os
import sqlite3
from pathlib import Path

import apsw
import pytest

from cma import CmaError, FixedClock, Memory, Reason
from tests.faults.injection import START, files_of, refuses_to_open, remember, tamper


def test_files_that_are_no_store_are_refused(tmp_path: Path) -> None:
    places = {name: tmp_path / name for name in ("text", "empty", "short", "other.db", "wal.db")}
    places["text"].write_text("These are my notes, not a store.\n" * 200)
    places["empty"].touch()
    places["short"].write_bytes(b"SQLite format 3\0")
    with sqlite3.connect(places["other.db"]) as connection:
        connection.execute("CREATE TABLE cells (id)")
    connection.close()
    wal = sqlite3.connect(places["wal.db"])
    wal.execute("PRAGMA journal_mode=wal")
    wal.execute("CREATE TABLE audit (seq)")
    wal.close()
    for place in places.values():
        refuses_to_open(place, Reason.STORE_NOT_CMA)
        assert not place.with_name(f"{place.name}.head").exists()


def test_an_open_database_of_another_program_is_refused_and_left_alone(tmp_path: Path) -> None:
    place = tmp_path / "busy.db"
    other = sqlite3.connect(place)
    other.execute("PRAGMA journal_mode=wal")
    other.execute("CREATE TABLE audit (seq)")
    other.commit()
    refuses_to_open(place, Reason.STORE_NOT_CMA)
    assert other.execute("SELECT count(*) FROM audit").fetchone() == (0,)
    other.close()


def test_a_newer_store_is_refused(path: Path, memory: Memory) -> None:
    remember(memory, "event")
    memory.close()
    tamper(path, ("PRAGMA user_version = 9999",))
    error = refuses_to_open(path, Reason.STORE_NEWER)
    assert "upgrade" in str(error)


def test_folders_links_and_special_files_are_refused(path: Path, tmp_path: Path) -> None:
    with Memory.open(path, clock=FixedClock(START)) as memory:
        remember(memory, "event")
    folder, link, dangling, pipe = (tmp_path / name for name in ("folder", "link", "gone", "pipe"))
    folder.mkdir()
    link.symlink_to(path)
    dangling.symlink_to(tmp_path / "nowhere" / "outside.cma")
    os.mkfifo(pipe)
    before = files_of(path)
    for place in (folder, link, dangling, pipe):
        with pytest.raises(CmaError) as info:
            Memory.open(place)
        assert info.value.reason is Reason.STORE_NOT_CMA
    assert files_of(path) == before
    assert sorted(entry.name for entry in folder.iterdir()) == []
    assert not (tmp_path / "nowhere").exists()


def test_a_store_cannot_begin_in_a_folder_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(CmaError) as info:
        Memory.open(tmp_path / "not-there" / "memory.cma")
    assert info.value.reason is Reason.STORE_NOT_FOUND
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("store_id", ["", "two words", "é", "x" * 65, "a\nb", "a\0b", "../up"])
def test_a_store_cannot_have_a_name_that_its_anchor_cannot_hold(path: Path, store_id: str) -> None:
    with pytest.raises(CmaError) as info:
        Memory.open(path, store_id=store_id)
    assert info.value.reason is Reason.FIELD_INVALID
    assert info.value.field == "store_id"
    assert not path.exists()
    assert apsw.SQLITE_OK == 0

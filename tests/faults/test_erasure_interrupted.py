"""An erasure that is interrupted or hindered: nothing is erased, or all of it, sooner or later."""

from __future__ import annotations

import shutil
import signal
from pathlib import Path

import apsw
import pytest

from cma import Memory, Reason, erasure
from cma.orion import cleaning, connection
from tests.faults.injection import CALLER, child, copied, files_of, refuses_to_open
from tests.faults.marked import CONTENT, WHY, found_in, told


class Died(BaseException):
    """The process ended here."""


def _dies(*_: object, **__: object) -> bool:
    raise Died


@pytest.mark.parametrize("step", ["erase_traces", "erase_filed", "quarantine", "owe_cleaning"])
def test_an_erasure_that_is_interrupted_did_not_happen(
    ann: Memory, path: Path, step: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    ids = told(ann)
    before = ann.digest()
    monkeypatch.setattr(erasure, step, _dies)
    with pytest.raises(Died):
        ann.erase(ids.cell, reason=WHY)
    monkeypatch.undo()
    with Memory.open(copied(path, path.parent / "after"), caller=CALLER) as again:
        assert again.verify().store_digest == before
        assert again.within("session:ann").get(ids.cell).content == CONTENT


@pytest.mark.parametrize("step", ["is_owed", "_rebuild", "_fold_in", "_strike_off"])
def test_a_cleaning_that_is_interrupted_is_done_at_the_next_opening(
    ann: Memory, path: Path, step: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    ids = told(ann)
    monkeypatch.setattr(cleaning, step, _dies)
    with pytest.raises(Died):
        ann.erase(ids.cell, reason=WHY)
    monkeypatch.undo()
    after = copied(path, path.parent / "after")
    if step != "_strike_off":  # by then the bytes are overwritten
        assert "quagmark" in {word for word, _ in found_in(after.parent)}
    with Memory.open(after, caller=CALLER) as again:
        assert again.within("session:ann").get(ids.cell).lifecycle == "erased"
        assert found_in(after.parent) == set()
        again.verify()


@pytest.mark.parametrize("point", ["COMMIT", "anchor", "_rebuild", "_strike_off"])
def test_a_process_that_is_killed_erased_nothing_or_all(path: Path, point: str) -> None:
    process = child("killed-erasing", path, point)
    out, _ = process.communicate("go\n", timeout=60)
    assert process.returncode == -signal.SIGKILL
    name = out.split()[-1]
    with Memory.open(path, caller=CALLER) as memory:
        memory.verify()
        left = memory.get(name)
        assert (left.content, left.lifecycle.value) == (
            ("quagmire", "active") if point == "COMMIT" else ("", "erased")
        )
        found = {word for word, _ in found_in(path.parent, ("quagmire",))}
        assert found == ({"quagmire"} if point == "COMMIT" else set())


def test_a_query_of_the_same_thread_delays_the_cleaning_alone(
    ann: Memory, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ids = told(ann)
    monkeypatch.setattr(connection, "BUSY_TIMEOUT_MILLISECONDS", 1)
    rows = ann.store.audit_rows()
    next(rows)
    assert not ann.erase(ids.cell, reason=WHY).cleaned
    assert ann.get(ids.cell).lifecycle == "erased"
    rows.close()
    assert ann.store.clean()
    assert found_in(path.parent) == set()


def test_a_reader_in_the_way_delays_the_cleaning_alone(
    ann: Memory, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ids = told(ann)
    reader = apsw.Connection(str(path))
    reader.execute("BEGIN")
    reader.execute("SELECT count(*) FROM cells").fetchone()
    monkeypatch.setattr(connection, "BUSY_TIMEOUT_MILLISECONDS", 1)
    assert not ann.erase(ids.cell, reason=WHY).cleaned
    assert ann.get(ids.cell).lifecycle == "erased"
    ann.close()
    reader.close()
    Memory.open(path).close()
    assert found_in(path.parent) == set()


def test_a_damaged_store_erases_nothing(ann: Memory, path: Path) -> None:
    ids = told(ann)
    ann.close()
    with apsw.Connection(str(path)) as stranger:
        stranger.execute("UPDATE cells SET scope = 'global' WHERE id = ?", (ids.other,))
    before = files_of(path)
    with Memory.open(path, caller=CALLER) as memory:
        with pytest.raises(Exception, match=Reason.STATE_DISAGREES.value):
            memory.within("session:ann").erase(ids.cell, reason=WHY)
        assert memory.within("session:ann").get(ids.cell).content == CONTENT
    assert files_of(path) == before


def test_a_backup_without_its_anchor_is_no_way_back(ann: Memory, path: Path) -> None:
    """The old file under the new anchor, or with it, does not open: the erasure is not undone."""
    ids = told(ann)
    ann.store.connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    old = shutil.copyfile(path, path.with_name("old"))
    ann.erase(ids.cell, reason=WHY)
    ann.close()
    shutil.copyfile(old, path)
    refuses_to_open(path, Reason.ANCHOR_DISAGREES)

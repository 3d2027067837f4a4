"""The store's own promises: transitions, settings of the connection, digest, opening, closing."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import apsw
import pytest

from cma import Caller, CellDraft, CmaError, FixedClock, LinkDraft, Memory, Reason
from cma.orion.audit import Operation
from cma.orion.connection import APPLICATION_ID, migrations, newest_version
from cma.orion.store import Store
from cma.values.errors import InvalidValueError

AT = datetime(2026, 3, 1, 12, tzinfo=UTC)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "memory.cma"


@pytest.fixture
def memory(path: Path) -> Iterator[Memory]:
    with Memory.open(path, clock=FixedClock(AT), store_id="named") as opened:
        yield opened


def event(view: Memory, content: str = "an event") -> str:
    return view.write(content, kind="episodic", origin="test", observed_at=AT).id


def test_a_new_store_has_one_record_and_its_files_are_its_owners(
    memory: Memory, path: Path
) -> None:
    verified = memory.verify()
    assert (verified.store_id, verified.audit_records, verified.generation) == ("named", 1, 0)
    assert verified.tail_pinned
    assert path.stat().st_mode & 0o777 == 0o600
    assert memory.store.connection.pragma("application_id") == APPLICATION_ID
    assert memory.store.connection.pragma("user_version") == newest_version() == len(migrations())


def test_durability_rests_on_these_settings(memory: Memory) -> None:
    connection = memory.store.connection
    assert connection.pragma("journal_mode") == "wal"
    assert connection.pragma("synchronous") == 2  # FULL: each commit is synced
    assert connection.pragma("foreign_keys") == 1
    assert connection.pragma("trusted_schema") == 0
    assert connection.config(apsw.SQLITE_DBCONFIG_DEFENSIVE, -1) == 1


def test_a_store_gets_a_name_of_its_own(tmp_path: Path) -> None:
    names = set()
    for number in range(3):
        with Memory.open(tmp_path / f"{number}.cma") as opened:
            names.add(opened.store.store_id)
    assert len(names) == 3


def test_a_name_given_to_a_store_that_exists_changes_nothing(memory: Memory, path: Path) -> None:
    event(memory)
    with Memory.open(path, store_id="renamed") as again:
        assert again.store.store_id == "named"
        assert again.verify().cells == 1


def test_a_relative_path_is_kept_when_the_program_moves(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with Memory.open("memory.cma") as memory:
        event(memory)
        monkeypatch.chdir("/")
        event(memory, "another event")
        assert memory.verify().cells == 2


def test_a_transition_is_whole_or_not_at_all(memory: Memory) -> None:
    before = memory.digest()

    def half_done() -> None:
        with memory.store.transition("me") as transition:
            transition.change()
            transition.connection.execute(
                "INSERT INTO links (id, kind, source_id, target_id, record)"
                " VALUES ('x', 'task', 'a', 'b', x'')"
            )
            transition.record(Operation.LINK, ("x",))
            raise CmaError(Reason.FIELD_INVALID, "changed my mind", field="mind")

    with pytest.raises(CmaError, match="changed my mind"):
        half_done()
    assert memory.digest() == before
    assert memory.generation == 0
    *_, last = [json.loads(row[4]) for row in memory.store.audit_rows()]
    assert (last["operation"], last["reason"], last["detail"]) == (
        "reject",
        "field-invalid",
        "mind",
    )
    assert last["subjects"] == []
    assert memory.verify().audit_records == 2


def test_the_generation_rises_once_for_each_change(memory: Memory) -> None:
    told = [memory.generation]
    view = memory.within("session:a")
    one, two = event(view, "one"), event(view, "two")
    told.append(memory.generation)
    receipt = view.write_many(
        [
            {"kind": "episodic", "content": f"{n}", "origin": "t", "observed_at": AT}
            for n in range(450)  # several pieces, one transition
        ]
    )
    told.append(receipt.generation)
    view.link_many(
        [LinkDraft(kind=kind, source_id=one, target_id=two) for kind in ("task", "causal")]
    )
    told.append(memory.generation)
    view.update(one, confidence=0.5)
    told.append(memory.generation)
    event(view, "one")
    view.recall("one")
    memory.sweep()
    told.append(memory.generation)
    assert told == [0, 2, 3, 4, 5, 5]
    rows = [row[3] for row in memory.store.audit_rows()]
    assert rows == sorted(rows)


def test_the_digest_is_over_sorted_records_and_nothing_else(memory: Memory, tmp_path: Path) -> None:
    total = hashlib.sha256(b"cma:store:1\0").hexdigest()
    assert memory.digest() == total
    ids = [event(memory, word) for word in ("one", "two", "three")]
    memory.link("similarity", ids[0], ids[1])
    memory.recall("one")
    with pytest.raises(CmaError):
        memory.link("similarity", ids[0], ids[0])
    with Memory.open(tmp_path / "other.cma", clock=FixedClock(AT)) as other:
        again = [event(other, word) for word in ("three", "one", "two")]
        assert sorted(ids) == sorted(again)
        assert other.digest() != memory.digest()
        other.link("similarity", ids[1], ids[0])
        assert other.digest() == memory.digest()


def test_names_in_the_audit_are_the_callers(path: Path) -> None:
    ann = Caller(name="ann", authority="user")
    clock = FixedClock(AT)
    with Memory.open(path, caller=ann, clock=clock) as memory:
        event(memory)
        clock.advance(timedelta(seconds=5))
        memory.recall("event")
        memory.sweep()
        with pytest.raises(CmaError):
            event(memory, "")
        memory.store.flush_reads()
        rows = [json.loads(row[4]) for row in memory.store.audit_rows()]
    assert [(row["operation"], row["actor"], row["at"][-10:]) for row in rows] == [
        ("create", "cma", "T12:00:00Z"),
        ("write", "ann", "T12:00:00Z"),
        ("read", "ann", "T12:00:05Z"),
        ("reject", "ann", "T12:00:05Z"),
    ]


def test_two_memories_of_one_file_see_each_others_changes(memory: Memory, path: Path) -> None:
    with Memory.open(path) as other:
        cell = event(memory)
        assert other.get(cell).content == "an event"
        assert [hit.cell.id for hit in other.recall("event").hits] == [cell]
        other.update(cell, lifecycle="retracted")
        assert memory.recall("event").hits == ()
        memory.store.flush_reads()
        assert other.verify() == memory.verify()


def test_a_store_is_a_context_and_closing_folds_the_log(path: Path) -> None:
    with Store.open(path, clock=FixedClock(AT)) as store:
        assert store.head()[0] == 1
        with store.reading() as outer, store.reading() as inner:
            assert outer is inner
    assert not path.with_name(f"{path.name}-wal").exists()
    with pytest.raises(CmaError) as info:
        store.head()
    assert info.value.reason is Reason.STORE_CLOSED


def test_a_value_made_behind_the_validation_is_validated_again(tmp_path: Path) -> None:
    draft = CellDraft(kind="working", content="x", origin="o", metadata={"ttl_seconds": 5})
    forged = [
        draft.model_copy(update={"confidence": 7}),
        draft.model_copy(update={"content": " "}),
        draft.model_copy(
            update={"metadata": draft.metadata.model_copy(update={"ttl_seconds": -1})}
        ),
    ]
    with Memory.open(tmp_path / "a.cma") as memory:
        session = memory.within("session:a")
        before = memory.digest()
        for value in forged:
            with pytest.raises(InvalidValueError):
                session.write_many([draft, value])
        assert memory.digest() == before

"""`cma doctor`: every planted damage is found, several at once; looking changes no byte."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import apsw
import pytest

from cma import Caller, FixedClock, Memory
from cma.doctor.examining import examine
from cma.doctor.findings import CATALOGUE, Checkup, Code, Severity
from cma.orion.anchor import SLOT_SIZE, anchor_path
from cma.values.errors import Reason
from tests.faults.injection import tamper
from tests.unit.test_cli import run

AT = datetime(2026, 3, 1, 12, tzinfo=UTC)
SOUND = {Code.LOG_PENDING}
ROOM = 2**50


def fill(path: Path) -> Memory:
    """Fill a store with every sort of record and return it open."""
    clock = FixedClock(AT)
    memory = Memory.open(
        path, caller=Caller(name="ann", authority="user"), clock=clock, store_id="one"
    )
    view = memory.within("session:42")
    frames = []
    for day in (1, 2):
        sources = [
            view.write(
                f"{what} on day {day}",
                kind="episodic",
                origin="log",
                observed_at=AT - timedelta(days=9 - day, minutes=9 - minute),
            ).id
            for minute, what in enumerate(("the server starts", "Oslo answers"))
        ]
        frame = view.bind(scene="start", sources=sources, entities=["server"], actions=["runs"])
        assert view.replay(frame.id).complete
        frames.append(frame.id)
    view.link("temporal", *sources)
    proposal = view.propose(
        frames=frames, content="It runs in Oslo", subject="it", predicate="runs in", object="Oslo"
    )
    view.approve(proposal.id, approval_id="CR-1")
    view.write("a note", kind="working", origin="log", metadata={"ttl_seconds": 60})
    view.deliver(view.packet(view.recall("server in Oslo"), budget=400), recipient="model")
    return memory


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A closed, sound store that no test changes."""
    path = tmp_path_factory.mktemp("sound") / "agent.cma"
    fill(path).close()
    return path


@pytest.fixture
def path(sound: Path, tmp_path: Path) -> Path:
    """A copy of it."""
    for place in (sound, anchor_path(sound)):
        shutil.copy2(place, tmp_path / place.name)
    return tmp_path / sound.name


def bytes_of(folder: Path) -> dict[str, tuple[bytes, int]]:
    """Return content and time of change of every file, the log's index apart: that is no content.

    Readers mark themselves in the index of a log that is in use.
    """
    return {
        each.name: (each.read_bytes(), each.stat().st_mtime_ns)
        for each in folder.iterdir()
        if not each.name.endswith("-shm")
    }


def looked(path: Path, *, free: int = ROOM, at: datetime = AT) -> Checkup:
    """Examine a store; whatever is found, every file is as it was and none came or went."""
    before, names = bytes_of(path.parent), sorted(os.listdir(path.parent))
    found = examine(path, clock=FixedClock(at), free=lambda _: free)
    assert bytes_of(path.parent) == before
    assert sorted(os.listdir(path.parent)) == names
    return found


def codes(found: Checkup) -> set[Code]:
    return {each.code for each in found.findings}


def test_a_sound_store_is_healthy_and_everything_was_looked_at(path: Path) -> None:
    found = looked(path)
    assert found.healthy
    assert found.findings == found.skipped == ()
    assert found.records["cells"] == 6
    assert found.records["governed"] >= 4
    result = run("doctor", path)
    assert result.exit_code == 0, result.output
    assert "the store is healthy" in result.stdout


def sql(*statements: str) -> Callable[[Path], None]:
    return lambda path: tamper(path, *((statement,) for statement in statements))


def flip_slots(path: Path) -> None:
    anchor_path(path).write_bytes(b"x" * (2 * SLOT_SIZE))


def cut_database(path: Path) -> None:
    data = path.read_bytes()
    path.write_bytes(data[: len(data) // 2])


def scribble_on_pages(path: Path) -> None:
    data = bytearray(path.read_bytes())
    for page in range(8, len(data) // 4096, 5):
        data[page * 4096 : page * 4096 + 64] = b"\xff" * 64
    path.write_bytes(data)


def behead(path: Path) -> None:
    path.write_bytes(b"no database" * 100)


def write(name: str, data: bytes = b"") -> Callable[[Path], None]:
    return lambda path: path.with_name(name).write_bytes(data) and None


SPOIL = "CAST(replace(CAST(record AS TEXT), 'Oslo', 'Rome') AS BLOB)"
DAMAGES: dict[str, tuple[Callable[[Path], Any], Code, str]] = {
    "an audit record altered": (
        sql("UPDATE audit SET hash = zeroblob(32) WHERE seq = 3"), Code.CHAIN_BROKEN, "audit[3]"),
    "an audit record dropped": (
        sql("DELETE FROM audit WHERE seq = 4"), Code.CHAIN_BROKEN, "audit[4]"),
    "the tail of the audit dropped": (
        sql("DELETE FROM audit WHERE seq > 4"), Code.ANCHOR_DISAGREES, ".head"),
    "the anchor gone": (lambda p: anchor_path(p).unlink(), Code.ANCHOR_MISSING, ".head"),
    "the anchor overwritten": (flip_slots, Code.ANCHOR_MISSING, ".head"),
    "a cell's content altered": (
        sql(f"UPDATE cells SET record = {SPOIL}"), Code.STATE_DISAGREES, "cell-"),
    "a cell's column altered": (
        sql("UPDATE cells SET scope = 'global'"), Code.STATE_DISAGREES, "cell-"),
    "a cell dropped": (
        sql("DELETE FROM cells WHERE ordinal = 1"), Code.REFERENCE_MISSING, "-"),
    "a link to a missing cell": (
        sql("DELETE FROM cells WHERE id = (SELECT source_id FROM links LIMIT 1)"),
        Code.STATE_DISAGREES, "link-"),
    "bytes that are no record": (
        sql("UPDATE cells SET record = x'ff00' WHERE ordinal = 2"), Code.STATE_DISAGREES, "cell-"),
    "an approval dropped": (
        sql("DELETE FROM governed WHERE kind = 'approval'"), Code.TOPOLOGY_WRONG, "admission-"),
    "a record of no known kind": (
        sql("UPDATE governed SET kind = 'oracle' WHERE kind = 'frame'"),
        Code.TOPOLOGY_WRONG, "frame-"),
    "a reference dropped": (
        sql("DELETE FROM refs WHERE kind = 'packet'"),
        Code.STATE_DISAGREES, "refs"),
    "half of the database cut off": (cut_database, Code.STORE_DAMAGED, "agent.cma"),
    "pages overwritten": (scribble_on_pages, Code.STORE_DAMAGED, "agent.cma"),
    "no database": (behead, Code.STORE_NOT_CMA, "agent.cma"),
    "another application's file": (sql("PRAGMA application_id=7"), Code.STORE_NOT_CMA, "agent"),
    "a later release's file": (sql("PRAGMA user_version=99"), Code.STORE_NEWER, "agent.cma"),
    "the store's name lost": (sql("DELETE FROM store"), Code.STORE_DAMAGED, "agent.cma"),
    "a table lost": (sql("DROP TABLE traces"), Code.STORE_DAMAGED, "agent.cma"),
    "the store gone": (lambda p: p.unlink(), Code.STORE_GONE, "agent.cma"),
    "readable by others": (lambda p: p.chmod(0o644), Code.MODE_OPEN, "agent.cma"),
    "an anchor that others write": (
        lambda p: anchor_path(p).chmod(0o602), Code.MODE_OPEN, ".head"),
    "not writable": (lambda p: p.chmod(0o400), Code.MODE_UNWRITABLE, "agent.cma"),
    "a store begun": (write(".agent.cma.new"), Code.LEFTOVER_DRAFT, ".agent.cma.new"),
    "a snapshot begun": (
        write(".b.cma.jsonl.0123abcd", b'{"a'), Code.LEFTOVER_DRAFT, ".b.cma.jsonl.0123abcd"),
    "a foreign journal": (write("agent.cma-journal"), Code.LEFTOVER_JOURNAL, "-journal"),
}  # fmt: skip


@pytest.mark.parametrize("damage", DAMAGES)
def test_each_planted_damage_is_found_in_its_place(path: Path, damage: str) -> None:
    plant, code, place = DAMAGES[damage]
    plant(path)
    found = looked(path)
    assert not found.healthy
    hits = [each for each in found.findings if each.code is code and place in each.place]
    assert hits, found.findings
    assert all(each.message and each.meaning and each.remedy for each in found.findings)
    told = run("doctor", path, "--json")
    assert told.exit_code == 1
    assert code.value in {each["code"] for each in json.loads(told.stdout)["findings"]}
    shown = run("doctor", path)
    assert shown.exit_code == 1
    assert code.value in shown.stdout


def test_one_damage_does_not_hide_the_others(path: Path) -> None:
    tamper(
        path,
        ("UPDATE audit SET hash = zeroblob(32) WHERE seq IN (3, 6)",),
        ("UPDATE cells SET scope = 'global' WHERE ordinal IN (1, 2)",),
        ("DELETE FROM governed WHERE kind = 'approval'",),
    )
    flip_slots(path)
    path.chmod(0o644)
    found = looked(path)
    assert codes(found) >= {
        Code.CHAIN_BROKEN, Code.STATE_DISAGREES, Code.TOPOLOGY_WRONG, Code.REFERENCE_MISSING,
        Code.ANCHOR_MISSING, Code.MODE_OPEN,
    }  # fmt: skip
    broken = {each.place for each in found.findings if each.code is Code.CHAIN_BROKEN}
    assert {"audit[3]", "audit[6]"} <= broken <= {f"audit[{seq}]" for seq in (3, 4, 6, 7)}
    moved = [each for each in found.findings if "columns" in each.message]
    assert len(moved) == 2
    assert [each.severity for each in found.findings] == sorted(
        (each.severity for each in found.findings), key=list(Severity).index
    )


def test_behind_a_gap_the_chain_is_taken_up_again(path: Path) -> None:
    tamper(path, ("DELETE FROM audit WHERE seq IN (4, 5)",))
    broken = [each for each in looked(path).findings if each.code is Code.CHAIN_BROKEN]
    assert [each.place for each in broken] == ["audit[4]"]
    assert "the next is 6" in broken[0].message


def test_what_has_expired_and_was_not_swept_is_information(path: Path) -> None:
    found = looked(path, at=AT + timedelta(minutes=1))
    assert codes(found) == {Code.EXPIRED_UNSWEPT}
    assert "1 expired" in found.findings[0].message
    assert found.healthy
    assert not looked(path, at=AT + timedelta(seconds=59)).findings


def test_derived_memory_whose_source_was_retracted_is_named(path: Path) -> None:
    with Memory.open(path, clock=FixedClock(AT)) as memory:
        view = memory.within("session:42")
        found = {hit.cell.kind.value: hit.cell for hit in view.recall("Oslo runs answers").hits}
        source = found["semantic"].derived_from[0]
        view.update(source, lifecycle="retracted")
    (told,) = looked(path).findings
    assert (told.code, told.place) == (Code.SOURCE_RETRACTED, found["semantic"].id)
    assert source in told.message
    with Memory.open(path, clock=FixedClock(AT)) as memory:
        memory.within("session:42").update(found["semantic"].id, lifecycle="retracted")
    assert looked(path).healthy


def test_what_erasure_left_to_do_is_named(path: Path) -> None:
    ann = Caller(name="ann", authority="user")
    with Memory.open(path, caller=ann, clock=FixedClock(AT)) as memory:
        view = memory.within("session:42")
        found = {hit.cell.kind.value: hit.cell for hit in view.recall("Oslo runs answers").hits}
        claim = found["semantic"]
        assert view.erase(claim.derived_from[0], reason="person-request").cleaned
    (told,) = looked(path).findings
    assert (told.code, told.place) == (Code.QUARANTINED, claim.id)
    tamper(path, ("INSERT INTO cleaning (only_row) VALUES (1)",))
    found_then = looked(path)
    assert codes(found_then) == {Code.QUARANTINED, Code.CLEANING_OWED}
    assert not found_then.healthy


def test_an_index_kept_beside_the_store_is_private_too(path: Path) -> None:
    path.with_name(f"{path.name}.index-unicode").touch(mode=0o644)
    (told,) = looked(path).findings
    assert (told.code, told.place) == (Code.MODE_OPEN, f"{path.name}.index-unicode")


def test_a_disk_without_room_for_a_copy_is_named(path: Path) -> None:
    enough = path.stat().st_size + anchor_path(path).stat().st_size + 64 * 2**20
    assert looked(path, free=enough).healthy
    assert codes(looked(path, free=enough - 1)) == {Code.SPACE_LOW}


def test_a_store_in_use_is_read_along_with_its_writer(tmp_path: Path) -> None:
    path = tmp_path / "agent.cma"
    memory = fill(path)
    try:
        found = looked(path)
        assert codes(found) == SOUND
        assert found.healthy
        memory.within("session:42").write("one more", kind="episodic", origin="log", observed_at=AT)
        assert looked(path).records["cells"] == found.records["cells"] + 1
    finally:
        memory.close()


@pytest.mark.parametrize("ends", [("", "-wal", ".head"), ("", "-wal", "-shm", ".head")])
def test_a_log_that_nobody_holds_is_read_with_or_without_its_index(
    tmp_path: Path, ends: tuple[str, ...]
) -> None:
    """As a crash leaves the files, or as they lie where they were copied to after one."""
    memory = fill(tmp_path / "agent.cma")
    folder = tmp_path / "copied"
    folder.mkdir()
    for end in ends:
        shutil.copy2(tmp_path / f"agent.cma{end}", folder / f"agent.cma{end}")
    memory.close()
    (folder / "agent.cma").chmod(0o600)
    found = looked(folder / "agent.cma")
    assert codes(found) == SOUND
    assert found.records["cells"] == 6
    (folder / "agent.cma-wal").write_bytes(b"")
    assert not looked(folder / "agent.cma").healthy


def test_an_anchor_that_a_crash_left_is_information(path: Path) -> None:
    """The store one record ahead of it, and one of its slots torn."""
    before = anchor_path(path).read_bytes()
    with Memory.open(path, clock=FixedClock(AT)) as memory:
        memory.within("session:42").write("more", kind="episodic", origin="log", observed_at=AT)
    anchor_path(path).write_bytes(before)
    found = looked(path)
    assert codes(found) == {Code.ANCHOR_BEHIND}
    assert found.healthy
    slots = [before[:SLOT_SIZE], before[SLOT_SIZE:]]
    older = min((0, 1), key=lambda number: int(slots[number].split()[2]))
    slots[older] = b"torn" + slots[older][4:]
    anchor_path(path).write_bytes(b"".join(slots))
    assert codes(looked(path)) == {Code.ANCHOR_BEHIND, Code.ANCHOR_TORN}


def test_a_file_that_changes_meanwhile_is_told(path: Path) -> None:
    def free(_: Path) -> int:
        os.utime(path, ns=(1, 1))
        return ROOM

    assert codes(examine(path, clock=FixedClock(AT), free=free)) == {Code.CHANGED_MEANWHILE}


def test_an_older_form_is_information_and_its_records_are_not_judged(tmp_path: Path) -> None:
    from cma.orion import connection as opening

    path = tmp_path / "agent.cma"
    with Memory.open(path, clock=FixedClock(AT)):
        pass
    first = dict(opening.migrations())
    database = apsw.Connection(str(path))
    for (table,) in database.execute(
        "SELECT name FROM sqlite_schema WHERE name IN ('governed', 'attendant', 'refs')"
    ).fetchall():
        database.execute(f"DROP TABLE {table}")
    database.execute(f"PRAGMA user_version={min(first)}")
    database.close()
    found = looked(path)
    assert codes(found) == {Code.STORE_OLDER}
    assert found.skipped == ("records", "topology", "lifetimes")


@pytest.mark.parametrize("name", ["nothing.cma", "folder", "link.cma"])
def test_a_wrong_request_is_told_from_a_finding(path: Path, name: str) -> None:
    place = path.with_name(name)
    if name == "folder":
        place.mkdir()
    elif name == "link.cma":
        place.symlink_to(path)
    result = run("doctor", place, "--json")
    assert result.exit_code == 2
    reason = Reason.STORE_NOT_FOUND if name == "nothing.cma" else Reason.STORE_NOT_CMA
    assert json.loads(result.stdout)["error"]["code"] == reason.value


def test_every_code_is_described_and_planted_somewhere() -> None:
    assert set(CATALOGUE) == set(Code)
    planted = {code for _, code, _ in DAMAGES.values()} | {
        Code.SOURCE_RETRACTED, Code.QUARANTINED, Code.CLEANING_OWED, Code.SPACE_LOW,
        Code.CHANGED_MEANWHILE, Code.ANCHOR_TORN,
        Code.ANCHOR_BEHIND, Code.EXPIRED_UNSWEPT, Code.LOG_PENDING, Code.STORE_OLDER,
    }  # fmt: skip
    assert planted == set(Code)


def test_stored_text_is_no_markup_on_the_terminal(path: Path) -> None:
    tamper(path, ("UPDATE cells SET id = char(27) || '[bold red]evil' WHERE ordinal = 1",))
    shown = run("doctor", path).stdout
    assert "\x1b" not in shown
    assert "[bold red]evil" in shown.replace("\n", "")

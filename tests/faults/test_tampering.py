"""A stranger edits the database: every logical change is found, and none is mended in silence."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import apsw
import pytest

from cma import FixedClock, Memory, Reason
from cma.orion.anchor import SLOT_SIZE, Anchor, anchor_path, write_anchor
from tests.faults.injection import START, files_of, hold, refuses_to_open, remember, tamper

DAMAGE = (Reason.CHAIN_BROKEN, Reason.STATE_DISAGREES, Reason.ANCHOR_DISAGREES)


def _filled(path: Path, store_id: str = "store-one") -> Memory:
    """Return a store with every sort of row in it, still open."""
    clock = FixedClock(START)
    memory = Memory.open(path, clock=clock, store_id=store_id)
    view = memory.within("session:a")
    one, two = remember(view, "one event"), remember(view, "another event", minutes=1)
    note = hold(view, "a note")
    view.link("temporal", one.id, two.id, weight=0.5)
    view.link("conflict", one.id, note.id)
    view.update(two.id, confidence=0.25)
    view.recall("event")
    clock.advance(START - START)
    return memory


@pytest.fixture
def filled(path: Path) -> Path:
    """A closed store with every sort of row in it."""
    _filled(path).close()
    return path


def _found(path: Path, *reasons: Reason) -> Reason:
    """Expect that opening or verifying finds the damage; return how it is named."""
    before = files_of(path)

    def look() -> None:
        with Memory.open(path) as memory:
            memory.verify()

    with pytest.raises(Exception) as info:  # noqa: PT011 (typed below)
        look()
    reason = getattr(info.value, "reason", None)
    assert reason in reasons, repr(info.value)
    after = files_of(path)
    assert after[path.name] == before[path.name]
    assert after[f"{path.name}.head"] == before[f"{path.name}.head"]
    return reason


def _last(path: Path) -> int:
    connection = apsw.Connection(str(path))
    (last,) = connection.execute("SELECT max(seq) FROM audit").fetchone()
    connection.close()
    return int(last)


def test_the_tail_of_the_audit_dropped_is_refused_at_opening(filled: Path) -> None:
    for _ in range(3):
        tamper(filled, ("DELETE FROM audit WHERE seq = ?", _last(filled)))
        error = refuses_to_open(filled, Reason.ANCHOR_DISAGREES)
        assert "does not hold" in str(error)


def test_the_head_of_the_audit_dropped_is_found(filled: Path) -> None:
    tamper(filled, ("DELETE FROM audit WHERE seq = 1",))
    assert _found(filled, Reason.CHAIN_BROKEN)
    tamper(filled, ("DELETE FROM audit WHERE seq < ?", _last(filled)))
    assert _found(filled, Reason.CHAIN_BROKEN)


def test_the_whole_audit_dropped_is_refused(filled: Path) -> None:
    tamper(filled, ("DELETE FROM audit",))
    refuses_to_open(filled, Reason.ANCHOR_DISAGREES)


def test_every_single_audit_record_dropped_is_found(filled: Path, tmp_path: Path) -> None:
    last = _last(filled)
    for seq in range(1, last + 1):
        place = _copy(filled, tmp_path / f"without-{seq}")
        tamper(place, ("DELETE FROM audit WHERE seq = ?", seq))
        _found(place, Reason.CHAIN_BROKEN, Reason.ANCHOR_DISAGREES)


def test_any_two_neighbouring_audit_records_swapped_are_found(filled: Path, tmp_path: Path) -> None:
    for seq in range(1, _last(filled)):
        place = _copy(filled, tmp_path / f"swapped-{seq}")
        tamper(
            place,
            ("UPDATE audit SET seq = -1 WHERE seq = ?", seq),
            ("UPDATE audit SET seq = ? WHERE seq = ?", seq, seq + 1),
            ("UPDATE audit SET seq = ? WHERE seq = -1", seq + 1),
        )
        _found(place, Reason.CHAIN_BROKEN, Reason.ANCHOR_DISAGREES)


def test_records_renumbered_to_close_a_gap_are_found(filled: Path) -> None:
    last = _last(filled)
    tamper(
        filled,
        ("DELETE FROM audit WHERE seq = 3",),
        *[("UPDATE audit SET seq = ? WHERE seq = ?", seq - 1, seq) for seq in range(4, last + 1)],
    )
    _found(filled, Reason.CHAIN_BROKEN, Reason.ANCHOR_DISAGREES)


@pytest.mark.parametrize("store_id", ["store-one", "store-two"])
def test_records_spliced_from_another_store_are_found(
    filled: Path, tmp_path: Path, store_id: str
) -> None:
    """Even from a store of the same name whose history differs in one write."""
    other = tmp_path / "other.cma"
    with Memory.open(other, clock=FixedClock(START), store_id=store_id) as memory:
        for number in range(12):
            remember(memory, f"foreign {number}")
    connection = apsw.Connection(str(other))
    rows = {row[0]: row for row in connection.execute("SELECT * FROM audit")}
    connection.close()
    tamper(
        filled,
        ("DELETE FROM audit WHERE seq = 4",),
        ("INSERT INTO audit VALUES (?, ?, ?, ?, ?, ?)", *rows[4]),
    )
    _found(filled, Reason.CHAIN_BROKEN)
    tamper(
        filled,
        ("DELETE FROM audit WHERE seq > 1",),
        *[("INSERT INTO audit VALUES (?, ?, ?, ?, ?, ?)", *rows[seq]) for seq in range(2, 13)],
    )
    refuses_to_open(filled, Reason.ANCHOR_DISAGREES)


def test_a_foreign_store_id_is_refused(filled: Path) -> None:
    tamper(filled, ("UPDATE store SET store_id = 'store-two'",))
    error = refuses_to_open(filled, Reason.ANCHOR_DISAGREES)
    assert "another store" in str(error)


def test_a_foreign_store_id_in_store_and_anchor_is_found(filled: Path) -> None:
    connection = apsw.Connection(str(filled))
    seq, head = connection.execute("SELECT seq, hash FROM audit ORDER BY seq DESC").fetchone()
    connection.close()
    tamper(filled, ("UPDATE store SET store_id = 'store-two'",))
    with anchor_path(filled).open("r+b") as anchor:
        anchor.truncate(0)
        anchor.truncate(2 * SLOT_SIZE)
        write_anchor(anchor.fileno(), Anchor("store-two", seq, head), (None, None))
    assert _found(filled, Reason.CHAIN_BROKEN) is Reason.CHAIN_BROKEN


CHANGES: list[tuple[str, tuple[Any, ...]]] = [
    ("a cell dropped", ("DELETE FROM cells WHERE ordinal = 1",)),
    ("a revision dropped", ("DELETE FROM cells WHERE revision = 2",)),
    ("an earlier revision dropped", ("DELETE FROM cells WHERE ordinal = 2",)),
    ("a revision renumbered", ("UPDATE cells SET revision = 3 WHERE revision = 2",)),
    ("a scope widened", ("UPDATE cells SET scope = 'global' WHERE ordinal = 1",)),
    ("a cell retired", ("UPDATE cells SET lifecycle = 'retracted' WHERE ordinal = 1",)),
    ("an expiry moved", ("UPDATE cells SET expires_at = expires_at + 1 WHERE ordinal = 3",)),
    ("an expiry removed", ("UPDATE cells SET expires_at = NULL WHERE ordinal = 3",)),
    ("an expiry added", ("UPDATE cells SET expires_at = 5 WHERE ordinal = 1",)),
    ("an id changed", ("UPDATE cells SET id = 'cell-' || hex(zeroblob(20)) WHERE ordinal = 1",)),
    (
        "content changed",
        (
            (
                "UPDATE cells SET record ="
                " CAST(replace(CAST(record AS TEXT), 'one', 'two') AS BLOB)"
                " WHERE ordinal = 1"
            ),
        ),
    ),
    (
        "two records swapped",
        (
            (
                "UPDATE cells SET record = (SELECT c.record FROM cells c"
                " WHERE c.ordinal = 3 - cells.ordinal) WHERE ordinal IN (1, 2)"
            ),
        ),
    ),
    (
        "a cell added",
        (
            (
                "INSERT INTO cells (id, revision, scope, lifecycle, record)"
                " SELECT 'cell-' || hex(zeroblob(20)), 1, scope, lifecycle, record FROM cells"
                " WHERE ordinal = 1"
            ),
        ),
    ),
    (
        "a revision added",
        (
            (
                "INSERT INTO cells (id, revision, scope, lifecycle, record)"
                " SELECT id, 9, scope, lifecycle, record FROM cells WHERE ordinal = 1"
            ),
        ),
    ),
    ("a link dropped", ("DELETE FROM links WHERE ordinal = 1",)),
    ("a link of another kind", ("UPDATE links SET kind = 'causal' WHERE ordinal = 1",)),
    (
        "a link turned round",
        ("UPDATE links SET source_id = target_id, target_id = source_id WHERE ordinal = 1",),
    ),
    (
        "a link's weight changed",
        (
            (
                "UPDATE links SET record = CAST(replace(CAST(record AS TEXT), '500000', '900000')"
                " AS BLOB) WHERE ordinal = 1"
            ),
        ),
    ),
    ("a trace dropped", ("DELETE FROM traces",)),
    (
        "a trace changed",
        (
            (
                "UPDATE traces SET record ="
                " CAST(replace(CAST(record AS TEXT), 'event', 'evens') AS BLOB)"
            ),
        ),
    ),
    ("a trace added", ("INSERT INTO traces (id, record) VALUES ('trace-x', x'7b7d')",)),
    ("an operation renamed", ("UPDATE audit SET operation = 'reject' WHERE seq = 2",)),
    ("a subject changed", ("UPDATE audit SET subject = NULL WHERE seq = 2",)),
    ("a generation changed", ("UPDATE audit SET generation = 0 WHERE seq = 4",)),
    ("a hash changed", ("UPDATE audit SET hash = zeroblob(32) WHERE seq = 4",)),
    (
        "an actor changed",
        (
            (
                "UPDATE audit SET record ="
                " CAST(replace(CAST(record AS TEXT), 'agent', 'admin') AS BLOB) WHERE seq = 2"
            ),
        ),
    ),
    (
        "an audit record added",
        (
            (
                "INSERT INTO audit SELECT 0, operation, subject, generation, record,"
                " hash FROM audit WHERE seq = 2"
            ),
        ),
    ),
]


@pytest.mark.parametrize("change", [change for _, change in CHANGES], ids=[n for n, _ in CHANGES])
def test_a_change_of_a_row_is_found(filled: Path, change: tuple[Any, ...]) -> None:
    tamper(filled, change)
    _found(filled, *DAMAGE)


OTHER_BYTES = [b"", b"[]", b"{}", b"null", b"\xff\xfe", b'{"id":1}', b'{"a":1,"a":2}', b"[" * 5_000]


@pytest.mark.parametrize("data", OTHER_BYTES)
@pytest.mark.parametrize("table", ["cells", "links", "audit", "traces"])
def test_a_record_of_other_bytes_is_found(filled: Path, table: str, data: bytes) -> None:
    where = "seq = 3" if table == "audit" else "1"
    tamper(filled, (f"UPDATE {table} SET record = ? WHERE {where}", data))
    _found(filled, *DAMAGE)


USES: dict[str, Callable[[Memory, str], Any]] = {
    "get": lambda view, cell_id: view.get(cell_id),
    "recall": lambda view, _: view.recall("event"),
    "update": lambda view, cell_id: view.update(cell_id, confidence=0.5),
    "links_of": lambda view, cell_id: view.links_of(cell_id),
    "link": lambda view, cell_id: view.link("task", cell_id, "cell-" + "0" * 40),
}


@pytest.mark.parametrize("data", [b"", b"[]", b'{"kind":"other"}', b"\xff\xfe"])
@pytest.mark.parametrize("use", USES)
def test_using_a_damaged_record_is_a_typed_error(filled: Path, use: str, data: bytes) -> None:
    connection = apsw.Connection(str(filled))
    (cell_id,) = connection.execute("SELECT id FROM cells WHERE ordinal = 1").fetchone()
    connection.close()
    tamper(filled, ("UPDATE cells SET record = ? WHERE ordinal = 1", data))
    with Memory.open(filled) as memory:
        digest = memory.digest()
        with pytest.raises(Exception) as info:  # noqa: PT011 (typed below)
            USES[use](memory.within("session:a"), cell_id)
        reason = getattr(info.value, "reason", None)
        assert reason in (Reason.STATE_DISAGREES, Reason.STORE_DAMAGED), repr(info.value)
        assert memory.digest() == digest


def test_the_audit_refuses_to_be_changed_from_inside(filled: Path) -> None:
    connection = apsw.Connection(str(filled))
    for sql in ("UPDATE audit SET generation = 7", "DELETE FROM audit WHERE seq = 1"):
        with pytest.raises(apsw.ConstraintError, match="append-only"):
            connection.execute(sql)
    connection.close()
    with Memory.open(filled) as memory:
        assert memory.verify().tail_pinned


def _copy(path: Path, folder: Path) -> Path:
    folder.mkdir()
    for name, data in files_of(path).items():
        (folder / name).write_bytes(data)
    return folder / path.name

"""The audit chain: each record seals the one before it, and no two share an encoding."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from cma.orion.audit import (
    FIRST_HASH,
    ChainWriter,
    Operation,
    Row,
    audit_record,
    chain_prefix,
    record_hash,
    verified,
)
from cma.values.errors import CmaError, Reason

AT = datetime(2026, 3, 1, 12, tzinfo=UTC)


def chain(count: int = 5, store_id: str = "store") -> list[Row]:
    writer = ChainWriter(store_id, seq=0, head=FIRST_HASH, generation=0, at=AT, actor="me")
    rows = []
    for number in range(count):
        writer.generation = number
        rows.append(writer.seal("write", (f"cell-{number}",), after=f"{number}" * 64))
    return rows


def broken(rows: list[Row], store_id: str = "store", **behind: Any) -> str:
    with pytest.raises(CmaError) as info:
        list(verified(rows, store_id, **behind))
    assert info.value.reason is Reason.CHAIN_BROKEN
    assert info.value.field is not None
    return info.value.field


def test_an_unbroken_chain_is_read_in_order() -> None:
    fields = list(verified(chain(), "store"))
    assert [item["seq"] for item in fields] == [1, 2, 3, 4, 5]
    assert list(verified([], "store")) == []


def test_a_part_of_a_chain_follows_the_record_before_it() -> None:
    rows = chain()
    assert len(list(verified(rows[2:], "store", seq=2, head=rows[1][5]))) == 3
    assert broken(rows[2:]) == "audit[1]"
    assert broken(rows[2:], seq=2, head=rows[2][5]) == "audit[3]"


def test_dropped_swapped_and_repeated_records_are_named() -> None:
    rows = chain()
    assert broken(rows[1:]) == "audit[1]"
    assert broken([*rows[:2], *rows[3:]]) == "audit[3]"
    assert broken([rows[0], rows[2], rows[1], *rows[3:]]) == "audit[2]"
    assert broken([*rows, rows[4]]) == "audit[6]"


def test_each_part_of_a_row_is_sealed() -> None:
    for place, other in (
        (0, 9), (1, "read"), (2, "cell-x"), (2, None), (3, 7), (4, b"{}"), (4, b"[]"),
        (4, b"nonsense"), (5, bytes(32)), (5, b""),
    ):  # fmt: skip
        rows: list[Any] = chain()
        row = list(rows[2])
        row[place] = other
        rows[2] = tuple(row)
        assert broken(rows).startswith("audit["), (place, other)


def test_a_record_that_names_another_before_it_is_broken_whatever_its_hash() -> None:
    rows = chain()
    seq, operation, subject, generation, data, _ = rows[2]
    forged = data.replace(rows[1][5].hex().encode(), rows[0][5].hex().encode())
    assert forged != data
    sealed = record_hash("store", seq, rows[1][5], forged)
    rows[2] = (seq, operation, subject, generation, forged, sealed)
    assert broken(rows) == "audit[3]"


def test_a_chain_belongs_to_one_store() -> None:
    assert broken(chain(), "another") == "audit[1]"
    assert broken(chain(store_id=""), "store") == "audit[1]"


def test_every_part_is_framed_by_its_length() -> None:
    """Moving bytes from one part to the next must not give the same sealed bytes."""
    assert chain_prefix("ab") != chain_prefix("a") + b"b"
    assert len({chain_prefix(name) for name in ("", "a", "ab", "b", "a" * 256)}) == 5
    head = bytes(range(32))
    hashes = {
        record_hash("store", 1, head, b"ab"),
        record_hash("store", 1, head, b"a"),
        record_hash("store", 1, head[:-1] + b"\0", b"ab"),
        record_hash("store", 257, head, b"ab"),
        record_hash("storea", 1, head, b"b"),
        record_hash("stor", 1, head, b"eab"),
    }
    assert len(hashes) == 6


def test_the_writer_and_the_hash_agree() -> None:
    previous = FIRST_HASH
    for seq, *_, data, sealed in chain():
        assert record_hash("store", seq, previous, data) == sealed
        previous = sealed


def test_a_record_tells_what_was_recorded() -> None:
    writer = ChainWriter("store", seq=7, head=bytes(32), generation=3, at=AT, actor="me")
    row = writer.seal(
        "update", ("cell-a", "cell-b"), before="1" * 64, after="2" * 64, policy="p", reason="r",
        detail="d",
    )  # fmt: skip
    record = audit_record(row[4], row[5])
    assert record.operation is Operation.UPDATE
    assert (record.seq, record.at, record.actor, record.generation) == (8, AT, "me", 3)
    assert (record.subjects, record.before, record.after) == (
        ("cell-a", "cell-b"), "1" * 64, "2" * 64,
    )  # fmt: skip
    assert (record.policy, record.reason, record.detail) == ("p", "r", "d")
    assert record.previous_hash == "0" * 64
    assert record.hash == row[5].hex()
    assert row[2] == "cell-a"
    other = writer.seal("read", (), at=AT.replace(hour=13), actor="you")
    assert audit_record(other[4], other[5]).actor == "you"
    assert other[2] is None
    assert (writer.seq, writer.head) == (9, other[5])

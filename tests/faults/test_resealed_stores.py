"""A store whose chain was made to fit a lie: what its records cannot say is refused."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import apsw
import pytest

from cma import Caller, Memory, Reason
from cma.orion.agreement import follow
from cma.orion.audit import FIRST_HASH, record_hash, verified
from cma.values.errors import StoreRefusedError
from cma.values.identity import canonical, identifier
from tests.faults.injection import draft, remember
from tests.faults.resealing import Chain, Statement, resealed


@pytest.fixture
def filled(path: Path, memory: Memory) -> Path:
    """A closed store with a row in every table."""
    one, two = remember(memory, "one event"), remember(memory, "another event", minutes=1)
    memory.link("temporal", one.id, two.id, weight=0.5)
    memory.update(two.id, confidence=0.25)
    memory.replay(memory.bind(scene="kitchen", sources=[one.id, two.id]).id)
    source = remember(memory, "a source")
    remember_from(memory, source.id)
    memory.recall("event")
    memory.close()
    return path


def remember_from(memory: Memory, source: str) -> None:
    """Write a cell that names another as what it was derived from."""
    memory.write_many([draft("from a source", derived_from=[source])])


def blob(table: str, old: str, new: str) -> Statement:
    """Replace letters in the records of a table."""
    return (f"UPDATE {table} SET record = CAST(replace(record, ?, ?) AS BLOB)", old, new)


RECORDS: dict[str, tuple[list[Statement], str]] = {
    "a cell's scope": (
        [("UPDATE cells SET scope = 'session:x'",)],
        "its columns and its record differ",
    ),
    "a cell's lifecycle": (
        [("UPDATE cells SET lifecycle = 'retracted'",)],
        "its columns and its record differ",
    ),
    "a cell's expiry": (
        [("UPDATE cells SET expires_at = 5",)],
        "its columns and its record differ",
    ),
    "a cell's content": ([blob("cells", "one event", "no event")], "its id is not that"),
    "a cell's form": ([blob("cells", '"content":', '"content": ')], "its record is not canonical"),
    "a cell's parts": (
        [("UPDATE cells SET record = CAST('{}' AS BLOB)",)],
        "does not have the parts of its kind",
    ),
    "a link's kind in its row": (
        [("UPDATE links SET kind = 'causal'",)],
        "its columns and its record differ",
    ),
    "a link's kind": (
        [
            ("UPDATE links SET kind = 'causal' WHERE kind = 'temporal'",),
            blob("links", "temporal", "causal"),
        ],
        "its id is not that",
    ),
    "a frame's scope in its row": (
        [("UPDATE governed SET scope = 'session:x'",)],
        "its columns and its record differ",
    ),
    "a frame's scene": ([blob("governed", "kitchen", "balcony")], "its id is not that"),
    "a replay's subject in its row": (
        [("UPDATE attendant SET subject = 'x'",)],
        "its columns and its record differ",
    ),
    "a reference gone": (
        [("DELETE FROM refs WHERE kind = 'frame'",)],
        "a reference of the record is not in its table",
    ),
    "a reference more": (
        [("INSERT INTO refs SELECT id, 'frame', (SELECT id FROM governed) FROM links",)],
        "other ones than the records say",
    ),
    "a trace's words": ([blob("traces", '"event"', '"evens"')], "its id is not that"),
    "a trace more": (
        [
            (
                "INSERT INTO traces (id, record)"  # noqa: ISC004
                " SELECT 'trace-0', CAST(replace(record, 'event', 'x') AS BLOB) FROM traces",
            )
        ],
        "the chain does not tell of this trace",
    ),
    "a cell's row out of order": (
        [("UPDATE cells SET ordinal = -5 WHERE ordinal = 2",)],
        "does not come upon it",
    ),
    "a link's row out of order": (
        [("UPDATE links SET ordinal = -5 WHERE ordinal = 1",)],
        "does not come upon it",
    ),
    "a trace gone": ([("DELETE FROM traces",)], "the store does not hold it"),
    "a link gone": ([("DELETE FROM links",)], "the store does not hold it"),
}


def another_state(chain: Chain) -> None:
    [update] = [record for record in chain if record["operation"] == "update"]
    update["before"] = "0" * 64


def another_generation(chain: Chain) -> None:
    chain[-2]["generation"] += 3


CHAINS: dict[str, tuple[Callable[[Chain], None], Reason, str]] = {
    "another state": (another_state, Reason.STATE_DISAGREES, "names another state before it"),
    "another generation": (
        another_generation,
        Reason.STATE_DISAGREES,
        "the generation does not follow",
    ),
}


def refusal(path: Path) -> StoreRefusedError:
    with Memory.open(path) as memory, pytest.raises(StoreRefusedError) as info:
        memory.verify()
    return info.value


def test_a_store_that_was_resealed_without_a_lie_verifies(filled: Path) -> None:
    resealed(filled, [])
    with Memory.open(filled) as memory:
        assert memory.verify().tail_pinned


@pytest.mark.parametrize(("changes", "words"), RECORDS.values(), ids=RECORDS)
def test_a_record_that_cannot_be_is_refused(
    filled: Path, changes: list[Statement], words: str
) -> None:
    resealed(filled, changes)
    error = refusal(filled)
    assert error.reason is Reason.STATE_DISAGREES
    assert words in error.message


@pytest.mark.parametrize(("edit", "reason", "words"), CHAINS.values(), ids=CHAINS)
def test_a_chain_that_cannot_be_is_refused(
    filled: Path, edit: Callable[[Chain], None], reason: Reason, words: str
) -> None:
    resealed(filled, [], edit)
    error = refusal(filled)
    assert error.reason is reason
    assert words in error.message


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (("DELETE FROM governed",), "it names what is not there"),
        (
            ("DELETE FROM cells WHERE instr(CAST(record AS TEXT), '\"a source\"') > 0",),
            "it was derived from a cell that is not there",
        ),
    ],
)
def test_a_reference_to_nothing_is_refused(filled: Path, change: Statement, words: str) -> None:
    resealed(filled, [change])
    error = refusal(filled)
    assert error.reason is Reason.REFERENCE_MISSING
    assert words in error.message


@pytest.fixture
def erased(path: Path, memory: Memory) -> Path:
    """A closed store in which a cell, its frame and a trace that served it were erased."""
    user = memory.acting_as(Caller(name="ann", authority="user"))
    cell = remember(user, "one event")
    user.replay(user.bind(scene="kitchen", sources=[cell.id]).id)
    user.recall("event")
    user.erase(cell.id, reason="person-request")
    user.verify()
    memory.close()
    return path


def erases(chain: Chain, before: str | None) -> None:
    for record in chain:
        if record["operation"] == "redact" and record["before"] is not None:
            record["before"] = before


ERASED: dict[str, tuple[list[Statement], Callable[[Chain], None], str]] = {
    "of nothing": ([], lambda chain: erases(chain, None), "erases another state"),
    "of another state": ([], lambda chain: erases(chain, "0" * 64), "erases another state"),
    "that left words": (
        [blob("cells", '"summary":""', '"summary":"one"')],
        lambda _: None,
        "it was erased and is not blank",
    ),
    "of a trace that left words": (
        [blob("traces", '"query":""', '"query":"one"')],
        lambda _: None,
        "it was erased and is not blank",
    ),
    "of another frame": (
        [
            (
                "UPDATE governed SET record = CAST(json_set(CAST(record AS TEXT),"  # noqa: ISC004
                " '$.details.erased', ?) AS BLOB)",
                "0" * 64,
            )
        ],
        lambda _: None,
        "its mark names another record than was erased",
    ),
}


@pytest.mark.parametrize(("changes", "edit", "words"), ERASED.values(), ids=ERASED)
def test_an_erasure_that_cannot_be_is_refused(
    erased: Path, changes: list[Statement], edit: Callable[[Chain], None], words: str
) -> None:
    resealed(erased, changes, edit)
    assert words in refusal(erased).message


def test_a_link_to_nothing_is_refused(filled: Path) -> None:
    connection = apsw.Connection(str(filled))
    [(name, data)] = connection.execute(
        "SELECT id, record FROM links WHERE kind = 'temporal'"
    ).fetchall()
    connection.close()
    record = json.loads(data)
    record["target_id"] = f"cell-{'0' * 40}"
    ends = {part: record[part] for part in ("kind", "source_id", "target_id")}
    record["id"] = identifier("link", canonical(ends))
    change = (
        "UPDATE links SET id = ?, target_id = ?, record = ? WHERE kind = 'temporal'",
        record["id"],
        record["target_id"],
        canonical(record),
    )

    def renamed(chain: Chain) -> None:
        for each in chain:
            each["subjects"] = [record["id"] if one == name else one for one in each["subjects"]]

    resealed(filled, [change], renamed)
    assert "it joins a cell that is not there" in refusal(filled).message


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b'{"seq": 1}', "is not canonical"),
        (b"[1]", "is no audit record"),
        (b'{"subjects":"x"}', "is no audit record"),
        (
            b'{"generation":0,"operation":"read","previous_hash":"%b","seq":1,"subjects":[]}'
            % (b"1" * 64),
            "does not follow",
        ),
        (b'{"subjects":[]}', "disagrees with its own columns"),
    ],
)
def test_a_sealed_record_that_is_none_is_refused(data: bytes, words: str) -> None:
    row = (1, "read", None, 0, data, record_hash("store", 1, FIRST_HASH, data))
    with pytest.raises(StoreRefusedError) as info:
        list(verified([row], "store"))
    assert info.value.reason is Reason.CHAIN_BROKEN
    assert words in info.value.message


def test_an_erasure_of_what_was_never_told_is_refused() -> None:
    fields = {
        "operation": "redact",
        "before": None,
        "after": "0" * 64,
        "subjects": ["erasure-0", "frame-0"],
        "seq": 3,
    }
    with pytest.raises(StoreRefusedError, match="erases another state"):
        follow(fields, {}, {})

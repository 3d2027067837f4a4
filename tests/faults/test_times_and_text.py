"""Times without a zone, machines in other zones, text in other scripts, empty text, long text."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest

from cma import FixedClock, Memory, Reason
from tests.faults.injection import START, answer, audit, child, draft, hold, refused, remember

CAP = 1_000_000


@pytest.mark.parametrize("at", [datetime(2026, 3, 1), "2026-03-01T12:00:00", "2026-03-01"])  # noqa: DTZ001
def test_a_naive_time_is_rejected(memory: Memory, at: Any) -> None:
    with refused(memory, Reason.TIME_NAIVE, "observed_at"):
        remember(memory, "no zone", observed_at=at)
    with refused(memory, Reason.TIME_NAIVE, "drafts[1].observed_at"):
        memory.write_many([draft("zone"), draft("no zone", observed_at=at)])


def test_a_clock_cannot_be_naive() -> None:
    with pytest.raises(ValueError, match="time-naive"):
        FixedClock(datetime(2026, 3, 1))  # noqa: DTZ001


@pytest.mark.parametrize("at", ["yesterday", "", 5, 1.5e9, True, b"2026-03-01T12:00:00Z", []])
def test_what_is_no_time_is_rejected(memory: Memory, at: Any) -> None:
    with refused(memory, Reason.FIELD_INVALID, "observed_at"):
        remember(memory, "no time", observed_at=at)


@pytest.mark.parametrize("hours", [14, -12])
def test_a_time_outside_the_calendar_in_utc_is_rejected(memory: Memory, hours: int) -> None:
    zone = timezone(timedelta(hours=hours))
    edge = datetime.min if hours > 0 else datetime.max  # noqa: DTZ901
    with refused(memory, Reason.FIELD_INVALID, "observed_at"):
        remember(memory, "at the edge", observed_at=edge.replace(tzinfo=zone))


def test_the_same_instant_in_another_zone_is_the_same_cell(memory: Memory) -> None:
    class Stamp(datetime):
        """A subclass, as data frame libraries have them."""

    zone = timezone(timedelta(hours=-8))
    one = remember(memory, "once", observed_at="2026-03-08T10:00:00Z")
    for again in (
        datetime(2026, 3, 8, 2, tzinfo=zone),
        Stamp(2026, 3, 8, 10, tzinfo=UTC),
        "2026-03-08T19:00:00+09:00",
    ):
        assert remember(memory, "once", observed_at=again) == one
    assert one.observed_at == datetime(2026, 3, 8, 10, tzinfo=UTC)
    assert one.observed_at.tzinfo is UTC


def test_the_bytes_do_not_depend_on_the_machines_zone(tmp_path: Path) -> None:
    zones = ("UTC", "US/Pacific", "Asia/Kolkata")
    processes = [
        child("fixed", tmp_path / zone.replace("/", "-"), TZ=zone, LC_ALL="C") for zone in zones
    ]
    answers = {answer(process) for process in processes}
    assert len(answers) == 1


def test_chinese_text_is_found(memory: Memory) -> None:
    cell = remember(memory, "外币汇率换算")
    remember(memory, "天气很好")
    hits = memory.recall("汇率").hits
    assert [hit.cell.id for hit in hits] == [cell.id]
    assert hits[0].cell.content == "外币汇率换算"
    assert hits[0].parts["lexical"] == 1.0


@pytest.mark.parametrize("stored", ["caf\u00e9", "cafe\u0301"])
@pytest.mark.parametrize("asked", ["caf\u00e9", "cafe\u0301", "CAFÉ"])
def test_composed_and_decomposed_letters_meet(memory: Memory, stored: str, asked: str) -> None:
    cell = remember(memory, f"the {stored} at the corner")
    remember(memory, "the cafeteria")
    (hit,) = memory.recall(asked).hits
    assert hit.cell.id == cell.id
    assert stored in hit.cell.content  # the text itself is kept as it was given


EMPTY = ["", " ", "\n\t ", "\u200b\u200d\ufeff", "\u00a0\u3000", "\x00\x1f", "\u0301"]


@pytest.mark.parametrize("text", EMPTY)
def test_text_without_a_visible_character_is_no_memory(memory: Memory, text: str) -> None:
    with refused(memory, Reason.CONTENT_EMPTY, "content"):
        remember(memory, text)
    with refused(memory, Reason.CONTENT_EMPTY, "drafts[0].content"):
        memory.write_many([draft(text), draft("fine")])
    assert memory.verify().cells == 0


@pytest.mark.parametrize("text", [*EMPTY, "?!", "…", "\U0001f600"])
def test_a_query_without_a_term_never_matches_everything(memory: Memory, text: str) -> None:
    remember(memory, "something")
    with refused(memory, Reason.QUERY_EMPTY, "query"):
        memory.recall(text)


@pytest.mark.parametrize("text", [None, 5, b"bytes", ["a"]])
def test_what_is_no_text_is_rejected(memory: Memory, text: Any) -> None:
    with refused(memory, Reason.FIELD_INVALID, "content"):
        remember(memory, text)
    with refused(memory, Reason.FIELD_INVALID, "query"):
        memory.recall(text)


def test_a_lone_surrogate_is_no_text_anywhere(memory: Memory) -> None:
    cell = remember(memory, "fine")
    bad = "broken \ud800"
    uses: list[Any] = [
        lambda: remember(memory, bad),
        lambda: remember(memory, "fine", summary=bad),
        lambda: remember(memory, "fine", origin=bad),
        lambda: remember(memory, "fine", metadata={"speaker": bad}),
        lambda: remember(memory, "fine", metadata={"attributes": {"a": bad}}),
        lambda: memory.update(cell.id, summary=bad),
        lambda: memory.update(bad, summary="x"),
        lambda: memory.recall(bad),
        lambda: memory.get(bad),
        lambda: memory.links_of(bad),
        lambda: memory.link("task", cell.id, bad),
        lambda: memory.explain(bad),
        lambda: memory.within(f"session:{bad}"),
    ]
    for use in uses:
        with refused(memory, Reason.FIELD_INVALID):
            use()
    assert memory.verify().cells == 1


@pytest.mark.parametrize("letter", ["x", "汇", "\U0001f600", "é"])
def test_text_up_to_the_cap_is_kept_whole(memory: Memory, letter: str) -> None:
    text = (letter * 9 + " ") * (CAP // 10)
    cell = remember(memory, text)
    assert cell.content == text
    assert memory.get(cell.id).content == text
    assert memory.verify().cells == 1


def test_text_over_the_cap_is_refused_and_never_cut(memory: Memory) -> None:
    with refused(memory, Reason.CONTENT_TOO_LARGE, "content") as caught:
        remember(memory, "x" * (CAP + 1))
    assert "1,000,001" in str(caught[0])
    assert "1,000,000" in str(caught[0])
    with refused(memory, Reason.CONTENT_TOO_LARGE, "drafts[2].content"):
        memory.write_many([draft("a"), draft("b"), draft("x" * (CAP + 1))])
    note = hold(memory.within("session:a"), "short")
    with refused(memory, Reason.CONTENT_TOO_LARGE, "content"):
        memory.within("session:a").update(note.id, content="y" * (CAP + 1))
    with refused(memory, Reason.CONTENT_TOO_LARGE, "query"):
        memory.recall("x " * CAP)


def test_a_record_too_large_to_be_read_back_is_refused(memory: Memory) -> None:
    attributes = {f"a{number}": "x" * 10_000 for number in range(900)}
    with refused(memory, Reason.CONTENT_TOO_LARGE, "metadata"):
        remember(memory, "small text", metadata={"attributes": attributes})
    with refused(memory, Reason.CONTENT_TOO_LARGE, "drafts[1].metadata"):
        memory.write_many([draft("a"), draft("b", metadata={"attributes": attributes})])
    cell = remember(memory, "small text")
    with refused(memory, Reason.CONTENT_TOO_LARGE, "metadata"):
        memory.update(cell.id, metadata={"attributes": attributes})
    assert memory.verify().revisions == 1


def test_the_time_for_a_long_text_is_linear_in_its_length(memory: Memory) -> None:
    def spent(length: int) -> float:
        best = float("inf")
        for trial in range(3):
            text = f"{trial} {length} " + "word and 汇率 " * (length // 12)
            began = time.process_time()
            cell = remember(memory, text[:length])
            memory.recall("nothing like it")
            best = min(best, time.process_time() - began)
            assert len(cell.content) == length
        return best

    spent(10_000)  # what is prepared once is prepared now
    short, long = spent(100_000), spent(900_000)
    assert long < 9 * 4 * max(short, 0.002)  # quadratic work would be 81 times as much


def test_refused_input_leaves_one_failure_record_and_no_values(memory: Memory) -> None:
    with refused(memory, Reason.FIELD_INVALID):
        remember(memory, "secret text", confidence=7)
    assert audit(memory) == ["create", "reject"]
    (*_, record) = audit(memory, 4)
    assert b"secret" not in record
    assert b'"detail":"confidence"' in record


def test_a_cell_observed_long_ago_or_ahead_is_recalled(memory: Memory) -> None:
    for at in ("0001-01-01T00:00:00Z", "9999-12-31T23:59:59.999999Z"):
        cell = remember(memory, f"an event of {at[:4]}", observed_at=at)
        assert memory.get(cell.id).observed_at == datetime.fromisoformat(at)
    hits = memory.recall("event").hits
    assert [hit.parts["recency"] for hit in hits] == [1.0, 0.0]
    assert memory.verify().cells == 2
    assert START.year == 2026

"""Errors that say field, value and remedy; times; shares held to one millionth."""

from __future__ import annotations

import pickle
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest
from pydantic import Field

from cma import CellDraft, Coefficients, LinkDraft, Retrieval
from cma.orion.cells import Authority, Caller
from cma.values.clock import FixedClock, SystemClock, from_microseconds, in_utc, microseconds
from cma.values.errors import (
    CmaError,
    InvalidValueError,
    NotFoundError,
    Reason,
    StoreUnavailableError,
    shown,
)
from cma.values.validation import Share, Value, millionths, validated

DRAFT: dict[str, Any] = {
    "kind": "episodic",
    "content": "text",
    "origin": "test",
    "observed_at": "2026-03-01T12:00:00Z",
}


def test_an_error_says_code_field_message_value_and_remedy() -> None:
    error = CmaError(
        Reason.FIELD_INVALID, "not a share", field="confidence", value=7, remedy="give 0 to 1"
    )
    assert str(error) == "[field-invalid] confidence: not a share (got 7) - give 0 to 1"
    assert error.code == "field-invalid"
    assert str(CmaError(Reason.STORE_CLOSED, "it is closed")) == "[store-closed] it is closed"
    assert str(CmaError(Reason.FIELD_INVALID, "zero", value=0)) == "[field-invalid] zero (got 0)"


def test_a_long_value_is_shortened_and_stays_one_line() -> None:
    text = str(CmaError(Reason.FIELD_INVALID, "too long", value="a\nb" * 1_000))
    assert len(text) < 150
    assert "\n" not in text
    assert text.endswith("...)")


def test_a_value_that_cannot_be_shown_does_not_break_its_error() -> None:
    class Odd:
        def __repr__(self) -> str:
            raise RuntimeError

    assert shown(Odd()) == "a Odd that cannot be shown"
    assert shown(10**5_000) == "a int that cannot be shown"
    assert "cannot be shown" in str(CmaError(Reason.LIMIT_INVALID, "odd", value=10**5_000))


def test_codes_are_stable_words_and_each_is_used_once() -> None:
    codes = [reason.value for reason in Reason]
    assert len(set(codes)) == len(codes)
    assert all(code == code.lower() and code.replace("-", "").isalpha() for code in codes)


@pytest.mark.parametrize(
    ("kind", "builtin"),
    [
        (InvalidValueError, ValueError),
        (NotFoundError, LookupError),
        (StoreUnavailableError, OSError),
    ],
)
def test_an_error_is_also_the_builtin_that_it_means(
    kind: type[CmaError], builtin: type[Exception]
) -> None:
    error = kind(Reason.STORE_IO, "message", remedy="remedy")
    assert isinstance(error, builtin)
    assert isinstance(error, CmaError)
    assert str(error) == "[store-io] message - remedy"


BAD_FIELDS: list[tuple[dict[str, Any], Reason, str]] = [
    ({"confidence": 1.5}, Reason.FIELD_INVALID, "confidence"),
    ({"confidence": -0.1}, Reason.FIELD_INVALID, "confidence"),
    ({"confidence": float("nan")}, Reason.FIELD_INVALID, "confidence"),
    ({"importance": float("inf")}, Reason.FIELD_INVALID, "importance"),
    ({"importance": "0.5"}, Reason.FIELD_INVALID, "importance"),
    ({"importance": None}, Reason.FIELD_INVALID, "importance"),
    ({"kind": "dream"}, Reason.KIND_UNKNOWN, "kind"),
    ({"kind": 3}, Reason.KIND_UNKNOWN, "kind"),
    ({"content": 5}, Reason.FIELD_INVALID, "content"),
    ({"content": " "}, Reason.CONTENT_EMPTY, "content"),
    ({"origin": ""}, Reason.FIELD_INVALID, "origin"),
    ({"origin": "a\nb"}, Reason.FIELD_INVALID, "origin"),
    ({"origin": "cafe\u0301"}, Reason.FIELD_INVALID, "origin"),
    ({"origin": "x" * 501}, Reason.FIELD_INVALID, "origin"),
    ({"summary": "x" * 10_001}, Reason.FIELD_INVALID, "summary"),
    ({"summary": None}, Reason.FIELD_INVALID, "summary"),
    ({"observed_at": "2026-03-01T12:00"}, Reason.TIME_NAIVE, "observed_at"),
    ({"observed_at": "noon"}, Reason.FIELD_INVALID, "observed_at"),
    ({"observed_at": None}, Reason.METADATA_MISMATCH, "observed_at"),
    ({"metadata": {"ttl_seconds": 5}}, Reason.FIELD_INVALID, "metadata.ttl_seconds"),
    ({"metadata": {"speaker": ""}}, Reason.FIELD_INVALID, "metadata.speaker"),
    ({"metadata": "speaker"}, Reason.FIELD_INVALID, "metadata"),
    ({"metadata": {"attributes": {"x": 0.5}}}, Reason.FIELD_INVALID, "metadata.attributes.x"),
    ({"metadata": {"attributes": {"x": 1.0}}}, Reason.FIELD_INVALID, "metadata.attributes.x"),
    ({"metadata": {"attributes": {"x": 2**53}}}, Reason.FIELD_INVALID, "metadata.attributes.x"),
    ({"metadata": {"attributes": {"x": []}}}, Reason.FIELD_INVALID, "metadata.attributes.x"),
    ({"metadata": {"attributes": {"a b": 1}}}, Reason.FIELD_INVALID, "metadata.attributes.a b"),
    ({"kind": "working", "metadata": {}}, Reason.FIELD_INVALID, "metadata.ttl_seconds"),
    ({"kind": "working", "metadata": {"ttl_seconds": 0}}, Reason.FIELD_INVALID, "metadata"),
    ({"kind": "working", "metadata": {"ttl_seconds": 1.0}}, Reason.FIELD_INVALID, "metadata"),
    ({"kind": "working", "metadata": {"ttl_seconds": True}}, Reason.FIELD_INVALID, "metadata"),
    ({"colour": "red"}, Reason.FIELD_INVALID, "colour"),
    ({"derived_from": ["a", "a"]}, Reason.FIELD_INVALID, "derived_from"),
    ({"kind": "semantic"}, Reason.APPROVAL_REQUIRED, "approval_id"),
]


@pytest.mark.parametrize(("change", "reason", "field"), BAD_FIELDS)
def test_a_bad_field_names_itself_its_value_and_what_to_do(
    change: dict[str, Any], reason: Reason, field: str
) -> None:
    with pytest.raises(InvalidValueError) as info:
        validated(lambda: CellDraft.model_validate(DRAFT | change))
    error = info.value
    assert error.reason is reason, str(error)
    assert error.field is not None
    assert error.field.startswith(field), error.field
    assert error.remedy
    assert error.message
    if isinstance(change.get(field), str | float):
        assert shown(error.value) in str(error)


def test_all_bad_fields_are_named() -> None:
    bad = DRAFT | {"confidence": 2, "importance": -1}
    with pytest.raises(InvalidValueError) as info:
        validated(lambda: CellDraft.model_validate(bad))
    assert info.value.field == "confidence"
    assert "also wrong: importance" in str(info.value)


def test_values_are_frozen() -> None:
    draft = CellDraft.model_validate(DRAFT)
    with pytest.raises(ValueError, match="frozen"):
        draft.confidence = 0.5  # type: ignore[misc]
    assert pickle.loads(pickle.dumps(draft)) == draft


class Held(Value):
    share: Share = Field(default=0.0)


@pytest.mark.parametrize(
    ("given", "held", "whole"),
    [
        (0, 0.0, 0),
        (1, 1.0, 1_000_000),
        (-0.0, 0.0, 0),
        (1 / 3, 0.333333, 333_333),
        (2 / 3, 0.666667, 666_667),
        (0.1 + 0.2, 0.3, 300_000),
        (0.0000004, 0.0, 0),
        (0.0000006, 0.000001, 1),
        (0.9999999, 1.0, 1_000_000),
        (5e-324, 0.0, 0),
    ],
)
def test_a_share_is_held_to_one_millionth(given: float, held: float, whole: int) -> None:
    share = Held(share=given).share
    assert share == held
    assert str(share) != "-0.0"
    assert millionths(share) == whole
    assert whole / 1_000_000 == share  # and so it comes back from a record as it was


@pytest.mark.parametrize("given", [True, "0.5", None, 1.000001, -1e-9, 10**400])
def test_what_is_no_share_is_rejected(given: Any) -> None:
    with pytest.raises(InvalidValueError):
        validated(lambda: Held(share=given))


def test_a_time_is_kept_in_utc_to_the_microsecond() -> None:
    zone = timezone(timedelta(hours=5, minutes=45))
    at = datetime(2026, 3, 1, 5, 45, 0, 123_456, tzinfo=zone)
    assert in_utc(at, field="at") == datetime(2026, 3, 1, 0, 0, 0, 123_456, tzinfo=UTC)
    assert in_utc(at, field="at").tzinfo is UTC
    assert in_utc("2026-03-01T05:45:00.123456+05:45", field="at") == at


@pytest.mark.parametrize(
    "at",
    [
        datetime(1, 1, 1, tzinfo=UTC),
        datetime(1969, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC),
        datetime(1970, 1, 1, tzinfo=UTC),
        datetime(2026, 3, 1, 12, 0, 0, 1, tzinfo=UTC),
        datetime(9999, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC),
    ],
)
def test_microseconds_are_exact_both_ways(at: datetime) -> None:
    assert from_microseconds(microseconds(at)) == at
    assert isinstance(microseconds(at), int)


def test_a_fixed_clock_moves_only_when_it_is_moved() -> None:
    clock = FixedClock(datetime(2026, 3, 1, 14, tzinfo=timezone(timedelta(hours=2))))
    assert clock.now() == clock.now() == datetime(2026, 3, 1, 12, tzinfo=UTC)
    clock.advance(timedelta(seconds=1))
    clock.advance(timedelta(seconds=-3))
    assert clock.now() == datetime(2026, 3, 1, 11, 59, 58, tzinfo=UTC)


def test_the_system_clock_tells_utc() -> None:
    before = datetime.now(UTC)
    now = SystemClock().now()
    assert before <= now <= datetime.now(UTC)
    assert now.tzinfo is UTC


def test_settings_refuse_what_they_do_not_know() -> None:
    for make in (
        lambda: Retrieval(analyser="klingon"),  # type: ignore[arg-type]
        lambda: Retrieval(lexical="magic"),  # type: ignore[arg-type]
        lambda: Retrieval(half_life_seconds=0),
        lambda: Retrieval(half_life_seconds=float("inf")),
        lambda: Retrieval(k=5),  # type: ignore[call-arg]
        lambda: Coefficients(lexical=float("nan")),
        lambda: Caller(name="", authority=Authority.USER),
        lambda: Caller(name="x", authority="king"),  # type: ignore[arg-type]
        lambda: LinkDraft(kind="task", source_id="a", target_id="b", weight=2),
    ):
        with pytest.raises(ValueError, match="validation error"):
            make()

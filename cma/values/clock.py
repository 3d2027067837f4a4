"""Time comes from outside: a store is given a clock and reads no other."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Protocol

from cma.values.errors import InvalidValueError, Reason

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


class Clock(Protocol):
    """Anything that tells the present as an aware datetime in UTC."""

    def now(self) -> datetime:
        """Return the present, aware, in UTC."""
        ...


class SystemClock:
    """The machine's clock."""

    def now(self) -> datetime:
        """Return the machine's present in UTC."""
        return datetime.now(UTC)


class FixedClock:
    """A clock that stands still until it is moved; for tests and for reproducible runs."""

    def __init__(self, at: datetime) -> None:
        """Stand at `at`, which must carry a zone."""
        self._at = in_utc(at, field="at")

    def now(self) -> datetime:
        """Return the instant at which the clock stands."""
        return self._at

    def advance(self, by: timedelta) -> None:
        """Move forward, or back when `by` is negative."""
        self._at += by


def in_utc(value: object, *, field: str) -> datetime:
    """Return an aware datetime, or an ISO 8601 string with a zone, as UTC.

    Raises InvalidValueError (`time-naive` without a zone, `field-invalid` for anything else).
    """
    if isinstance(value, str):
        try:
            value = datetime.fromisoformat(value)
        except ValueError as error:
            raise InvalidValueError(
                Reason.FIELD_INVALID,
                "not an ISO 8601 time",
                field=field,
                value=value,
                remedy="give for example 2026-07-01T12:00:00Z",
            ) from error
    if not isinstance(value, datetime):
        raise InvalidValueError(
            Reason.FIELD_INVALID,
            "not a time",
            field=field,
            value=value,
            remedy="give a datetime with a zone, or an ISO 8601 string with one",
        )
    if type(value) is not datetime:  # a subclass may compute or print in its own way
        value = datetime.fromisoformat(datetime.isoformat(value))
    if value.tzinfo is UTC:
        return value
    if value.utcoffset() is None:
        raise InvalidValueError(
            Reason.TIME_NAIVE,
            "a time needs a zone",
            field=field,
            value=value.isoformat(),
            remedy="add one, for example datetime(..., tzinfo=UTC) or a trailing Z",
        )
    try:
        return value.astimezone(UTC)
    except OverflowError as error:
        raise InvalidValueError(
            Reason.FIELD_INVALID,
            "lies outside the years 1 to 9999 in UTC",
            field=field,
            value=value.isoformat(),
            remedy="give a time within those years",
        ) from error


def microseconds(at: datetime) -> int:
    """Return whole microseconds since 1970 in UTC: exact, unlike a float timestamp."""
    return (at - EPOCH) // _MICROSECOND


def from_microseconds(value: int) -> datetime:
    """Return the instant that `microseconds` turned into a number."""
    return EPOCH + timedelta(microseconds=value)


def utc_text(at: datetime) -> str:
    """Return an instant in UTC as records hold it, with a trailing Z."""
    return at.isoformat().replace("+00:00", "Z")

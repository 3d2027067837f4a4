"""Ranges of settings: a value outside is refused by key, value and range, before anything runs."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable

from experiments.failures import UsageError

SEED_LIMIT = 2**63 - 1
PATIENCE_LIMIT = 1e6
"""Seconds: longer timeouts than some eleven days are taken for mistakes."""


def whole(key: str, value: int, low: int, high: int) -> None:
    """Refuse a whole number that is not from `low` to `high`."""
    if not low <= value <= high:
        raise UsageError(
            f"{key}={_shown(value)} is out of range: give a whole number from {low} to {high}"
        )


def number(key: str, value: float, low: float, high: float) -> None:
    """Refuse a number that is not finite and from `low` to `high`."""
    if not (math.isfinite(value) and low <= value <= high):
        raise UsageError(
            f"{key}={value} is out of range: give a finite number from {low:g} to {high:g}"
        )


def above(key: str, value: float, low: float, high: float) -> None:
    """Refuse a number that is not finite, above `low` and at most `high`."""
    if not (math.isfinite(value) and low < value <= high):
        raise UsageError(
            f"{key}={value} is out of range: give a finite number above {low:g}, at most {high:g}"
        )


def between(key: str, value: float, low: float, high: float) -> None:
    """Refuse a number that does not lie between the two, both left out."""
    if not low < value < high:
        raise UsageError(
            f"{key}={value} is out of range: give a number above {low:g} and below {high:g}"
        )


def names(key: str, given: Iterable[str], known: Collection[str]) -> None:
    """Refuse a name that is not among `known`."""
    for name in given:
        if name not in known:
            raise UsageError(f"{key}: {name!r} is unknown; there are: {', '.join(known)}")


def _shown(value: int) -> str:
    """Return the number; one of thousands of digits as its power of two (Python prints none)."""
    return str(value) if value.bit_length() < 1000 else f"<{value.bit_length()} bits>"

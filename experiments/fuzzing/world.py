"""Who calls, and when, in everything that is fuzzed."""

from __future__ import annotations

from datetime import UTC, datetime

from cma import Caller

START = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
CALLER = Caller(name="ann", authority="user")

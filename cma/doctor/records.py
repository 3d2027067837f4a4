"""Stored records: pages, digests, references, meaning, and derived memory whose sources fell."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from datetime import datetime

import apsw

from cma.doctor.findings import Code, Finding, finding
from cma.orion.agreement import Story, disagreements
from cma.orion.cells import Lifecycle
from cma.orion.cleaning import is_owed
from cma.rosette.topology import misplaced
from cma.values.clock import microseconds

MOST_PAGES = 100
_LATEST = "NOT EXISTS (SELECT 1 FROM cells n WHERE n.id = {0}.id AND n.revision > {0}.revision)"
_SOURCES = (
    "json_each(CASE WHEN json_valid(CAST(d.record AS TEXT)) THEN CAST(d.record AS TEXT)"
    " ELSE '{}' END, '$.derived_from')"
)


def damaged_pages(connection: apsw.Connection, name: str) -> Iterator[Finding]:
    """Yield what the database finds in its own pages."""
    for (answer,) in connection.execute(f"PRAGMA integrity_check({MOST_PAGES})"):
        if answer != "ok":
            yield finding(Code.STORE_DAMAGED, name, str(answer))


def altered(connection: apsw.Connection, story: Story, counts: Counter[str]) -> Iterator[Finding]:
    """Yield each record that is not what the chain tells, and each reference that leads nowhere."""
    for error in disagreements(connection, story, counts):
        value = "" if error.value is None else f": {error.value}"
        yield finding(Code(error.code), error.field or "record", f"{error.message}{value}")


def misplaced_records(connection: apsw.Connection) -> Iterator[Finding]:
    """Yield each record whose meaning does not hold, once for each thing that is wrong."""
    seen: set[tuple[str, str]] = set()
    for error in misplaced(connection):
        told = (error.field or "record", error.message)
        if told not in seen:
            seen.add(told)
            yield finding(Code.TOPOLOGY_WRONG, *told)


def fallen_sources(connection: apsw.Connection) -> Iterator[Finding]:
    """Yield active derived cells of which a source was retracted."""
    rows = connection.execute(
        f"SELECT d.id, s.id FROM cells d, {_SOURCES} e JOIN cells s ON s.id = e.value"  # noqa: S608
        f" WHERE d.lifecycle = ? AND s.lifecycle = ? AND {_LATEST.format('d')}"
        f" AND {_LATEST.format('s')} ORDER BY d.id, s.id",
        (Lifecycle.ACTIVE.value, Lifecycle.RETRACTED.value),
    )
    for name, source in rows:
        yield finding(Code.SOURCE_RETRACTED, name, f"its source {source} was retracted")


def quarantined(connection: apsw.Connection) -> Iterator[Finding]:
    """Yield the derived cells that are out of service."""
    rows = connection.execute(
        f"SELECT q.id FROM cells q WHERE q.lifecycle = ? AND {_LATEST.format('q')} ORDER BY q.id",  # noqa: S608
        (Lifecycle.QUARANTINED.value,),
    )
    for (name,) in rows:
        yield finding(Code.QUARANTINED, name, "a source of it was erased")


def uncleaned(connection: apsw.Connection, name: str) -> Iterator[Finding]:
    """Yield that what was erased is not overwritten yet."""
    if is_owed(connection):
        yield finding(Code.CLEANING_OWED, name, "the next opening overwrites it")


def unswept(connection: apsw.Connection, now: datetime) -> Iterator[Finding]:
    """Yield how many cells have expired without a record of it."""
    (count,) = connection.execute(
        "SELECT count(*) FROM cells c WHERE c.expires_at <= ? AND c.lifecycle = ?"  # noqa: S608
        f" AND {_LATEST.format('c')}",
        (microseconds(now), Lifecycle.ACTIVE.value),
    ).fetchone()
    if count:
        yield finding(Code.EXPIRED_UNSWEPT, "cells", f"{count} expired")

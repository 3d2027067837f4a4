"""The audit chain read anew, by its written rules and with the standard library alone.

Nothing here comes from the library: the rules are those of `cma/orion/audit.py` and of the tables
in `cma/orion/migrations`, written out a second time, so that a mistake in the one is seen by the
other.
"""

from __future__ import annotations

import hashlib
import json
import sqlite3
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

DOMAINS = {
    "cells": "cma:cell-revision:1",
    "links": "cma:link-record:1",
    "governed": "cma:governed-record:1",
    "attendant": "cma:governed-record:1",
    "traces": "cma:recall-trace:1",
}
"""Under which tag the chain names a record of each table."""
Record = dict[str, Any]
Row = tuple[int, str, str | None, int, bytes, bytes]


@dataclass(slots=True)
class History:
    """What the chain tells: heads by number, what is stored by digest, and who did what."""

    heads: dict[int, str] = field(default_factory=dict)
    told: dict[str, str] = field(default_factory=dict)
    """`cell@revision`, link, record or trace: the digest of what was stored."""
    revisions: Counter[str] = field(default_factory=Counter)
    made: Counter[tuple[str, str]] = field(default_factory=Counter)
    """How often a record of this operation made this subject what it is."""
    named: set[tuple[str, str, str]] = field(default_factory=set)
    """Actor, operation and first subject of every record."""
    refused: Counter[tuple[str, str]] = field(default_factory=Counter)
    """Failure records by actor and code."""
    details: set[tuple[str, str]] = field(default_factory=set)
    """Operation and detail, of records that have one."""
    wrong: list[str] = field(default_factory=list)
    """Where the chain is not one unbroken chain."""


def rows_of(database: sqlite3.Connection) -> Iterator[Row]:
    """Yield the rows of the audit, by number."""
    yield from database.execute(
        "SELECT seq, operation, subject, generation, record, hash FROM audit ORDER BY seq"
    )


def sealed(store_id: str, seq: int, previous: bytes, data: bytes) -> bytes:
    """Return the hash of a record: every part is framed by its length."""
    prefix = b"".join(
        len(part).to_bytes(8, "big") + part
        for part in (b"cma:audit:1", store_id.encode(), (1).to_bytes(4, "big"))
    )
    framed = seq.to_bytes(8, "big") + previous + len(data).to_bytes(8, "big") + data
    return hashlib.sha256(prefix + framed).digest()


def digest(table: str, data: bytes) -> str:
    """Return the digest by which the chain names a record of a table."""
    return hashlib.sha256(DOMAINS[table].encode() + b"\0" + data).hexdigest()


def written(record: Record) -> bytes:
    """Return a record in its one form: sorted keys, no blanks, UTF-8."""
    return json.dumps(record, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()


def history(database: sqlite3.Connection, store_id: str) -> History:
    """Follow the chain from its first record and return what it tells."""
    found = History()
    previous, number, generation = bytes(32), 0, 0
    for seq, operation, subject, in_column, data, seal in rows_of(database):
        if seq != number + 1:
            found.wrong.append(f"record {number + 1} is missing: the next is {seq}")
        if sealed(store_id, seq, previous, data) != seal:
            found.wrong.append(f"record {seq} does not follow the one before it")
        record = json.loads(data)
        subjects = record["subjects"]
        columns = (record["seq"], record["operation"], record["generation"])
        if (
            columns != (seq, operation, in_column)
            or (subjects[0] if subjects else None) != subject
            or record["previous_hash"] != previous.hex()
            or written(record) != data
        ):
            found.wrong.append(f"record {seq} disagrees with its row")
        if record["generation"] - generation not in (0, 1):
            found.wrong.append(f"record {seq} leaves out a generation")
        _follow(found, record)
        found.heads[seq] = seal.hex()
        previous, number, generation = seal, seq, record["generation"]
    return found


def _follow(found: History, record: Record) -> None:
    subject = record["subjects"][0] if record["subjects"] else ""
    actor, operation = record["actor"], record["operation"]
    found.named.add((actor, operation, subject))
    if record["detail"]:
        found.details.add((operation, record["detail"]))
    if operation == "reject" and record["after"] is None:
        found.refused[actor, record["reason"]] += 1
    if record["after"] is None or record["before"] == record["after"]:
        return
    found.made[operation, subject] += 1
    place = subject
    if subject.startswith("cell-"):
        before = found.told.get(f"{subject}@{found.revisions[subject]}")
        if before != record["before"]:
            found.wrong.append(f"record {record['seq']} changes what {subject} no longer was")
        found.revisions[subject] += 1
        place = f"{subject}@{found.revisions[subject]}"
    elif place in found.told and record["before"] is None:
        found.wrong.append(f"record {record['seq']} makes {place} a second time")
    found.told[place] = record["after"]

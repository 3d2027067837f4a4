"""What counts as memory: the authoritative records and their digest, and the chain beside them."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator

import apsw

from cma.orion.audit import Row

AUTHORITATIVE = (
    (b"cell", "SELECT record FROM cells ORDER BY id, revision"),
    (b"link", "SELECT record FROM links ORDER BY id"),
    (b"governed", "SELECT record FROM governed ORDER BY id"),
)
"""Cells with their revisions, links, and governed records. Proposals, traces, packets, receipts
and audit records tell of memory and are no part of it."""


def store_digest(connection: apsw.Connection) -> str:
    """Return SHA-256 over the authoritative records in sorted canonical form, streamed."""
    total = hashlib.sha256(b"cma:store:1\0")
    for kind, query in AUTHORITATIVE:
        for (record,) in connection.execute(query):
            total.update(kind + len(record).to_bytes(8, "big") + record)
    return total.hexdigest()


def audit_rows(connection: apsw.Connection, *, after: int | None = None) -> Iterator[Row]:
    """Yield the rows of the audit chain behind a number, in order."""
    yield from connection.execute(
        "SELECT seq, operation, subject, generation, record, hash FROM audit"
        " WHERE ?1 IS NULL OR seq > ?1 ORDER BY seq",
        (after,),
    )

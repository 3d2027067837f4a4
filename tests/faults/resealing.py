"""A store edited by someone who knows its format: chain and anchor are made to fit what was done.

The digests that a changed row had are replaced in the chain by those that it has now, every record
of the chain is sealed anew, and the anchor names the new end. What is left to notice is that the
records themselves are not what records are.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import apsw

from cma.orion.anchor import Anchor, anchor_path, write_anchor
from cma.orion.audit import record_hash
from cma.orion.governed import record_digest
from cma.orion.linking import LINK_DOMAIN
from cma.orion.records import revision_digest
from cma.orion.traces import TRACE_DOMAIN
from cma.values.identity import canonical, digest

Statement = tuple[Any, ...]
Chain = list[dict[str, Any]]
TABLES: dict[str, Callable[[bytes], str]] = {
    "cells": revision_digest,
    "links": lambda data: digest(LINK_DOMAIN, data),
    "governed": record_digest,
    "attendant": record_digest,
    "traces": lambda data: digest(TRACE_DOMAIN, data),
}


def resealed(
    path: Path,
    changes: Sequence[Statement],
    edit: Callable[[Chain], None] = lambda _: None,
    reseal: bool = True,
) -> None:
    """Make changes in a closed store, edit its chain, and make chain and anchor fit.

    reseal: leave the hashes as they were where False, all but those of a changed record.
    """
    connection = apsw.Connection(str(path))
    for trigger in ("audit_is_never_changed", "audit_is_never_deleted"):
        connection.execute(f"DROP TRIGGER {trigger}")
    before = _digests(connection)
    for sql, *values in changes:
        connection.execute(sql, tuple(values))
    after = _digests(connection)
    swaps = {old: after[row] for row, old in before.items() if row in after}
    rows = connection.execute("SELECT record FROM audit ORDER BY seq").fetchall()
    chain: Chain = [json.loads(data) for (data,) in rows]
    for record in chain:
        record |= {side: swaps.get(record[side], record[side]) for side in ("before", "after")}
    edit(chain)
    [(store_id,)] = connection.execute("SELECT store_id FROM store").fetchall()
    connection.execute("DELETE FROM audit")
    head = bytes(32)
    for record in chain:
        record["previous_hash"] = head.hex() if reseal else record["previous_hash"]
        data = canonical(record)
        head = record_hash(store_id, record["seq"], head, data)
        subject = record["subjects"][0] if record["subjects"] else None
        connection.execute(
            "INSERT INTO audit VALUES (?, ?, ?, ?, ?, ?)",
            (record["seq"], record["operation"], subject, record["generation"], data, head),
        )
    connection.close()
    with anchor_path(path).open("r+b") as file:
        file.truncate(0)
        write_anchor(file.fileno(), Anchor(store_id, chain[-1]["seq"], head), (None, None))


def _digests(connection: apsw.Connection) -> dict[tuple[str, int], str]:
    return {
        (table, ordinal): named(bytes(data))
        for table, named in TABLES.items()
        for ordinal, data in connection.execute(f"SELECT ordinal, record FROM {table}")
    }

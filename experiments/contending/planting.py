"""Controls of the checker: faults written into a copy of a store, each with a chain made to fit.

`python -m experiments.contending.planting FOLDER FAULT`, in a process of its own like the checker.
The chain is sealed anew from the fault on, so that it is unbroken: what gives a fault away is that
the store is not what was acknowledged, or holds what only one of two can be.
"""

from __future__ import annotations

import json
import sqlite3
import sys
from collections.abc import Callable, Iterable
from contextlib import closing
from pathlib import Path

from experiments.contending.chain import Record, Row, digest, rows_of, sealed, written
from experiments.contending.checking import STORE

TRIGGERS = ("audit_is_never_changed", "audit_is_never_deleted")


def plant(folder: Path, fault: str) -> None:
    """Write a fault of that name into the store of a contest that nobody has open."""
    with closing(sqlite3.connect(folder / STORE)) as database, database:
        for trigger in TRIGGERS:
            database.execute(f"DROP TRIGGER {trigger}")
        FAULTS[fault](database)


def lost_update(database: sqlite3.Connection) -> None:
    """Take back the latest revision that an update made, as if it had never been."""
    name, revision = database.execute(
        "SELECT id, max(revision) FROM cells WHERE lifecycle = 'active'"
        " GROUP BY id HAVING max(revision) > 1 ORDER BY id LIMIT 1"
    ).fetchone()
    database.execute("DELETE FROM cells WHERE id = ? AND revision = ?", (name, revision))
    made = database.execute(
        "SELECT max(seq) FROM audit WHERE operation = 'update' AND subject = ?", (name,)
    ).fetchone()[0]
    rows = [row for row in rows_of(database) if row[0] != made]
    _seal(database, rows, less=made)


def fork(database: sqlite3.Connection) -> None:
    """Tell another history from the first third on: another actor wrote what was written."""
    rows = list(rows_of(database))
    place = len(rows) // 3
    seq, operation, subject, generation, data, seal = rows[place]
    record = json.loads(data) | {"at": "2026-01-01T00:00:00Z"}
    rows[place] = (seq, operation, subject, generation, written(record), seal)
    _seal(database, rows)


def duplicate_approval(database: sqlite3.Connection) -> None:
    """Admit a fingerprint a second time, under another id and approval."""
    kind, scope, subject, data = database.execute(
        "SELECT kind, scope, subject, record FROM governed WHERE kind = 'admission' LIMIT 1"
    ).fetchone()
    record = json.loads(data)
    record["id"] = f"admission-{'0' * 40}"
    again = written(record)
    database.execute(
        "INSERT INTO governed (id, kind, scope, subject, record) VALUES (?, ?, ?, ?, ?)",
        (record["id"], kind, scope, subject, again),
    )
    rows = list(rows_of(database))
    last: Record = json.loads(rows[-1][4])
    told = last | {
        "after": digest("governed", again),
        "before": None,
        "detail": None,
        "generation": last["generation"] + 1,
        "operation": "consolidate",
        "reason": None,
        "subjects": [record["id"]],
    }
    row: Row = (0, "consolidate", record["id"], told["generation"], written(told), b"")
    _seal(database, [*rows, row])


FAULTS: dict[str, Callable[[sqlite3.Connection], None]] = {
    "lost": lost_update,
    "duplicate_approvals": duplicate_approval,
    "forks": fork,
}
"""By the kind that the checker must report."""


def _seal(database: sqlite3.Connection, rows: Iterable[Row], less: int | None = None) -> None:
    """Write the chain anew. less: the record that is left out, and with it its generation."""
    [(store_id,)] = database.execute("SELECT store_id FROM store").fetchall()
    previous, sealed_rows = bytes(32), []
    for number, (seq, operation, subject, generation, data, _) in enumerate(rows, 1):
        if less is not None and seq > less:
            generation -= 1
        record = json.loads(data) | {
            "generation": generation,
            "previous_hash": previous.hex(),
            "seq": number,
        }
        again = written(record)
        previous = sealed(store_id, number, previous, again)
        sealed_rows.append((number, operation, subject, generation, again, previous))
    database.execute("DELETE FROM audit")
    database.executemany("INSERT INTO audit VALUES (?, ?, ?, ?, ?, ?)", sealed_rows)


if __name__ == "__main__":
    plant(Path(sys.argv[1]), sys.argv[2])

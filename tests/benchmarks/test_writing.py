"""Writing, as shares of the rate of the same rows put in raw through apsw."""

from __future__ import annotations

import os
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import apsw

from cma import Caller, Memory
from cma.orion.connection import connect, migrate, use_write_ahead_log
from cma.orion.opening import AUDIT_INSERT
from tests.benchmarks.conftest import TERMS_A_CELL, Figures, Zipf, paired, timed

CELLS = 10_000
ROUNDS = 5
SINGLE_WRITES = 200
CELL_INSERT = (
    "INSERT INTO cells (id, revision, scope, lifecycle, expires_at, record)"
    " VALUES (?, ?, ?, ?, ?, ?)"
)
START = datetime(2026, 1, 1, tzinfo=UTC)


def drafts(texts: list[str], first: int = 0) -> list[dict[str, Any]]:
    return [
        {
            "kind": "episodic",
            "content": text,
            "origin": f"turn {place}",
            "observed_at": START + timedelta(seconds=place),
            "metadata": {"speaker": "Ada", "session": "1", "turn": str(place)},
        }
        for place, text in enumerate(texts, first)
    ]


def raw_store(path: Path) -> apsw.Connection:
    """Return a connection to an empty file of the same schema and settings."""
    connection = connect(path, create=True)
    migrate(connection, 0)
    use_write_ahead_log(connection, path)
    return connection


def rows_of(memory: Memory, count: int) -> tuple[list[Any], list[Any]]:
    """Return the last rows that a memory wrote, for the raw control to write again."""
    fetch = memory.store.connection.execute
    cells = fetch(
        "SELECT id, revision, scope, lifecycle, expires_at, record FROM cells"
        " ORDER BY ordinal DESC LIMIT ?",
        (count,),
    ).fetchall()
    audit = fetch(
        "SELECT seq, operation, subject, generation, record, hash FROM audit"
        " ORDER BY seq DESC LIMIT ?",
        (count,),
    ).fetchall()
    return cells[::-1], audit[::-1]


def test_batch_write(benchmark: Any, tmp_path: Path, figures: Figures) -> None:
    batch = drafts(Zipf(3).texts(CELLS, TERMS_A_CELL))
    ours, raw = [], []
    for turn in range(ROUNDS):
        with Memory.open(
            tmp_path / f"{turn}.cma", caller=Caller(name="bench", authority="document")
        ) as memory:
            memory.write("begin", kind="episodic", origin="bench", observed_at=START)
            memory.recall("begin")

            def write(memory: Memory = memory) -> None:
                memory.write_many(batch)
                memory._indexes.in_step(memory.store, "unicode")  # found by the next recall

            ours.append(timed(write))
            cells, audit = rows_of(memory, CELLS)
        control = raw_store(tmp_path / f"{turn}.raw")

        def put_in(
            control: apsw.Connection = control, cells: Any = cells, audit: Any = audit
        ) -> None:
            control.execute("BEGIN IMMEDIATE")
            control.executemany(CELL_INSERT, cells)
            control.executemany(AUDIT_INSERT, audit)
            control.execute("COMMIT")

        raw.append(timed(put_in))
        control.close()
    share, quartiles = paired(raw, ours)
    figures["write_many.share_of_raw"] = {
        "value": share,
        "unit": "share of the raw rate",
        "n": CELLS * ROUNDS,
        "interval": quartiles,
        "run": "make bench",
    }
    benchmark.extra_info["share_of_raw"] = share
    benchmark.pedantic(lambda: None, rounds=1)


def test_single_durable_writes(benchmark: Any, tmp_path: Path, figures: Figures) -> None:
    texts = Zipf(4).texts(SINGLE_WRITES, TERMS_A_CELL)
    with Memory.open(
        tmp_path / "one.cma", caller=Caller(name="bench", authority="document")
    ) as memory:
        memory.write("begin", kind="episodic", origin="bench", observed_at=START)
        control = raw_store(tmp_path / "one.raw")
        extra = os.open(tmp_path / "one.extra", os.O_RDWR | os.O_CREAT)
        ours, raw = [], []
        for place, draft in enumerate(drafts(texts)):
            ours.append(timed(lambda draft=draft: memory.write(**draft)))
            (cell,), (record,) = rows_of(memory, 1)

            def put_in(cell: Any = cell, record: Any = record, place: int = place) -> None:
                control.execute("BEGIN IMMEDIATE")
                control.execute(CELL_INSERT, cell)
                control.execute(AUDIT_INSERT, record)
                control.execute("COMMIT")
                os.pwrite(extra, place.to_bytes(8, "big"), 0)
                os.fdatasync(extra)

            raw.append(timed(put_in))
        os.close(extra)
        control.close()
    share, quartiles = paired(raw, ours)
    figures["write_one.share_of_raw"] = {
        "value": share,
        "unit": "share of the raw rate",
        "n": SINGLE_WRITES,
        "interval": quartiles,
        "run": "make bench",
    }
    benchmark.extra_info["share_of_raw"] = share
    benchmark.pedantic(lambda: None, rounds=1)

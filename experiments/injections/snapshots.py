"""Snapshots damaged on purpose: bytes flipped, and files rewritten with every hash made anew."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from typing import Any

from cma import Memory
from cma.rosette.snapshot_form import envelope_line
from cma.values.identity import canonical
from experiments.failures import ExperimentError
from experiments.injections.bench import CALLER, Bench
from experiments.injections.row import expect

SNAPSHOT, DAMAGED, TARGET = "whole.cma.jsonl", "damaged.cma.jsonl", "restored.cma"


def taken(bench: Bench) -> bytes:
    """Take a snapshot of the store and return its bytes."""
    bench.memory.snapshot(bench.folder / SNAPSHOT)
    return (bench.folder / SNAPSHOT).read_bytes()


def restored(bench: Bench, data: bytes) -> None:
    """Restore a snapshot of these bytes; a refusal must leave nothing beside them."""
    (bench.folder / DAMAGED).write_bytes(data)
    before = bench.files()
    try:
        Memory.restore(
            bench.folder / DAMAGED, bench.folder / TARGET, caller=CALLER, clock=bench.clock
        ).close()
    finally:
        if not (bench.folder / TARGET).exists():
            expect(bench.files() == before, "the refused restore left a file behind")


def byte_flipped(data: bytes) -> bytes:
    """Return the snapshot with one bit of its last record flipped."""
    changed = bytearray(data)
    changed[-20] ^= 1
    return bytes(changed)


def envelope_changed(data: bytes) -> bytes:
    """Return the snapshot with another generation in its envelope."""
    first, rest = data.split(b"\n", 1)
    told = json.loads(first)
    told["generation"] += 1
    return canonical(told) + b"\n" + rest


def cell_rewritten(data: bytes) -> bytes:
    """Return the snapshot with another text in its first cell, and every hash made anew."""

    def rewrite(cell: dict[str, Any]) -> dict[str, Any]:
        return {**cell, "content": "Ann drinks something else"}

    return _with_first_source(data, rewrite)


def cell_dropped(data: bytes) -> bytes:
    """Return the snapshot without the first event that a frame rests on, every hash made anew."""
    return _with_first_source(data, lambda _: None)


def _with_first_source(
    data: bytes, change: Callable[[dict[str, Any]], dict[str, Any] | None]
) -> bytes:
    """Change or drop the first source of a frame, and forge envelope and digests to match."""
    first, *lines = data.splitlines(keepends=True)
    parsed = [json.loads(line) for line in lines]
    chosen = next(
        (row["record"]["refs"][0] for row in parsed
         if row["type"] == "governed" and row["record"]["kind"] == "frame"), None,
    )  # fmt: skip
    kept: list[tuple[str, bytes, bytes]] = []
    for row, line in zip(parsed, lines, strict=True):
        record = row["record"]
        if row["type"] == "cell" and record["id"] == chosen:
            changed = change(record)
            if changed is None:
                continue
            record = changed
            line = canonical({"record": changed, "type": "cell"}) + b"\n"
        kept.append((row["type"], canonical(record), line))
    if b"".join(line for *_, line in kept) == b"".join(lines):
        raise ExperimentError("the snapshot was not changed, so nothing was injected")
    told = json.loads(first)
    told.pop("envelope_sha256")
    told["counts"]["cell"] = sum(kind == "cell" for kind, *_ in kept)
    told["records_sha256"] = hashlib.sha256(b"".join(line for *_, line in kept)).hexdigest()
    told["store_digest"] = _store_digest(kept)
    return envelope_line(told) + b"".join(line for *_, line in kept)


def _store_digest(kept: list[tuple[str, bytes, bytes]]) -> str:
    """Return the digest that a store of these records would have."""
    total = hashlib.sha256(b"cma:store:1\0")
    for kind in ("cell", "link", "governed"):
        for own, record, _ in kept:
            if own == kind:
                total.update(kind.encode() + len(record).to_bytes(8, "big") + record)
    return total.hexdigest()

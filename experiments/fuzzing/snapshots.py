"""Snapshots as input: changed bytes, and changed records under an envelope that fits them."""

from __future__ import annotations

import functools
import hashlib
import json
import random
import tempfile
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

from cma import FixedClock, Memory
from cma.values.errors import SnapshotRejectedError
from experiments.fuzzing.mutating import changed_bytes, changed_value
from experiments.fuzzing.target import BrokenPromiseError, Read
from experiments.fuzzing.world import CALLER, START

PLAIN_SHARE = 0.4
TYPES = ("attendant", "audit", "cell", "governed", "link", "trace")


@functools.cache
def sample() -> bytes:
    """Return a small sound snapshot with a record of every type."""
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        with Memory.open(
            place / "sound.cma", caller=CALLER, clock=FixedClock(START), store_id="fuzzed"
        ) as memory:
            cells = [
                memory.write(text, kind="episodic", origin="o", observed_at=START).id
                for text in ("Ann drinks tea", "Ann drinks mate")
            ]
            memory.link("conflict", cells[0], cells[1])
            memory.replay(memory.bind(scene="kitchen", sources=cells).id)
            memory.recall("who drinks tea")
            memory.snapshot(place / "sound.cma.jsonl")
        return (place / "sound.cma.jsonl").read_bytes()


def make(chance: random.Random) -> bytes:
    """Return a snapshot with changed bytes, or one whose records were changed and hashed anew."""
    if chance.random() < PLAIN_SHARE:
        return changed_bytes(chance, sample())
    envelope, *lines = sample().splitlines(keepends=True)
    for _ in range(chance.randint(1, 2)):
        place = chance.randrange(len(lines))
        lines[place] = _changed_line(chance, lines[place])
    if chance.random() < 0.1:
        lines.sort()
    return sealed(json.loads(envelope), lines)


def sealed(envelope: dict[str, Any], lines: list[bytes]) -> bytes:
    """Return lines under an envelope that names their digest and numbers."""
    body = b"".join(lines)
    kinds = Counter(_kind(line) for line in lines)
    envelope["records_sha256"] = hashlib.sha256(body).hexdigest()
    envelope["counts"] = {kind: kinds[kind] for kind in TYPES}
    envelope["audit_count"] = kinds["audit"]
    del envelope["envelope_sha256"]
    envelope["envelope_sha256"] = hashlib.sha256(_written(envelope)).hexdigest()
    return _written(envelope) + b"\n" + body


def _changed_line(chance: random.Random, line: bytes) -> bytes:
    try:
        told = json.loads(line)
        if chance.random() < 0.7:
            told["record"] = changed_value(chance, told["record"])
            return _written(told) + b"\n"
    except (ValueError, KeyError, TypeError, RecursionError):
        pass  # changed before, perhaps into what nests too deeply, or a number that nobody writes
    return changed_bytes(chance, line)


def _kind(line: bytes) -> str:
    return line.rpartition(b'":"')[2].partition(b'"')[0].decode("utf-8", "replace")


def _written(value: Any) -> bytes:
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode(
        "utf-8", "surrogatepass"
    )


@contextmanager
def restoring(folder: Path) -> Iterator[Read]:
    """Restore each input: a changed one is refused, and leaves nothing behind."""
    file, target = folder / "given.cma.jsonl", folder / "restored.cma"
    clock = FixedClock(START + timedelta(days=1))

    def read(data: bytes) -> None:
        file.write_bytes(data)
        try:
            with Memory.restore(file, target, caller=CALLER, clock=clock) as memory:
                memory.verify()
        except SnapshotRejectedError:
            if len(list(folder.iterdir())) > 1:
                raise BrokenPromiseError("refused, and something was left") from None
            raise
        finally:
            for left in folder.glob("*restored.cma*"):
                left.unlink()
        if data != sample():  # every record is in the chain, and no chain was made to fit
            raise BrokenPromiseError("restored from other records than were written")

    yield read

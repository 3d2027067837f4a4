"""Flipped bits in a live store: in its database, its log and its anchor.

The store is small and holds a record of every kind, part of it folded into the file, part of it in
the log alone. What a flip changed is told by SQLite itself, which reads every row by table and by
index, and by the anchor's own reader; the library is asked only whether it notices.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterator
from enum import StrEnum
from pathlib import Path
from typing import NamedTuple

import apsw

from cma import CmaError, Memory
from cma.orion.anchor import Slots, anchor_path, read_slots
from experiments.crashing import script, steps
from experiments.failures import ExperimentError

FOLDED_AFTER = "approve"
FILES = {"database": "", "log": "-wal", "anchor": ".head"}
BITS = 8
ACCEPTED = "accepted"


class Effect(StrEnum):
    """What a flip does to what the files say."""

    CHANGES = "changes what is stored"
    ONE_SLOT = "spoils one slot of the anchor, the other speaks"
    INERT = "changes nothing"


class Flip(NamedTuple):
    """One flipped bit."""

    file: str
    offset: int
    bit: int


Files = dict[str, bytes]


def victim(folder: Path) -> Files:
    """Return the files of a live store: database, log and anchor, by what they are."""
    names = [step.name for step in script.script()]
    folded = names.index(FOLDED_AFTER)
    kept: Files = {}

    def done(number: int, memory: Memory) -> None:
        if number == folded:
            memory.store.connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)
        if number == len(names):
            kept.update(
                {name: (folder / f"{steps.STORE}{end}").read_bytes() for name, end in FILES.items()}
            )

    script.play(folder, {}, done=done)
    return kept


def flips(files: Files, counts: dict[str, int], seed: str) -> Iterator[Flip]:
    """Yield so many different flips of each file, drawn by seed (all where there are fewer)."""
    for name, content in files.items():
        chance = random.Random(f"{seed} {name}")  # noqa: S311 (where to flip is no secret)
        total = BITS * len(content)
        for place in sorted(chance.sample(range(total), min(counts[name], total))):
            yield Flip(name, *divmod(place, BITS))


def tally(
    folder: Path, files: Files, chosen: Iterator[Flip], advance: Callable[[int], None]
) -> Counter[tuple[str, Effect, str, bool]]:
    """Count flips by file, effect, answer, and whether SQLite alone would have noticed them."""
    sound = decoded(folder, files)
    if sound.rows is None or answered(folder, files) != ACCEPTED:
        raise ExperimentError("the store is refused as it is, so nothing can be learnt from it")
    counts: Counter[tuple[str, Effect, str, bool]] = Counter()
    for flip in chosen:
        damaged = flipped(files, flip)
        told = decoded(folder, damaged)
        answer = answered(folder, damaged)
        counts[flip.file, effect_of(sound, told), answer, not told.intact] += 1
        advance(1)
    return counts


class Decoded(NamedTuple):
    """What the files say: every row, by table and by index (None: unreadable), and the anchor."""

    rows: tuple[str, ...] | None
    slots: Slots
    intact: bool
    """Whether the database, asked alone, finds nothing wrong with itself."""


def flipped(files: Files, flip: Flip) -> Files:
    """Return the files with one bit flipped."""
    content = bytearray(files[flip.file])
    content[flip.offset] ^= 1 << flip.bit
    return files | {flip.file: bytes(content)}


def effect_of(sound: Decoded, damaged: Decoded) -> Effect:
    """Say what a flip did to what is stored."""
    if damaged.rows != sound.rows:
        return Effect.CHANGES
    if damaged.slots == sound.slots:
        return Effect.INERT
    kept = [slot for slot in damaged.slots if slot is not None]
    known = kept and all(slot in sound.slots for slot in kept)
    return Effect.ONE_SLOT if known else Effect.CHANGES


def decoded(folder: Path, files: Files) -> Decoded:
    """Read the files without the library, but for the anchor's own reader."""
    store = _laid_out(folder, files)
    with anchor_path(store).open("rb") as anchor:
        slots = read_slots(anchor.fileno())
    try:
        connection = apsw.Connection(str(store), flags=apsw.SQLITE_OPEN_READWRITE)
        connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
        try:
            rows = tuple(_rows(connection))
            checked = connection.execute("PRAGMA integrity_check(1)").fetchone()[0]
            return Decoded(rows, slots, checked == "ok")
        finally:
            connection.close()
    except (apsw.Error, UnicodeDecodeError):
        return Decoded(None, slots, intact=False)


def answered(folder: Path, files: Files) -> str:
    """Open and verify the store; return the reason code of the refusal, or that there is none."""
    store = _laid_out(folder, files)
    try:
        with Memory.open(store, caller=steps.CALLER) as memory:
            memory.verify()
    except CmaError as error:
        return error.code
    return ACCEPTED


def _rows(connection: apsw.Connection) -> Iterator[str]:
    for name in ("application_id", "user_version", "encoding", "page_size"):
        yield f"{name} {connection.pragma(name)!r}"
    schema = connection.execute("SELECT * FROM sqlite_schema").fetchall()
    yield from map(repr, schema)
    for kind, name, table, _, sql in schema:
        if kind == "table":
            yield from map(repr, connection.execute(f'SELECT * FROM "{name}" NOT INDEXED'))  # noqa: S608
        elif kind == "index":
            info = connection.execute(f'PRAGMA index_info("{name}")').fetchall()
            columns = ", ".join(f'"{column}"' for _, _, column in info)
            part = str(sql or "").partition(" WHERE ")[2] or "true"
            query = f'SELECT {columns} FROM "{table}" INDEXED BY "{name}" WHERE {part}'  # noqa: S608
            yield from map(repr, connection.execute(f"{query} ORDER BY {columns}"))


def _laid_out(folder: Path, files: Files) -> Path:
    """Write the files into an emptied folder; return where the store is."""
    for file in folder.iterdir():
        file.unlink()
    for name, content in files.items():
        (folder / f"{steps.STORE}{FILES[name]}").write_bytes(content)
    return folder / steps.STORE

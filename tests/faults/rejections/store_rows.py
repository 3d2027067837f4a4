"""Rows of packets and graphs, of a store that cannot be trusted or used, and of snapshots."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest.mock import patch

import apsw

from cma import Caller, FixedClock, Memory, Reason, Retrieval
from cma.rosette.snapshot_form import envelope_line
from cma.rosette.tokens import TokenCounter
from tests.faults.injection import START, remember
from tests.faults.rejections.row import Row, Use, read, row, shell
from tests.faults.rejections.world import NOWHERE, World

R = Reason
BUDGETS = (0, -1, None, True, 1.5)
TEA = "who drinks tea"


def _other_packet(w: World, **changes: Any) -> Any:
    return w.ids.packet.model_copy(update=changes)


def _unrecorded(w: World) -> Any:
    trace = w.ids.trace.model_copy(update={"id": f"trace-{NOWHERE}"})
    return w.ann.packet(trace, budget=1_024)


ROSETTE = [
    row(R.FIELD_INVALID, "deliver", lambda w: w.ann.deliver("text")),
    row(R.FIELD_INVALID, "deliver to nobody", lambda w: w.ann.deliver(w.ids.packet, recipient=5)),
    row(
        R.FIELD_INVALID,
        "deliver by another count",
        lambda w: w.ann.deliver(w.ids.packet, counter=TokenCounter("letters", len)),
    ),
    read(R.FIELD_INVALID, "traverse", lambda w: w.ann.traverse(w.ids.cell, scales=["odd"])),
    *(
        read(R.BUDGET_INVALID, f"packet {n!r}", lambda w, n=n: w.ann.packet(w.ids.trace, budget=n))
        for n in BUDGETS
    ),
    *(
        read(
            R.BUDGET_INVALID, f"traverse {n!r}", lambda w, n=n: w.ann.traverse(w.ids.cell, budget=n)
        )
        for n in BUDGETS
    ),
    read(R.BUDGET_INVALID, "traverse depth", lambda w: w.ann.traverse(w.ids.cell, depth=-1)),
    row(
        R.PACKET_STALE,
        "deliver",
        lambda w: w.ann.deliver(w.ids.packet),
        lambda w: w.retract(w.ids.cups[0]),
    ),
    row(R.PACKET_ALTERED, "deliver", lambda w: w.ann.deliver(_other_packet(w, budget=9))),
    row(R.PACKET_ALTERED, "deliver to another", lambda w: w.bob.deliver(w.ids.packet)),
    row(R.TRACE_NOT_FOUND, "deliver", lambda w: w.ann.deliver(_unrecorded(w))),
    read(R.RECEIPT_NOT_FOUND, "explain", lambda w: w.ann.explain(f"receipt-{NOWHERE}")),
    read(R.RECEIPT_NOT_FOUND, "explain another's", lambda w: w.bob.explain(w.ids.receipt)),
    shell(R.RECEIPT_NOT_FOUND, "explain {path} {receipt} --scope session:bob"),
    read(R.NODE_NOT_FOUND, "traverse", lambda w: w.ann.traverse(f"frame-{NOWHERE}")),
    read(R.NODE_NOT_FOUND, "traverse another's", lambda w: w.bob.traverse(w.ids.cell)),
    *(
        read(R.GRAPH_CELL_MISSING, way, use, lambda w: w.drop(w.ids.cups[0]), damaged=True)
        for way, use in {
            "graph": lambda w: w.ann.graph(),
            "traverse": lambda w: w.ann.traverse(w.ids.cell),
        }.items()
    ),
]


def everywhere(
    reason: Reason, before: Use, *, ways: str = "open verify snapshot write shell"
) -> list[Row]:
    """A broken store, at each of the ways in that looks at what was broken."""
    uses: dict[str, Use] = {
        "open": lambda w: Memory.open(w.path),
        "verify": lambda w: w.memory.verify(),
        "snapshot": lambda w: w.memory.snapshot(w.folder / "new.cma.jsonl"),
        "write": lambda w: remember(w.ann, "text"),
        "update": lambda w: w.ann.update(w.ids.one, confidence=0.5),
        "approve": lambda w: w.ann.approve(w.ids.pending, approval_id="CR-7"),
        "sweep": lambda w: w.memory.sweep(),
        "get": lambda w: w.ann.get(w.ids.one),
        "recall": lambda w: w.ann.recall(TEA),
        "explain": lambda w: w.ann.explain(w.ids.receipt),
        "deliver": lambda w: w.ann.deliver(w.ids.packet),
        "graph": lambda w: w.ann.graph(),
    }
    commands = {
        "shell": "verify {path}",
        "shell-snapshot": "snapshot {path} {folder}/new.cma.jsonl",
        "shell-reject": "proposals reject {path} {pending} -r no",
    }
    return [
        shell(reason, commands[way], before, damaged=True)
        if way in commands
        else read(reason, way, uses[way], before, damaged=True)
        for way in ways.split()
    ]


def _alter_audit(w: World) -> None:
    sql = (
        "UPDATE audit SET record = CAST(replace(CAST(record AS TEXT), 'tester', 'nobody') AS BLOB)"
    )
    w.tamper((sql + " WHERE seq = 3",))


def _alter_cell(w: World) -> None:
    sql = "UPDATE cells SET record = CAST(replace(CAST(record AS TEXT), ?, ?) AS BLOB)"
    w.tamper((sql + " WHERE id = ?", "event", "fable", w.ids.one))


def _garble_cell(w: World) -> None:
    w.tamper(("UPDATE cells SET record = CAST('no' AS BLOB) WHERE id = ?", w.ids.one))


def _foreign_anchor(w: World) -> None:
    other = w.folder / "other.cma"
    with Memory.open(other, clock=FixedClock(START)) as memory:
        remember(memory, "elsewhere")
    w.path.with_name(f"{w.path.name}.head").write_bytes(Path(f"{other}.head").read_bytes())


def _lost_anchor(w: World) -> None:
    w.path.with_name(f"{w.path.name}.head").unlink()


def _hang_reference(w: World) -> None:
    w.tamper(("INSERT INTO refs VALUES ('cell-0', 'frame', 'frame-0')",))


def _moved(w: World) -> Any:
    """The file is replaced by a copy, which is another file, while the store is open."""
    other = w.path.with_name("copy")
    other.write_bytes(w.path.read_bytes())
    other.replace(w.path)
    return remember(w.ann, "text")


def _locked(w: World, use: Use) -> Any:
    w.memory.store.connection.set_busy_timeout(20)
    other = apsw.Connection(str(w.path))
    other.execute("BEGIN IMMEDIATE")
    try:
        return use(w)
    finally:
        other.execute("ROLLBACK")
        other.close()


def _unsound_disk(w: World) -> Any:
    with patch("cma.orion.anchor.os.open", side_effect=OSError(5, "I/O error")):
        return remember(w.ann, "text")


def _no_room(w: World) -> Any:
    with patch("cma.rosette.snapshotting.os.fsync", side_effect=OSError(28, "no space")):
        return w.memory.snapshot(w.folder / "new.cma.jsonl")


def _forked(w: World, use: Use) -> Any:
    with patch.object(w.memory.store, "_process", -1):
        return use(w)


USES: dict[str, Use] = {
    "write": lambda w: remember(w.ann, "text"),
    "update": lambda w: w.ann.update(w.ids.one, confidence=0.5),
    "link": lambda w: w.ann.link("similarity", w.ids.one, w.ids.two),
    "replay": lambda w: w.ann.replay(w.ids.bare),
    "approve": lambda w: w.ann.approve(w.ids.pending, approval_id="CR-7"),
    "reject": lambda w: w.ann.reject(w.ids.pending, reason="no"),
    "decide": lambda w: w.ann.decide(w.ids.conflict, handling="defer"),
    "sweep": lambda w: w.memory.sweep(),
    "deliver": lambda w: w.ann.deliver(w.ids.packet),
}
READS: dict[str, Use] = {
    "get": lambda w: w.ann.get(w.ids.one),
    "recall": lambda w: w.ann.recall(TEA),
    "packet": lambda w: w.ann.packet(w.ids.trace, budget=9),
    "graph": lambda w: w.ann.graph(),
    "verify": lambda w: w.memory.verify(),
    "snapshot": lambda w: w.memory.snapshot(w.folder / "new.cma.jsonl"),
}


def _note(w: World) -> None:
    (w.folder / "notes").write_text("notes")


def _newer(w: World) -> None:
    w.tamper(("PRAGMA user_version = 99",))


def _damaged_index(w: World) -> None:
    place = w.ann.keep_index("english")
    w.ann._indexes.forget()
    place.write_bytes(place.read_bytes()[:-1])


STORE = [
    read(R.STORE_NOT_FOUND, "open", lambda w: Memory.open(w.folder / "none" / "a.cma")),
    read(R.STORE_NOT_FOUND, "write into a replaced file", _moved),
    shell(R.STORE_NOT_FOUND, "verify {folder}/none.cma"),
    shell(R.STORE_NOT_FOUND, "recall {folder}/none.cma tea"),
    shell(R.STORE_NOT_FOUND, "proposals reject {folder}/none.cma {pending} -r no"),
    read(R.STORE_NOT_CMA, "open", lambda w: Memory.open(w.folder / "notes"), _note),
    shell(R.STORE_NOT_CMA, "verify {folder}/notes", _note),
    read(R.STORE_NEWER, "open", lambda w: Memory.open(w.path), _newer, damaged=True),
    shell(R.STORE_NEWER, "proposals list {path}", _newer, damaged=True),
    *everywhere(
        R.STORE_DAMAGED,
        lambda w: w.tamper(("DROP TABLE links",)),
        ways="verify snapshot recall shell shell-snapshot",
    ),
    *(read(R.STORE_BUSY, way, lambda w, use=use: _locked(w, use)) for way, use in USES.items()),
    read(R.STORE_IO, "write", _unsound_disk),
    read(R.STORE_IO, "snapshot", _no_room),
    *(
        read(R.STORE_CLOSED, way, use, lambda w: w.memory.close())
        for way, use in {**USES, **READS}.items()
    ),
    *(
        read(R.STORE_FORKED, way, lambda w, use=use: _forked(w, use))
        for way, use in {**USES, **READS}.items()
    ),
    *everywhere(
        R.ANCHOR_MISSING, _lost_anchor, ways="open verify snapshot write update approve shell"
    ),
    *everywhere(
        R.ANCHOR_DISAGREES, _foreign_anchor, ways="open verify snapshot write update deliver shell"
    ),
    *everywhere(R.CHAIN_BROKEN, _alter_audit, ways="verify snapshot explain shell shell-snapshot"),
    *everywhere(R.STATE_DISAGREES, _alter_cell, ways="verify snapshot shell shell-snapshot"),
    *everywhere(R.STATE_DISAGREES, _garble_cell, ways="get update"),
    read(R.FIELD_INVALID, "keep_index", lambda w: w.ann.keep_index("odd")),
    read(
        R.INDEX_DISAGREES,
        "recall",
        lambda w: w.ann.recall("tea", retrieval=Retrieval(analyser="english")),
        _damaged_index,
    ),
    *everywhere(R.REFERENCE_MISSING, _hang_reference, ways="verify snapshot shell shell-snapshot"),
]


Lines = list[bytes]
Envelope = dict[str, Any]


def restored(reason: Reason, forge: Callable[[World], bytes | None]) -> list[Row]:
    """A snapshot that is refused, by the library and by the command; no store appears."""

    def before(w: World) -> None:
        data = forge(w)
        if data is not None:
            (w.folder / "forged").write_bytes(data)

    def use(w: World) -> Memory:
        caller = Caller(name="tester", authority="user")
        return Memory.restore(w.folder / "forged", w.folder / "restored.cma", caller=caller)

    return [
        read(reason, "restore", use, before),
        shell(reason, "restore {folder}/forged {folder}/restored.cma", before),
    ]


def forged(
    lines: Callable[[Lines, World], None] | None = None,
    envelope: Callable[[Envelope], None] | None = None,
    *,
    count: bool = True,
    seal: bool = True,
) -> Callable[[World], bytes]:
    """Change records, the envelope or both; count and seal it all again, as a forger would."""

    def make(w: World) -> bytes:
        first, *rest = w.ids.snapshot.splitlines(keepends=True)
        told = json.loads(first)
        if lines is not None:
            lines(rest, w)
        if count:
            kinds = [json.loads(line).get("type") for line in rest]
            told["counts"] = {kind: kinds.count(kind) for kind in told["counts"]}
        if envelope is not None:
            envelope(told)
        body = b"".join(rest)
        if not seal:
            return first.replace(b'"generation":', b'"generation":1') + body
        told["records_sha256"] = hashlib.sha256(body).hexdigest()
        del told["envelope_sha256"]
        return envelope_line(told) + body

    return make


def _swap(rest: Lines, _: World) -> None:
    rest[0], rest[1] = rest[1], rest[0]


def _edit(old: bytes, new: bytes, kind: bytes) -> Callable[[Lines, World], None]:
    def edit(rest: Lines, _: World) -> None:
        place = next(
            n for n, line in enumerate(rest) if old in line and line.endswith(b'"%b"}\n' % kind)
        )
        rest[place] = rest[place].replace(old, new, 1)

    return edit


def _without(kind: bytes) -> Callable[[Lines, World], None]:
    def drop(rest: Lines, w: World) -> None:
        name = w.ids.cups[0].encode()
        rest[:] = [
            line
            for line in rest
            if not (line.endswith(b'"%b"}\n' % kind) and b'"id":"%b"' % name in line)
        ]

    return drop


def _fewer_audit(rest: Lines, _: World) -> None:
    last = max(n for n, line in enumerate(rest) if line.endswith(b'"audit"}\n'))
    del rest[last]


def _another_digest(told: Envelope) -> None:
    told["store_digest"] = "0" * 64


def _more_cells(told: Envelope) -> None:
    told["counts"]["cell"] += 1


SNAPSHOT = [
    *restored(R.SNAPSHOT_NOT_FOUND, lambda _: None),
    *restored(R.SNAPSHOT_NEWER, forged(envelope=lambda told: told.update(version=2))),
    *restored(R.SNAPSHOT_ENVELOPE, forged(seal=False)),
    *restored(R.SNAPSHOT_ENVELOPE, lambda w: w.ids.snapshot[1:]),
    *restored(
        R.SNAPSHOT_ENVELOPE, forged(envelope=lambda told: told.update(store_digest="0" * 64))
    ),
    *restored(R.SNAPSHOT_HASH, lambda w: w.ids.snapshot.replace(b"cup 1", b"cup 7")),
    *restored(R.SNAPSHOT_HASH, lambda w: w.ids.snapshot[:-1]),
    *restored(R.SNAPSHOT_RECORD, forged(_swap)),
    *restored(R.SNAPSHOT_RECORD, forged(lambda rest, _: rest.append(b"{}\n"))),
    *restored(R.SNAPSHOT_COUNTS, forged(envelope=_more_cells)),
    *restored(R.SNAPSHOT_IDENTITY, forged(_edit(b"cup 0", b"cup 9", b"cell"))),
    *restored(R.SNAPSHOT_TOPOLOGY, forged(_without(b"cell"))),
    *restored(R.SNAPSHOT_CHAIN, forged(_fewer_audit)),
    *restored(R.SNAPSHOT_CHAIN, forged(_edit(b"tester", b"nobody", b"audit"))),
    read(
        R.SNAPSHOT_TARGET_EXISTS,
        "snapshot",
        lambda w: w.memory.snapshot(w.folder / "there"),
        lambda w: (w.folder / "there").write_text("mine"),
    ),
    shell(
        R.SNAPSHOT_TARGET_EXISTS,
        "snapshot {path} {folder}/there",
        lambda w: (w.folder / "there").write_text("mine"),
    ),
    read(
        R.SNAPSHOT_TARGET_EXISTS,
        "restore",
        lambda w: Memory.restore(w.folder / "forged", w.path),
        lambda w: (w.folder / "forged").write_bytes(w.ids.snapshot),
    ),
    shell(
        R.SNAPSHOT_TARGET_EXISTS,
        "restore {folder}/forged {path}",
        lambda w: (w.folder / "forged").write_bytes(w.ids.snapshot),
    ),
    read(
        R.FIELD_INVALID,
        "restore",
        lambda w: Memory.restore(w.folder / "forged", w.folder / "none" / "a.cma"),
        lambda w: (w.folder / "forged").write_bytes(w.ids.snapshot),
    ),
    shell(
        R.FIELD_INVALID,
        "restore {folder}/forged {folder}/none/a.cma",
        lambda w: (w.folder / "forged").write_bytes(w.ids.snapshot),
    ),
    read(
        R.FIELD_INVALID,
        "snapshot",
        lambda w: w.memory.snapshot(w.folder / "none" / "a.cma.jsonl"),
    ),
    shell(R.FIELD_INVALID, "snapshot {path} {folder}/none/a.cma.jsonl"),
]
ROWS = [*ROSETTE, *STORE, *SNAPSHOT]

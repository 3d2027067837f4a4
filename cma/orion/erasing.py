"""Erasing within a transition: each stored record becomes a blank, and the chain says so.

Orion knows where its own records hold text (cells, links, traces). Of filed records it is told what
is left of each, since what a kind holds is its own version's matter.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict

import apsw
import orjson

from cma.orion.audit import Operation
from cma.orion.erased import MARK, Record, blank_cell, is_blank
from cma.orion.governed import Filed, Shelf, filed_of, record_digest
from cma.orion.late_reads import put_blank_trace
from cma.orion.linking import LINK_DOMAIN
from cma.orion.records import record_of, revision_digest
from cma.orion.transition import Transition
from cma.values.identity import canonical_of_checked, digest

Needles = Sequence[bytes]
"""What a record that quotes the erased text holds among its bytes."""
Blank = Callable[[Filed], Filed]


def revisions_of(connection: apsw.Connection, cell_id: str) -> list[Record]:
    """Return the records of a cell's revisions, oldest first."""
    rows = connection.execute("SELECT record FROM cells WHERE id = ? ORDER BY revision", (cell_id,))
    return [record_of(data) for (data,) in rows]


def erase_revisions(transition: Transition, cell_id: str, *, reason: str) -> int:
    """Blank every revision of a cell and return how many there were.

    The rows go to the end of their table, so that an index which follows it comes upon them.
    """
    transition.change()
    rows = transition.connection.execute(
        "SELECT revision, record FROM cells WHERE id = ? ORDER BY revision", (cell_id,)
    ).fetchall()
    for revision, data in rows:
        commitment = revision_digest(data)
        blank = canonical_of_checked(blank_cell(record_of(data), commitment))
        transition.connection.execute(
            "UPDATE cells SET ordinal = (SELECT max(ordinal) + 1 FROM cells),"
            " lifecycle = 'erased', record = ? WHERE id = ? AND revision = ?",
            (blank, cell_id, revision),
        )
        transition.record(
            Operation.REDACT,
            (cell_id, f"{cell_id}@{revision}"),
            before=commitment,
            after=revision_digest(blank),
            reason=reason,
        )
    return len(rows)


def erase_evidence(
    transition: Transition, cell_id: str, needles: Needles, *, reason: str
) -> list[str]:
    """Take the evidence off a cell's links and off links that quote it; return their ids."""
    found = []
    for name, source, target, data in transition.connection.execute(
        "SELECT id, source_id, target_id, record FROM links"
        " WHERE instr(record, CAST('\"evidence\":null' AS BLOB)) = 0 ORDER BY id"
    ).fetchall():
        record = record_of(data)
        touched = cell_id in (source, target) or _quotes(data, needles)
        if record["evidence"] is None or not touched:
            continue
        transition.change()
        bare = canonical_of_checked({**record, "evidence": None})
        transition.connection.execute("UPDATE links SET record = ? WHERE id = ?", (bare, name))
        transition.record(
            Operation.REDACT,
            (name,),
            before=digest(LINK_DOMAIN, data),
            after=digest(LINK_DOMAIN, bare),
            reason=reason,
        )
        found.append(name)
    return found


def erase_traces(
    transition: Transition, cell_id: str, needles: Needles, *, reason: str
) -> list[str]:
    """Blank what was asked in each recall that served or listed a cell, or that quotes it."""
    found = []
    name_of_cell = cell_id.encode()
    # Traces are many: one at a time, and by id, since rows change underway.
    names = [name for (name,) in transition.connection.execute("SELECT id FROM traces ORDER BY id")]
    for name in names:
        (data,) = transition.connection.execute(
            "SELECT record FROM traces WHERE id = ?", (name,)
        ).fetchone()
        if name_of_cell not in data and not _quotes(data, needles):
            continue
        if is_blank(record_of(data)):
            continue
        put_blank_trace(transition, name, data, reason)
        found.append(name)
    return found


def erase_filed(
    transition: Transition, shelf: Shelf, names: Iterable[str], blank: Blank, *, reason: str
) -> list[str]:
    """Leave of each named record what `blank` returns; return those that held any text."""
    found = []
    for name in sorted(set(names)):
        row = transition.connection.execute(
            f"SELECT record FROM {shelf.value} WHERE id = ?",  # noqa: S608 (one of two names)
            (name,),
        ).fetchone()
        if row is None:
            continue
        filed, commitment = filed_of(row[0]), record_digest(row[0])
        left = blank(filed)
        if filed.erased or left == filed:
            continue
        left.details[MARK] = commitment
        record = {**asdict(left), "refs": list(left.refs)}
        data = canonical_of_checked(record)
        if shelf is Shelf.GOVERNED:
            transition.change()
        transition.connection.execute(
            f"UPDATE {shelf.value} SET record = ? WHERE id = ?",  # noqa: S608
            (data, name),
        )
        transition.record(
            Operation.REDACT, (name,), before=commitment, after=record_digest(data), reason=reason
        )
        found.append(name)
    return found


def filed_quoting(
    connection: apsw.Connection, shelf: Shelf, kinds: Sequence[str], needles: Needles
) -> list[str]:
    """Return the ids of filed records of some kinds that quote the text."""
    rows = connection.execute(
        f"SELECT id, record FROM {shelf.value}"  # noqa: S608
        " WHERE kind IN (SELECT value FROM json_each(?)) ORDER BY id",
        (orjson.dumps(list(kinds)).decode(),),
    )
    return [name for name, data in rows if _quotes(data, needles)]


def cells_quoting(
    connection: apsw.Connection, needles: Needles, scopes: Sequence[str]
) -> list[str]:
    """Return the ids of cells of some scopes that quote the text in one of their revisions."""
    rows = connection.execute(
        "SELECT id, record FROM cells WHERE scope IN (SELECT value FROM json_each(?)) ORDER BY id",
        (orjson.dumps(list(scopes)).decode(),),
    )
    return list(dict.fromkeys(name for name, data in rows if _quotes(data, needles)))


def derived_from(connection: apsw.Connection, cell_id: str) -> list[str]:
    """Return the cells that were derived from a cell, directly or not, in the order of ids."""
    children: dict[str, list[str]] = defaultdict(list)
    for (data,) in connection.execute(
        "SELECT record FROM cells WHERE revision = 1"
        ' AND instr(record, CAST(\'"derived_from":["\' AS BLOB)) > 0'
    ):
        record = record_of(data)
        for source in record["derived_from"]:
            children[source].append(record["id"])
    found: set[str] = set()
    waiting = [cell_id]
    while waiting:
        new = set(children[waiting.pop()]) - found
        found |= new
        waiting.extend(new)
    return sorted(found)


def _quotes(data: bytes, needles: Needles) -> bool:
    return any(needle in data for needle in needles)

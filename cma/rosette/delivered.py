"""What was delivered, held together: a packet and its cells, a receipt and its packet.

A packet that was built for the global scope may be delivered from a session, and is on record once.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator

import apsw

from cma.eagle.decisions import DECISION
from cma.orion.cells import Cell, Lifecycle
from cma.orion.governed import Filed, Shelf, find_record
from cma.orion.records import cell_of_record, committed_digest, record_of
from cma.orion.scopes import is_visible
from cma.rosette.blanks import is_blank
from cma.rosette.delivery import receipt_of
from cma.rosette.packets import CONFLICT, HIT, PACKET
from cma.rosette.quoting import render


def packet_faults(connection: apsw.Connection, filed: Filed) -> Iterator[str]:
    """Yield what of a packet on record disagrees with its cells, its budget or its scope."""
    told = filed.identity
    if filed.erased and not is_blank(filed):
        yield "it was erased and is not blank"
    used = sum(group["tokens"] for group in told["groups"])
    if used != told["used"] or used > told["budget"]:
        yield "it is over its budget, or counts otherwise"
    if not is_visible(told["scope"], viewer=filed.scope):
        yield "it was built for another scope"
    for names, reason in told["excluded"]:
        if not all(isinstance(name, str) for name in (*names, reason)):
            yield "what it leaves out has no name"
    served: list[list[Cell]] = []
    for group in told["groups"]:
        if group["reason"] != (CONFLICT if len(group["cells"]) > 1 else HIT):
            yield "a group is none, or not what it says"
        rows = [_revision(connection, *cell) for cell in group["cells"]]
        if None in rows:
            yield "it serves a revision that is not there"
            return
        served.append([cell_of_record(record_of(data)) for data in rows if data is not None])
    gone = any(cell.lifecycle is Lifecycle.ERASED for group in served for cell in group)
    if gone and not filed.erased:
        yield "it says more than the erased cell that it served left of it"
    told_text = hashlib.sha256(render(served).encode()).hexdigest()
    if not filed.erased and told_text != told["text_sha256"]:
        yield "its text is not that of its cells"


def receipt_faults(connection: apsw.Connection, filed: Filed) -> Iterator[str]:
    """Yield what of a receipt disagrees with its packet, or with its own record."""
    told = receipt_of(filed)
    if filed.erased and not is_blank(filed):
        yield "it was erased and is not blank"
    found = find_record(connection, Shelf.ATTENDANT, PACKET, told.packet, viewer=None)
    if found is None:
        yield "its packet is not there"
        return
    packet = found.identity
    packed = [tuple(cell) for group in packet["groups"] for cell in group["cells"]]
    of_packet = (packed, packet["control"], packet["trace"], packet["generation"])
    if (list(told.cells), list(told.control), told.trace, told.generation) != of_packet:
        yield "packet and receipt differ"
    if not is_visible(packet["scope"], viewer=told.scope):
        yield "its packet was built for another scope"
    if (told.by, told.at, told.scope) != (filed.by, filed.at, filed.scope):
        yield "scope, name or time is another"
    for name in told.control:
        if find_record(connection, Shelf.GOVERNED, DECISION, name, viewer=None) is None:
            yield "a decision that governed it is not there"


def _revision(connection: apsw.Connection, name: str, revision: int, sealed: str) -> bytes | None:
    row = connection.execute(
        "SELECT record FROM cells WHERE id = ? AND revision = ?", (name, revision)
    ).fetchone()
    return None if row is None or committed_digest(row[0]) != sealed else bytes(row[0])

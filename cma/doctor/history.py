"""The anchor and the audit chain, read through to their ends whatever is wrong on the way."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import apsw

from cma.doctor.findings import Code, Finding, finding
from cma.orion.agreement import Story, follow, next_generation
from cma.orion.anchor import SLOT_SIZE, Anchor, anchor_path, newest, read_slots
from cma.orion.audit import FIRST_HASH, Row, verified
from cma.orion.authority import audit_rows
from cma.orion.records import DAMAGES
from cma.values.errors import StoreRefusedError
from cma.values.identity import parse_canonical


def read_anchor(path: Path) -> tuple[Anchor | None, list[Finding]]:
    """Return what a store's anchor names and what is wrong with the file."""
    place = anchor_path(path)
    try:
        descriptor = os.open(place, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
    except OSError as error:
        return None, [finding(Code.ANCHOR_MISSING, place.name, error.strerror or "not to be read")]
    try:
        slots = read_slots(descriptor)
        data = os.pread(descriptor, 2 * SLOT_SIZE, 0)
    except OSError as error:
        return None, [finding(Code.ANCHOR_MISSING, place.name, error.strerror or "not to be read")]
    finally:
        os.close(descriptor)
    if newest(slots) is None:
        return None, [finding(Code.ANCHOR_MISSING, place.name, "it holds no valid anchor")]
    torn = [
        finding(Code.ANCHOR_TORN, place.name, f"slot {number + 1}")
        for number, slot in enumerate(slots)
        if slot is None and data[number * SLOT_SIZE :][:SLOT_SIZE].strip(b"\0\n")
    ]
    return newest(slots), torn


def held_by_anchor(
    connection: apsw.Connection, anchor: Anchor, store_id: str, place: str
) -> Iterator[Finding]:
    """Yield how the store departs from what its anchor names."""
    row = connection.execute("SELECT hash FROM audit WHERE seq = ?", (anchor.seq,)).fetchone()
    (last,) = connection.execute("SELECT coalesce(max(seq), 0) FROM audit").fetchone()
    if anchor.store_id != store_id:
        message = f"it belongs to the store {anchor.store_id}, this one is {store_id}"
        yield finding(Code.ANCHOR_DISAGREES, place, message)
    elif row is None:
        message = f"it names record {anchor.seq}, the store's last is {last}"
        yield finding(Code.ANCHOR_DISAGREES, place, message)
    elif row[0] != anchor.head:
        message = f"it names another record {anchor.seq} than the store holds"
        yield finding(Code.ANCHOR_DISAGREES, place, message)
    elif last > anchor.seq:
        message = f"it names record {anchor.seq}, the store's last is {last}"
        yield finding(Code.ANCHOR_BEHIND, place, message)


def read_chain(connection: apsw.Connection, store_id: str) -> tuple[Story, list[Finding]]:
    """Return what the chain tells, as far as it can be read, and each place where it is broken.

    Behind a break the chain is taken up again from what the next record says of the one before.
    """
    found: list[Finding] = []
    told: dict[str, str] = {}
    latest: dict[str, int] = {}
    seq, head, generation = 0, FIRST_HASH, 0
    for row in audit_rows(connection):
        fields, errors = _record(row, store_id, seq, head)
        if fields is not None:
            try:
                generation = next_generation(fields, generation)
                follow(fields, told, latest)
            except StoreRefusedError as error:
                errors.append(error)
            except DAMAGES:
                pass  # told of above: a record whose hash is right has its parts
        found += [finding(Code(each.code), each.field or "audit", each.message) for each in errors]
        seq, head = row[0], row[5]
        generation = row[3]
    return Story(seq, head, generation, told), found


def _record(
    row: Row, store_id: str, seq: int, head: bytes
) -> tuple[dict[str, Any] | None, list[StoreRefusedError]]:
    errors: list[StoreRefusedError] = []
    fields = _parsed(row[4])
    if row[0] != seq + 1:  # the ones between are gone; this one may be whole
        errors += _refused(row, store_id, seq, head)
        seq, head = row[0] - 1, _stated_head(fields)
    errors += _refused(row, store_id, seq, head)
    return fields, errors


def _refused(row: Row, store_id: str, seq: int, head: bytes) -> list[StoreRefusedError]:
    try:
        list(verified([row], store_id, seq=seq, head=head))
    except StoreRefusedError as error:
        return [error]
    return []


def _parsed(data: bytes) -> dict[str, Any] | None:
    try:
        fields = parse_canonical(data)
    except DAMAGES:
        return None
    return fields if isinstance(fields, dict) else None


def _stated_head(fields: dict[str, Any] | None) -> bytes:
    try:
        return bytes.fromhex((fields or {}).get("previous_hash", ""))
    except DAMAGES:
        return FIRST_HASH

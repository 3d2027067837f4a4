"""Holding stored records against the audit chain that tells of them. Reads, and mends nothing.

Everything works on a connection, so that a snapshot that is being restored is held to the same
rules as a live store. Each check raises StoreRefusedError that names the first thing that is wrong.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import apsw
import orjson

from cma.orion.audit import FIRST_HASH, verified
from cma.orion.authority import audit_rows
from cma.orion.governed import Shelf, record_digest
from cma.orion.linking import LINK_DOMAIN
from cma.orion.links import link_of_record, record_of_link
from cma.orion.records import (
    DAMAGES,
    IDENTIFYING_FIELDS,
    cell_id,
    due,
    instant,
    revision_digest,
)
from cma.orion.traces import TRACE_DOMAIN
from cma.values.errors import CmaError, InvalidValueError, Reason, StoreRefusedError
from cma.values.identity import canonical, digest, identifier, parse_canonical


@dataclass(frozen=True, slots=True)
class Agreement:
    """What was held against the chain, and the chain's end."""

    audit_records: int
    audit_head: bytes
    generation: int
    cells: int
    revisions: int
    links: int
    governed: int
    attendant: int
    traces: int


@dataclass(frozen=True, slots=True)
class Story:
    """What a verified chain tells: its end, and what should be stored, by name and digest."""

    audit_records: int
    audit_head: bytes
    generation: int
    told: dict[str, str]


def check_agreement(connection: apsw.Connection, store_id: str) -> Agreement:
    """Recompute the chain and hold every stored record and reference against it.

    Raises StoreRefusedError: `chain-broken`, `state-disagrees`, `reference-missing`.
    """
    return check_records(connection, read_story(connection, store_id))


def read_story(connection: apsw.Connection, store_id: str) -> Story:
    """Verify the whole chain and return what it tells. Raises StoreRefusedError."""
    told: dict[str, str] = {}
    latest: dict[str, int] = {}
    seq, generation = 0, 0
    for fields in verified(audit_rows(connection), store_id):
        seq = fields["seq"]
        generation = _next_generation(fields, generation)
        _follow(fields, told, latest)
    head = connection.execute("SELECT hash FROM audit WHERE seq = ?", (seq,)).fetchone()
    return Story(seq, head[0] if head else FIRST_HASH, generation, told)


def check_records(connection: apsw.Connection, story: Story) -> Agreement:
    """Hold every stored record and reference against what the chain tells.

    Raises StoreRefusedError: `state-disagrees`, `reference-missing`.
    """
    told = dict(story.told)
    try:
        cells, revisions = _check_cells(connection, told)
        links = _check_links(connection, told)
        governed = _check_filed(connection, Shelf.GOVERNED, told)
        attendant = _check_filed(connection, Shelf.ATTENDANT, told)
        traces = _check_traces(connection, told)
        _check_references(connection)
    except DAMAGES as error:
        if isinstance(error, CmaError):
            raise
        raise disagrees("record", "a record does not have the parts of its kind") from error
    if told:
        raise disagrees(min(told), "the chain tells of it, the store does not hold it")
    return Agreement(
        audit_records=story.audit_records,
        audit_head=story.audit_head,
        generation=story.generation,
        cells=cells,
        revisions=revisions,
        links=links,
        governed=governed,
        attendant=attendant,
        traces=traces,
    )


def disagrees(place: str, message: str) -> StoreRefusedError:
    """Return the error for a record that is not what the chain tells."""
    return StoreRefusedError(
        Reason.STATE_DISAGREES,
        message,
        field=place,
        remedy="keep the file as it is and go back to a backup of both files",
    )


def _follow(fields: dict[str, Any], told: dict[str, str], latest: dict[str, int]) -> None:
    """Note what the chain says is stored: `cell@revision`, link, record or trace, by digest."""
    before, after = fields["before"], fields["after"]
    if after is None or before == after:
        return
    subject = fields["subjects"][0] if fields["subjects"] else ""
    if subject.startswith("cell-"):
        revision = latest.get(subject, 0)
        if before != told.get(f"{subject}@{revision}"):
            raise disagrees(subject, f"record {fields['seq']} names another state before it")
        latest[subject] = revision + 1
        subject = f"{subject}@{revision + 1}"
    told[subject] = after


def _next_generation(fields: dict[str, Any], generation: int) -> int:
    if fields["generation"] not in (generation, generation + 1):
        raise disagrees(f"audit[{fields['seq']}]", "the generation does not follow")
    return int(fields["generation"])


def _check_cells(connection: apsw.Connection, told: dict[str, str]) -> tuple[int, int]:
    cells = revisions = 0
    rows = connection.execute(
        "SELECT id, revision, scope, lifecycle, expires_at, record FROM cells ORDER BY id, revision"
    )
    for name, revision, scope, lifecycle, expires_at, data in rows:
        place = f"{name}@{revision}"
        if told.pop(place, None) != revision_digest(data):
            raise disagrees(place, "the chain does not tell of this record")
        record = _parsed(data, place)
        columns = (record["id"], record["revision"], record["scope"], record["lifecycle"])
        stated = due(instant(record["expires_at"]))
        if columns != (name, revision, scope, lifecycle) or expires_at != stated:
            raise disagrees(place, "its columns and its record differ")
        if revision == 1:
            cells += 1
            identity = {field: record[field] for field in IDENTIFYING_FIELDS}
            if cell_id(identity) != name:
                raise disagrees(place, "its id is not that of its content")
        revisions += 1
    return cells, revisions


def _check_links(connection: apsw.Connection, told: dict[str, str]) -> int:
    count = 0
    rows = connection.execute(
        "SELECT l.id, l.kind, l.source_id, l.target_id, l.record,"
        " EXISTS (SELECT 1 FROM cells WHERE id = l.source_id)"
        " AND EXISTS (SELECT 1 FROM cells WHERE id = l.target_id) FROM links l ORDER BY l.id"
    )
    for name, kind, source_id, target_id, data, ends in rows:
        if told.pop(name, None) != digest(LINK_DOMAIN, data):
            raise disagrees(name, "the chain does not tell of this record")
        link = link_of_record(_parsed(data, name))
        held = (link.id, link.kind.value, link.source_id, link.target_id)
        if held != (name, kind, source_id, target_id):
            raise disagrees(name, "its columns and its record differ")
        record = record_of_link(link)
        identity = {field: record[field] for field in ("kind", "source_id", "target_id")}
        if identifier("link", canonical(identity)) != name:
            raise disagrees(name, "its id is not that of its content")
        if not ends:
            raise disagrees(name, "it joins a cell that is not there")
        count += 1
    return count


def _check_filed(connection: apsw.Connection, shelf: Shelf, told: dict[str, str]) -> int:
    count = 0
    rows = connection.execute(
        f"SELECT id, kind, scope, subject, record FROM {shelf.value} ORDER BY id"  # noqa: S608
    )
    for name, kind, scope, subject, data in rows:
        if told.pop(name, None) != record_digest(data):
            raise disagrees(name, "the chain does not tell of this record")
        record = _parsed(data, name)
        columns = (record["id"], record["kind"], record["scope"], record["subject"])
        if columns != (name, kind, scope, subject):
            raise disagrees(name, "its columns and its record differ")
        if identifier(kind, canonical(record["identity"])) != name:
            raise disagrees(name, "its id is not that of its content")
        named = connection.execute(
            "SELECT count(*), sum(EXISTS (SELECT 1 FROM refs WHERE target = value AND kind = ?"
            " AND id = ?)) FROM json_each(?)",
            (kind, name, orjson.dumps(record["refs"]).decode()),
        ).fetchone()
        if named[0] != (named[1] or 0):
            raise disagrees(name, "a reference of the record is not in its table")
        count += 1
    return count


def _check_traces(connection: apsw.Connection, told: dict[str, str]) -> int:
    count = 0
    for name, data in connection.execute("SELECT id, record FROM traces ORDER BY id"):
        if identifier("trace", data) != name or told.pop(name, None) != digest(TRACE_DOMAIN, data):
            raise disagrees(name, "the chain does not tell of this trace")
        count += 1
    return count


def _check_references(connection: apsw.Connection) -> None:
    """Every reference belongs to a record that says so, and leads to something that is there."""
    row = connection.execute(
        "SELECT id, target FROM refs r WHERE NOT EXISTS (SELECT 1 FROM cells WHERE id = r.target)"
        " AND NOT EXISTS (SELECT 1 FROM governed WHERE id = r.target)"
        " AND NOT EXISTS (SELECT 1 FROM attendant WHERE id = r.target)"
        " AND NOT EXISTS (SELECT 1 FROM links WHERE id = r.target)"
        " AND NOT EXISTS (SELECT 1 FROM traces WHERE id = r.target) LIMIT 1"
    ).fetchone()
    if row is not None:
        raise StoreRefusedError(
            Reason.REFERENCE_MISSING,
            "it names what is not there",
            field=row[0],
            value=row[1],
            remedy="keep the file as it is and go back to a backup of both files",
        )
    stated = 0
    for shelf in Shelf:
        stated += connection.execute(
            f"SELECT coalesce(sum(json_array_length(CAST(record AS TEXT), '$.refs')), 0)"  # noqa: S608
            f" FROM {shelf.value}"
        ).fetchone()[0]
    if stated != connection.execute("SELECT count(*) FROM refs").fetchone()[0]:
        raise disagrees("refs", "the table of references holds more than the records say")
    row = connection.execute(
        "SELECT c.id, value FROM cells c, json_each(CAST(c.record AS TEXT), '$.derived_from')"
        " WHERE NOT EXISTS (SELECT 1 FROM cells WHERE id = value) LIMIT 1"
    ).fetchone()
    if row is not None:
        raise StoreRefusedError(
            Reason.REFERENCE_MISSING,
            "it was derived from a cell that is not there",
            field=row[0],
            value=row[1],
            remedy="keep the file as it is and go back to a backup of both files",
        )


def _parsed(data: bytes, place: str) -> dict[str, Any]:
    try:
        record: dict[str, Any] = parse_canonical(data)
    except InvalidValueError as error:
        raise disagrees(place, "its record is not canonical") from error
    return record

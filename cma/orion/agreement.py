"""Holding stored records against the audit chain that tells of them. Reads, and mends nothing.

Everything works on a connection, so that a snapshot that is being restored is held to the same
rules as a live store. Each check refuses one row; `check_...` raises the first refusal, and
`disagreements` yields them all.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import apsw
import orjson

from cma.orion.audit import FIRST_HASH, Operation, verified
from cma.orion.authority import audit_rows
from cma.orion.erased import MARK, blank_cell, blank_trace
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
from cma.orion.references import loose_references, references_as_stated
from cma.orion.traces import TRACE_DOMAIN
from cma.values.errors import InvalidValueError, Reason, StoreRefusedError
from cma.values.identity import canonical, digest, identifier, parse_canonical

OUT_OF_ORDER = "its row stands where an index that follows the table does not come upon it"
_ERASURE = "erasure of "


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
        generation = next_generation(fields, generation)
        follow(fields, told, latest)
    head = connection.execute("SELECT hash FROM audit WHERE seq = ?", (seq,)).fetchone()
    return Story(seq, head[0] if head else FIRST_HASH, generation, told)


def check_records(connection: apsw.Connection, story: Story) -> Agreement:
    """Hold every stored record and reference against what the chain tells.

    Raises StoreRefusedError: `state-disagrees`, `reference-missing`.
    """
    counts: Counter[str] = Counter()
    for error in disagreements(connection, story, counts):
        raise error
    return Agreement(
        audit_records=story.audit_records,
        audit_head=story.audit_head,
        generation=story.generation,
        cells=counts["cells"],
        revisions=counts["revisions"],
        links=counts["links"],
        governed=counts["governed"],
        attendant=counts["attendant"],
        traces=counts["traces"],
    )


def disagreements(
    connection: apsw.Connection, story: Story, counts: Counter[str]
) -> Iterator[StoreRefusedError]:
    """Yield all that is not as the chain tells, as it is found; count what was looked at."""
    told = dict(story.told)
    yield from _cells(connection, told, counts)
    yield from _links(connection, told, counts)
    for shelf in Shelf:
        yield from _filed(connection, shelf, told, counts)
    yield from _traces(connection, told, counts)
    yield from loose_references(connection)
    if not references_as_stated(connection):
        yield disagrees("refs", "the table of references holds other ones than the records say")
    for place in sorted(told):
        yield disagrees(place, "the chain tells of it, the store does not hold it")


def held(
    rows: Iterable[Any], check: Callable[..., object], counted: Callable[[], object]
) -> Iterator[StoreRefusedError]:
    """Yield what a check refuses, row by row; a row without the parts of its kind is refused."""
    for row in rows:
        counted()
        try:
            check(*row)
        except StoreRefusedError as error:
            yield error
        except DAMAGES as error:
            refusal = disagrees(str(row[0]), "the record does not have the parts of its kind")
            refusal.__cause__ = error
            yield refusal


def disagrees(place: str, message: str) -> StoreRefusedError:
    """Return the error for a record that is not what the chain tells."""
    return StoreRefusedError(
        Reason.STATE_DISAGREES,
        message,
        field=place,
        remedy="keep the file as it is and go back to a backup of both files",
    )


def follow(fields: dict[str, Any], told: dict[str, str], latest: dict[str, int]) -> None:
    """Note what a record says is stored: `cell@revision`, link, record or trace, by digest.

    Raises StoreRefusedError when it does not go on from what was told before.
    """
    before, after = fields["before"], fields["after"]
    if after is None or before == after:
        return
    if fields["operation"] == Operation.REDACT:
        _follow_erasure(fields, told)
        return
    subject = fields["subjects"][0] if fields["subjects"] else ""
    if subject.startswith("cell-"):
        revision = latest.get(subject, 0)
        if before != told.get(f"{subject}@{revision}"):
            raise disagrees(subject, f"record {fields['seq']} names another state before it")
        latest[subject] = revision + 1
        subject = f"{subject}@{revision + 1}"
    told[subject] = after


def _follow_erasure(fields: dict[str, Any], told: dict[str, str]) -> None:
    """Note that a record is blank from now on, and by which digest it was known before."""
    place, before = str(fields["subjects"][-1]), fields["before"]
    if before is None or told.get(place) != before:
        raise disagrees(place, f"record {fields['seq']} erases another state than was there")
    told[place] = fields["after"]
    if not place.startswith("link-"):  # of a link the evidence alone goes, which names nothing
        told[_ERASURE + place] = before


def _blanked(told: dict[str, str], place: str, mark: object) -> str | None:
    """Return the digest of what was erased at a place, None where nothing was.

    Refuses a blank of which the chain tells no erasure, and an erasure that left no blank.
    """
    commitment = told.pop(_ERASURE + place, None)
    if (commitment is None) != (mark is None):
        raise disagrees(
            place,
            "it is blank, and no erasure of it is on record"
            if commitment is None
            else "its erasure is on record, and it is not blank",
        )
    return commitment


def next_generation(fields: dict[str, Any], generation: int) -> int:
    """Return the generation that a record names; refuse one that does not follow."""
    if fields["generation"] not in (generation, generation + 1):
        raise disagrees(f"audit[{fields['seq']}]", "the generation does not follow")
    return int(fields["generation"])


def _cells(
    connection: apsw.Connection, told: dict[str, str], counts: Counter[str]
) -> Iterator[StoreRefusedError]:
    def check(
        name: str,
        revision: int,
        scope: str,
        lifecycle: str,
        expires_at: int | None,
        data: bytes,
        follows: int,
    ) -> None:
        place = f"{name}@{revision}"
        if told.pop(place, None) != revision_digest(data):
            raise disagrees(place, "the chain does not tell of this record")
        record = _parsed(data, place)
        commitment = _blanked(told, place, record.get(MARK))
        columns = (record["id"], record["revision"], record["scope"], record["lifecycle"])
        stated = due(instant(record["expires_at"]))
        if columns != (name, revision, scope, lifecycle) or expires_at != stated:
            raise disagrees(place, "its columns and its record differ")
        if not follows:
            raise disagrees(place, OUT_OF_ORDER)
        if revision == 1:
            counts["cells"] += 1
        if commitment is not None:
            if record != blank_cell(record, commitment):
                raise disagrees(place, "it was erased and is not blank")
        elif revision == 1:
            identity = {field: record[field] for field in IDENTIFYING_FIELDS}
            if cell_id(identity) != name:
                raise disagrees(place, "its id is not that of its content")

    rows = connection.execute(
        "SELECT id, revision, scope, lifecycle, expires_at, record, ordinal > coalesce((SELECT"
        " max(0, ordinal) FROM cells p WHERE p.id = c.id AND p.revision = c.revision - 1), 0)"
        " FROM cells c ORDER BY id, revision"
    )
    yield from held(rows, check, _counting(counts, "revisions"))


def _links(
    connection: apsw.Connection, told: dict[str, str], counts: Counter[str]
) -> Iterator[StoreRefusedError]:
    def check(
        name: str, kind: str, source_id: str, target_id: str, data: bytes, ends: int, follows: int
    ) -> None:
        if told.pop(name, None) != digest(LINK_DOMAIN, data):
            raise disagrees(name, "the chain does not tell of this record")
        link = link_of_record(_parsed(data, name))
        columns = (link.id, link.kind.value, link.source_id, link.target_id)
        if columns != (name, kind, source_id, target_id):
            raise disagrees(name, "its columns and its record differ")
        if not follows:
            raise disagrees(name, OUT_OF_ORDER)
        record = record_of_link(link)
        identity = {field: record[field] for field in ("kind", "source_id", "target_id")}
        if identifier("link", canonical(identity)) != name:
            raise disagrees(name, "its id is not that of its content")
        if not ends:
            raise disagrees(name, "it joins a cell that is not there")

    rows = connection.execute(
        "SELECT l.id, l.kind, l.source_id, l.target_id, l.record,"
        " EXISTS (SELECT 1 FROM cells WHERE id = l.source_id)"
        " AND EXISTS (SELECT 1 FROM cells WHERE id = l.target_id), l.ordinal > 0"
        " FROM links l ORDER BY l.id"
    )
    yield from held(rows, check, _counting(counts, "links"))


def _filed(
    connection: apsw.Connection, shelf: Shelf, told: dict[str, str], counts: Counter[str]
) -> Iterator[StoreRefusedError]:
    def check(name: str, kind: str, scope: str, subject: str | None, data: bytes) -> None:
        if told.pop(name, None) != record_digest(data):
            raise disagrees(name, "the chain does not tell of this record")
        record = _parsed(data, name)
        columns = (record["id"], record["kind"], record["scope"], record["subject"])
        if columns != (name, kind, scope, subject):
            raise disagrees(name, "its columns and its record differ")
        commitment = _blanked(told, name, record["details"].get(MARK))
        if commitment != record["details"].get(MARK):
            raise disagrees(name, "its mark names another record than was erased")
        if commitment is None and identifier(kind, canonical(record["identity"])) != name:
            raise disagrees(name, "its id is not that of its content")
        named = connection.execute(
            "SELECT count(*), sum(EXISTS (SELECT 1 FROM refs WHERE target = value AND kind = ?"
            " AND id = ?)) FROM json_each(?)",
            (kind, name, orjson.dumps(record["refs"]).decode()),
        ).fetchone()
        if named[0] != (named[1] or 0):
            raise disagrees(name, "a reference of the record is not in its table")

    rows = connection.execute(
        f"SELECT id, kind, scope, subject, record FROM {shelf.value} ORDER BY id"  # noqa: S608
    )
    yield from held(rows, check, _counting(counts, shelf.value))


def _traces(
    connection: apsw.Connection, told: dict[str, str], counts: Counter[str]
) -> Iterator[StoreRefusedError]:
    def check(name: str, data: bytes) -> None:
        if told.pop(name, None) != digest(TRACE_DOMAIN, data):
            raise disagrees(name, "the chain does not tell of this trace")
        if identifier("trace", data) == name and _ERASURE + name not in told:
            return
        record = _parsed(data, name)
        if _blanked(told, name, record.get(MARK)) is None:
            raise disagrees(name, "its id is not that of its content")
        if record != blank_trace(record, name):
            raise disagrees(name, "it was erased and is not blank")

    rows = connection.execute("SELECT id, record FROM traces ORDER BY id")
    yield from held(rows, check, _counting(counts, "traces"))


def _counting(counts: Counter[str], what: str) -> Callable[[], object]:
    return lambda: counts.update((what,))


def _parsed(data: bytes, place: str) -> dict[str, Any]:
    try:
        record: dict[str, Any] = parse_canonical(data)
    except InvalidValueError as error:
        raise disagrees(place, "its record is not canonical") from error
    return record

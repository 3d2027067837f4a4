"""Records of the later versions: filed under a content-derived id, never changed, never removed.

A record of any kind has one form. `identity` makes its id; `details` are what else is known (who
approved, under which policy); `refs` are the ids of the cells, links and records that it names, so
that topology can be checked without knowing what a kind means; `subject` is what it is looked up
by. Two shelves: `governed` counts as memory and enters the store's digest, `attendant` stands
beside it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any

import apsw
import orjson

from cma.orion.audit import Operation
from cma.orion.erased import MARK
from cma.orion.records import DAMAGES, checked_size, damaged_record, record_of
from cma.orion.scopes import visible_scopes
from cma.orion.transition import Transition
from cma.values.errors import Reason, TransitionRejectedError
from cma.values.identity import canonical, canonical_of_checked, digest, identifier

RECORD_DOMAIN = "cma:governed-record:1"
DUPLICATE = "duplicate"


class Shelf(StrEnum):
    """Where a record stands; the name of its table."""

    GOVERNED = "governed"
    ATTENDANT = "attendant"


@dataclass(frozen=True, slots=True)
class Filed:
    """A record as the store holds it."""

    id: str
    kind: str
    scope: str
    subject: str | None
    at: datetime
    by: str
    identity: dict[str, Any]
    details: dict[str, Any]
    refs: tuple[str, ...]

    @property
    def erased(self) -> bool:
        """Whether what the record said was erased together with a cell that it names or quotes."""
        return MARK in self.details


def record_id(kind: str, identity: Mapping[str, Any]) -> str:
    """Return the id that a record of this kind and identity has."""
    return identifier(kind, canonical(identity))


def file_record(
    transition: Transition,
    shelf: Shelf,
    kind: str,
    *,
    scope: str,
    identity: Mapping[str, Any],
    operation: Operation,
    details: Mapping[str, Any] | None = None,
    subject: str | None = None,
    refs: Sequence[str] = (),
    also: tuple[str, ...] = (),
    policy: str | None = None,
    reason: str | None = None,
) -> tuple[Filed, bool]:
    """File a record in this transition, with its audit record; tell whether it is new.

    One that is there already is left as it is, recorded as a duplicate and returned as it stands:
    its details are those of the first filing. `also` are further subjects of the audit record.
    Raises InvalidValueError (`not-canonical`, `content-too-large`), TransitionRejectedError
    (`record-erased`).
    """
    name = record_id(kind, identity)
    subjects = (name, *also)
    known = transition.connection.execute(
        f"SELECT record FROM {shelf.value} WHERE id = ?",  # noqa: S608 (one of two names)
        (name,),
    ).fetchone()
    if known is not None and filed_of(known[0]).erased:
        raise TransitionRejectedError(
            Reason.RECORD_ERASED,
            "this very record was there, and what it said was erased",
            field=kind,
            value=name,
            remedy="say it in other words, or rest it on other evidence",
            subjects=(name,),
        )
    if known is not None:
        same = record_digest(known[0])
        transition.record(
            operation, subjects, before=same, after=same, policy=policy, reason=DUPLICATE
        )
        return filed_of(known[0]), False
    named = sorted(set(refs))
    record = {
        "at": transition.at,
        "by": transition.actor,
        "details": dict(details or {}),
        "id": name,
        "identity": dict(identity),
        "kind": kind,
        "refs": named,
        "scope": scope,
        "subject": subject,
    }
    canonical({name: value for name, value in record.items() if name != "at"})
    data = checked_size(canonical_of_checked(record))
    if shelf is Shelf.GOVERNED:
        transition.change()
    transition.connection.execute(
        f"INSERT INTO {shelf.value} (id, kind, scope, subject, record)"  # noqa: S608
        " VALUES (?, ?, ?, ?, ?)",
        (name, kind, scope, subject, data),
    )
    transition.connection.executemany(
        "INSERT INTO refs (target, kind, id) VALUES (?, ?, ?)",
        [(target, kind, name) for target in named],
    )
    transition.record(operation, subjects, after=record_digest(data), policy=policy, reason=reason)
    return filed_of(data), True


def record_digest(data: bytes) -> str:
    """Return the digest of a filed record's canonical bytes."""
    return digest(RECORD_DOMAIN, data)


def filed_of(data: bytes) -> Filed:
    """Return the record that stored bytes hold; refuse bytes that hold none."""
    record = record_of(data)
    try:
        return Filed(
            id=record["id"],
            kind=record["kind"],
            scope=record["scope"],
            subject=record["subject"],
            at=datetime.fromisoformat(record["at"]),
            by=record["by"],
            identity=record["identity"],
            details=record["details"],
            refs=tuple(record["refs"]),
        )
    except DAMAGES as error:
        raise damaged_record() from error


def find_record(
    connection: apsw.Connection, shelf: Shelf, kind: str, name: str, *, viewer: str | None
) -> Filed | None:
    """Return a record of that kind and id if the viewer sees its scope (None: whoever asks)."""
    row = connection.execute(
        f"SELECT scope, record FROM {shelf.value} WHERE id = ? AND kind = ?",  # noqa: S608
        (name, kind),
    ).fetchone()
    if row is None or (viewer is not None and row[0] not in visible_scopes(viewer)):
        return None
    filed = filed_of(row[1])
    if (filed.id, filed.kind) != (name, kind):  # the row of another record
        raise damaged_record()
    return filed


def records_about(
    connection: apsw.Connection,
    shelf: Shelf,
    kind: str,
    subject: str,
    *,
    scopes: Sequence[str] | None = None,
) -> list[Filed]:
    """Return the records of a kind that are looked up by a subject, by time, then id.

    scopes: those alone (None: all).
    """
    rows = connection.execute(
        f"SELECT scope, record FROM {shelf.value} WHERE kind = ? AND subject = ?",  # noqa: S608
        (kind, subject),
    )
    return _by_time(filed_of(data) for scope, data in rows if scopes is None or scope in scopes)


def records_naming(connection: apsw.Connection, target: str, kind: str) -> list[str]:
    """Return the ids of the records of a kind that name a cell, link or record, in order."""
    rows = connection.execute(
        "SELECT id FROM refs WHERE target = ? AND kind = ? ORDER BY id", (target, kind)
    )
    return [name for (name,) in rows]


def records_of_kind(
    connection: apsw.Connection, shelf: Shelf, kind: str, *, scopes: Sequence[str] | None = None
) -> list[Filed]:
    """Return the records of a kind by time, then id. scopes: those alone (None: all)."""
    return _by_time(each_record(connection, shelf, kind, scopes=scopes))


def each_record(
    connection: apsw.Connection, shelf: Shelf, kind: str, *, scopes: Sequence[str] | None = None
) -> Iterator[Filed]:
    """Yield the records of a kind in no order that means anything. scopes: those alone."""
    rows = connection.execute(
        f"SELECT record FROM {shelf.value} WHERE kind = ?1 AND (?2 IS NULL OR scope IN"  # noqa: S608
        " (SELECT value FROM json_each(?2)))",
        (kind, None if scopes is None else orjson.dumps(list(scopes)).decode()),
    )
    for (data,) in rows:
        yield filed_of(data)


def _by_time(filed: Iterable[Filed]) -> list[Filed]:
    # Never by the order of rows: a restored store has another.
    return sorted(filed, key=lambda each: (each.at, each.id))

"""Cells as records: the canonical form that is hashed, stored, and travels in snapshots.

Shares are held as whole millionths and times in UTC, so a record holds no float. The identity of
a cell is made of what a caller said, never of when the store heard it: the same payload has the
same id in two stores.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import orjson

from cma.orion.cells import (
    METADATA_OF_KIND,
    Authority,
    Cell,
    CellDraft,
    EpisodicMetadata,
    Kind,
    Lifecycle,
    Metadata,
    Provenance,
    WorkingMetadata,
)
from cma.orion.erased import MARK, is_blank
from cma.values.clock import microseconds
from cma.values.errors import InvalidValueError, Reason, StoreRefusedError
from cma.values.identity import MAX_BYTES, canonical_of_checked, digest, identifier
from cma.values.validation import millionths, share, trusted

REVISION_DOMAIN = "cma:cell-revision:1"
IDENTIFYING_FIELDS = (
    "approval_id",
    "confidence",
    "content",
    "derived_from",
    "importance",
    "kind",
    "metadata",
    "observed_at",
    "scope",
    "source",
    "summary",
)
Record = dict[str, Any]
DAMAGES = (AttributeError, KeyError, TypeError, ValueError)
"""What reading a record raises when the record is not as it was written."""
_KINDS = {kind.value: kind for kind in Kind}
_AUTHORITIES = {authority.value: authority for authority in Authority}
_LIFECYCLES = {lifecycle.value: lifecycle for lifecycle in Lifecycle}


def identity_of_draft(draft: CellDraft, scope: str, authority: Authority) -> Record:
    """Return the identifying part of the record that a draft becomes in a scope."""
    return {
        "approval_id": draft.approval_id,
        "confidence": millionths(draft.confidence),
        "content": draft.content,
        "derived_from": draft.derived_from,
        "importance": millionths(draft.importance),
        "kind": draft.kind.value,
        "metadata": _metadata_record(draft.metadata),
        "observed_at": draft.observed_at,
        "scope": scope,
        "source": {"authority": authority.value, "origin": draft.origin},
        "summary": draft.summary,
    }


def cell_id(identity: Record) -> str:
    """Return the id made from the identifying part of a first revision."""
    return identifier("cell", canonical_of_checked(identity))


def first_revision(identity: Record, created_at: datetime) -> tuple[Record, bytes]:
    """Return the first record of a new cell and its canonical bytes."""
    expires_at = None
    if identity["kind"] == "working":
        expires_at = expiry(created_at, identity["metadata"]["ttl_seconds"])
    record = {
        **identity,
        "created_at": created_at,
        "expires_at": expires_at,
        "id": cell_id(identity),
        "lifecycle": "active",
        "revision": 1,
    }
    return record, canonical_of_checked(record)


def expiry(created_at: datetime, ttl_seconds: int) -> datetime:
    """Return when a working cell expires; refuse a time that no calendar holds."""
    try:
        return created_at + timedelta(seconds=ttl_seconds)
    except OverflowError as error:
        raise InvalidValueError(
            Reason.FIELD_INVALID,
            "the cell would outlive the calendar, which ends with the year 9999",
            field="metadata.ttl_seconds",
            value=ttl_seconds,
            remedy="give a shorter time to live",
        ) from error


def record_of_cell(cell: Cell) -> Record:
    """Return the record of a cell's revision."""
    return {
        "approval_id": cell.approval_id,
        "confidence": millionths(cell.confidence),
        "content": cell.content,
        "created_at": cell.created_at,
        "derived_from": cell.derived_from,
        "expires_at": cell.expires_at,
        "id": cell.id,
        "importance": millionths(cell.importance),
        "kind": cell.kind.value,
        "lifecycle": cell.lifecycle.value,
        "metadata": _metadata_record(cell.metadata),
        "observed_at": cell.observed_at,
        "revision": cell.revision,
        "scope": cell.scope,
        "source": {"authority": cell.source.authority.value, "origin": cell.source.origin},
        "summary": cell.summary,
    }


def record_of(data: bytes) -> Record:
    """Return the record that stored bytes hold; refuse bytes that hold none."""
    try:
        record: Record = orjson.loads(data)
    except orjson.JSONDecodeError as error:
        raise damaged_record() from error
    if not isinstance(record, dict):
        raise damaged_record()
    return record


def damaged_record() -> StoreRefusedError:
    """Return the error for a stored record that cannot be read as what it should be."""
    return StoreRefusedError(
        Reason.STATE_DISAGREES,
        "a stored record is not as it was written",
        field="record",
        remedy="see what `cma verify` says; keep the file and go back to a backup",
    )


def cell_of_record(record: Record) -> Cell:
    """Return the cell of a stored record. The store validated it when it was written."""
    try:
        return _cell_of_record(record)
    except DAMAGES as error:
        raise damaged_record() from error


def _cell_of_record(record: Record) -> Cell:
    kind = _KINDS[record["kind"]]
    source = record["source"]
    return trusted(
        Cell,
        {
            "id": record["id"],
            "revision": record["revision"],
            "kind": kind,
            "scope": record["scope"],
            "content": record["content"],
            "summary": record["summary"],
            "source": trusted(
                Provenance,
                {"origin": source["origin"], "authority": _AUTHORITIES[source["authority"]]},
            ),
            "confidence": share(record["confidence"]),
            "importance": share(record["importance"]),
            "observed_at": instant(record["observed_at"]),
            "created_at": instant(record["created_at"]),
            "expires_at": instant(record["expires_at"]),
            "lifecycle": _LIFECYCLES[record["lifecycle"]],
            "metadata": _metadata_of_record(kind, record["metadata"]),
            "approval_id": record["approval_id"],
            "derived_from": tuple(record["derived_from"]),
        },
    )


def checked_size(data: bytes, *, place: str = "") -> bytes:
    """Return a record's bytes; refuse a record that could not be read back for its size.

    Raises InvalidValueError (`content-too-large`); `place` says which draft of a batch it is.
    """
    if len(data) > MAX_BYTES:
        raise InvalidValueError(
            Reason.CONTENT_TOO_LARGE,
            f"the record takes {len(data):,} bytes, the cap is {MAX_BYTES:,}",
            field=f"{place}metadata",
            remedy="put large attributes into cells of their own",
        )
    return data


def due(expires_at: datetime | None) -> int | None:
    """Return an expiry as the store's column holds it: microseconds, or nothing."""
    return None if expires_at is None else microseconds(expires_at)


def revision_digest(data: bytes) -> str:
    """Return the digest of one revision's canonical bytes."""
    return digest(REVISION_DOMAIN, data)


def committed_digest(data: bytes) -> str:
    """Return the digest by which a revision was known when it was written, erased or not."""
    record = record_of(data)
    return str(record[MARK]) if is_blank(record) else revision_digest(data)


def instant(value: str | datetime | None) -> datetime | None:
    """Return the time that a record holds as text."""
    return datetime.fromisoformat(value) if isinstance(value, str) else value


def _metadata_record(metadata: Metadata) -> Record:
    # The two kinds that are written by the thousand are spelt out: model_dump costs more.
    if isinstance(metadata, EpisodicMetadata):
        return {
            "attributes": metadata.attributes,
            "session": metadata.session,
            "speaker": metadata.speaker,
            "turn": metadata.turn,
        }
    if isinstance(metadata, WorkingMetadata):
        return {"attributes": metadata.attributes, "ttl_seconds": metadata.ttl_seconds}
    return metadata.model_dump()


def _metadata_of_record(kind: Kind, record: Record) -> Metadata:
    fields = {**record, "steps": tuple(record["steps"])} if "steps" in record else record
    return trusted(METADATA_OF_KIND[kind], fields)

"""The form of a snapshot: one envelope line, then one canonical record a line, sorted.

Types come in alphabetical order: attendant, audit, cell, governed, link, trace; within a type
records are sorted by id and revision, audit records by number. The envelope has a digest of its
own, so a change of any byte of the file is noticed.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from typing import Annotated, Any

import apsw
from pydantic import Field, ValidationError

from cma.values.errors import Reason, SnapshotRejectedError
from cma.values.identity import MAX_BYTES, canonical, parse_canonical
from cma.values.validation import Value

FORMAT = "cma.snapshot"
VERSION = 1
MAX_LINE = MAX_BYTES + 4_096
TYPES = ("attendant", "audit", "cell", "governed", "link", "trace")
_QUERIES = {
    "attendant": "SELECT record, NULL FROM attendant ORDER BY id",
    "audit": "SELECT record, hash FROM audit ORDER BY seq",
    "cell": "SELECT record, NULL FROM cells ORDER BY id, revision",
    "governed": "SELECT record, NULL FROM governed ORDER BY id",
    "link": "SELECT record, NULL FROM links ORDER BY id",
    "trace": "SELECT record, NULL FROM traces ORDER BY id",
}
_LINE = re.compile(
    rb'\{(?:"hash":"([0-9a-f]{64})",)?"record":(\{.*\}),"type":"([a-z]+)"\}\n', re.DOTALL
)
Count = Annotated[int, Field(strict=True, ge=0, le=2**53 - 1)]
Sha256 = Annotated[str, Field(strict=True, pattern=r"^[0-9a-f]{64}$")]


class Envelope(Value):
    """What a snapshot says of itself before its records."""

    format: Annotated[str, Field(strict=True)]
    version: Count
    store_id: Annotated[str, Field(strict=True, pattern=r"^[A-Za-z0-9_.-]{1,64}$")]
    generation: Count
    created_at: Annotated[str, Field(strict=True, max_length=40)]
    counts: dict[str, Count]
    records_sha256: Sha256
    store_digest: Sha256
    audit_head: Sha256
    audit_count: Count
    previous: Sha256 | None
    envelope_sha256: Sha256


def envelope_line(fields: dict[str, Any]) -> bytes:
    """Return the first line: the envelope with its own digest."""
    sealed = hashlib.sha256(canonical(fields)).hexdigest()
    return canonical({**fields, "envelope_sha256": sealed}) + b"\n"


def read_envelope(line: bytes) -> Envelope:
    """Return the envelope of a first line.

    Raises SnapshotRejectedError: `snapshot-envelope`, `snapshot-newer`.
    """
    try:
        if not line.endswith(b"\n"):
            raise ValueError("the line does not end")
        told = parse_canonical(line[:-1])
        if isinstance(told, dict) and told.get("format") == FORMAT:
            version = told.get("version")
            if isinstance(version, int) and not isinstance(version, bool) and version > VERSION:
                raise rejected(
                    Reason.SNAPSHOT_NEWER,
                    f"written by a later release (version {version}, this one reads {VERSION})",
                    1,
                    remedy="upgrade: pip install --upgrade civilization-memory",
                )
        envelope = Envelope.model_validate(told)
        sealed = hashlib.sha256(
            canonical({name: value for name, value in told.items() if name != "envelope_sha256"})
        ).hexdigest()
        whole = (envelope.format, envelope.version) == (FORMAT, VERSION)
        if not whole or sealed != envelope.envelope_sha256 or set(envelope.counts) != set(TYPES):
            raise ValueError("the envelope is not what its own digest says")
    except (ValueError, ValidationError) as error:
        raise rejected(Reason.SNAPSHOT_ENVELOPE, "the envelope is not whole", 1) from error
    return envelope


def record_lines(connection: apsw.Connection) -> Iterator[tuple[str, bytes]]:
    """Yield the type and the line of every record of a store, in the order of the file."""
    for kind in TYPES:
        # The record is canonical as it is stored, so the line around it is put together by hand.
        for data, sealed in connection.execute(_QUERIES[kind]):
            opening = b"{" if sealed is None else b'{"hash":"%b",' % sealed.hex().encode()
            yield kind, b'%b"record":%b,"type":"%b"}\n' % (opening, data, kind.encode())


def parse_line(line: bytes) -> tuple[str, dict[str, Any], bytes, bytes | None]:
    """Return type, record, the record's bytes and, of an audit record, the hash.

    Raises InvalidValueError (`not-canonical`) or ValueError for what `record_lines` cannot write.
    """
    found = _LINE.fullmatch(line)
    kind = found[3].decode() if found else ""
    if found is None or kind not in TYPES or (found[1] is None) == (kind == "audit"):
        raise ValueError("no line of a snapshot")
    record: dict[str, Any] = parse_canonical(found[2])
    return kind, record, found[2], None if found[1] is None else bytes.fromhex(found[1].decode())


def rejected(
    reason: Reason, message: str, line: int | None, *, remedy: str | None = None
) -> SnapshotRejectedError:
    """Return the refusal of a snapshot, naming the line."""
    return SnapshotRejectedError(
        reason,
        message,
        field="snapshot" if line is None else f"line {line}",
        remedy=remedy or "keep the file as it is and restore another snapshot",
    )

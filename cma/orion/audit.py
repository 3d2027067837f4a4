"""The audit chain: every operation leaves a record that names the one before it.

Rules:
- Records are numbered from 1 without a gap; each hash covers the store's id, the format's
  version, the number, the previous hash and the record's canonical bytes, every part framed by
  its length, so that no two records share an encoding.
- Verification is pure: it reads rows and says whether they are one unbroken chain.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from datetime import datetime
from enum import StrEnum
from typing import Any

import orjson

from cma.values.errors import InvalidValueError, Reason, StoreRefusedError
from cma.values.identity import canonical_of_checked, parse_canonical
from cma.values.validation import Value

CHAIN_VERSION = 1
FIRST_HASH = bytes(32)
_TAG = b"cma:audit:1"


class Operation(StrEnum):
    """What an audit record can record."""

    WRITE = "write"
    READ = "read"
    UPDATE = "update"
    EXPIRE = "expire"
    CONSOLIDATE = "consolidate"
    CONFLICT = "conflict"
    APPROVE = "approve"
    REJECT = "reject"
    DELIVER = "deliver"
    SNAPSHOT = "snapshot"
    RESTORE = "restore"
    REDACT = "redact"
    QUARANTINE = "quarantine"
    LINK = "link"
    CREATE = "create"
    BIND = "bind"
    REPLAY = "replay"
    EXECUTE = "execute"
    PROPOSE = "propose"
    DECIDE = "decide"


class AuditRecord(Value):
    """One record of the chain (paper: append-only audit sequence).

    `before` and `after` are digests of the subject; `reason` is a reason code or a word such as
    `duplicate`; `detail` names the field that a rejection is about, never its value;
    `generation` is that of memory once the record's transition is committed.
    """

    seq: int
    at: datetime
    actor: str
    operation: Operation
    subjects: tuple[str, ...]
    before: str | None
    after: str | None
    policy: str | None
    reason: str | None
    detail: str | None
    generation: int
    previous_hash: str
    hash: str


def record_hash(store_id: str, seq: int, previous_hash: bytes, data: bytes) -> bytes:
    """Return the 32 bytes that seal a record into the chain."""
    sealed = hashlib.sha256(chain_prefix(store_id))
    sealed.update(seq.to_bytes(8, "big") + previous_hash + len(data).to_bytes(8, "big") + data)
    return sealed.digest()


def chain_prefix(store_id: str) -> bytes:
    """Return the framed bytes that open every hash of one store's chain."""
    parts = (_TAG, store_id.encode(), CHAIN_VERSION.to_bytes(4, "big"))
    return b"".join(len(part).to_bytes(8, "big") + part for part in parts)


class ChainWriter:
    """Seals records one after another, from a head on. Holds the growing head, nothing else."""

    def __init__(
        self, store_id: str, *, seq: int, head: bytes, generation: int, at: datetime, actor: str
    ) -> None:
        """Continue the chain behind record `seq` with hash `head`."""
        self._prefix = hashlib.sha256(chain_prefix(store_id))
        self.seq = seq
        self.head = head
        self.generation = generation
        self._at = at
        self._actor = actor

    def seal(
        self,
        operation: str,
        subjects: tuple[str, ...],
        *,
        before: str | None = None,
        after: str | None = None,
        policy: str | None = None,
        reason: str | None = None,
        detail: str | None = None,
        at: datetime | None = None,
        actor: str | None = None,
    ) -> tuple[int, str, str | None, int, bytes, bytes]:
        """Return the next row of the audit table."""
        seq = self.seq + 1
        data = canonical_of_checked(
            {
                "actor": actor or self._actor,
                "after": after,
                "at": at or self._at,
                "before": before,
                "detail": detail,
                "generation": self.generation,
                "operation": operation,
                "policy": policy,
                "previous_hash": self.head.hex(),
                "reason": reason,
                "seq": seq,
                "subjects": subjects,
            }
        )
        sealed = self._prefix.copy()
        sealed.update(seq.to_bytes(8, "big") + self.head + len(data).to_bytes(8, "big") + data)
        self.seq, self.head = seq, sealed.digest()
        return seq, operation, subjects[0] if subjects else None, self.generation, data, self.head


Row = tuple[int, str, str | None, int, bytes, bytes]


def audit_record(data: bytes, sealed: bytes) -> AuditRecord:
    """Return the record of a row's canonical bytes and hash."""
    return AuditRecord(**_fields(data), hash=sealed.hex())


def verified(
    rows: Iterable[Row], store_id: str, *, seq: int = 0, head: bytes = FIRST_HASH
) -> Iterator[dict[str, Any]]:
    """Yield the fields of each record, in order, after it is verified.

    Raises StoreRefusedError (`chain-broken`) that names the first record out of order, altered or
    missing. `seq` and `head` say behind which record the rows begin.
    """
    for number, operation, subject, generation, data, sealed in rows:
        if number != seq + 1:
            raise _broken(seq + 1, f"record {seq + 1} is missing: the next is {number}")
        if record_hash(store_id, number, head, data) != sealed:
            raise _broken(number, f"record {number} was altered, or does not follow record {seq}")
        try:
            fields = parse_canonical(data)
        except InvalidValueError as error:
            raise _broken(number, f"record {number} is not canonical") from error
        if not isinstance(fields, dict) or not isinstance(fields.get("subjects"), list):
            raise _broken(number, f"record {number} is no audit record")
        first = next(iter(fields["subjects"]), None)
        columns = (fields.get("seq"), fields.get("operation"), first, fields.get("generation"))
        if columns != (number, operation, subject, generation):
            raise _broken(number, f"record {number} disagrees with its own columns")
        if fields.get("previous_hash") != head.hex():
            raise _broken(number, f"record {number} does not follow record {seq}")
        seq, head = number, sealed
        yield fields


def _fields(data: bytes) -> dict[str, Any]:
    fields: dict[str, Any] = orjson.loads(data)
    return fields


def _broken(seq: int, message: str) -> StoreRefusedError:
    return StoreRefusedError(
        Reason.CHAIN_BROKEN,
        message,
        field=f"audit[{seq}]",
        remedy="keep the files as they are and go back to a backup from before this record",
    )

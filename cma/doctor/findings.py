"""Findings: each has a stable code, which says how grave it is, what it means and what to do."""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple

from cma.values.validation import Value


class Severity(StrEnum):
    """How grave a finding is. Information is no finding against a store's health."""

    DAMAGE = "damage"
    ATTENTION = "attention"
    INFORMATION = "information"


class Code(StrEnum):
    """Stable codes of findings. Where an error has the same code it means the same."""

    STORE_GONE = "store-gone"
    STORE_NOT_CMA = "store-not-cma"
    STORE_NEWER = "store-newer"
    STORE_DAMAGED = "store-damaged"
    ANCHOR_MISSING = "anchor-missing"
    ANCHOR_DISAGREES = "anchor-disagrees"
    CHAIN_BROKEN = "chain-broken"
    STATE_DISAGREES = "state-disagrees"
    REFERENCE_MISSING = "reference-missing"
    TOPOLOGY_WRONG = "topology-wrong"
    SOURCE_RETRACTED = "source-retracted"
    CLEANING_OWED = "cleaning-owed"
    MODE_OPEN = "mode-open"
    MODE_UNWRITABLE = "mode-unwritable"
    LEFTOVER_DRAFT = "leftover-draft"
    LEFTOVER_JOURNAL = "leftover-journal"
    SPACE_LOW = "space-low"
    CHANGED_MEANWHILE = "changed-meanwhile"
    ANCHOR_TORN = "anchor-torn"
    ANCHOR_BEHIND = "anchor-behind"
    EXPIRED_UNSWEPT = "expired-unswept"
    QUARANTINED = "quarantined"
    LOG_PENDING = "log-pending"
    STORE_OLDER = "store-older"


class Description(NamedTuple):
    """What a code means, wherever it is found."""

    severity: Severity
    meaning: str
    remedy: str


_BACKUP = "keep the files as they are; restore a snapshot, or a backup of store and anchor"
CATALOGUE = {
    Code.STORE_GONE: Description(
        Severity.DAMAGE,
        "the anchor tells of a history, and the store that held it is not there",
        "put the store file back; remove the anchor only to begin anew",
    ),
    Code.STORE_NOT_CMA: Description(
        Severity.DAMAGE,
        "the file is no CMA store, or its head is damaged",
        "name the file that Memory.open created, or go back to a backup",
    ),
    Code.STORE_NEWER: Description(
        Severity.DAMAGE,
        "a later release wrote the store; this one cannot judge it",
        "pip install --upgrade civilization-memory",
    ),
    Code.STORE_DAMAGED: Description(
        Severity.DAMAGE, "the database itself is damaged or cannot be read", _BACKUP
    ),
    Code.ANCHOR_MISSING: Description(
        Severity.DAMAGE,
        "nothing says how far the store's history had come, so a cut tail would not be noticed",
        "put the .head file back that belongs to this store, or restore a snapshot",
    ),
    Code.ANCHOR_DISAGREES: Description(
        Severity.DAMAGE,
        "store and anchor tell different histories: one of them was replaced or cut",
        "put the matching pair back, or restore a snapshot",
    ),
    Code.CHAIN_BROKEN: Description(
        Severity.DAMAGE, "an audit record was altered, dropped, added or moved", _BACKUP
    ),
    Code.STATE_DISAGREES: Description(
        Severity.DAMAGE, "what is stored is not what the audit chain says was stored", _BACKUP
    ),
    Code.REFERENCE_MISSING: Description(
        Severity.DAMAGE, "a stored record names another that is not there", _BACKUP
    ),
    Code.TOPOLOGY_WRONG: Description(
        Severity.DAMAGE,
        "a record rests on records that do not carry it, such as a claim without its approval",
        _BACKUP,
    ),
    Code.SOURCE_RETRACTED: Description(
        Severity.ATTENTION,
        "derived memory is active although a cell that it was derived from was retracted",
        "look at it with cma explain; retract it in a program with "
        "memory.update(id, lifecycle='retracted') if it does not stand any more",
    ),
    Code.CLEANING_OWED: Description(
        Severity.ATTENTION,
        "bytes of what was erased may still lie in the file: the overwriting was interrupted",
        "open the store once with room on the disk and no other process in it: it is done then",
    ),
    Code.MODE_OPEN: Description(
        Severity.ATTENTION,
        "other accounts of this machine can read or write the file, which holds plain text",
        "chmod 600 it, unless that is meant",
    ),
    Code.MODE_UNWRITABLE: Description(
        Severity.ATTENTION,
        "its owner may not write the file, and Memory.open needs to",
        "chmod 600 it",
    ),
    Code.LEFTOVER_DRAFT: Description(
        Severity.ATTENTION,
        "a file that a process began to write and never put into place; it may hold plain text",
        "remove it when no process is creating, restoring or snapshotting a store there",
    ),
    Code.LEFTOVER_JOURNAL: Description(
        Severity.ATTENTION,
        "a journal that this store did not write; the database would roll it back into the file",
        "move it away before the store is opened",
    ),
    Code.SPACE_LOW: Description(
        Severity.ATTENTION,
        "the disk has less room than a copy of the store takes",
        "make room before the next snapshot; a full disk refuses writes, and loses none",
    ),
    Code.CHANGED_MEANWHILE: Description(
        Severity.ATTENTION,
        "a process changed the files while they were looked at, so findings may be of the change",
        "run the doctor again",
    ),
    Code.ANCHOR_TORN: Description(
        Severity.INFORMATION,
        "one of the anchor's two slots is not whole, as a crash leaves it; the other one holds",
        "nothing: the next write renews it",
    ),
    Code.ANCHOR_BEHIND: Description(
        Severity.INFORMATION,
        "the store has records that the anchor does not name yet, as a crash leaves it",
        "nothing: the next opening checks them and moves the anchor",
    ),
    Code.EXPIRED_UNSWEPT: Description(
        Severity.INFORMATION,
        "working cells have expired and their expiry is not on record; they are not served",
        "memory.sweep() in a program puts it on record",
    ),
    Code.QUARANTINED: Description(
        Severity.INFORMATION,
        "derived memory is out of service because a cell that it was derived from was erased",
        "memory.regenerate(proposal) from what stands, then have it approved; or leave it",
    ),
    Code.LOG_PENDING: Description(
        Severity.INFORMATION,
        "the store is in use, or was not closed; its log holds what the file does not yet",
        "nothing: keep both files together; the next opening folds the log in",
    ),
    Code.STORE_OLDER: Description(
        Severity.INFORMATION,
        "an earlier release wrote the store; its records are judged once they have today's form",
        "open it once with this release and run the doctor again",
    ),
}


class Finding(Value):
    """One thing that was found. place: file, record, cell or table; message: what it is there."""

    code: Code
    severity: Severity
    place: str
    message: str
    meaning: str
    remedy: str


class Checkup(Value):
    """What was looked at and what was found.

    skipped: parts that could not be looked at, or not to their end. records: how many were held
    against the audit chain, by sort.
    """

    store: str
    healthy: bool
    findings: tuple[Finding, ...]
    looked_at: tuple[str, ...]
    skipped: tuple[str, ...]
    records: dict[str, int]


def finding(code: Code, place: str, message: str) -> Finding:
    """Return a finding with what its code means."""
    told = CATALOGUE[code]
    return Finding(
        code=code,
        severity=told.severity,
        place=place,
        message=message,
        meaning=told.meaning,
        remedy=told.remedy,
    )

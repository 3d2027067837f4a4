"""The examination: every part of a store is looked at, and what is found is gathered."""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

import apsw

from cma.doctor import files, records
from cma.doctor.findings import Checkup, Code, Finding, Severity, finding
from cma.doctor.history import held_by_anchor, read_anchor, read_chain
from cma.doctor.looking import looking_at
from cma.orion.anchor import Anchor, anchor_path
from cma.orion.connection import APPLICATION_ID, newest_version
from cma.orion.opening import store_path
from cma.values.clock import Clock, in_utc
from cma.values.errors import Reason, StoreRefusedError

UNREADABLE = (apsw.Error, OSError, UnicodeDecodeError, StoreRefusedError)
PARTS = ("files", "identity", "anchor", "pages", "chain", "records", "topology", "lifetimes")


def free_bytes(folder: Path) -> int:
    """Return the bytes that the disk of a folder has left for this account."""
    return shutil.disk_usage(folder).free


@dataclass
class _Notes:
    """What an examination has found so far."""

    findings: list[Finding] = field(default_factory=list)
    looked_at: list[str] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)

    def part(self, name: str, found: Callable[[], Iterable[Finding]], place: str) -> None:
        """Look at one part; one that cannot be read to its end is a finding and counts as not."""
        try:
            for each in found():
                self.findings.append(each)
        except UNREADABLE as error:
            self.findings.append(finding(Code.STORE_DAMAGED, place, f"{name}: {error}"))
        else:
            self.looked_at.append(name)


def examine(path: Path, *, clock: Clock, free: Callable[[Path], int] = free_bytes) -> Checkup:
    """Look at all of a store and return everything that is wrong with it. Mends nothing.

    clock: by which expiries are judged. free: how many bytes a folder's disk has left.

    Raises StoreRefusedError (`store-not-found`, `store-not-cma`) when the path names no plain file
    and no anchor tells of one: then there is nothing to look at.
    """
    place = store_path(path)
    notes = _Notes()
    if not _is_there(place):
        notes.findings.append(
            finding(Code.STORE_GONE, place.name, f"only {anchor_path(place).name} is left")
        )
        return _checkup(place, notes)
    before = files.state_of(place)
    notes.part("files", lambda: _files(place, free), place.name)
    anchor, found = read_anchor(place)  # first: what it names was committed before it
    notes.findings += found
    in_use = any(each.code is Code.LOG_PENDING for each in notes.findings)
    try:
        with looking_at(place) as connection:
            _contents(connection, place, anchor, clock, notes)
    except UNREADABLE as error:
        code = Code.STORE_NOT_CMA if isinstance(error, apsw.NotADBError) else Code.STORE_DAMAGED
        notes.findings.append(finding(code, place.name, str(error)))
    if not in_use and files.state_of(place) != before:
        notes.findings.append(finding(Code.CHANGED_MEANWHILE, place.name, "size or time differs"))
    return _checkup(place, notes)


def _files(place: Path, free: Callable[[Path], int]) -> Iterable[Finding]:
    yield from files.modes(place)
    yield from files.leftovers(place)
    yield from files.log_pending(place)
    yield from files.room(place, free)


def _contents(
    connection: apsw.Connection, place: Path, anchor: Anchor | None, clock: Clock, notes: _Notes
) -> None:
    application, version = connection.pragma("application_id"), connection.pragma("user_version")
    if application != APPLICATION_ID:
        notes.findings.append(finding(Code.STORE_NOT_CMA, place.name, "another application's file"))
        return
    if version > newest_version():
        told = f"its form is {version}, this release knows up to {newest_version()}"
        notes.findings.append(finding(Code.STORE_NEWER, place.name, told))
        return
    notes.part("pages", lambda: records.damaged_pages(connection, place.name), place.name)
    named = _store_id(connection, place, notes)
    if named is None:
        return
    notes.looked_at.append("identity")
    if anchor is not None:
        head = anchor_path(place).name
        notes.part("anchor", lambda: held_by_anchor(connection, anchor, named, head), head)
    try:
        story, found = read_chain(connection, named)
    except UNREADABLE as error:
        notes.findings.append(finding(Code.STORE_DAMAGED, "audit", f"chain: {error}"))
        return
    notes.findings += found
    notes.looked_at.append("chain")
    notes.counts["audit"] = story.audit_records
    if version < newest_version():
        told = f"its form is {version}, this release writes {newest_version()}"
        notes.findings.append(finding(Code.STORE_OLDER, place.name, told))
        return
    now = in_utc(clock.now(), field="clock")
    for part, found_in in (
        ("records", lambda: records.altered(connection, story, notes.counts)),
        ("topology", lambda: records.misplaced_records(connection)),
        ("lifetimes", lambda: _lifetimes(connection, place.name, now)),
    ):
        notes.part(part, found_in, place.name)


def _lifetimes(connection: apsw.Connection, name: str, now: datetime) -> Iterable[Finding]:
    yield from records.fallen_sources(connection)
    yield from records.quarantined(connection)
    yield from records.uncleaned(connection, name)
    yield from records.unswept(connection, now)


def _store_id(connection: apsw.Connection, place: Path, notes: _Notes) -> str | None:
    try:
        row = connection.execute("SELECT store_id FROM store").fetchone()
    except UNREADABLE as error:
        notes.findings.append(finding(Code.STORE_DAMAGED, place.name, f"identity: {error}"))
        return None
    if row is None:
        notes.findings.append(
            finding(Code.STORE_DAMAGED, place.name, "the store has lost its name")
        )
        return None
    return str(row[0])


def _is_there(place: Path) -> bool:
    """Tell whether a plain file is there; refuse what no examination can look at."""
    if place.is_symlink() or (place.exists() and not place.is_file()):
        raise StoreRefusedError(
            Reason.STORE_NOT_CMA,
            "a store is a plain file",
            field="store",
            value=place.name,
            remedy="name the file itself, not a folder or a link to it",
        )
    if not place.exists() and not anchor_path(place).is_file():
        raise StoreRefusedError(
            Reason.STORE_NOT_FOUND,
            "there is no file at that path",
            field="store",
            value=place.name,
            remedy="check the path; a store is created by Memory.open in a program",
        )
    return place.exists()


def _checkup(place: Path, notes: _Notes) -> Checkup:
    order = {each: number for number, each in enumerate(Severity)}
    found = sorted(notes.findings, key=lambda each: order[each.severity])
    return Checkup(
        store=place.name,
        healthy=all(each.severity is Severity.INFORMATION for each in found),
        findings=tuple(found),
        looked_at=tuple(part for part in PARTS if part in notes.looked_at),
        skipped=tuple(part for part in PARTS if part not in notes.looked_at),
        records=dict(sorted(notes.counts.items())),
    )

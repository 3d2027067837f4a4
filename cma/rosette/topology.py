"""Topology: every governed record rests on records of the kinds that it needs.

Orion has checked ids, digests and that every reference leads somewhere; here the meaning is held:
frames of episodic cells, derived cells with their approval and admission, decisions on conflicts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import apsw

from cma.eagle.decisions import DECISION
from cma.eagle.executions import EXECUTION
from cma.lagoon.admission import REPEAT
from cma.lagoon.approvals import APPROVAL, approval_record_id
from cma.lagoon.candidates import CANDIDATE
from cma.lagoon.claims import ADMISSION
from cma.lagoon.standing import REJECTION
from cma.orion.cells import DERIVED_KINDS, Kind
from cma.orion.governed import Filed, Shelf, filed_of, find_record
from cma.orion.records import DAMAGES, record_of
from cma.rosette.coherence import faults
from cma.rosette.delivery import RECEIPT
from cma.rosette.packets import PACKET
from cma.trifid.frames import FRAME
from cma.trifid.replaying import REPLAY
from cma.values.errors import Reason, StoreRefusedError

KINDS = {
    Shelf.GOVERNED: frozenset({FRAME, EXECUTION, APPROVAL, ADMISSION, DECISION}),
    Shelf.ATTENDANT: frozenset({REPLAY, CANDIDATE, REJECTION, REPEAT, PACKET, RECEIPT}),
}


def check_topology(connection: apsw.Connection) -> None:
    """Hold the meaning of every record against what it names.

    Raises StoreRefusedError (`reference-missing`) that names the first record that is wrong.
    """
    for error in misplaced(connection):
        raise error


def misplaced(connection: apsw.Connection) -> Iterator[StoreRefusedError]:
    """Yield every record whose meaning does not hold, as it is found."""
    for shelf, kinds in KINDS.items():
        rows = connection.execute(f"SELECT id, kind FROM {shelf.value}")  # noqa: S608
        for name, kind in rows:
            if kind not in kinds:
                yield _wrong(name, f"nothing knows records of the kind {kind}")
    for shelf, kind, check in (
        (Shelf.GOVERNED, FRAME, _check_sources),
        (Shelf.GOVERNED, EXECUTION, _check_sources),
        (Shelf.ATTENDANT, CANDIDATE, _check_candidate),
        (Shelf.GOVERNED, DECISION, _check_decision),
        (Shelf.ATTENDANT, REPLAY, _named(Shelf.GOVERNED, FRAME)),
        (Shelf.ATTENDANT, REJECTION, _named(Shelf.ATTENDANT, CANDIDATE)),
        (Shelf.ATTENDANT, REPEAT, _named(Shelf.ATTENDANT, CANDIDATE)),
        (Shelf.GOVERNED, APPROVAL, _check_approval),
        (Shelf.ATTENDANT, RECEIPT, _named(Shelf.ATTENDANT, PACKET)),
    ):
        yield from _each(connection, shelf, kind, check)
    yield from _underived(connection)
    for name, message in faults(connection):
        yield _wrong(name, message)


Check = Callable[[apsw.Connection, Filed], None]


def _each(
    connection: apsw.Connection, shelf: Shelf, kind: str, check: Check
) -> Iterator[StoreRefusedError]:
    rows = connection.execute(
        f"SELECT id, record FROM {shelf.value} WHERE kind = ?",  # noqa: S608
        (kind,),
    )
    for name, data in rows:
        try:
            check(connection, filed_of(data))
        except StoreRefusedError as error:
            yield error if error.reason is Reason.REFERENCE_MISSING else _wrong(name, error.message)
        except DAMAGES as error:
            refusal = _wrong(name, "a record does not have the parts of its kind")
            refusal.__cause__ = error
            yield refusal


def _check_sources(connection: apsw.Connection, filed: Filed) -> None:
    _check_episodic(connection, filed, [cell for cell, _ in filed.identity["sources"]])


def _named(shelf: Shelf, kind: str) -> Check:
    def check(connection: apsw.Connection, filed: Filed) -> None:
        _find(connection, shelf, kind, filed.identity[kind], filed)

    return check


def _check_approval(connection: apsw.Connection, filed: Filed) -> None:
    _find(connection, Shelf.ATTENDANT, CANDIDATE, filed.details["candidate"], filed)


def _check_episodic(connection: apsw.Connection, filed: Filed, cells: Iterable[str]) -> None:
    names = list(cells)
    if set(names) - set(filed.refs):
        raise _wrong(filed.id, "a source is not among its references")
    for name in names:
        if _kind_of(connection, name) != Kind.EPISODIC:
            raise _wrong(filed.id, f"its source {name} is no episodic cell")


def _check_candidate(connection: apsw.Connection, filed: Filed) -> None:
    told = filed.identity
    for name in told["frames"]:
        _find(connection, Shelf.GOVERNED, FRAME, name, filed)
    for name in told["executions"]:
        _find(connection, Shelf.GOVERNED, EXECUTION, name, filed)
    _check_episodic(connection, filed, told["cells"])
    if bool(told["frames"]) == bool(told["executions"]) or told["fingerprint"] != filed.subject:
        raise _wrong(filed.id, "claim and evidence are not of one kind")


def _underived(connection: apsw.Connection) -> Iterator[StoreRefusedError]:
    """Each derived cell has exactly one admission, whose approval and candidate agree with it.

    Derivation cannot run in a circle: a cell's id is made of the ids that it was derived from.
    """
    admitted: dict[str, str] = {}

    def check(connection: apsw.Connection, filed: Filed) -> None:
        told = filed.details
        candidate = _find(connection, Shelf.ATTENDANT, CANDIDATE, told["candidate"], filed)
        name = approval_record_id(told["approval"])
        approval = _find(connection, Shelf.GOVERNED, APPROVAL, name, filed)
        row = connection.execute(
            "SELECT record FROM cells WHERE id = ? AND revision = 1", (told["cell"],)
        ).fetchone()
        cell: dict[str, Any] = {} if row is None else record_of(row[0])
        fits = (
            cell.get("kind") == candidate.identity["kind"]
            and cell["approval_id"] == told["approval"]
            and cell["derived_from"] == candidate.identity["cells"]
            and cell["content"] == candidate.identity["content"]
            and filed.identity["fingerprint"] == candidate.identity["fingerprint"]
            and approval.details["candidate"] == candidate.id
            and approval.details["fingerprint"] == candidate.identity["fingerprint"]
            and told["cell"] not in admitted
        )
        if not fits:
            raise _wrong(filed.id, "cell, approval and candidate of the admission do not agree")
        admitted[told["cell"]] = filed.id

    yield from _each(connection, Shelf.GOVERNED, ADMISSION, check)
    rows = connection.execute(
        "SELECT id FROM cells WHERE revision = 1"
        " AND CASE WHEN json_valid(CAST(record AS TEXT))"
        " THEN json_extract(CAST(record AS TEXT), '$.kind') END IN (?, ?)",
        tuple(kind.value for kind in sorted(DERIVED_KINDS)),
    )
    for (name,) in rows:
        if admitted.pop(name, None) is None:
            yield _wrong(name, "a derived cell without an admission")
    for name in sorted(admitted.values()):
        yield _wrong(name, "an admission without its cell")


def _check_decision(connection: apsw.Connection, filed: Filed) -> None:
    row = connection.execute(
        "SELECT kind FROM links WHERE id = ?", (filed.identity["link"],)
    ).fetchone()
    if row is None or row[0] != "conflict":
        raise _wrong(filed.id, "it decides on what is no conflict")


def _kind_of(connection: apsw.Connection, name: str) -> str | None:
    row = connection.execute(
        "SELECT CASE WHEN json_valid(CAST(record AS TEXT))"
        " THEN json_extract(CAST(record AS TEXT), '$.kind') END FROM cells WHERE id = ? LIMIT 1",
        (name,),
    ).fetchone()
    return None if row is None else str(row[0])


def _find(connection: apsw.Connection, shelf: Shelf, kind: str, name: str, owner: Filed) -> Filed:
    found = find_record(connection, shelf, kind, name, viewer=None)
    if found is None or name not in owner.refs:
        raise _wrong(owner.id, f"the {kind} that it names is not there")
    return found


def _wrong(name: str, message: str) -> StoreRefusedError:
    return StoreRefusedError(
        Reason.REFERENCE_MISSING,
        message,
        field=name,
        remedy="keep the file as it is and go back to a backup",
    )

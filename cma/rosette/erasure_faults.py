"""What an erasure must have left, held: blanks that are blank, and nothing derived in service."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import apsw

from cma.lagoon.standing import FALLEN, admissions_of, has_fallen
from cma.orion.cells import Lifecycle
from cma.orion.governed import Filed
from cma.orion.records import DAMAGES, record_of
from cma.rosette.blanks import is_blank
from cma.values.errors import StoreRefusedError


def left_of(connection: apsw.Connection, filed: Filed, cells: Iterable[str]) -> Iterator[str]:
    """What rests on an erased cell is erased with it, and nothing that is marked holds text."""
    if filed.erased:
        if not is_blank(filed):
            yield "it was erased and is not blank"
    elif any(lifecycle_of(connection, name) == Lifecycle.ERASED for name in cells):
        yield "it says more than its erased source left of it"


def lifecycle_of(connection: apsw.Connection, name: str) -> str | None:
    """Return how a cell stands by its latest revision, None where it is gone."""
    row = connection.execute(
        "SELECT lifecycle FROM cells WHERE id = ? ORDER BY revision DESC LIMIT 1", (name,)
    ).fetchone()
    return None if row is None else str(row[0])


def derived_in_service(connection: apsw.Connection) -> Iterator[tuple[str, str]]:
    """Nothing that was derived from an erased cell is in service."""
    rows = connection.execute(
        "SELECT c.id, c.lifecycle, c.record FROM cells c WHERE NOT EXISTS"
        " (SELECT 1 FROM cells n WHERE n.id = c.id AND n.revision > c.revision)"
        " AND EXISTS (SELECT 1 FROM cells WHERE lifecycle = 'erased')"
        ' AND instr(c.record, CAST(\'"derived_from":["\' AS BLOB)) > 0'
    )
    for name, lifecycle, data in rows:
        try:
            sources = record_of(data)["derived_from"]
        except (StoreRefusedError, *DAMAGES):  # what cannot be read is found elsewhere
            continue
        erased = (lifecycle_of(connection, source) in FALLEN for source in sources)
        if lifecycle == Lifecycle.ACTIVE and any(erased):
            yield name, "it is in service, and a source of it was erased"


def admitted_anew(connection: apsw.Connection, filed: Filed) -> Iterator[str]:
    """A fingerprint is admitted again only where the cell that it was before has fallen."""
    chain = admissions_of(connection, filed.identity["fingerprint"])
    place = next((place for place, each in enumerate(chain) if each.id == filed.id), None)
    if place is None:
        yield "it follows no admission of its fingerprint"
    elif place and not has_fallen(connection, chain[place - 1]):
        yield "its fingerprint is admitted twice, and the first cell stands"

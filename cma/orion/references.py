"""References between stored records: each leads to something that is there, and is written down."""

from __future__ import annotations

from collections.abc import Iterator

import apsw

from cma.orion.governed import Shelf
from cma.values.errors import Reason, StoreRefusedError

# Bytes that are no JSON are found elsewhere; here they name nothing.
_READABLE = "CASE WHEN json_valid(CAST(record AS TEXT)) THEN CAST(record AS TEXT) ELSE '{}' END"


def loose_references(connection: apsw.Connection) -> Iterator[StoreRefusedError]:
    """Yield a refusal (`reference-missing`) for each reference that leads nowhere."""
    loose = connection.execute(
        "SELECT id, target FROM refs r WHERE NOT EXISTS (SELECT 1 FROM cells WHERE id = r.target)"
        " AND NOT EXISTS (SELECT 1 FROM governed WHERE id = r.target)"
        " AND NOT EXISTS (SELECT 1 FROM attendant WHERE id = r.target)"
        " AND NOT EXISTS (SELECT 1 FROM links WHERE id = r.target)"
        " AND NOT EXISTS (SELECT 1 FROM traces WHERE id = r.target)"
    )
    for name, target in loose:
        yield _missing(name, target, "it names what is not there")
    orphans = connection.execute(
        f"SELECT DISTINCT c.id, value FROM cells c, json_each({_READABLE}, '$.derived_from')"  # noqa: S608
        " WHERE NOT EXISTS (SELECT 1 FROM cells WHERE id = value)"
    )
    for name, target in orphans:
        yield _missing(name, target, "it was derived from a cell that is not there")


def references_as_stated(connection: apsw.Connection) -> bool:
    """Tell whether the table of references holds as many as the records say."""
    stated = 0
    for shelf in Shelf:
        stated += connection.execute(
            f"SELECT coalesce(sum(json_array_length({_READABLE}, '$.refs')), 0)"  # noqa: S608
            f" FROM {shelf.value}"
        ).fetchone()[0]
    return bool(stated == connection.execute("SELECT count(*) FROM refs").fetchone()[0])


def _missing(name: str, target: str, message: str) -> StoreRefusedError:
    return StoreRefusedError(
        Reason.REFERENCE_MISSING,
        message,
        field=name,
        value=target,
        remedy="keep the file as it is and go back to a backup of both files",
    )

"""Fact groups: a hit alone, or the whole connected component of conflicts that it stands in."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from datetime import datetime

import apsw

from cma.eagle.decisions import DECISION, Decision, Handling, decision_of
from cma.orion.cells import Cell, Lifecycle
from cma.orion.governed import Shelf, records_about
from cma.orion.links import LinkKind
from cma.orion.scopes import visible_scopes
from cma.trifid.sources import visible_cell


class Component:
    """A conflict component as the viewer sees it: its cells, its links, and who decided on them."""

    def __init__(self, cells: tuple[Cell, ...], decisions: tuple[Decision, ...]) -> None:
        """Hold the cells in the order in which they are served."""
        self.cells = cells
        self.decisions = decisions


def components(
    connection: apsw.Connection,
    hits: Sequence[str],
    *,
    viewer: str,
    at: datetime,
    include_inactive: bool,
) -> list[Component]:
    """Return the groups of hits in rank order, each cell in one group alone.

    Cells that the viewer does not see, or that are no longer active, are in no group; a hit that
    is no longer there for one of these reasons has none.
    """
    placed: set[str] = set()
    found = []
    for hit in hits:
        if hit in placed:
            continue
        cells: dict[str, Cell] = {}
        links: dict[str, tuple[str, str]] = {}
        waiting = deque([hit])
        while waiting:
            name = waiting.popleft()
            if name in cells:
                continue
            cell = visible_cell(connection, name, viewer)
            if cell is None or not (include_inactive or cell.is_active(at)):
                continue
            if cell.lifecycle is Lifecycle.ERASED:
                continue
            cells[name] = cell
            for link_id, source, target in connection.execute(
                "SELECT id, source_id, target_id FROM links"
                " WHERE (source_id = ?1 OR target_id = ?1) AND kind = ?2 ORDER BY id",
                (name, LinkKind.CONFLICT.value),
            ).fetchall():
                waiting.append(target if source == name else source)
                links[link_id] = (source, target)
        placed.update(cells)
        if cells:
            decisions = [
                decision_of(filed)
                for link_id, ends in sorted(links.items())
                if cells.keys() >= set(ends)  # the other side may be hidden from this viewer
                for filed in records_about(
                    connection, Shelf.GOVERNED, DECISION, link_id, scopes=visible_scopes(viewer)
                )
            ]
            found.append(_ordered(cells, hits, decisions))
    return found


def _ordered(cells: dict[str, Cell], hits: Sequence[str], decisions: list[Decision]) -> Component:
    """Order a group by the latest decision on it, else by rank; partners that were no hits last."""
    rank = {name: place for place, name in enumerate(hits)}
    ordered = sorted(cells.values(), key=lambda cell: (rank.get(cell.id, len(rank)), cell.id))
    handling = max(decisions, key=lambda each: (each.at, each.id)).handling if decisions else None
    if handling is Handling.PREFER_RECENT:
        ordered.sort(key=lambda cell: cell.observed_at or cell.created_at, reverse=True)
    elif handling is Handling.PREFER_CONFIDENT:
        ordered.sort(key=lambda cell: cell.confidence, reverse=True)
    return Component(tuple(ordered), tuple(decisions))

"""Conflicts and decisions: how a conflict is to be handled. A decision is control, never a fact.

It is filed apart from cells, recall cannot serve it, and both sides of its conflict stay.
"""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum

import apsw

from cma.orion.audit import Operation
from cma.orion.cells import Caller
from cma.orion.governed import Filed, Shelf, file_record, records_about, records_of_kind
from cma.orion.links import Link, LinkKind, link_of_record
from cma.orion.records import record_of
from cma.orion.scopes import visible_scopes
from cma.orion.store import Store
from cma.trifid.sources import visible_cell
from cma.values.clock import utc_text
from cma.values.errors import NotFoundError, Reason
from cma.values.validation import Identifier, Value, checked_id, validated

DECISION = "decision"


class Handling(StrEnum):
    """What a decision can say about a conflict. Both sides stay whatever it says."""

    PRESERVE_BOTH = "preserve_both"
    PREFER_RECENT = "prefer_recent"
    PREFER_CONFIDENT = "prefer_confident"
    DEFER = "defer"


class Decision(Value):
    """A control record about one conflict (paper: conflict decisions)."""

    id: str
    link: str
    handling: Handling
    policy: str
    by: str
    at: datetime


class _Asked(Value):
    handling: Handling
    policy: Identifier


def decide_conflict(
    store: Store, link_id: str, *, handling: str, policy: str, viewer: str, caller: Caller
) -> Decision:
    """Record how a conflict is to be handled; cells and link stay as they are.

    Raises NotFoundError (`conflict-not-found`), InvalidValueError for an unknown handling.
    """
    with store.transition(caller.name) as transition:
        checked_id(link_id, field="link_id")
        link = _conflict(transition.connection, link_id, viewer)
        if link is None:
            raise NotFoundError(
                Reason.CONFLICT_NOT_FOUND,
                f"no such conflict in the scope {viewer}",
                field="link_id",
                value=link_id,
                remedy="take the id from memory.conflicts()",
            )
        asked = validated(lambda: _Asked.model_validate({"handling": handling, "policy": policy}))
        filed, _ = file_record(
            transition,
            Shelf.GOVERNED,
            DECISION,
            scope=viewer,
            identity={
                "at": utc_text(transition.at),
                "by": caller.name,
                "handling": asked.handling.value,
                "link": link.id,
                "policy": asked.policy,
                "scope": viewer,
            },
            subject=link.id,
            refs=(link.id,),
            also=(link.id, link.source_id, link.target_id),
            operation=Operation.DECIDE,
            policy=asked.policy,
        )
    return decision_of(filed)


def decision_of(filed: Filed) -> Decision:
    """Return the decision that a filed record holds."""
    told = filed.identity
    return Decision(
        id=filed.id,
        link=told["link"],
        handling=Handling(told["handling"]),
        policy=told["policy"],
        by=told["by"],
        at=datetime.fromisoformat(told["at"]),
    )


def conflicts_seen(connection: apsw.Connection, *, viewer: str) -> tuple[Link, ...]:
    """Return the conflict links of which the viewer sees both ends, ordered by id."""
    rows = connection.execute(
        "SELECT record FROM links WHERE kind = ? ORDER BY id", (LinkKind.CONFLICT.value,)
    ).fetchall()
    links = [link_of_record(record_of(data)) for (data,) in rows]
    return tuple(link for link in links if _sees(connection, link, viewer))


def decisions_seen(
    connection: apsw.Connection, *, viewer: str, link_id: str | None
) -> tuple[Decision, ...]:
    """Return the decisions that the viewer sees, on conflicts that it sees, oldest first."""
    scopes = visible_scopes(viewer)
    if link_id is None:
        filed = records_of_kind(connection, Shelf.GOVERNED, DECISION, scopes=scopes)
    else:
        checked_id(link_id, field="link_id")
        filed = records_about(connection, Shelf.GOVERNED, DECISION, link_id, scopes=scopes)
    found = [decision_of(each) for each in filed]
    seen = {each.link: _conflict(connection, each.link, viewer) is not None for each in found}
    return tuple(each for each in found if seen[each.link])


def _conflict(connection: apsw.Connection, link_id: str, viewer: str) -> Link | None:
    row = connection.execute(
        "SELECT record FROM links WHERE id = ? AND kind = ?", (link_id, LinkKind.CONFLICT.value)
    ).fetchone()
    link = None if row is None else link_of_record(record_of(row[0]))
    return link if link is not None and _sees(connection, link, viewer) else None


def _sees(connection: apsw.Connection, link: Link, viewer: str) -> bool:
    return all(
        visible_cell(connection, end, viewer) is not None
        for end in (link.source_id, link.target_id)
    )

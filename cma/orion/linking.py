"""Transitions of links. A link joins two cells that are there and that may know of each other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any

from pydantic import FailFast, TypeAdapter

from cma.orion.audit import Operation
from cma.orion.cells import Caller, Cell, Lifecycle
from cma.orion.links import Link, LinkDraft, LinkKind, link_of_draft, link_of_record, record_of_link
from cma.orion.records import cell_of_record, record_of
from cma.orion.scopes import is_visible, may_link
from cma.orion.store import Store
from cma.orion.transition import Transition
from cma.orion.writing import LATEST, BatchReceipt, valid_batch
from cma.values.errors import Reason, TransitionRejectedError
from cma.values.identity import canonical_of_checked, digest

LINK_DOMAIN = "cma:link-record:1"
_LINK_INSERT = "INSERT INTO links (id, kind, source_id, target_id, record) VALUES (?, ?, ?, ?, ?)"
_LINK_DRAFTS: TypeAdapter[list[LinkDraft]] = TypeAdapter(Annotated[list[LinkDraft], FailFast()])


def add_links(
    store: Store, drafts: Sequence[LinkDraft | Mapping[str, Any]], *, viewer: str, caller: Caller
) -> tuple[tuple[Link, ...], BatchReceipt]:
    """Link cells in one transition. The same link again is left as it is and recorded."""
    links: list[Link] = []
    created = 0
    with store.transition(caller.name) as transition:
        ends: dict[str, Cell] = {}
        for draft in valid_batch(_LINK_DRAFTS, drafts, 0 if len(drafts) > 1 else None):
            link = link_of_draft(draft, transition.at)
            try:
                _check_link(transition, link, viewer, ends)
            except TransitionRejectedError as error:
                if len(drafts) > 1:
                    error.field = f"drafts[{len(links)}].{error.field}"
                raise
            known, new = put_link(transition, link)
            links.append(known)
            created += new
        generation = transition.chain.generation
    receipt = BatchReceipt(
        ids=tuple(link.id for link in links),
        created=created,
        duplicates=len(links) - created,
        generation=generation,
    )
    return tuple(links), receipt


def put_link(transition: Transition, link: Link, *, or_any: bool = False) -> tuple[Link, bool]:
    """Add a checked link within a transition; tell whether it is new.

    The same link again is left as it is and recorded. or_any: so is one with another weight or
    evidence, for what follows from evidence and must not hang on who linked two cells before.

    Raises TransitionRejectedError (`link-differs`) where it exists with another weight or evidence.
    """
    present = transition.connection.execute(
        "SELECT record FROM links WHERE id = ?", (link.id,)
    ).fetchone()
    subjects = (link.id, link.source_id, link.target_id)
    operation = Operation.CONFLICT if link.kind is LinkKind.CONFLICT else Operation.LINK
    if present is not None:
        known = link_of_record(record_of(present[0]))
        if or_any:
            link = known
        if (known.weight, known.evidence) != (link.weight, link.evidence):
            raise TransitionRejectedError(
                Reason.LINK_DIFFERS,
                "the link exists with another weight or evidence",
                field="link",
                value=link.id,
                remedy="links are not overwritten; use the one that is there",
            )
        same = digest(LINK_DOMAIN, present[0])
        transition.record(operation, subjects, before=same, after=same, reason="duplicate")
        return known, False
    transition.change()
    data = canonical_of_checked(record_of_link(link))
    transition.connection.execute(
        _LINK_INSERT, (link.id, link.kind.value, link.source_id, link.target_id, data)
    )
    transition.record(operation, subjects, after=digest(LINK_DOMAIN, data))
    return link, True


def _check_link(transition: Transition, link: Link, viewer: str, ends: dict[str, Cell]) -> None:
    if link.source_id == link.target_id:
        raise TransitionRejectedError(
            Reason.LINK_TO_ITSELF,
            "a cell cannot link to itself",
            field="target_id",
            value=link.target_id,
            remedy="name two cells",
        )
    source = _end(transition, link.source_id, "source_id", ends)
    target = _end(transition, link.target_id, "target_id", ends)
    if not may_link(source.scope, target.scope):
        raise TransitionRejectedError(
            Reason.LINK_ACROSS_SESSIONS,
            "the cells of two sessions cannot be linked",
            field="target_id",
            value=link.target_id,
            remedy="link within a session, or to a global cell",
        )
    for name, end in (("source_id", source), ("target_id", target)):
        if not is_visible(end.scope, viewer=viewer):
            raise _missing_end(name, end.id)
    if link.kind is LinkKind.TEMPORAL:
        start = source.observed_at or source.created_at
        if start > (target.observed_at or target.created_at):
            raise TransitionRejectedError(
                Reason.LINK_BACKWARD_IN_TIME,
                "a temporal link runs forward in time",
                field="source_id",
                value=link.source_id,
                remedy="link from the earlier cell to the later one",
            )


def _end(transition: Transition, cell_id: str, field: str, ends: dict[str, Cell]) -> Cell:
    known = ends.get(cell_id)
    if known is None:
        row = transition.connection.execute(LATEST, (cell_id,)).fetchone()
        if row is None:
            raise _missing_end(field, cell_id)
        known = ends[cell_id] = cell_of_record(record_of(row[0]))
    if known.lifecycle is Lifecycle.ERASED:
        raise _missing_end(field, cell_id)
    return known


def _missing_end(field: str, cell_id: str) -> TransitionRejectedError:
    return TransitionRejectedError(
        Reason.LINK_ENDPOINT_MISSING,
        "a link joins two cells that are there",
        field=field,
        value=cell_id,
        remedy="write the cell first, or check its id and scope",
    )

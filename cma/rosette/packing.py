"""Building a packet: whole groups in rank order, as long as the whole text fits the budget."""

from __future__ import annotations

from typing import Any

from cma.orion.records import record_of_cell, revision_digest
from cma.orion.store import Store
from cma.orion.traces import RecallTrace
from cma.rosette.grouping import components
from cma.rosette.packets import (
    BUDGET,
    CONFLICT,
    HIT,
    ContextPacket,
    Excluded,
    FactGroup,
    PacketCell,
    packet_id,
    packet_identity,
)
from cma.rosette.quoting import group_text, render
from cma.rosette.tokens import TokenCounter, checked_count, checked_counter
from cma.values.errors import InvalidValueError, Reason
from cma.values.identity import MAX_INTEGER, canonical_of_checked


def build_packet(
    store: Store, trace: RecallTrace, *, viewer: str, budget: int, counter: TokenCounter
) -> ContextPacket:
    """Return the packet of a recall as memory stands now; nothing is changed by it.

    budget: tokens of the whole text by `counter`, headings, sources and separators included; at
    least 1. A conflict component goes in whole or is left out whole; what does not fit is named
    with its reason, and a smaller group of lower rank may still fit.

    Raises InvalidValueError (`budget-invalid`, `field-invalid` for what does not count).
    """
    _check_budget(budget)
    checked_counter(counter)
    at = store.now()
    with store.reading() as connection:
        generation = store.head()[2]
        found = components(
            connection,
            [hit.cell for hit in trace.hits],
            viewer=viewer,
            at=at,
            include_inactive=trace.include_inactive,
        )
    chosen: list[FactGroup] = []
    excluded: list[Excluded] = []
    control: list[str] = []
    used = served = 0
    texts: list[tuple[Any, ...]] = []
    for component in found:
        if counter.additive and texts:
            tokens = used + checked_count(counter.count(group_text(component.cells, served)))
        else:
            tokens = counter.count(render([*texts, component.cells]))
            checked_count(tokens)
        if tokens > budget:
            names = tuple(cell.id for cell in component.cells)
            excluded.append(Excluded(cells=names, reason=BUDGET))
            continue
        cells = tuple(
            PacketCell(
                cell=cell, digest=revision_digest(canonical_of_checked(record_of_cell(cell)))
            )
            for cell in component.cells
        )
        reason = CONFLICT if len(cells) > 1 else HIT
        chosen.append(FactGroup(cells=cells, reason=reason, tokens=tokens - used))
        control.extend(decision.id for decision in component.decisions)
        texts.append(component.cells)
        served += len(component.cells)
        used = tokens
    fields: dict[str, Any] = {
        "query": trace.query,
        "scope": viewer,
        "trace": trace.id,
        "generation": generation,
        "groups": tuple(chosen),
        "excluded": tuple(excluded),
        "budget": budget,
        "used": used,
        "counter": counter.name,
        "control": tuple(control),
    }
    return ContextPacket(id=packet_id(packet_identity(fields)), **fields)


def _check_budget(budget: object) -> None:
    if isinstance(budget, bool) or not isinstance(budget, int) or not 1 <= budget <= MAX_INTEGER:
        raise InvalidValueError(
            Reason.BUDGET_INVALID,
            "a budget is a whole number of at least 1; nothing means unlimited",
            field="budget",
            value=budget,
            remedy="give the number of tokens that the packet may take",
        )

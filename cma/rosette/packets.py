"""Context packets: what one request would be told, in atomic groups under a budget.

A packet is a view of one query and no authority. Its digest covers every served revision, what
was left out and why, the control that applies, and the rendered text.
"""

from __future__ import annotations

import hashlib
from typing import Any

from cma.orion.cells import Cell
from cma.orion.governed import record_id
from cma.rosette.quoting import render
from cma.values.identity import canonical, digest
from cma.values.validation import Value

PACKET = "packet"
PACKET_DOMAIN = "cma:packet-digest:1"
HIT, CONFLICT, BUDGET = "hit", "conflict", "budget"


class PacketCell(Value):
    """A served revision of a cell with its digest; its sources are in the cell itself."""

    cell: Cell
    digest: str


class FactGroup(Value):
    """Cells that go in together or not at all: one, or a whole conflict component.

    reason: `hit` or `conflict`. tokens: what the group added to the packet's text.
    """

    cells: tuple[PacketCell, ...]
    reason: str
    tokens: int

    @property
    def kinds(self) -> tuple[str, ...]:
        """The kinds of memory in the group."""
        return tuple(sorted({each.cell.kind.value for each in self.cells}))


class Excluded(Value):
    """A group that was left out whole, and why."""

    cells: tuple[str, ...]
    reason: str


class ContextPacket(Value):
    """A packet (paper: typed context packets, Rosette).

    used: tokens of the whole text, never more than budget. control: ids of the decisions on the
    conflicts within; they are never part of the text.
    """

    id: str
    query: str
    scope: str
    trace: str
    generation: int
    groups: tuple[FactGroup, ...]
    excluded: tuple[Excluded, ...]
    budget: int
    used: int
    counter: str
    control: tuple[str, ...]

    @property
    def text(self) -> str:
        """What a model is given."""
        return render([[each.cell for each in group.cells] for group in self.groups])

    @property
    def cells(self) -> tuple[Cell, ...]:
        """The served cells, in order."""
        return tuple(each.cell for group in self.groups for each in group.cells)

    @property
    def digest(self) -> str:
        """SHA-256 of everything that the packet says, its generation included."""
        return digest(PACKET_DOMAIN, canonical(identity_of(self)))


def packet_identity(fields: dict[str, Any]) -> dict[str, Any]:
    """Return what makes a packet's id, from its fields."""
    groups: tuple[FactGroup, ...] = fields["groups"]
    text = render([[each.cell for each in group.cells] for group in groups])
    return {
        "budget": fields["budget"],
        "control": list(fields["control"]),
        "counter": fields["counter"],
        "excluded": [[list(each.cells), each.reason] for each in fields["excluded"]],
        "generation": fields["generation"],
        "groups": [
            {
                "cells": [[each.cell.id, each.cell.revision, each.digest] for each in group.cells],
                "reason": group.reason,
                "tokens": group.tokens,
            }
            for group in groups
        ],
        "query": fields["query"],
        "scope": fields["scope"],
        "text_sha256": hashlib.sha256(text.encode()).hexdigest(),
        "trace": fields["trace"],
        "used": fields["used"],
    }


def identity_of(packet: ContextPacket) -> dict[str, Any]:
    """Return what makes the id of this packet, computed from what it holds."""
    return packet_identity({name: getattr(packet, name) for name in ContextPacket.model_fields})


def packet_id(identity: dict[str, Any]) -> str:
    """Return the id of a packet of that identity."""
    return record_id(PACKET, identity)

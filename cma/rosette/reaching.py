"""What may reach a model, and what a receipt says of the model that it reached.

Knows no tensor: the model path of Sun reports in plain numbers, and a receipt holds them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from cma.lagoon.claims import ADMISSION
from cma.orion.cells import DERIVED_KINDS, Cell
from cma.orion.governed import records_naming
from cma.orion.store import Store
from cma.rosette.packets import ContextPacket
from cma.values.errors import Reason, TransitionRejectedError
from cma.values.validation import Value


class SitePart(Value):
    """The delta at one site of the model. Norms are decimal text, since no float is hashed."""

    site: str
    calls: int
    tokens: int
    slots: int
    delta_norm: str
    applied_norm: str
    finite: bool


class ModelPart(Value):
    """The model that a delivery reached (paper: the Adapter-facing path).

    fingerprint, adapter: SHA-256 of the frozen weights and of the adapter's. vectors, prompt:
    SHA-256 of what went in. slots, hidden: vectors delivered, and their length. sites: what the
    adapter added, where. answer: what the model generated, if it was asked to.
    """

    model: str
    weights: str
    fingerprint: str
    adapter: str
    condition: str
    vectors: str
    slots: int
    hidden: int
    dtype: str
    device: str
    prompt: str
    answer: str
    sites: tuple[SitePart, ...]


def model_part(reached: Mapping[str, Any]) -> ModelPart:
    """Return what a receipt keeps of what the model path reports, as plain fields."""
    first = reached["sites"][0]
    sites = tuple(
        SitePart(
            site=site["site"],
            calls=site["calls"],
            tokens=site["tokens"],
            slots=site["slots"],
            delta_norm=_decimal(site["delta_norm"]),
            applied_norm=_decimal(site["applied_norm"]),
            finite=site["finite"],
        )
        for site in reached["sites"]
    )
    names = set(ModelPart.model_fields) - {"sites", "dtype", "device"}
    fields = {name: reached[name] for name in sorted(names)}
    return ModelPart(**fields, dtype=first["dtype"], device=first["device"], sites=sites)


def check_may_reach(store: Store, packet: ContextPacket) -> None:
    """Refuse a packet whose cells may not become vectors.

    Raises TransitionRejectedError: `packet-empty` when nothing is served, `cell-inactive`,
    `approval-required` for a derived cell that no admission names.
    """
    if not packet.cells:
        raise TransitionRejectedError(
            Reason.PACKET_EMPTY,
            "nothing is served, so nothing can reach a model",
            field="packet",
            value=packet.id,
            remedy="raise the budget, or ask otherwise",
            subjects=(packet.trace,),
        )
    at = store.now()
    for cell in packet.cells:
        if not cell.is_active(at):
            raise _refused(Reason.CELL_INACTIVE, "the cell is not active", cell)
        admitted = cell.kind not in DERIVED_KINDS or records_naming(
            store.connection, cell.id, ADMISSION
        )
        if not admitted:
            raise _refused(Reason.APPROVAL_REQUIRED, "no admission names this cell", cell)


def _refused(reason: Reason, message: str, cell: Cell) -> TransitionRejectedError:
    return TransitionRejectedError(
        reason,
        f"{message}, so it may not reach a model",
        field="packet",
        value=cell.id,
        remedy="build the packet from a recall of active, approved memory",
        subjects=(cell.id,),
    )


def _decimal(value: float) -> str:
    return f"{value:.9g}"

"""Delivery: a packet leaves for a recipient, and the receipt proves what was in it.

One transition holds the recall's trace, the packet and the receipt, so nothing is delivered whose
recall is not on record. Memory itself stays as it is.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

from pydantic import ValidationError

from cma.orion.audit import Operation
from cma.orion.cells import Caller
from cma.orion.governed import Filed, Shelf, file_record, find_record
from cma.orion.recall import find_trace
from cma.orion.records import record_of_cell, revision_digest
from cma.orion.scopes import is_visible
from cma.orion.store import Store
from cma.rosette.packets import PACKET, ContextPacket, identity_of, packet_id
from cma.rosette.packing import build_packet
from cma.rosette.reaching import ModelPart, check_may_reach
from cma.rosette.tokens import PLAIN, TokenCounter, checked_counter
from cma.values.clock import utc_text
from cma.values.errors import InvalidValueError, NotFoundError, Reason, TransitionRejectedError
from cma.values.identity import canonical_of_checked, is_identifier
from cma.values.validation import Value, checked_id

RECEIPT = "receipt"


class DeliveryReceipt(Value):
    """The proof of what was delivered: packet, recall, generation, and every served revision.

    cells: (id, revision, digest). control: decisions that governed the packet. model: what of it
    reached a model, where one was given.
    """

    id: str
    packet: str
    trace: str
    scope: str
    recipient: str
    generation: int
    cells: tuple[tuple[str, int, str], ...]
    control: tuple[str, ...]
    by: str
    at: datetime
    model: ModelPart | None = None


def deliver_packet(
    store: Store,
    packet: ContextPacket,
    *,
    viewer: str,
    caller: Caller,
    recipient: str,
    counter: TokenCounter = PLAIN,
    model: ModelPart | None = None,
) -> DeliveryReceipt:
    """Record that a packet goes to a recipient, and return the receipt.

    model: what has reached the model, after `check_for_model` let it.

    Raises TransitionRejectedError: `packet-altered` when it is not what its id says,
    `packet-stale` when memory would fill it otherwise now.
    """
    with store.transition(caller.name) as transition:
        checked_id(recipient, field="recipient")
        _check_packet(store, packet, viewer, counter)
        identity = identity_of(packet)
        cells = [each for group in identity["groups"] for each in group["cells"]]
        reached = {} if model is None else {"model": model.model_dump(mode="json")}
        file_record(
            transition,
            Shelf.ATTENDANT,
            PACKET,
            scope=viewer,
            identity=identity,
            subject=packet.trace,
            refs=(packet.trace, *packet.control, *(cell[0] for cell in cells)),
            operation=Operation.DELIVER,
        )
        filed, _ = file_record(
            transition,
            Shelf.ATTENDANT,
            RECEIPT,
            scope=viewer,
            identity={
                "at": utc_text(transition.at),
                "by": caller.name,
                "cells": cells,
                "control": list(packet.control),
                "generation": packet.generation,
                "packet": packet.id,
                "recipient": recipient,
                "scope": viewer,
                "trace": packet.trace,
                **reached,
            },
            subject=packet.id,
            refs=(packet.id, packet.trace, *packet.control, *(cell[0] for cell in cells)),
            also=(packet.id, packet.trace),
            operation=Operation.DELIVER,
        )
    return receipt_of(filed)


def check_for_model(
    store: Store,
    packet: ContextPacket,
    *,
    viewer: str,
    caller: Caller,
    recipient: str,
    counter: TokenCounter = PLAIN,
) -> None:
    """Refuse a packet before a model sees it; a refusal is on record like any other.

    Raises what `deliver_packet` raises, and TransitionRejectedError: `packet-empty`,
    `cell-inactive`, `approval-required`.
    """
    with store.transition(caller.name):
        checked_id(recipient, field="recipient")
        _check_packet(store, packet, viewer, counter)
        check_may_reach(store, packet)


def receipt_of(filed: Filed) -> DeliveryReceipt:
    """Return the receipt that a filed record holds."""
    told: dict[str, Any] = dict(filed.identity)
    return DeliveryReceipt(
        id=filed.id,
        **{
            **told,
            "at": datetime.fromisoformat(told["at"]),
            "cells": tuple((name, revision, seen) for name, revision, seen in told["cells"]),
            "control": tuple(told["control"]),
            "model": ModelPart.model_validate(told["model"]) if "model" in told else None,
        },
    )


def read_receipt(store: Store, receipt_id: str, *, viewer: str) -> DeliveryReceipt:
    """Return a receipt that the viewer sees. Raises NotFoundError (`receipt-not-found`)."""
    checked_id(receipt_id, field="receipt_id")
    filed = find_record(store.connection, Shelf.ATTENDANT, RECEIPT, receipt_id, viewer=viewer)
    if filed is None:
        raise NotFoundError(
            Reason.RECEIPT_NOT_FOUND,
            f"no delivery of that id was recorded in the scope {viewer}",
            field="receipt_id",
            value=receipt_id,
            remedy="take the id from memory.deliver(...) or from `cma timeline`; check the scope",
        )
    return receipt_of(filed)


def read_packet(store: Store, name: str) -> dict[str, Any] | None:
    """Return what is on record of a delivered packet, None where nothing is."""
    filed = find_record(store.connection, Shelf.ATTENDANT, PACKET, name, viewer=None)
    return None if filed is None else filed.identity


def _check_packet(store: Store, packet: ContextPacket, viewer: str, counter: TokenCounter) -> None:
    if not isinstance(packet, ContextPacket):
        raise InvalidValueError(
            Reason.FIELD_INVALID,
            "not a context packet",
            field="packet",
            value=packet,
            remedy="give what memory.packet(...) returned",
        )
    if not _is_whole(packet) or not is_visible(packet.scope, viewer=viewer):
        raise _altered(packet)
    if checked_counter(counter).name != packet.counter:
        raise InvalidValueError(
            Reason.FIELD_INVALID,
            f"the packet was counted by {packet.counter!r}",
            field="counter",
            value=counter.name,
            remedy="give the counter that the packet was built with",
        )
    trace = find_trace(store.connection, packet.trace, viewer=viewer)
    now = build_packet(store, trace, viewer=packet.scope, budget=packet.budget, counter=counter)
    if packet.generation > now.generation:  # memory has not come that far
        raise _altered(packet)
    same = {**identity_of(now), "generation": packet.generation}
    if same != identity_of(packet):
        raise TransitionRejectedError(
            Reason.PACKET_STALE,
            "memory has changed since the packet was built",
            field="packet",
            value=packet.id,
            remedy="build it again from a new recall",
            subjects=(packet.trace,),
        )


def _is_whole(packet: ContextPacket) -> bool:
    """Tell whether a packet is what its id says, and each of its cells what its digest says.

    A copy with other fields is a value that nobody has looked at, so it is validated first.
    """
    try:
        seen = ContextPacket.model_validate(packet)
    except ValidationError:
        return False
    served = [each for group in seen.groups for each in group.cells]
    return packet_id(identity_of(seen)) == seen.id and all(
        revision_digest(canonical_of_checked(record_of_cell(each.cell))) == each.digest
        for each in served
    )


def _altered(packet: ContextPacket) -> TransitionRejectedError:
    trace = packet.trace
    return TransitionRejectedError(
        Reason.PACKET_ALTERED,
        "the packet is not what its id says, or was built for another scope",
        field="packet",
        value=packet.id,
        remedy="build it again from the recall",
        subjects=(trace,) if isinstance(trace, str) and is_identifier("trace", trace) else (),
    )

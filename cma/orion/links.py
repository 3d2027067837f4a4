"""Links: seven named relations between two cells."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum
from typing import Annotated, Any

from pydantic import AfterValidator, Field

from cma.orion.records import DAMAGES, damaged_record
from cma.values.errors import InvalidValueError, Reason
from cma.values.identity import canonical_of_checked, identifier
from cma.values.validation import Identifier, Share, Value, checked_text, millionths, share


class LinkKind(StrEnum):
    """The seven relations."""

    TEMPORAL = "temporal"
    SIMILARITY = "similarity"
    CAUSAL = "causal"
    TASK = "task"
    PROCEDURE = "procedure"
    REPLAY = "replay"
    CONFLICT = "conflict"


SYMMETRIC = frozenset({LinkKind.SIMILARITY, LinkKind.CONFLICT})
"""Relations without a direction: A to B and B to A are one link."""


def link_kind(name: str) -> LinkKind:
    """Return the relation of that name, or raise InvalidValueError that lists the seven."""
    try:
        return LinkKind(name)
    except (ValueError, RecursionError) as error:  # nested too deep even to be shown
        raise InvalidValueError(
            Reason.KIND_UNKNOWN,
            "not one of the seven relations",
            field="kind",
            value=name,
            remedy=f"use one of {', '.join(LinkKind)}",
        ) from error


class LinkDraft(Value):
    """A proposed link. weight: a share from 0 to 1. evidence: what the relation rests on."""

    kind: LinkKind
    source_id: Identifier
    target_id: Identifier
    weight: Share | None = None
    evidence: (
        Annotated[
            str, Field(strict=True, min_length=1, max_length=10_000), AfterValidator(checked_text)
        ]
        | None
    ) = None


class Link(Value):
    """A link as the store holds it; the id is made from kind and ends."""

    id: str
    kind: LinkKind
    source_id: str
    target_id: str
    weight: float | None
    evidence: str | None
    created_at: datetime

    def other_end(self, cell_id: str) -> str:
        """Return the id at the other end."""
        return self.target_id if cell_id == self.source_id else self.source_id


def link_of_draft(draft: LinkDraft, created_at: datetime) -> Link:
    """Return the link that a draft becomes; a relation without direction has its ends in order."""
    source, target = draft.source_id, draft.target_id
    if draft.kind in SYMMETRIC and target < source:
        source, target = target, source
    identity = {"kind": draft.kind.value, "source_id": source, "target_id": target}
    return Link(
        id=identifier("link", canonical_of_checked(identity)),
        kind=draft.kind,
        source_id=source,
        target_id=target,
        weight=draft.weight,
        evidence=draft.evidence,
        created_at=created_at,
    )


def record_of_link(link: Link) -> dict[str, Any]:
    """Return the record that is hashed and stored."""
    return {
        "created_at": link.created_at,
        "evidence": link.evidence,
        "id": link.id,
        "kind": link.kind.value,
        "source_id": link.source_id,
        "target_id": link.target_id,
        "weight": None if link.weight is None else millionths(link.weight),
    }


def link_of_record(record: dict[str, Any]) -> Link:
    """Return the link of a stored record."""
    try:
        weight = record["weight"]
        return Link.model_validate({**record, "weight": None if weight is None else share(weight)})
    except DAMAGES as error:
        raise damaged_record() from error

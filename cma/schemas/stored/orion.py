"""Orion's records: cells, links, traces, and the audit chain."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field

from cma.orion.audit import Operation
from cma.orion.cells import Authority, Kind, Lifecycle
from cma.orion.links import LinkKind
from cma.rosette.snapshot_form import Count, Sha256
from cma.schemas.stored.parts import Decimal, Millionths, Record, Scope, Time

CellId = Annotated[str, Field(pattern=r"^cell-[0-9a-f]{40}$")]
LinkId = Annotated[str, Field(pattern=r"^link-[0-9a-f]{40}$")]


class Source(Record):
    """Where a cell came from."""

    authority: Authority
    origin: str


class CellRecord(Record):
    """One revision of a cell. Metadata is that of its kind.

    erased: of a revision that was erased, the digest of what it was.
    """

    approval_id: str | None
    confidence: Millionths
    content: str
    created_at: Time
    derived_from: list[str]
    erased: Sha256 | None = None
    expires_at: Time | None
    id: CellId
    importance: Millionths
    kind: Kind
    lifecycle: Lifecycle
    metadata: dict[str, Any]
    observed_at: Time | None
    revision: Annotated[int, Field(ge=1)]
    scope: Scope
    source: Source
    summary: str


class LinkRecord(Record):
    """A link between two cells."""

    created_at: Time
    evidence: str | None
    id: LinkId
    kind: LinkKind
    source_id: str
    target_id: str
    weight: Millionths | None


class TraceHitRecord(Record):
    """A hit of a recall, with the parts of its score."""

    cell: str
    parts: dict[str, Decimal]
    revision: Count
    score: Decimal


class RetrievalRecord(Record):
    """How a recall was asked for."""

    analyser: str
    coefficients: dict[str, Decimal]
    half_life_seconds: Decimal
    lexical: str


class TraceRecord(Record):
    """What a recall saw; its id is made from all of this.

    erased: of a recall whose query was erased, its id.
    """

    at: Time
    erased: Annotated[str, Field(pattern=r"^trace-[0-9a-f]{40}$")] | None = None
    excluded: dict[str, Count]
    exclusions: list[tuple[str, str]]
    generation: Count
    hits: list[TraceHitRecord]
    include_inactive: bool
    index_digest: Sha256
    limit: Count
    query: str
    retrieval: RetrievalRecord
    scope: Scope
    terms: list[str]


class AuditedRecord(Record):
    """A record of the audit chain."""

    actor: str
    after: Sha256 | None
    at: Time
    before: Sha256 | None
    detail: str | None
    generation: Count
    operation: Operation
    policy: str | None
    previous_hash: Sha256
    reason: str | None
    seq: Annotated[int, Field(ge=1)]
    subjects: list[str]

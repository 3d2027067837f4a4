"""Cells: what memory consists of. Four kinds, each with metadata of its own.

A `CellDraft` is what a caller proposes; a `Cell` is what the store holds. The source's authority
is not in the draft: the store sets it from its caller, so no text can claim another's.
"""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum
from typing import Annotated, Any

import regex
from pydantic import (
    AfterValidator,
    Field,
    StrictBool,
    StringConstraints,
    ValidationInfo,
    field_validator,
)

from cma.values.errors import InvalidValueError, Reason
from cma.values.validation import Identifier, Share, UtcTime, Value, checked_text

MAX_CONTENT_LENGTH = 1_000_000
MAX_TTL_SECONDS = 10 * 366 * 86_400
_INVISIBLE = regex.compile(r"[\s\p{Cf}\p{Cc}\p{Mn}]*")
_ASCII_BLANKS = "".join(map(chr, (*range(33), 127)))
AttributeKey = Annotated[
    str, StringConstraints(strict=True, pattern=r"^[A-Za-z_][A-Za-z0-9_.-]{0,63}$")
]
_WholeNumber = Annotated[int, Field(strict=True, ge=-(2**53) + 1, le=2**53 - 1)]
Note = Annotated[str, Field(strict=True, max_length=10_000), AfterValidator(checked_text)]
Attribute = Note | StrictBool | _WholeNumber | None


class Kind(StrEnum):
    """The four memory systems."""

    WORKING = "working"
    EPISODIC = "episodic"
    SEMANTIC = "semantic"
    PROCEDURAL = "procedural"


class Lifecycle(StrEnum):
    """Where a cell stands in its life; only `active` cells are recalled by default.

    `quarantined`: a cell that it was derived from was erased. `erased`: its content is gone.
    """

    ACTIVE = "active"
    EXPIRED = "expired"
    SUPERSEDED = "superseded"
    RETRACTED = "retracted"
    QUARANTINED = "quarantined"
    ERASED = "erased"


class Authority(StrEnum):
    """Who stands behind a source."""

    USER = "user"
    TOOL = "tool"
    MODEL = "model"
    DOCUMENT = "document"


class Caller(Value):
    """Who uses a store: a name for the audit and the authority of what it writes."""

    name: Identifier
    authority: Authority


class Provenance(Value):
    """Where a cell came from: a place in the caller's own terms, and the caller's authority."""

    origin: Identifier
    authority: Authority


class _Metadata(Value):
    attributes: dict[AttributeKey, Attribute] = Field(default_factory=dict)


class WorkingMetadata(_Metadata):
    """Working memory lives for a stated time."""

    ttl_seconds: Annotated[int, Field(strict=True, ge=1, le=MAX_TTL_SECONDS)]


class EpisodicMetadata(_Metadata):
    """An event: who spoke or acted, in which sitting, at which turn. Its time is observed_at."""

    speaker: Identifier | None = None
    session: Identifier | None = None
    turn: Identifier | None = None


class SemanticMetadata(_Metadata):
    """A claim in three parts."""

    subject: Identifier
    predicate: Identifier
    object: Identifier


class ProceduralMetadata(_Metadata):
    """A skill: the task it serves and its steps in order."""

    task: Identifier
    steps: Annotated[tuple[Identifier, ...], Field(min_length=1)]


Metadata = WorkingMetadata | EpisodicMetadata | SemanticMetadata | ProceduralMetadata
METADATA_OF_KIND: dict[Kind, type[Metadata]] = {
    Kind.WORKING: WorkingMetadata,
    Kind.EPISODIC: EpisodicMetadata,
    Kind.SEMANTIC: SemanticMetadata,
    Kind.PROCEDURAL: ProceduralMetadata,
}
DERIVED_KINDS = frozenset({Kind.SEMANTIC, Kind.PROCEDURAL})
WITNESSED_KINDS = frozenset(Kind) - DERIVED_KINDS


def checked_content(text: str) -> str:
    """Return the text as given; raise InvalidValueError when nothing in it can be seen."""
    if len(text) > MAX_CONTENT_LENGTH:
        raise InvalidValueError(
            Reason.CONTENT_TOO_LARGE,
            f"{len(text):,} characters, the cap is {MAX_CONTENT_LENGTH:,}",
            remedy="split it into several cells",
        )
    plain = text.isascii()
    if not plain:
        checked_text(text)
    if not text.strip(_ASCII_BLANKS) if plain else _INVISIBLE.fullmatch(text):
        raise InvalidValueError(
            Reason.CONTENT_EMPTY, "no visible character", remedy="give some text"
        )
    return text


Content = Annotated[str, Field(strict=True), AfterValidator(checked_content)]


class CellDraft(Value):
    """A proposed cell.

    confidence and importance: shares from 0 to 1, held to one millionth. observed_at: when the
    event happened, with a zone; an episodic cell needs it. metadata: that of the kind, as a value
    or as a mapping. approval_id and derived_from: a derived cell (semantic, procedural) needs both,
    and no other cell has an approval_id.
    """

    kind: Kind
    content: Content
    origin: Identifier
    summary: Note = ""
    confidence: Share = 1.0
    importance: Share = 0.5
    observed_at: Annotated[UtcTime | None, Field(validate_default=True)] = None
    approval_id: Annotated[Identifier | None, Field(validate_default=True)] = None
    derived_from: Annotated[tuple[Identifier, ...], Field(validate_default=True)] = ()
    metadata: Annotated[Metadata, Field(validate_default=True)] = None  # type: ignore[assignment]

    @field_validator("observed_at", "approval_id", mode="after")
    @classmethod
    def _needed_by_kind(cls, value: Any, info: ValidationInfo) -> Any:
        kind = info.data.get("kind")
        if value is None and kind is Kind.EPISODIC and info.field_name == "observed_at":
            raise InvalidValueError(
                Reason.METADATA_MISMATCH,
                "an episodic cell needs the time at which it was observed",
                remedy="give observed_at with a zone",
            )
        if value is not None and info.field_name == "approval_id" and kind in WITNESSED_KINDS:
            raise InvalidValueError(
                Reason.METADATA_MISMATCH,
                f"what was witnessed carries no approval, and a {kind} cell was",
                remedy="leave it out",
            )
        if value is None and kind in DERIVED_KINDS and info.field_name == "approval_id":
            raise InvalidValueError(
                Reason.APPROVAL_REQUIRED,
                f"a {kind} cell is derived memory and keeps the id of its approval",
                remedy="propose it and have it approved",
            )
        return value

    @field_validator("metadata", mode="wrap")
    @classmethod
    def _metadata_of_kind(cls, value: Any, _handler: Any, info: ValidationInfo) -> Any:
        kind = info.data.get("kind")
        if kind is None:  # the kind itself was refused; one error is enough
            return value
        wanted = METADATA_OF_KIND[kind]
        if isinstance(value, _Metadata) and not isinstance(value, wanted):
            raise InvalidValueError(
                Reason.METADATA_MISMATCH,
                f"a {kind} cell takes {wanted.__name__}",
                value=type(value).__name__,
                remedy="give the metadata of the cell's kind",
            )
        return wanted.model_validate({} if value is None else value)

    @field_validator("derived_from", mode="after")
    @classmethod
    def _each_source_once(cls, value: tuple[str, ...], info: ValidationInfo) -> tuple[str, ...]:
        if len(set(value)) != len(value):
            raise ValueError("names a source twice")
        if not value and info.data.get("kind") in DERIVED_KINDS:
            raise InvalidValueError(
                Reason.APPROVAL_REQUIRED,
                "derived memory keeps the ids of the cells it came from",
                remedy="name at least one source cell",
            )
        return value


class Cell(Value):
    """A cell as the store holds it at one revision (paper: typed cells, Orion).

    The id is made from the first revision's content and never changes; `revision` counts from 1.
    """

    id: str
    revision: int
    kind: Kind
    scope: str
    content: str
    summary: str
    source: Provenance
    confidence: float
    importance: float
    observed_at: datetime | None
    created_at: datetime
    expires_at: datetime | None
    lifecycle: Lifecycle
    metadata: Metadata
    approval_id: str | None
    derived_from: tuple[str, ...]

    def is_active(self, at: datetime) -> bool:
        """Tell whether the cell is active at an instant: expiry begins at expires_at itself."""
        return self.lifecycle is Lifecycle.ACTIVE and (
            self.expires_at is None or at < self.expires_at
        )

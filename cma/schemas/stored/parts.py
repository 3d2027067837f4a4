"""What every record is made of."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from cma.rosette.snapshot_form import Sha256
from cma.values.validation import MILLION

Millionths = Annotated[int, Field(ge=0, le=MILLION)]
Time = Annotated[str, Field(pattern=r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,6})?Z$")]
Decimal = Annotated[str, Field(pattern=r"^-?\d+(\.\d+)?(e[+-]?\d+)?$")]
Scope = Annotated[str, Field(pattern=r"^(global|session:.+)$")]


class Record(BaseModel):
    """A record: closed, with no part more than is declared."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class Filed(Record):
    """A record of the later versions: filed under an id made of its identity."""

    at: Time
    by: str
    id: str
    refs: list[str]
    scope: Scope
    subject: str | None


class Nothing(Record):
    """No details."""


class Left(Record):
    """No details, or those of a record whose text was erased: the digest of what it was."""

    erased: Sha256 | None = None

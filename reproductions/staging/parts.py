"""What every file of the tree is made of: closed, frozen parts and the types of their fields."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

Digest = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
Name = Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]*$")]
Count = Annotated[int, Field(ge=0, le=2**53 - 1)]
Number = int | float
Scalar = bool | int | float | str | None


class Part(BaseModel):
    """A part of a file: frozen, and no field more than is declared."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class File(Part):
    """A whole file."""

    format: Literal["cma.stage150/1"] = "cma.stage150/1"

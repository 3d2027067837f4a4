"""The harness's own files as they are written: strict, where reading them is lenient.

`results` reads what earlier and later versions wrote and leaves out what it does not know; these
models say exactly what a file of this version holds, and the schemas are made from them.
"""

from __future__ import annotations

from typing import Annotated, Literal, NotRequired

from pydantic import BaseModel, ConfigDict, Field, RootModel
from typing_extensions import TypedDict  # the one that pydantic reads before Python 3.12

Digest = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
Number = int | float


_CLOSED = ConfigDict(extra="forbid", strict=True)


class _Exact(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class WrittenFigure(TypedDict):
    """One headline figure; interval and control are absent where they were not measured."""

    __pydantic_config__ = _CLOSED  # type: ignore[misc]
    value: Number
    unit: str
    n: Number
    interval: NotRequired[Annotated[list[Number], Field(min_length=2, max_length=2)]]
    control: NotRequired[Number]


class FigureOfRun(TypedDict):
    """A headline figure with the run that measured it."""

    __pydantic_config__ = _CLOSED  # type: ignore[misc]
    value: Number
    unit: str
    n: NotRequired[Number]
    interval: NotRequired[Annotated[list[Number], Field(min_length=2, max_length=2)]]
    control: NotRequired[Number]
    run: str


class WrittenError(_Exact):
    """Why a run failed."""

    type: str
    message: str


class WrittenSource(_Exact):
    """One data file that a run read."""

    name: str
    sha256: str
    licence: str
    origin: str


class ResultFile(_Exact):
    """`result.json`: what a run found, the same on every machine."""

    format: Literal["cma.result/1"]
    experiment: str
    run_id: Annotated[str, Field(pattern=r"^[0-9a-f]{16}$")]
    config_hash: Digest
    source_digest: Digest
    seed: int
    status: Literal["ok", "failed"]
    error: WrittenError | None
    data: list[WrittenSource]
    figures: dict[str, WrittenFigure]
    tables: list[str]
    table_digests: dict[str, Digest]
    notes: list[str]
    result_digest: Digest


class MachineRecord(_Exact):
    """`machine.json`: what may differ between two machines or moments."""

    started_at: str
    finished_at: str
    seconds: float
    python: str
    packages: dict[str, str]
    platform: str
    cpu_count: int | None
    device: str
    driver: str = ""
    """Of the accelerator; absent where there was none."""
    git_revision: str | None
    git_dirty: bool | None
    overrides: list[str]
    figures: dict[str, WrittenFigure]
    table_digests: dict[str, Digest]


class FiguresFile(RootModel[dict[str, FigureOfRun]]):
    """`figures.json`: every headline figure by key."""

"""Files around the evidence, and every kind of file by name.

Strict, frozen values without any place, host or time. Settings of runs are told by digest alone;
times, run ids and machines stand in `machine.json`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from reproductions.staging.evidence import (
    Checks,
    Condition,
    Contract,
    Failure,
    Graph,
    Traversals,
)
from reproductions.staging.parts import Count, Digest, File, Name, Number, Part, Scalar

EXPERIMENTS = ("contract_tally", "delta_norm", "failure_matrix", "graph_fixture")
"""Those whose results the tree is made of."""


class Figure(Part):
    """One headline figure of a run."""

    value: Number
    unit: str
    n: Number
    interval: list[Number] | None = None
    control: Number | None = None


class RunFile(File):
    """What a run came to: state, settings and sources by digest, figures, tables by digest."""

    kind: Literal["run"] = "run"
    experiment: Name
    status: Literal["ok", "failed"]
    error: str | None
    as_configured: bool
    """Whether it had the settings of the repository."""
    seed: int | None
    config_hash: Digest
    source_digest: Digest
    figures: dict[str, Figure]
    tables: dict[str, Digest]
    notes: list[str]


class ClaimRow(Part):
    """One judged claim, without run and device."""

    id: str
    statement: str
    section: str
    judge: Literal["exact", "structural", "by_construction", "not_comparable"]
    paper_value: Scalar
    unit: str
    measured: int | float | str | None
    numerator: Number | None
    denominator: Number | None
    verdict: str
    why: str


class ClaimsTable(File):
    """The paper's claims judged over the same runs; those on the tree itself are judged later."""

    kind: Literal["claims"] = "claims"
    source: str
    judged_without: list[str]
    verdicts: dict[str, Count]
    claims: list[ClaimRow]


class Environment(File):
    """What the tree was made from and with what, the same on every machine."""

    kind: Literal["environment"] = "environment"
    project: str
    version: str
    licence: str
    python: str
    source_digest: Digest
    packages: dict[str, str]
    """Pinned releases by package."""


class MachineRun(Part):
    """Where and when one run was made."""

    experiment: Name
    run_id: str
    started_at: str
    finished_at: str
    seconds: Number | None
    python: str
    platform: str
    cpu_count: int | None
    device: str
    git_revision: str | None
    git_dirty: bool | None
    packages: dict[str, str]


class MachineFile(File):
    """The one file that may differ between two trees of equal results."""

    kind: Literal["machine"] = "machine"
    runs: list[MachineRun]


class Check(Part):
    """One thing that a gate asks; `observed` is null where no file tells it."""

    what: str
    required: Scalar
    observed: Scalar
    passed: bool


class Gate(File):
    """One release gate: passed only if each of its checks is."""

    kind: Literal["gate"] = "gate"
    gate: Name
    title: str
    passed: bool
    checks: list[Check]


class Entry(Part):
    """One file of the tree as the manifest lists it."""

    path: str
    kind: Name
    bytes: Count
    sha256: Digest


class Excepted(Entry):
    """A file whose digest stands outside of the comparable one, and why."""

    why: str


class Manifest(File):
    """Every other file with size and digest; `comparable_sha256` covers `files` alone."""

    kind: Literal["manifest"] = "manifest"
    files: list[Entry]
    excepted: list[Excepted]
    comparable_sha256: Digest


FORMS: Mapping[str, type[File]] = {
    "contract": Contract,
    "failure": Failure,
    "graph": Graph,
    "traversals": Traversals,
    "condition": Condition,
    "checks": Checks,
    "run": RunFile,
    "claims": ClaimsTable,
    "environment": Environment,
    "machine": MachineFile,
    "gate": Gate,
    "manifest": Manifest,
}
"""Every kind of file but the schemas themselves."""


def content_of(file: File) -> dict[str, Any]:
    """Return the content of a file as plain JSON values; what is not given is null."""
    return file.model_dump(mode="json")

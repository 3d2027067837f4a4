"""Files of evidence: contracts, injected faults, the graph, the frozen-model diagnostic.

Labels of graph nodes are left out: they may hold what a session keeps to itself.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from reproductions.staging.parts import Count, Digest, File, Name, Part


class Contract(File):
    """One contract of the catalogue and what its tests came to."""

    kind: Literal["contract"] = "contract"
    contract: Annotated[str, Field(pattern=r"^[OTLER][0-9]{2}$")]
    version: Literal["orion", "trifid", "lagoon", "eagle", "rosette"]
    title: str
    outcome: Literal["passed", "failed", "missing"]


class Artifact(Part):
    """A failure record in the audit chain of the row's store."""

    audit_seq: Count
    reason: str
    hash: Digest


class Failure(File):
    """One injected fault, the required response, and what came of it."""

    kind: Literal["failure"] = "failure"
    case: Name
    group: str
    injected: str
    required: Literal["reject", "preserve", "fail_closed"]
    observed: str
    reasons: list[str]
    digest_before: str
    digest_after: str
    artifacts: list[Artifact]
    passed: bool
    fell_short: Literal["", "response", "digest", "artifact"]


class Node(Part):
    """A node by a short name; q and r: its place in the honeycomb; reached: how many from it."""

    name: str
    scale: str
    q: int
    r: int
    reached: Count
    id: str


class Edge(Part):
    """An edge between two nodes."""

    adjacency: str
    source: str
    target: str


class Way(Part):
    """One way of seeing the graph, and the digest of what was seen."""

    way: str
    digest: Digest
    starts: Count


class Graph(File):
    """The five-node graph and the ways in which it was seen."""

    kind: Literal["graph"] = "graph"
    nodes: list[Node]
    edges: list[Edge]
    ways: list[Way]


class Cut(Part):
    """A node that a bound kept from being visited."""

    node: str
    reason: str


class Traversal(Part):
    """What was visited from one start under one set of bounds, in order."""

    bounds: str
    start: str
    order: list[str]
    cut: list[Cut]


class Traversals(File):
    """Every traversal of the graph."""

    kind: Literal["traversals"] = "traversals"
    traversals: list[Traversal]


class Site(Part):
    """What one condition added at one site; norms are absent where the adapter is off."""

    dtype: str
    place: Count
    site: str
    delta_norm: float | None
    applied_norm: float | None
    mean_token_norm: float | None
    tokens: Count | None
    slots: Count | None
    calls: Count
    finite: bool | None
    logits_equal: bool


class Condition(File):
    """One condition of the frozen-model diagnostic, at every site and in every type of number."""

    kind: Literal["condition"] = "condition"
    condition: Name
    sites: list[Site]


class Checks(File):
    """What was held against the frozen model in one type of number."""

    kind: Literal["checks"] = "checks"
    dtype: Name
    model: str
    weights: str
    context: list[Count]
    parameters: Count
    trainable: Count
    gradients: Count
    weights_unchanged: bool
    logits_equal_without_memory: bool
    logits_differ_with_memory: bool
    fingerprint: Digest
    receipt: str

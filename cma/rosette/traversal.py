"""Traversal: breadth first, in one order, bounded by scale, adjacency, depth and budget."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterable
from enum import StrEnum
from typing import TypeVar

from cma.rosette.graph import Adjacency, GraphView, Scale
from cma.values.errors import InvalidValueError, NotFoundError, Reason
from cma.values.identity import MAX_INTEGER
from cma.values.validation import Value, checked_id

Name = TypeVar("Name", bound=StrEnum)


class Cut(Value):
    """A node that was seen and not visited, and the bound that stopped it.

    reason: `scale`, `adjacency`, `depth` or `budget`. Where several edges lead to it, the first
    says so; a node that no filter stops on some edge is cut by the budget alone.
    """

    node: str
    reason: str


class Traversal(Value):
    """What was visited, in order, and what was cut (paper: bounded deterministic traversal)."""

    start: str
    scales: tuple[Scale, ...]
    adjacencies: tuple[Adjacency, ...]
    depth: int | None
    budget: int
    order: tuple[str, ...]
    cut: tuple[Cut, ...]


def traverse(
    view: GraphView,
    start: str,
    *,
    scales: Iterable[str] | None = None,
    adjacencies: Iterable[str] | None = None,
    depth: int | None = None,
    budget: int = 64,
) -> Traversal:
    """Visit nodes from a start, along edges in both directions.

    Neighbours come by (adjacency, id). scales, adjacencies: those alone (all by default). depth:
    how many edges away at most (no bound by default). budget: how many nodes at most, at least 1.

    Raises NotFoundError (`node-not-found`), InvalidValueError (`budget-invalid`, `field-invalid`).
    """
    own_scales = _names(Scale, scales, "scales")
    own_adjacencies = _names(Adjacency, adjacencies, "adjacencies")
    _check_number(budget, "budget", least=1)
    if depth is not None:
        _check_number(depth, "depth", least=0)
    scale_of = {node.id: node.scale for node in view.nodes}
    checked_id(start, field="start")
    if start not in scale_of or scale_of[start] not in own_scales:
        raise NotFoundError(
            Reason.NODE_NOT_FOUND,
            "the graph has no such node among these scales",
            field="start",
            value=start,
            remedy="take a node's id from memory.graph().nodes",
        )
    neighbours: dict[str, list[tuple[Adjacency, str]]] = defaultdict(list)
    for edge in view.edges:
        neighbours[edge.source].append((edge.adjacency, edge.target))
        neighbours[edge.target].append((edge.adjacency, edge.source))
    order: list[str] = []
    cut: dict[str, str] = {}
    seen = {start}
    waiting = deque([(start, 0)])
    while waiting:
        node, distance = waiting.popleft()
        if len(order) >= budget:
            cut[node] = "budget"
            continue
        order.append(node)
        for adjacency, other in sorted(neighbours[node]):
            if other in seen:
                continue
            if adjacency not in own_adjacencies:
                cut.setdefault(other, "adjacency")
            elif scale_of[other] not in own_scales:
                cut.setdefault(other, "scale")
            elif depth is not None and distance >= depth:
                cut.setdefault(other, "depth")
            else:
                seen.add(other)
                waiting.append((other, distance + 1))
    visited = set(order)
    return Traversal(
        start=start,
        scales=own_scales,
        adjacencies=own_adjacencies,
        depth=depth,
        budget=budget,
        order=tuple(order),
        cut=tuple(
            Cut(node=node, reason=reason)
            for node, reason in sorted(cut.items())
            if node not in visited
        ),
    )


def _names(kind: type[Name], given: Iterable[str] | None, field: str) -> tuple[Name, ...]:
    if given is None:
        return tuple(kind)
    valid = {each.value: each for each in kind}
    asked: list[object] = (
        [given] if isinstance(given, str) or not isinstance(given, Iterable) else list(given)
    )
    for name in asked:
        if not isinstance(name, str) or name not in valid:
            raise InvalidValueError(
                Reason.FIELD_INVALID,
                "not one of the names",
                field=field,
                value=name,
                remedy=f"use {', '.join(valid)}",
            )
    return tuple(each for each in kind if each.value in asked)


def _check_number(value: object, field: str, *, least: int) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= MAX_INTEGER:
        raise InvalidValueError(
            Reason.BUDGET_INVALID,
            f"a whole number of at least {least}; nothing means unlimited",
            field=field,
            value=value,
            remedy="give how far the traversal may go",
        )

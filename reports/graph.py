"""The section of `graph_fixture`: the graph as a honeycomb, its nodes, edges and traversals."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import hypot, sqrt
from typing import Any

from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import FancyArrowPatch, RegularPolygon

from reports.plots import GREEN, ORANGE, SKY, Plot, Theme
from reports.tables import Table, table
from reproductions.results import Run

SCALES = {"control": ORANGE, "schema": SKY, "episode": GREEN}
LINES: Mapping[str, Any] = {
    "temporal": "-",
    "derivation": (0, (5, 2)),
    "governance": (0, (1, 1.6)),
}
OTHER_SCALE = "#8c8c8c"
HEX_INK = "#1d2733"
"""Dark on every fill, in both themes."""
RADIUS = 0.56
BENDS = (0.0, -0.3, 0.3, -0.45, 0.45)
"""How far an edge may curve, by share of its length: the first that passes no other node."""

Rows = Sequence[Mapping[str, str]]


@dataclass(frozen=True)
class Hexagon:
    """A node in the picture: its short name, its scale, and the middle of its hexagon."""

    name: str
    scale: str
    x: float
    y: float


def build(run: Run, anchor: str) -> tuple[str, tuple[Table, ...], tuple[Plot, ...]]:
    """Return the finding, the tables and the picture."""
    nodes = run.needed("nodes.csv", "a graph fixture")
    edges, ways, traversal = (
        run.table(f"{name}.csv") or [] for name in ("edges", "ways", "traversal")
    )
    hexagons = [_hexagon(row) for row in nodes]
    for row in edges:
        if not {row["source"], row["target"]} <= {each.name for each in hexagons}:
            raise ValueError(f"an edge from {row['source']} to {row['target']}, which is no node")
    tables = (
        table(
            f"{anchor}-nodes", "Nodes", nodes,
            {"name": "Node", "scale": "Scale", "label": "What it says", "q": "q", "r": "r",
             "reached": "Reached from it"},
            caption="q and r: axial place in the honeycomb. Reached: nodes visited in one and the "
            "same order in every way of seeing the graph.",
        ),
        table(
            f"{anchor}-edges", "Edges", edges,
            {"adjacency": "Adjacency", "source": "From", "target": "To"},
            caption="Derivation leads from an abstraction to the episodes that share its sources, "
            "governance from a decision to what its conflict is about.",
        ),
        table(
            f"{anchor}-ways", "The graph seen in several ways",
            [{**row, "same": "yes" if row["same"] == "True" else "NO"} for row in ways],
            {"way": "Way", "same": "Same graph and orders", "starts": "Starts",
             "digest": "Digest of the graph"},
        ),
        table(
            f"{anchor}-traversal", "Every traversal", traversal,
            {"bounds": "Bounds", "start": "Start", "place": "Place", "node": "Node",
             "cut": "Cut by"},
            caption="Place: when the node was visited. Cut by: the bound that stopped it instead.",
            folded=True,
        ),
    )  # fmt: skip
    plot = honeycomb(f"{anchor}-honeycomb", hexagons, edges, _alternative(nodes, edges))
    return _finding(nodes, edges, ways), tables, (plot,)


def honeycomb(name: str, hexagons: Sequence[Hexagon], edges: Rows, alternative: str) -> Plot:
    """Draw one hexagon a node, coloured by scale, and each edge in the style of its adjacency."""
    place = {each.name: each for each in hexagons}

    def draw(theme: Theme) -> Figure:
        xs, ys = [each.x for each in hexagons], [each.y for each in hexagons]
        width, height = max(xs) - min(xs) + 2, max(ys) - min(ys) + 2
        figure = Figure(figsize=(min(10.0, width * 0.95 + 1.4), min(10.0, height * 0.95)))
        axes = figure.add_subplot()
        patches = {}
        for each in hexagons:
            patches[each.name] = axes.add_patch(
                RegularPolygon(
                    (each.x, each.y), 6, radius=RADIUS, zorder=2, linewidth=1.2,
                    facecolor=SCALES.get(each.scale, OTHER_SCALE), edgecolor=theme.ink,
                )
            )  # fmt: skip
            axes.text(
                each.x, each.y, each.name, ha="center", va="center", zorder=3, fontsize=11,
                fontweight="bold", color=HEX_INK,
            )  # fmt: skip
        for row in edges:
            one, other = place[row["source"]], place[row["target"]]
            axes.add_patch(
                FancyArrowPatch(
                    (one.x, one.y), (other.x, other.y), patchA=patches[one.name],
                    patchB=patches[other.name], shrinkA=1, shrinkB=1, arrowstyle="-|>",
                    mutation_scale=9, linewidth=1.3, zorder=1, color=theme.ink,
                    linestyle=LINES.get(row["adjacency"], "-."),
                    connectionstyle=f"arc3,rad={bend(one, other, hexagons)}",
                )
            )  # fmt: skip
        axes.set_xlim(min(xs) - 1, max(xs) + 1)
        axes.set_ylim(min(ys) - 1, max(ys) + 1)
        axes.set_aspect("equal")
        axes.set_axis_off()
        scales = dict.fromkeys(each.scale for each in hexagons)
        handles = [
            Line2D(
                [], [], marker="h", linestyle="none", markersize=11, markeredgecolor=theme.ink,
                markerfacecolor=SCALES.get(scale, OTHER_SCALE),
                label=f"{scale[:1].upper()}: {scale}",
            )
            for scale in scales
        ]  # fmt: skip
        handles += [
            Line2D([], [], color=theme.ink, linewidth=1.3, linestyle=LINES.get(each, "-."),
                   label=each)
            for each in dict.fromkeys(row["adjacency"] for row in edges)
        ]  # fmt: skip
        figure.legend(handles=handles, loc="outside right center", fontsize=8, handlelength=2.8)
        return figure

    return Plot(name, "The graph as a honeycomb", alternative, draw)


def bend(one: Hexagon, other: Hexagon, hexagons: Sequence[Hexagon]) -> float:
    """Return how far the edge between two hexagons curves so as to pass no third one."""
    thirds = [each for each in hexagons if each.name not in (one.name, other.name)]
    for share in BENDS:
        # The curve of matplotlib's arc3: quadratic, its control point beside the middle.
        across, up = other.x - one.x, other.y - one.y
        control = ((one.x + other.x) / 2 + share * up, (one.y + other.y) / 2 - share * across)
        points = [_on_curve(step / 16, one, control, other) for step in range(1, 16)]
        if all(hypot(x - each.x, y - each.y) > RADIUS for x, y in points for each in thirds):
            return share
    return 0.0


def _on_curve(
    at: float, one: Hexagon, control: tuple[float, float], other: Hexagon
) -> tuple[float, float]:
    first, middle, last = (1 - at) ** 2, 2 * at * (1 - at), at**2
    return (
        first * one.x + middle * control[0] + last * other.x,
        first * one.y + middle * control[1] + last * other.y,
    )


def _hexagon(row: Mapping[str, str]) -> Hexagon:
    q, r = int(row["q"]), int(row["r"])
    return Hexagon(row["name"], row["scale"], sqrt(3) * (q + r / 2), -1.5 * r)


def _finding(nodes: Rows, edges: Rows, ways: Rows) -> str:
    scales = len({row["scale"] for row in nodes})
    kinds = len({row["adjacency"] for row in edges})
    fewest = min(int(row["reached"]) for row in nodes)
    reached = "all" if fewest == len(nodes) else f"at least {fewest} of {len(nodes)}"
    same = sum(row["same"] == "True" for row in ways)
    return (
        f"{len(nodes)} nodes of {scales} scales, joined by {kinds} types of adjacency; from every "
        f"start {reached} are reached, each time in the same order; "
        f"{same} of {len(ways)} ways of seeing the graph agree."
    )


def _alternative(nodes: Rows, edges: Rows) -> str:
    by_scale = Counter(row["scale"] for row in nodes)
    parts = [
        f"{count} {scale} ({', '.join(row['name'] for row in nodes if row['scale'] == scale)})"
        for scale, count in by_scale.items()
    ]
    joined = [
        adjacency
        + " "
        + ", ".join(
            f"{row['source']} to {row['target']}" for row in edges if row["adjacency"] == adjacency
        )
        for adjacency in dict.fromkeys(row["adjacency"] for row in edges)
    ]
    return (
        f"Honeycomb of {len(nodes)} nodes from the middle outwards: {'; '.join(parts)}. "
        f"Edges: {'; '.join(joined) or 'none'}."
    )

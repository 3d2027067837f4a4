"""Plots as PNG and SVG, the same bytes for the same results.

Colours are the Okabe-Ito palette, told apart by marker as well; every axis is labelled with its
unit; lines are named where they end. Each plot has a light and a dark version: files are light, the
page shows the one that the reader's system asks for.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure


@dataclass(frozen=True)
class Theme:
    """Ink and paper of one version of a plot."""

    paper: str
    ink: str
    muted: str
    grid: str
    peer: str


LIGHT = Theme(paper="#ffffff", ink="#1d2733", muted="#5b6875", grid="#e4e8ec", peer="#1d2733")
DARK = Theme(paper="#171c22", ink="#e6eaee", muted="#9aa6b2", grid="#2c343d", peer="#e6eaee")

ORANGE, SKY, GREEN, BLUE = "#E69F00", "#56B4E9", "#009E73", "#0072B2"
VERMILLION, PURPLE = "#D55E00", "#CC79A7"
_COLOURS = {
    "overlap": VERMILLION,
    "idf_overlap": BLUE,
    "jaccard": PURPLE,
    "bm25": GREEN,
}
_MARKERS = {"overlap": "o", "idf_overlap": "s", "jaccard": "v", "bm25": "D"}
_OTHERS = ((ORANGE, "^"), (SKY, "P"), ("#8c8c8c", "X"))


@dataclass(frozen=True)
class Plot:
    """One drawing: `draw` makes it for a theme."""

    name: str
    title: str
    alternative: str
    """What the plot shows, in words and numbers, for those who cannot see it."""
    draw: Callable[[Theme], Figure]

    def svg(self, theme: Theme) -> str:
        """Return the drawing as SVG text without date or program name."""
        with mpl.rc_context(_settings(theme)):
            buffer = io.StringIO()
            nothing = {"Date": None, "Creator": None, "Format": None, "Type": None}
            self.draw(theme).savefig(buffer, format="svg", metadata=nothing)
        return buffer.getvalue()

    def pdf(self) -> bytes:
        """Return the light version as PDF for print: letters stay letters, no date."""
        nothing = {"CreationDate": None, "Creator": None, "Producer": None}
        with mpl.rc_context(_settings(LIGHT) | {"pdf.fonttype": 42}):
            buffer = io.BytesIO()
            self.draw(LIGHT).savefig(buffer, format="pdf", metadata=nothing)
        return buffer.getvalue()

    def write(self, folder: Path) -> list[Path]:
        """Write the light version as SVG and PNG; return the paths."""
        folder.mkdir(parents=True, exist_ok=True)
        vector, pixels = folder / f"{self.name}.svg", folder / f"{self.name}.png"
        vector.write_text(self.svg(LIGHT), encoding="utf-8")
        with mpl.rc_context(_settings(LIGHT)):
            figure = self.draw(LIGHT)
            FigureCanvasAgg(figure)
            figure.savefig(pixels, format="png", dpi=200, metadata={"Software": None})
        return [pixels, vector]


def _settings(theme: Theme) -> Any:  # matplotlib types its keys by name
    return {
        "svg.hashsalt": "cma",
        "svg.fonttype": "path",
        "font.family": "DejaVu Sans",
        "font.size": 9,
        "axes.titlesize": 10,
        "axes.titleweight": "bold",
        "axes.titlelocation": "left",
        "axes.labelcolor": theme.muted,
        "axes.edgecolor": theme.grid,
        "axes.facecolor": theme.paper,
        "axes.spines.top": False,
        "axes.spines.right": False,
        "axes.grid": True,
        "axes.axisbelow": True,
        "grid.color": theme.grid,
        "grid.linewidth": 0.8,
        "text.color": theme.ink,
        "xtick.color": theme.muted,
        "ytick.color": theme.muted,
        "xtick.labelcolor": theme.ink,
        "ytick.labelcolor": theme.ink,
        "xtick.major.size": 0,
        "ytick.major.size": 0,
        "figure.facecolor": theme.paper,
        "figure.constrained_layout.use": True,
        "legend.frameon": False,
    }


@dataclass(frozen=True)
class Series:
    """One scorer of one engine; `points` maps an x value to (value, low, high)."""

    scorer: str
    engine: str
    label: str
    points: Mapping[Any, tuple[float, float, float]]


def style_of(scorer: str, engine: str, theme: Theme, others: Sequence[str]) -> dict[str, Any]:
    """Return colour, marker and line of a series; the outside peer is dashed and hollow."""
    if engine != "cma":
        return {"color": theme.peer, "marker": "D", "linestyle": (0, (3, 2)), "mfc": theme.paper}
    if scorer in _COLOURS:
        return {"color": _COLOURS[scorer], "marker": _MARKERS[scorer], "linestyle": "-"}
    colour, marker = _OTHERS[list(others).index(scorer) % len(_OTHERS)]
    return {"color": colour, "marker": marker, "linestyle": "-"}


def tally_bars(name: str, rows: Sequence[tuple[str, int, int, int]], alternative: str) -> Plot:
    """Bars of contracts: passed, failed, and those for which no test ran, by version."""

    def draw(theme: Theme) -> Figure:
        figure = Figure(figsize=(7.2, 0.42 * len(rows) + 1.25))
        axes = figure.add_subplot()
        for place, (_, passed, failed, missing) in enumerate(rows):
            left = 0
            for count, colour, hatch in (
                (passed, BLUE, ""),
                (failed, VERMILLION, "////"),
                (missing, theme.grid, ""),
            ):
                axes.barh(
                    place, count, left=left, height=0.62, color=colour, hatch=hatch,
                    edgecolor=theme.paper, linewidth=0,
                )  # fmt: skip
                left += count
            text = f"{passed} of {left} passed" + (f", {failed} failed" if failed else "")
            if missing:
                text = "not run" if missing == left else f"{text}, {missing} not run"
            axes.text(left + 0.5, place, text, va="center", color=theme.ink)
        longest = max((passed + failed + missing for _, passed, failed, missing in rows), default=1)
        axes.set_xlim(0, longest * 1.38)
        axes.set_yticks(range(len(rows)), [row[0] for row in rows])
        axes.invert_yaxis()
        axes.grid(visible=False, axis="y")
        axes.spines["left"].set_visible(False)
        axes.set_xlabel("contracts (count)")
        return figure

    return Plot(name, "Contracts by version", alternative, draw)


def recall_curves(
    name: str, panels: Mapping[str, Sequence[Series]], title: str, alternative: str
) -> Plot:
    """Recall at k, one panel an analyser, with intervals as whiskers."""
    others = _others(panels)

    def draw(theme: Theme) -> Figure:
        figure = Figure(figsize=(4.6 * max(len(panels), 1), 4.1))
        grid = figure.subplots(1, max(len(panels), 1), sharey=True, squeeze=False)[0]
        top = _highest(panels)
        for axes, (panel, series) in zip(grid, panels.items(), strict=False):
            cuts = sorted({k for each in series for k in each.points})
            place = {k: index for index, k in enumerate(cuts)}
            for order, each in enumerate(series):
                keys = sorted(each.points)
                shift = 0.05 * (order - (len(series) - 1) / 2)
                values = [each.points[k][0] for k in keys]
                below = [each.points[k][0] - each.points[k][1] for k in keys]
                above = [each.points[k][2] - each.points[k][0] for k in keys]
                axes.errorbar(
                    [place[k] + shift for k in keys], values, yerr=[below, above],
                    linewidth=1.5, markersize=4.5, elinewidth=0.9, capsize=0,
                    **style_of(each.scorer, each.engine, theme, others),
                )  # fmt: skip
            _end_labels(axes, series, len(cuts) - 1, top, theme, others)
            axes.set_xticks(range(len(cuts)), [str(k) for k in cuts])
            axes.set_xlim(-0.3, len(cuts) - 1 + 1.55)
            axes.set_ylim(0, min(1.03, top * 1.08))
            axes.set_title(f"{panel} analyser")
            axes.set_xlabel("cells recalled, k (count)")
            axes.grid(visible=False, axis="x")
        grid[0].set_ylabel("recall@k (share of evidence turns)")
        return figure

    return Plot(name, title, alternative, draw)


def _end_labels(
    axes: Axes,
    series: Sequence[Series],
    last: int,
    top: float,
    theme: Theme,
    others: Sequence[str],
) -> None:
    """Name each line at its right end, moved apart where they would touch."""
    gap = 0.052 * top
    ends = sorted(
        ((each.points[max(each.points)][0], each) for each in series), key=lambda end: end[0]
    )
    heights: list[float] = []
    for value, _ in ends:
        heights.append(max(value, heights[-1] + gap) if heights else value)
    surplus = (heights[-1] - ends[-1][0]) / 2 if heights else 0.0
    for (_, each), height in zip(ends, heights, strict=True):
        style = style_of(each.scorer, each.engine, theme, others)
        axes.text(
            last + 0.26, height - surplus, each.label, va="center", fontsize=8, color=style["color"]
        )


def category_dots(
    name: str,
    panels: Mapping[str, Sequence[Series]],
    categories: Sequence[tuple[str, str]],
    title: str,
    alternative: str,
) -> Plot:
    """Recall@10 by question category with intervals, one panel an analyser."""
    others = _others(panels)

    def draw(theme: Theme) -> Figure:
        figure = Figure(figsize=(4.6 * max(len(panels), 1), 0.95 * len(categories) + 1.5))
        grid = figure.subplots(1, max(len(panels), 1), sharey=True, squeeze=False)[0]
        handles: dict[str, Any] = {}
        top = _highest(panels)
        for axes, (panel, series) in zip(grid, panels.items(), strict=False):
            step = 0.78 / max(len(series), 1)
            for order, each in enumerate(series):
                shown = [
                    (i, each.points[key])
                    for i, (key, _) in enumerate(categories)
                    if key in each.points
                ]
                shift = step * (order - (len(series) - 1) / 2)
                style = style_of(each.scorer, each.engine, theme, others) | {"linestyle": "none"}
                handles.setdefault(
                    each.label,
                    axes.errorbar(
                        [point[0] for _, point in shown], [i + shift for i, _ in shown],
                        xerr=[
                            [point[0] - point[1] for _, point in shown],
                            [point[2] - point[0] for _, point in shown],
                        ],
                        markersize=5, elinewidth=1.3, capsize=0, **style,
                    ),
                )  # fmt: skip
            for edge in range(1, len(categories)):
                axes.axhline(edge - 0.5, color=theme.grid, linewidth=0.8)
            axes.set_yticks(range(len(categories)), [label for _, label in categories])
            axes.set_ylim(len(categories) - 0.5, -0.5)
            axes.set_xlim(0, min(1.03, top * 1.06))  # a mark at 1.0 is seen whole
            axes.set_title(f"{panel} analyser")
            axes.set_xlabel("recall@10 (share of evidence turns)")
            axes.grid(visible=False, axis="y")
        figure.legend(
            handles.values(), handles.keys(), loc="outside upper left", ncols=min(len(handles), 6),
            fontsize=8, handletextpad=0.3, columnspacing=1.4,
        )  # fmt: skip
        return figure

    return Plot(name, title, alternative, draw)


def _highest(panels: Mapping[str, Sequence[Series]]) -> float:
    """Return the upper end of the highest interval."""
    return max(
        (p[2] for each in panels.values() for s in each for p in s.points.values()), default=1
    )


def _others(panels: Mapping[str, Sequence[Series]]) -> list[str]:
    named = {each.scorer for series in panels.values() for each in series if each.engine == "cma"}
    return sorted(named - set(_COLOURS))

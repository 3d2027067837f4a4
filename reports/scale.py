"""The section of `scale`: latency against cells with its slope, and what a store costs.

The slope is of the straight line through the medians of an engine on logarithmic axes: 1 means
that ten times the cells take ten times as long.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from matplotlib.figure import Figure

from reports.plots import BLUE, GREEN, ORANGE, PURPLE, SKY, VERMILLION, Plot, Theme
from reports.tables import Table, table
from reproductions.inputs import CorruptInputError, finite
from reproductions.results import Run

MIXES = {"zipf": "words as common as in the cells", "rare": "without the hundred commonest words"}
OURS = ("cma index", "cma recall")
NAMES = {"cma": "CMA", "bm25s": "bm25s", "tantivy": "tantivy", "fts5": "SQLite FTS5",
         "cma index": "CMA, index search", "cma recall": "CMA, audited recall"}  # fmt: skip
COSTS = {"build_s": "Build, s", "load_s": "Load, s", "append_ms": "Append, ms",
         "memory_mb": "Memory, MB", "disk_mb": "On disk, MB"}  # fmt: skip
_STYLES = ((BLUE, "o"), (SKY, "s"), (VERMILLION, "D"), (GREEN, "^"), (PURPLE, "v"), (ORANGE, "P"))


@dataclass(frozen=True)
class Latency:
    """One way of asking over one size and mix, in milliseconds."""

    cells: int
    mix: str
    engine: str
    median: float
    p95: float
    p99: float
    n: int


def build(run: Run, anchor: str) -> tuple[str, tuple[Table, ...], tuple[Plot, ...]]:
    """Return the finding, the tables and the plot."""
    values = _latencies(run)
    tables = [_latency(values, anchor), *_slopes(values, anchor), _costs(run, anchor)]
    exactness = run.table("exactness.csv") or []
    if exactness:
        tables.append(
            table(
                f"{anchor}-exactness", "Answers held against brute force", exactness,
                {"cells": "Cells", "questions": "Questions", "equal": "Equal"},
                caption="Equal: the same ten cells in the same order with the same scores.",
            )
        )  # fmt: skip
    missing = sorted(set(_asked(run)) - {row["engine"] for row in run.table("costs.csv") or []})
    text = finding(values)
    if missing:
        text += f" Not installed there, so not measured: {', '.join(NAMES[m] for m in missing)}."
    return text, tuple(tables), (_plot(values, anchor),)


def finding(values: Sequence[Latency]) -> str:
    """Return in words: at the largest size, CMA beside the quickest peer in each mix."""
    largest = max(value.cells for value in values)
    told = []
    for mix in MIXES:
        own = {v.engine: v for v in values if (v.cells, v.mix) == (largest, mix)}
        peers = [v for name, v in own.items() if name not in OURS]
        if not all(name in own for name in OURS):
            continue
        index, recall = (own[name] for name in OURS)
        text = (
            f"{mix} questions: {index.median:.2f} ms in the index, {recall.median:.2f} ms audited"
        )
        if peers:
            best = min(peers, key=lambda v: v.median)
            text += f"; the quickest peer, {_name(best.engine)}, {best.median:.2f} ms"
            text += f" ({index.median / best.median:.2f} times as long in the index)"
        told.append(text)
    return f"Medians at {largest:,} cells. {'. '.join(told)}." if told else ""


def slope(points: Sequence[tuple[int, float]]) -> float | None:
    """Return the slope through points on logarithmic axes; None for fewer than two sizes."""
    if len({x for x, _ in points}) < 2:
        return None
    x, y = np.log10(np.array(points, dtype=float)).T
    return float(np.polyfit(x, y, 1)[0])


def _latency(values: Sequence[Latency], anchor: str) -> Table:
    rows = [
        {
            "cells": f"{v.cells:,}", "mix": v.mix, "engine": _name(v.engine),
            "median": f"{v.median:.3f}", "p95": f"{v.p95:.3f}", "p99": f"{v.p99:.3f}", "n": v.n,
        }
        for v in values
    ]  # fmt: skip
    return table(
        f"{anchor}-latency", "Latency of a question, ms", rows,
        {"cells": "Cells", "mix": "Questions", "engine": "Engine", "median": "Median",
         "p95": "95th percentile", "p99": "99th percentile", "n": "Asked"},
        caption="; ".join(f"{mix}: {words}" for mix, words in MIXES.items()) + ".",
    )  # fmt: skip


def _slopes(values: Sequence[Latency], anchor: str) -> list[Table]:
    rows = []
    for engine in dict.fromkeys(v.engine for v in values):
        found = {mix: slope(_points(values, mix, engine)) for mix in MIXES}
        if any(each is not None for each in found.values()):
            rows.append(
                {"engine": _name(engine)}
                | {mix: "" if each is None else f"{each:.2f}" for mix, each in found.items()}
            )
    if not rows:
        return []
    return [
        table(
            f"{anchor}-slopes", "Growth of the median with the cells", rows,
            {"engine": "Engine", **MIXES},
            caption="Slope on logarithmic axes: at 1, ten times the cells take ten times as long.",
        )
    ]  # fmt: skip


def _costs(run: Run, anchor: str) -> Table:
    rows = [
        {"cells": f"{int(row['cells']):,}", "engine": _name(row["engine"])}
        | {key: _shown(row.get(key, "")) for key in COSTS}
        for row in run.needed("costs.csv", "scale")
    ]
    return table(
        f"{anchor}-costs", "What a store of so many cells costs", rows,
        {"cells": "Cells", "engine": "Engine", **COSTS},
        caption="Memory: what a new process holds once it opened the store and answered, beyond "
        "what it held before. Empty: not to be had.",
    )  # fmt: skip


def _plot(values: Sequence[Latency], anchor: str) -> Plot:
    engines = list(dict.fromkeys(v.engine for v in values))
    spoken = "; ".join(
        f"{_name(v.engine)}, {v.mix}, {v.cells:,} cells {v.median:.3f} ms" for v in values
    )

    def draw(theme: Theme) -> Figure:
        figure = Figure(figsize=(9.2, 4.6))
        grid = figure.subplots(1, len(MIXES), sharey=True, squeeze=False)[0]
        for axes, (mix, words) in zip(grid, MIXES.items(), strict=True):
            for place, engine in enumerate(engines):
                points = _points(values, mix, engine)
                if not points:
                    continue
                colour, marker = _STYLES[place % len(_STYLES)]
                grows = slope(points)
                label = _name(engine) + ("" if grows is None else f", slope {grows:.2f}")
                axes.plot(
                    *zip(*points, strict=True), color=colour, marker=marker, label=label,
                    linestyle="-" if engine in OURS else (0, (3, 2)), linewidth=1.5, markersize=5,
                    mfc=colour if engine in OURS else theme.paper,
                )  # fmt: skip
            axes.set_xscale("log")
            axes.set_yscale("log")
            axes.set_title(f"{mix}: {words}")
            axes.set_xlabel("cells (count)")
            axes.legend(fontsize=7.5, loc="upper left")
        grid[0].set_ylabel("median latency (ms)")
        return figure

    return Plot(
        f"{anchor}-latency",
        "Latency against cells",
        f"Lines of the median latency against the number of cells, both logarithmic. {spoken}.",
        draw,
    )


def _points(values: Sequence[Latency], mix: str, engine: str) -> list[tuple[int, float]]:
    return sorted((v.cells, v.median) for v in values if (v.mix, v.engine) == (mix, engine))


def _latencies(run: Run) -> list[Latency]:
    found = []
    for row in run.needed("latency.csv", "scale"):
        times = [float(row[key]) for key in ("median_ms", "p95_ms", "p99_ms")]
        if any(finite(each) is None or each <= 0 for each in times) or row["mix"] not in MIXES:
            raise CorruptInputError(f"{run.folder}/latency.csv: a latency that is none")
        found.append(
            Latency(
                cells=int(row["cells"]),
                mix=row["mix"],
                engine=row["engine"],
                median=times[0],
                p95=times[1],
                p99=times[2],
                n=int(row["n"]),
            )
        )
    return found


def _asked(run: Run) -> list[str]:
    settings = run.config.get("scale")
    engines = settings.get("engines") if isinstance(settings, Mapping) else None
    return [each for each in engines or [] if each in NAMES]


def _name(engine: str) -> str:
    return NAMES.get(engine, engine)


def _shown(number: str) -> str:
    """Return a number of the table with three digits that count."""
    if not number:
        return ""
    value = float(number)
    if value == 0 or not math.isfinite(value):
        return number
    return f"{value:.{max(0, 2 - math.floor(math.log10(abs(value))))}f}"

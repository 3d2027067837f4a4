"""The section of `task_gain`: right answers by condition, with intervals over seeds."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from matplotlib.figure import Figure

from reports.plots import BLUE, GREEN, ORANGE, Plot, Theme
from reports.tables import Table, table, with_interval
from reproductions.results import Run

CONDITIONS: Mapping[str, str] = {
    "full": "served memory, as vectors",
    "text": "served memory, as text",
    "shuffled": "shuffled vectors",
    "other": "another question's memory",
    "none": "no memory",
}
METRICS = {"exact_match": "Right answers", "log_likelihood": "Log-likelihood of the right word"}

Row = Mapping[str, str]


def build(run: Run, anchor: str) -> tuple[str, tuple[Table, ...], tuple[Plot, ...]]:
    """Return the finding, the tables and the plot."""
    rows = run.needed("summary.csv", "a task")
    found = {(row["metric"], row["condition"]): row for row in rows}
    shown = [
        {"condition": CONDITIONS[name],
         **{metric: _said(found[metric, name]) for metric in METRICS}}
        for name in CONDITIONS
    ]  # fmt: skip
    less = [
        {"less": f"served memory less {CONDITIONS[name]}",
         **{metric: _said(found[metric, f"full - {name}"]) for metric in METRICS}}
        for name in CONDITIONS if name != "full"
    ]  # fmt: skip
    caption = (
        f"Mean over {rows[0]['seeds']} seeds of adapter training and questions, with Student's "
        "95% interval."
    )
    tables = (
        table(f"{anchor}-answers", "Answers to held-out questions", shown,
              {"condition": "What the model is given", **METRICS}, caption=caption),
        table(f"{anchor}-differences", "What served memory adds", less,
              {"less": "Difference, seed by seed", **METRICS}, caption=caption),
    )  # fmt: skip
    matches = [found["exact_match", name] for name in CONDITIONS]
    alternative = "Share of right answers. " + "; ".join(
        f"{CONDITIONS[row['condition']]}: {_said(row)}" for row in matches
    )
    gain = found["exact_match", "full - none"]
    finding = (
        f"Served memory {_verb(gain)} {_points(gain)} to the share of right answers against no "
        f"memory, over {gain['seeds']} seeds, on held-out facts and a frozen base model."
    )
    return finding, tables, (dots(f"{anchor}-plot", matches, alternative),)


def dots(name: str, rows: Sequence[Row], alternative: str) -> Plot:
    """Draw a dot with its interval a condition."""

    def draw(theme: Theme) -> Figure:
        figure = Figure(figsize=(7.2, 0.42 * len(rows) + 1.0))
        axes = figure.add_subplot()
        colours = {"full": BLUE, "text": GREEN}
        for place, row in enumerate(rows):
            mean, low, high = (float(row[key] or "nan") for key in ("mean", "low", "high"))
            error = [[0.0], [0.0]] if math.isnan(low) else [[mean - low], [high - mean]]
            axes.errorbar(
                [mean], [place], xerr=error, marker="o", markersize=7, capsize=3,
                color=colours.get(row["condition"], ORANGE),
            )  # fmt: skip
            axes.annotate(
                f"{mean:.2f}", (mean, place), xytext=(0, 8), textcoords="offset points",
                ha="center", fontsize=8, color=theme.ink,
            )  # fmt: skip
        axes.set_yticks(range(len(rows)), [CONDITIONS[row["condition"]] for row in rows])
        axes.set_ylim(len(rows) - 0.5, -0.7)
        axes.set_xlim(-0.03, 1.05)
        axes.set_xlabel("share of right answers")
        axes.grid(visible=False, axis="y")
        return figure

    return Plot(name, "Right answers by what the model is given", alternative, draw)


def _verb(gain: Row) -> str:
    low, high = (float(gain[key] or "nan") for key in ("low", "high"))
    if low > 0:
        return "adds"
    return "costs" if high < 0 else "makes no clear difference,"


def _points(gain: Row) -> str:
    said = f"{100 * float(gain['mean']):+.1f} points"
    if not gain["low"]:
        return said
    return f"{said} [{100 * float(gain['low']):+.1f}, {100 * float(gain['high']):+.1f}]"


def _said(row: Row) -> str:
    low, high = (float(row[key]) if row[key] else None for key in ("low", "high"))
    return with_interval(float(row["mean"]), low, high)

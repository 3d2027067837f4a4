"""The section of `version_ladder`: what each version adds or costs, at every token budget."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from reports.ladder_values import NAMES, Value, finding, ladder_of, values_of
from reports.plots import BLUE, GREEN, ORANGE, PURPLE, Plot, Theme
from reports.retrieval_values import data_label
from reports.tables import Table, table
from reproductions.results import Run

STYLES: Mapping[str, tuple[str, str]] = {
    "orion": (BLUE, "o"),
    "trifid": (GREEN, "s"),
    "lagoon": (ORANGE, "^"),
    "rosette": (PURPLE, "D"),
}
PACKINGS = {"text": "bare text", "packet": "packet", "none": "first ten cells"}
MEANS = {"tokens": "Tokens used", "cells_served": "Cells served", "turns_served": "Turns served",
         "claims_served": "Claims served"}  # fmt: skip
IN_PACKETS = "in Rosette's packing"
LABEL_GAP = 0.05


def build(run: Run, anchor: str) -> tuple[str, tuple[Table, ...], tuple[Plot, ...]]:
    """Return the finding, the tables and the plot."""
    values, gains = values_of(run, "ladder"), values_of(run, "differences")
    name = data_label(run.data_set)
    tables = (
        _recall(values, anchor),
        _gains(gains, anchor),
        _by_category(gains, anchor),
        *_costs(run, anchor),
        *_as_they_are(run, anchor),
    )
    return finding(values, gains, name), tables, (plot(values, anchor, name),)


def plot(values: Sequence[Value], anchor: str, name: str) -> Plot:
    """Recall against budget, a line a rung: as each rung hands over, and all as packets."""
    shown = [each for each in values if each.category == "all" and each.packing != "none"]
    panels = {
        "each in its own packing": list(ladder_of(shown)),
        f"all {IN_PACKETS}": [each for each in shown if each.packing == "packet"],
    }
    spoken = "; ".join(
        f"{panel}: "
        + ", ".join(f"{NAMES[each.rung]} at {each.budget} tokens {each.share}" for each in some)
        for panel, some in panels.items()
    )

    def draw(_: Theme) -> Figure:
        figure = Figure(figsize=(9.2, 4.1))
        grid = figure.subplots(1, len(panels), sharey=True, squeeze=False)[0]
        top = max((each.high for each in shown), default=1.0)
        floor = min((each.low for each in shown), default=0.0)
        for axes, (panel, some) in zip(grid, panels.items(), strict=True):
            budgets = sorted({each.budget for each in some})
            _lines(axes, some, budgets, max(top - floor, 0.1))
            axes.set_title(panel)
            axes.set_xlabel("budget (tokens of the plain counter)")
            axes.set_xticks(range(len(budgets)), [f"{budget:,}" for budget in budgets])
            axes.set_xlim(-0.3, max(len(budgets) - 1, 0) + 0.95)
            axes.grid(visible=False, axis="x")
        grid[0].set_ylabel("evidence served (share of turns)")
        return figure

    return Plot(
        f"{anchor}-recall",
        f"Evidence served within a budget on {name}",
        f"Lines with 95% intervals of the share of evidence turns served. {spoken}.",
        draw,
    )


def _lines(axes: Axes, values: Sequence[Value], budgets: Sequence[int], height: float) -> None:
    rungs = [rung for rung in NAMES if any(each.rung == rung for each in values)]
    ends = []
    for order, rung in enumerate(rungs):
        own = sorted((each for each in values if each.rung == rung), key=lambda each: each.budget)
        colour, marker = STYLES[rung]
        shift = 0.05 * (order - (len(rungs) - 1) / 2)
        axes.errorbar(
            [budgets.index(each.budget) + shift for each in own],
            [each.value for each in own],
            yerr=[
                [max(each.value - each.low, 0.0) for each in own],
                [max(each.high - each.value, 0.0) for each in own],
            ],
            color=colour, marker=marker, linewidth=1.5, markersize=5, elinewidth=0.9, capsize=0,
        )  # fmt: skip
        ends.append((own[-1].value, rung))
    placed: float | None = None
    for value, rung in sorted(ends):
        placed = value if placed is None else max(value, placed + LABEL_GAP * height)
        axes.text(
            len(budgets) - 1 + 0.22, placed, NAMES[rung], va="center", fontsize=8,
            color=STYLES[rung][0],
        )  # fmt: skip


def _recall(values: Sequence[Value], anchor: str) -> Table:
    some = [each for each in values if each.category == "all"]
    budgets = sorted({each.budget for each in some if each.budget})
    rows = []
    for rung, packing in dict.fromkeys((e.rung, e.packing) for e in some if e.packing != "none"):
        own = [each for each in some if (each.rung, each.packing) == (rung, packing)]
        at_ten = [each for each in some if (each.rung, each.packing) == (rung, "none")]
        rows.append(
            {"rung": NAMES[rung], "packing": PACKINGS[packing]}
            | {f"b{each.budget}": each.share for each in own}
            | ({"ten": at_ten[0].share} if at_ten else {})
            | {"n": own[0].n}
        )
    heads = {"rung": "Version", "packing": "Handed over as"}
    heads |= {f"b{budget}": f"{budget:,} tokens" for budget in budgets}
    return table(
        f"{anchor}-recall", "Evidence turns served within a budget, all questions", rows,
        heads | {"ten": "recall@10", "n": "n"},
        caption="Mean share with its interval. recall@10 is of the first ten cells, whatever their "
        "length; a claim takes a place. Rosette has the list of Lagoon.",
    )  # fmt: skip


def _gains(gains: Sequence[Value], anchor: str) -> Table:
    rows = [
        {
            "rung": NAMES[each.rung],
            "packing": PACKINGS[each.packing],
            "against": f"{NAMES[each.against].removeprefix('+ ')}, "
            f"{PACKINGS[each.against_packing]}",
            "budget": each.budget or "",
            "gain": each.share,
            "n": each.n,
        }
        for each in gains
        if each.category == "all"
    ]
    return table(
        f"{anchor}-differences", "What each version adds or costs, paired", rows,
        {"rung": "Version", "packing": "Handed over as", "against": "Against", "budget": "Tokens",
         "gain": "Difference", "n": "n"},
        caption="Same questions on both sides; an interval that excludes zero is a difference.",
    )  # fmt: skip


def _by_category(gains: Sequence[Value], anchor: str) -> Table:
    own = list(ladder_of(gains))
    counts = {each.category: each.n for each in own}
    rows = []
    for rung, budget in dict.fromkeys((each.rung, each.budget) for each in own):
        some = [each for each in own if (each.rung, each.budget) == (rung, budget)]
        rows.append(
            {"rung": NAMES[rung], "budget": budget} | {each.category: each.share for each in some}
        )
    heads = {name: f"{name.replace('_', '-')} (n={n})" for name, n in counts.items()}
    return table(
        f"{anchor}-category", "The same by question category", rows,
        {"rung": "Version", "budget": "Tokens"} | heads,
        caption="Difference to the version below, with its 95% interval.",
    )  # fmt: skip


def _as_they_are(run: Run, anchor: str) -> list[Table]:
    found = []
    for stem, title, caption, folded in (
        ("versions", "The six versions and their rungs",
         "A version without a rung here has nothing that this question could measure.", True),
        ("ladder", "Every value", "Budget 0: recall@10, which has none.", True),
    ):  # fmt: skip
        rows = run.table(f"{stem}.csv")
        if rows:
            heads: dict[str, Any] = {key: key.replace("_", " ") for key in rows[0] if key}
            found.append(
                table(f"{anchor}-{stem}", title, rows, heads, caption=caption, folded=folded)
            )
    return found


def _costs(run: Run, anchor: str) -> list[Table]:
    rows = run.table("costs.csv")
    if not rows:
        return []
    shown = [
        {
            **row,
            "rung": NAMES.get(row["rung"], row["rung"]),
            "packing": PACKINGS.get(row["packing"], row["packing"]),
            **{key: f"{float(row[key]):.2f}" for key in MEANS},
        }
        for row in rows
    ]
    heads = {"rung": "Version", "packing": "Handed over as", "budget": "Budget (tokens)"}
    heads |= {key: key.capitalize() for key in ("cells", "frames", "claims")} | MEANS
    return [
        table(
            f"{anchor}-costs", "What each version keeps and serves", shown, heads | {"n": "n"},
            caption="Cells, frames and claims are in the stores, each claim a proposal approved by "
            "rule; what follows is a mean over n questions.",
        )
    ]  # fmt: skip

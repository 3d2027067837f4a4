"""The section of `version_ladder`: what each version adds or costs, at every token budget."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from reports.plots import BLUE, GREEN, ORANGE, PURPLE, Plot, Theme
from reports.retrieval_values import data_label
from reports.tables import Table, table, with_interval
from reproductions.inputs import CorruptInputError, finite
from reproductions.results import Run

NAMES = {"orion": "Orion", "trifid": "+ Trifid", "lagoon": "+ Lagoon", "rosette": "+ Rosette"}
STYLES: Mapping[str, tuple[str, str]] = {
    "orion": (BLUE, "o"),
    "trifid": (GREEN, "s"),
    "lagoon": (ORANGE, "^"),
    "rosette": (PURPLE, "D"),
}
HEADLINE = 1024
PACKINGS = {"text": "bare text", "packet": "packet", "none": "first ten cells"}
MEANS = {"tokens": "Tokens used", "cells_served": "Cells served", "turns_served": "Turns served",
         "claims_served": "Claims served"}  # fmt: skip
IN_PACKETS = "in Rosette's packing"
LABEL_GAP = 0.05


@dataclass(frozen=True)
class Value:
    """One value of either long table; of `ladder.csv` where `against` is empty."""

    rung: str
    packing: str
    against: str
    against_packing: str
    budget: int
    category: str
    value: float
    low: float
    high: float
    n: int

    @property
    def share(self) -> str:
        """The value with its interval."""
        return with_interval(self.value, self.low, self.high)


def build(run: Run, anchor: str) -> tuple[str, tuple[Table, ...], tuple[Plot, ...]]:
    """Return the finding, the tables and the plot."""
    values, gains = _values(run, "ladder"), _values(run, "differences")
    name = data_label(run.data_set)
    tables = (
        _recall(values, anchor),
        _gains(gains, anchor),
        _by_category(gains, anchor),
        *_costs(run, anchor),
        *_as_they_are(run, anchor),
    )
    return finding(values, gains, name), tables, (plot(values, anchor, name),)


def finding(values: Sequence[Value], gains: Sequence[Value], name: str) -> str:
    """Return in words what the first rung serves and what each further one adds or costs."""
    ladder = [each for each in _ladder(values) if each.category == "all"]
    budgets = sorted({each.budget for each in ladder})
    budget = HEADLINE if HEADLINE in budgets else budgets[-1]
    own = {each.rung: each for each in ladder if each.budget == budget}
    if not {"orion", "rosette"} <= own.keys():
        return ""
    told = [f"On {name}, within {budget:,} tokens, Orion alone serves {_percent(own['orion'])}"]
    told[0] += " of the evidence turns"
    told += [
        f"{NAMES[each.rung].removeprefix('+ ')} {_verb(each)} {100 * each.value:+.1f} points "
        f"[{100 * each.low:+.1f}, {100 * each.high:+.1f}]"
        for each in _ladder(gains)
        if (each.category, each.budget) == ("all", budget)
    ]
    last = f"so that packets serve {_percent(own['rosette'])}, over {own['rosette'].n:,} questions."
    return f"{'; '.join(told)}; {last}"


def plot(values: Sequence[Value], anchor: str, name: str) -> Plot:
    """Recall against budget, a line a rung: as each rung hands over, and all as packets."""
    shown = [each for each in values if each.category == "all" and each.packing != "none"]
    panels = {
        "each in its own packing": list(_ladder(shown)),
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
    own = list(_ladder(gains))
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


def _ladder(values: Sequence[Value]) -> Sequence[Value]:
    """Return the values of the ladder proper: each rung as it hands over."""
    own = {"orion": "text", "trifid": "text", "lagoon": "text", "rosette": "packet"}
    return [
        each
        for each in values
        if own[each.rung] == each.packing
        and (not each.against or own[each.against] == each.against_packing)
        and (each.rung, each.against) != ("rosette", "trifid")
    ]


def _verb(gain: Value) -> str:
    if gain.low > 0:
        return "adds"
    return "costs" if gain.high < 0 else "makes no clear difference,"


def _percent(value: Value) -> str:
    return f"{100 * value.value:.1f}% [{100 * value.low:.1f}, {100 * value.high:.1f}]"


def _values(run: Run, stem: str) -> list[Value]:
    rows = run.table(f"{stem}.csv")
    if not rows:
        raise CorruptInputError(
            f"{run.folder}: a version ladder without {stem}.csv; "
            "run: python -m experiments experiment=version_ladder resume=false"
        )
    found = []
    for row in rows:
        value, low, high = (float(row[key]) for key in ("value", "low", "high"))
        if any(finite(number) is None for number in (value, low, high)):
            raise CorruptInputError(f"{run.folder}/{stem}.csv: a value is no finite number")
        found.append(
            Value(
                rung=row["rung"],
                packing=row["packing"],
                against=row.get("against", ""),
                against_packing=row.get("against_packing", ""),
                budget=int(row["budget"]),
                category=row["category"],
                value=value,
                low=low,
                high=high,
                n=int(row["n"]),
            )
        )
    strange = {each.rung for each in found} - NAMES.keys()
    if strange:
        raise CorruptInputError(f"{run.folder}/{stem}.csv: no such version: {', '.join(strange)}")
    return found

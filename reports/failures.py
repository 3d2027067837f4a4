"""The section of `failure_matrix`: the finding, a heat map of what was judged, and the rows."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from reports.plots import BLUE, GREEN, SKY, VERMILLION, Plot, Theme
from reports.tables import Table, table
from reproductions.results import Run

ASPECTS = ("response", "digest", "artifact")
HEADS = ("response", "store digest", "failure record")
RESPONSES = {"reject": "rejected", "preserve": "preserved", "fail_closed": "failed closed"}
SHOWN_DIGEST = 12
HELD, BROKEN, UNKNOWN = "\u2713", "\u2717", "?"
"""Marks beside the colours: as required, not as required, not judged after that."""
LIGHT_INK, DARK_INK = "#ffffff", "#1d2733"
_FILLS = {
    "rejected": (BLUE, LIGHT_INK),
    "preserved": (GREEN, LIGHT_INK),
    "failed closed": (SKY, DARK_INK),
}

Row = Mapping[str, str]


def build(run: Run, anchor: str) -> tuple[str, tuple[Table, ...], tuple[Plot, ...]]:
    """Return the finding, the tables and the heat map."""
    rows = run.needed("failures.csv", "a failure matrix")
    for row in rows:
        if row["required"] not in RESPONSES or row["fell_short"] not in ("", *ASPECTS):
            raise ValueError(f"row {row['case']} asks for {row['required']}")
        if (row["passed"] == "True") != (row["fell_short"] == ""):
            raise ValueError(f"row {row['case']} passed and fell short, or neither")
    failed = [row for row in rows if row["fell_short"]]
    shown = [
        {
            **row,
            "case": _words(row["case"]),
            "required": _words(row["required"]),
            "passed": "yes" if not row["fell_short"] else f"NO ({row['fell_short']})",
            "digest_before": row["digest_before"][:SHOWN_DIGEST],
            "digest_after": row["digest_after"][:SHOWN_DIGEST],
        }
        for row in sorted(rows, key=lambda row: row["fell_short"] == "")
    ]
    tables = (
        table(
            f"{anchor}-rows", "Every injected fault", shown,
            {"case": "Fault", "injected": "What was injected", "required": "Required",
             "observed": "Observed", "passed": "As required"},
            caption="Required: reject a change, preserve what is there, or fail closed (refuse "
            "whole). In the picture, grown: something was admitted as required, so the store's "
            "digest changed; elsewhere it may not. Rows that fell short come first.",
        ),
        table(
            f"{anchor}-evidence", "Digests and failure records", shown,
            {"case": "Fault", "group": "Group", "reason": "Reason codes",
             "digest_before": "Digest before", "digest_after": "Digest after",
             "artifact": "Failure records"},
            caption=f"Digest: the first {SHOWN_DIGEST} of 64 digits of the store's, around the "
            "attempts. It changes where something was admitted as required, and nowhere else. "
            "Failure records: number, reason and hash in the audit chain; a refused read or "
            "restore is no transition and leaves none.",
            folded=True,
        ),
    )  # fmt: skip
    plot = heat_map(f"{anchor}-heat-map", rows, _alternative(rows))
    return _finding(rows, failed), tables, (plot,)


def heat_map(name: str, rows: Sequence[Row], alternative: str) -> Plot:
    """Draw a row a fault and a column an aspect; colour, mark and words say the same."""

    def draw(theme: Theme) -> Figure:
        figure = Figure(figsize=(7.2, 0.27 * len(rows) + 0.7))
        axes = figure.add_subplot()
        for place, row in enumerate(rows):
            for column, aspect in enumerate(ASPECTS):
                mark = mark_of(row, aspect)
                text = TOLD[aspect](row)
                fill, ink = _fill(mark, text, theme)
                axes.add_patch(
                    Rectangle(
                        (column, place), 1, 1, facecolor=fill, edgecolor=theme.paper, linewidth=1.5
                    )
                )
                axes.text(
                    column + 0.5, place + 0.53, f"{mark} {text}", ha="center", va="center",
                    fontsize=8, color=ink, fontweight="bold" if mark == BROKEN else "normal",
                )  # fmt: skip
        axes.set_xlim(0, len(ASPECTS))
        axes.set_ylim(len(rows), 0)
        axes.set_xticks([place + 0.5 for place in range(len(ASPECTS))], list(HEADS))
        axes.set_yticks(
            [place + 0.5 for place in range(len(rows))], [_words(row["case"]) for row in rows]
        )
        axes.xaxis.tick_top()
        axes.grid(visible=False)
        for side in axes.spines.values():
            side.set_visible(False)
        return figure

    return Plot(name, "Injected faults and what came of them", alternative, draw)


def mark_of(row: Row, aspect: str) -> str:
    """Return the mark of an aspect; a row is judged up to the first that falls short."""
    if not row["fell_short"]:
        return HELD
    return BROKEN if row["fell_short"] == aspect else UNKNOWN


def _response(row: Row) -> str:
    answer = RESPONSES[row["required"]]
    return answer if not row["fell_short"] else f"{answer}?"


def _digest(row: Row) -> str:
    if not row["digest_before"]:
        return "none"
    return "unchanged" if row["digest_before"] == row["digest_after"] else "grown"


def _artifact(row: Row) -> str:
    count = len(row["artifact"].split("; ")) if row["artifact"] else 0
    return {0: "none due" if not row["fell_short"] else "none", 1: "1 record"}.get(
        count, f"{count} records"
    )


TOLD: Mapping[str, Callable[[Row], str]] = {
    "response": _response,
    "digest": _digest,
    "artifact": _artifact,
}
"""What each aspect says of a row."""


def _fill(mark: str, text: str, theme: Theme) -> tuple[str, str]:
    """Return fill and ink of a cell."""
    if mark == BROKEN:
        return VERMILLION, DARK_INK
    if mark == UNKNOWN:
        return theme.paper, theme.muted
    return _FILLS.get(text, (theme.grid, theme.ink))


def _finding(rows: Sequence[Row], failed: Sequence[Row]) -> str:
    text = (
        f"{len(rows) - len(failed)} of {len(rows)} injected faults got the required response, with "
        "nothing else changed in the store."
    )
    if failed:
        text += f" FAILED: {', '.join(_words(row['case']) for row in failed)}."
    return text


def _alternative(rows: Sequence[Row]) -> str:
    told = [
        f"{_words(row['case'])}: "
        + ", ".join(
            f"{head} {TOLD[aspect](row)} {WORDS[mark_of(row, aspect)]}".strip()
            for head, aspect in zip(HEADS, ASPECTS, strict=True)
        )
        for row in rows
    ]
    return f"Heat map of {len(rows)} injected faults. {'; '.join(told)}."


WORDS = {HELD: "", BROKEN: "(not as required)", UNKNOWN: "(not judged)"}


def _words(name: str) -> str:
    return name.replace("_", " ")

"""One table, three formats, one set of values.

A `Table` holds texts: numbers are formatted once, and CSV, Markdown, LaTeX and the page show that
same text. Special characters are escaped in each format, so no cell can end its row or start a
command.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

import pandas as pd

DECIMALS = 4
NARROW = 6
"""Columns up to which values and intervals stand side by side."""
WORDY = 28
"""Letters in a cell beyond which a table of words is too wide for a phone."""
ZERO_BOUND = 3
"""With nothing seen in N tries, 3/N bounds the share at 95 percent."""
LONG = 24
"""Rows from which a table gets a filter and a capped height on the page."""

_LATEX = {
    "\\": r"\textbackslash{}",
    "&": r"\&",
    "%": r"\%",
    "$": r"\$",
    "#": r"\#",
    "_": r"\_",
    "{": r"\{",
    "}": r"\}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
}
_DECIMAL = re.compile(r"-?\d+\.\d+(e[+-]?\d+)?")


@dataclass(frozen=True)
class Table:
    """A table of texts with a title; `name` is the stem of its files."""

    name: str
    title: str
    caption: str
    frame: pd.DataFrame
    numeric: frozenset[str] = field(default_factory=frozenset)
    """Columns that are aligned and sorted as numbers."""
    folded: bool = False
    """Shown closed on the page: detail that few readers open."""

    @cached_property
    def columns(self) -> list[str]:
        """Column headings in order."""
        return [str(name) for name in self.frame.columns]

    @cached_property
    def rows(self) -> list[list[str]]:
        """Cells, row by row."""
        return [[str(cell) for cell in row] for row in self.frame.to_numpy().tolist()]

    @property
    def wide(self) -> bool:
        """Whether the page sets intervals below their values."""
        return len(self.frame.columns) > NARROW

    @cached_property
    def wordy(self) -> bool:
        """Whether the page sets its rows one cell below the other on a phone: text, few numbers."""
        longest = max((len(cell) for row in self.rows for cell in row), default=0)
        return longest > WORDY and 2 * len(self.numeric) < len(self.frame.columns)

    @property
    def long(self) -> bool:
        """Whether the page caps its height."""
        return len(self.frame) > LONG


def table(
    name: str,
    title: str,
    rows: Sequence[Mapping[str, object]],
    columns: Mapping[str, str],
    *,
    caption: str = "",
    folded: bool = False,
) -> Table:
    """Return a table of `rows`, its columns chosen and named by `columns` (key to heading)."""
    texts = [{head: shown(row.get(key)) for key, head in columns.items()} for row in rows]
    frame = pd.DataFrame(texts, columns=list(columns.values()), dtype="object")
    numeric = frozenset(
        head
        for head in columns.values()
        if len(frame) and all(_leads_with_number(cell) for cell in frame[head])
    )
    return Table(name, title, caption, frame, numeric, folded)


def shown(value: object) -> str:
    """Return one value as text: decimals cut to four places, nothing as an empty text."""
    if value is None:
        return ""
    if isinstance(value, float):
        return (
            str(int(value)) if value.is_integer() and abs(value) < 1e15 else f"{value:.{DECIMALS}f}"
        )
    text = str(value)
    return f"{float(text):.{DECIMALS}f}" if _DECIMAL.fullmatch(text) else text


def with_interval(value: float, low: float | None, high: float | None) -> str:
    """Return a share with its interval, as `0.425 [0.404, 0.446]`."""
    if low is None or high is None:
        return f"{value:.3f}"
    return f"{value:.3f} [{low:.3f}, {high:.3f}]"


def write_table(item: Table, folder: Path) -> list[Path]:
    """Write the three files of a table; return their paths."""
    folder.mkdir(parents=True, exist_ok=True)
    written = []
    for suffix, text in (
        ("csv", item.frame.to_csv(index=False, lineterminator="\n")),
        ("md", markdown(item)),
        ("tex", latex(item)),
    ):
        path = folder / f"{item.name}.{suffix}"
        path.write_text(text, encoding="utf-8", newline="")
        written.append(path)
    return written


def markdown(item: Table) -> str:
    """Return a GitHub-style table with its title above."""
    heads = [markdown_cell(head) for head in item.columns]
    rule = ["---:" if head in item.numeric else "---" for head in item.columns]
    body = [[markdown_cell(cell) for cell in row] for row in item.rows]
    lines = [f"| {' | '.join(row)} |" for row in [heads, rule, *body]]
    return f"**{markdown_cell(item.title)}**\n\n" + "\n".join(lines) + "\n"


def latex(item: Table) -> str:
    """Return a `longtable` with booktabs rules; it needs those two packages."""
    align = "".join("r" if head in item.numeric else "l" for head in item.columns)
    head = " & ".join(latex_text(name) for name in item.columns) + r" \\"
    lines = [
        "% needs \\usepackage{booktabs,longtable}",
        rf"\begin{{longtable}}{{{align}}}",
        rf"\caption{{{latex_text(item.title)}}}\label{{tab:{item.name}}}\\",
        r"\toprule",
        head,
        r"\midrule",
        r"\endhead",
        *(" & ".join(latex_text(cell) for cell in row) + r" \\" for row in item.rows),
        r"\bottomrule",
        r"\end{longtable}",
    ]
    return "\n".join(lines) + "\n"


def latex_text(text: str) -> str:
    """Return `text` with every character that LaTeX would act on escaped."""
    escaped = "".join(_LATEX.get(letter, letter) for letter in " ".join(text.split()))
    # A row that starts with a bracket would be read as the option of the line break before it.
    return "{}" + escaped if escaped.startswith(("[", "*")) else escaped


def markdown_cell(text: str) -> str:
    """Return `text` as one cell of a Markdown table, with nothing that Markdown would act on."""
    plain = " ".join(text.split()).replace("\\", "\\\\")
    for letter in "|`*_<>":
        plain = plain.replace(letter, "\\" + letter)
    return plain


def _leads_with_number(text: str) -> bool:
    return re.match(r"-?\d[\d,]*(\.\d+)?(?=$|\s\[)", text) is not None or text == ""

"""A table says the same in CSV, Markdown and LaTeX, whatever characters it holds."""

from __future__ import annotations

import csv
import io
import re

import pytest

from reports.tables import latex, latex_text, markdown, shown, table, with_interval

ROWS = [
    {"name": "a_b & 100% of $5 #1", "value": 0.123456, "n": 60},
    {"name": "pipe | star * \\ brace {x} ~ ^ <b>", "value": 0.5, "n": 1981},
    {"name": "[starts] with\na break", "value": 1.0, "n": 0},
]
HEADS = {"name": "Name_of", "value": "Value", "n": "n"}
SAMPLE = table("sample", "A title_with 5%", ROWS, HEADS)

_LATEX = {
    r"\textbackslash{}": "\\", r"\textasciitilde{}": "~", r"\textasciicircum{}": "^",
    r"\textless{}": "<", r"\textgreater{}": ">",
}  # fmt: skip


def from_csv(text: str) -> list[list[str]]:
    return [[" ".join(cell.split()) for cell in row] for row in csv.reader(io.StringIO(text))]


def from_markdown(text: str) -> list[list[str]]:
    lines = [line for line in text.splitlines() if line.startswith("| ")]
    rows = [re.split(r"(?<!\\)\|", line)[1:-1] for line in lines]
    plain = [[re.sub(r"\\(.)", r"\1", cell.strip()) for cell in row] for row in rows]
    return [plain[0], *plain[2:]]


def from_latex(text: str) -> list[list[str]]:
    lines = [line for line in text.splitlines() if line.endswith(r"\\") and "caption" not in line]
    rows = [re.split(r"(?<!\\) & ", line.removesuffix(r" \\")) for line in lines]
    return [[plain_latex(cell) for cell in row] for row in rows]


def plain_latex(cell: str) -> str:
    cell = cell.removeprefix("{}")
    names = "|".join(re.escape(name) for name in _LATEX)
    return re.sub(rf"({names})|\\(.)", lambda found: _LATEX.get(found[0], found[2] or ""), cell)


def test_three_formats_hold_equal_values() -> None:
    rows = from_csv(SAMPLE.frame.to_csv(index=False))
    assert rows[1] == ["a_b & 100% of $5 #1", "0.1235", "60"]
    assert from_markdown(markdown(SAMPLE)) == rows
    assert from_latex(latex(SAMPLE)) == rows


def test_no_cell_can_act_in_latex() -> None:
    text = latex_text(r"100% \input{x} a_b $x$ #1 ~ ^ & {y}")
    rest = re.sub(r"\\text[a-z]+\{\}|\\[&%$#_{}]", "", text)
    assert not set(rest) & set("\\&%$#_{}~^")
    assert latex_text("[x]").startswith("{}")


def test_no_cell_can_end_its_markdown_row() -> None:
    lines = markdown(SAMPLE).splitlines()
    assert len(lines) == 2 + 2 + len(ROWS)
    assert "<b>" not in markdown(SAMPLE).replace(r"\<b\>", "")


@pytest.mark.parametrize(
    ("value", "text"),
    [(1.0, "1"), (0.42471, "0.4247"), ("0.424700001", "0.4247"), ("O01", "O01"), (None, ""),
     (12, "12"), ("1e-9", "1e-9"), (-0.5, "-0.5000"), (True, "True")],
)  # fmt: skip
def test_values_as_text(value: object, text: str) -> None:
    assert shown(value) == text


def test_intervals_as_text() -> None:
    assert with_interval(0.4251, 0.4042, 0.4459) == "0.425 [0.404, 0.446]"
    assert with_interval(0.4251, None, None) == "0.425"


def test_numeric_columns_are_found() -> None:
    assert SAMPLE.numeric == {"Value", "n"}

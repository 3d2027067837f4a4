"""`python -m reports readme`: put the headline claims, as judged, between the README's markers.

Nothing is written by hand there: a row is a claim of `claims.yaml`, the paper's value, the value
that a run measured, and the verdict. Exit status: 0 written or already so, 1 with `--check` where
it is not so, 2 where nothing was judged or the file has no markers.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from reports.tables import markdown_cell
from reproductions.inputs import CorruptInputError
from reproductions.judge import Judgement, Verdict
from reproductions.judged import JudgedClaims, read_judged, shown_measured, shown_value

BEGIN = "<!-- claims: written by `python -m reports readme` -->"
END = "<!-- end of claims -->"
HEADLINES = (
    "orion-40-tests",
    "trifid-20-tests",
    "lagoon-eagle-rosette-29-tests",
    "stage150-153-files",
    "stage150-seven-gates",
    "graph-five-nodes",
    "graph-reaches-every-node",
    "delta-norm-location-1",
    "delta-norm-location-2",
    "delta-no-memory-zero",
    "no-trainable-parameters",
    "no-base-gradients",
    "weights-unchanged",
)
"""The claims that name a number, in the paper's order."""


def block(judged: JudgedClaims) -> str:
    """Return the lines between the markers."""
    named = {row.id: row for row in judged.claims}
    rows = [_row(named[name]) for name in HEADLINES if name in named]
    counts = Counter(row.verdict for row in judged.claims)
    told = ", ".join(f"{counts[verdict]} {verdict}" for verdict in Verdict if counts[verdict])
    lines = ["| claim | paper | measured here | verdict |", "|---|---|---|---|", *rows]
    return "\n".join([*lines, "", f"All {len(judged.claims)} claims: {told}."])


def replaced(text: str, new: str) -> str:
    """Return the text with what stands between the markers replaced."""
    before, begin, rest = text.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise CorruptInputError(f"the file has no markers {BEGIN} and {END}")
    return f"{before}{BEGIN}\n{new}\n{END}{after}"


def between(text: str) -> str:
    """Return what stands between the markers."""
    return text.partition(BEGIN)[2].partition(END)[0].strip("\n")


def main(arguments: Sequence[str]) -> int:
    """Run the command; return its exit status."""
    options = _parser().parse_args(arguments)
    try:
        judged = read_judged(options.runs / "claims.json")
        if judged is None:
            raise CorruptInputError("nothing is judged yet; run: python -m reproductions")
        text = options.file.read_text(encoding="utf-8")
        new = replaced(text, block(judged))
        if options.check:
            return 0 if new == text else 1
        options.file.write_text(new, encoding="utf-8")
    except (CorruptInputError, OSError) as error:
        print(f"python -m reports readme: {error}", file=sys.stderr)
        return 2
    return 0


def _row(row: Judgement) -> str:
    cells = (
        row.statement,
        shown_value(row.paper_value, row.unit),
        shown_measured(row),
        str(row.verdict),
    )
    return f"| {' | '.join(markdown_cell(each) for each in cells)} |"


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m reports readme",
        description="Put the headline claims, as judged, between the README's markers.",
    )
    parser.add_argument("--runs", type=Path, default=Path("runs"), help="where claims.json lies")
    parser.add_argument("--file", type=Path, default=Path("README.md"), help="what to rewrite")
    parser.add_argument("--check", action="store_true", help="only tell whether it is so")
    return parser

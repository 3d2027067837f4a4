"""`python -m reproductions verify TREE`: hold a Stage150 tree, made anywhere, against itself.

Exit status: 0 when the tree is sound, 1 when anything about it is not, 2 for a wrong request.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from rich.console import Console
from rich.table import Table
from rich.text import Text

from reproductions.disclosing import Known
from reproductions.inputs import CorruptInputError
from reproductions.staging.verifying import Row, verify_tree

SHOWN = 5
EXAMPLES = """\
examples:
  python -m reproductions verify runs/stage150/*/tree     trees of one's own
  python -m reproductions verify /downloads/tree --json   for scripts
  python -m reproductions verify TREE --private texts.txt no line of a file may occur in the tree

checked: that the 153 declared files are there and no other, sizes and digests, canonical JSON,
schemas of this release, the seven gates computed anew from the files, and a scan for disclosures
exit status: 0 sound, 1 not sound, 2 wrong request
"""


def main(arguments: Sequence[str]) -> int:
    """Run the command; return its exit status."""
    options = _parser().parse_args(arguments)
    try:
        known = Known(private=_lines(options.private))
        trees = {str(tree): verify_tree(tree, known) for tree in options.trees}
    except (CorruptInputError, OSError, UnicodeDecodeError) as error:
        print(f"python -m reproductions verify: {error}", file=sys.stderr)
        return 2
    sound = {tree: all(row.passed for row in rows) for tree, rows in trees.items()}
    if options.json:
        told = [
            {"tree": tree, "sound": sound[tree],
             "rows": [{**asdict(row), "passed": row.passed} for row in rows]}
            for tree, rows in trees.items()
        ]  # fmt: skip
        print(json.dumps(told, indent=2, ensure_ascii=False))
    else:
        for tree, rows in trees.items():
            _show(rows)
            failed = sum(not row.passed for row in rows)
            said = f"NOT SOUND, {failed} row{'s' if failed != 1 else ''} failed"
            print(f"{tree}: {'sound' if sound[tree] else said}")
    return 0 if all(sound.values()) else 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m reproductions verify",
        description="Hold a Stage150 tree against itself and against this release.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("trees", type=Path, nargs="+", metavar="TREE", help="the tree's folder")
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    parser.add_argument("--private", type=Path, help="a file of texts, one a line, to look for")
    return parser


def _lines(path: Path | None) -> tuple[str, ...]:
    text = "" if path is None else path.read_text(encoding="utf-8")
    return tuple(line for line in text.splitlines() if line.strip())


def _show(rows: Sequence[Row]) -> None:
    if sys.stdout.isatty():
        _show_rich(rows)
    else:
        _show_plain(rows)


def _show_rich(rows: Sequence[Row]) -> None:
    table = Table(title="The tree, verified", expand=True)
    for head in ("what", "told", "verdict"):
        table.add_column(head, no_wrap=True)
    table.add_column("problems", ratio=1)
    for row in rows:
        # Text, not str: what a tree holds is never read as console markup.
        style = "green" if row.passed else "bold red"
        verdict = Text("passed" if row.passed else "FAILED", style=style)
        table.add_row(Text(row.what), Text(row.told), verdict, Text("\n".join(_some(row))))
    Console().print(table)


def _show_plain(rows: Sequence[Row]) -> None:
    width = max(len(row.what) for row in rows)
    for row in rows:
        print(f"{row.what:<{width}}  {'passed' if row.passed else 'FAILED'}  {row.told}")
        for problem in _some(row):
            print(f"{'':<{width}}  {problem}")


def _some(row: Row) -> list[str]:
    more = len(row.problems) - SHOWN
    shown = [_printable(problem) for problem in row.problems[:SHOWN]]
    return [*shown, *([f"and {more} more"] if more > 0 else [])]


def _printable(text: str) -> str:
    """Return the text without what would steer a terminal: a tree's names are not ours."""
    return "".join(letter if letter.isprintable() else "?" for letter in text)

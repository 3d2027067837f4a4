"""`python -m reports compare A B`: what changed between two runs.

Exit status: 0 they say the same, 1 they differ, 2 a wrong request or an unreadable run.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from rich.table import Table as Grid
from rich.text import Text

from reports.comparing import HEADS, Difference, difference_table, differences
from reports.page import render_table
from reproductions.inputs import CorruptInputError
from reproductions.results import Run, read_run

SHOWN = 48
"""Letters of a value on the terminal."""
EXAMPLES = """\
examples:
  python -m reports compare runs/retrieval/0a1b2c3d4e5f6071 runs/retrieval/8d0b34c8e36b2a1f
  python -m reports compare 0a1b 8d0b --csv changed.csv --html changed.html

A run is its folder, or the beginning of its id where that names one run below --runs.
exit status: 0 the runs say the same, 1 they differ, 2 wrong request or unreadable run
"""


def main(arguments: Sequence[str]) -> int:
    """Run the command; return its exit status."""
    options = _parser().parse_args(arguments)
    try:
        one, other = (read_run(_folder(name, options.runs)) for name in (options.one, options.two))
        found = differences(one, other)
        item = difference_table(found, one, other)
        if options.csv is not None:
            text = item.frame.to_csv(index=False, lineterminator="\n")
            options.csv.write_text(text, encoding="utf-8", newline="")
        if options.html is not None:
            options.html.write_text(render_table(item), encoding="utf-8")
    except BrokenPipeError:
        raise
    except (CorruptInputError, OSError) as error:
        print(f"python -m reports compare: {error}", file=sys.stderr)
        return 2
    _show(Console(), found, one, other)
    return 1 if any(each.counts for each in found) else 0


def _folder(name: str, runs: Path) -> Path:
    """Return the run folder that a path or the beginning of an id names."""
    if (Path(name) / "result.json").is_file():
        return Path(name)
    found = [] if not name or "/" in name else sorted(
        path for path in runs.glob("*/*")
        if path.name.startswith(name) and (path / "result.json").is_file()
    )  # fmt: skip
    if len(found) == 1:
        return found[0]
    if found:
        told = ", ".join(f"{path.parent.name}/{path.name}" for path in found)
        raise CorruptInputError(f"{name} names {len(found)} runs: {told}; write more of the id")
    raise CorruptInputError(
        f"{name}: no run folder, and no id of a run below {runs} begins so; "
        "a run folder is runs/EXPERIMENT/ID"
    )


def _show(console: Console, found: Sequence[Difference], one: Run, other: Run) -> None:
    for letter, run in zip("AB", (one, other), strict=True):
        told = f"{letter}: {run.result.experiment} {run.result.run_id} {run.machine.finished_at}"
        console.print(Text(told), soft_wrap=True)
    if not found:
        console.print(Text("the runs say the same", style="bold"))
        return
    grid = Grid(expand=False)
    for head in HEADS.values():
        grid.add_column(head, overflow="fold")
    for each in found:
        grid.add_row(*(Text(_short(getattr(each, key))) for key in HEADS))
    console.print(grid)
    counted = sum(each.counts for each in found)
    verdict = f"the runs differ in {counted} places" if counted else "the runs say the same"
    console.print(Text(verdict, style="bold"))


def _short(text: str) -> str:
    """Return what fits a terminal; the whole is in the files."""
    return text if len(text) <= SHOWN else f"{text[: SHOWN - 1]}…"


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m reports compare",
        description="Say what changed between two runs.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("one", metavar="A", help="the run to compare with")
    parser.add_argument("two", metavar="B", help="the run that may have changed")
    parser.add_argument("--runs", type=Path, default=Path("runs"), help="where ids are looked for")
    parser.add_argument("--csv", type=Path, metavar="FILE", help="write the table as CSV")
    parser.add_argument("--html", type=Path, metavar="FILE", help="write it as one HTML page")
    return parser

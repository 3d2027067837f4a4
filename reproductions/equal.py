"""`python -m reproductions equal RUNS_A RUNS_B`: are two checkouts' results the same?

Exit status: 0 when they are, outside of what is declared of the machine; 1 when not; 2 for a wrong
request or an unreadable file.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from reproductions.equality import differences
from reproductions.inputs import CorruptInputError

EXAMPLES = """\
examples:
  python -m reproductions equal runs ../other/runs      each file that is not the same, and where

not compared: machine.json and the tables listed there, log.txt, bench/
exit status: 0 equal, 1 not equal, 2 wrong request or unreadable file
"""


def main(arguments: Sequence[str]) -> int:
    """Run the command; return its exit status."""
    options = _parser().parse_args(arguments)
    try:
        compared, found = differences(options.one, options.other)
    except (CorruptInputError, OSError) as error:
        print(f"python -m reproductions equal: {error}", file=sys.stderr)
        return 2
    for each in found:
        print(f"{each.path}: {each.how}")
    print(f"{compared} files compared, {len(found)} not the same")
    if not compared:
        print("python -m reproductions equal: there is nothing to compare", file=sys.stderr)
        return 2
    return 1 if found else 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m reproductions equal",
        description="Compare two folders of runs, outside of what is of the machine.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("one", type=Path, help="a folder of runs")
    parser.add_argument("other", type=Path, help="another")
    return parser

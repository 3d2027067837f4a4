"""`python -m reproductions`: judge every claim, print the table, write `claims.json`.

`verify` and `equal` as first word are commands of their own, in the modules of those names.

Exit status: 0 when no claim failed, 1 when one did, 2 for a wrong request or an unreadable file.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from rich.console import Console
from rich.table import Table
from rich.text import Text

from reproductions import equal, verify
from reproductions.claims import CLAIMS_FILE
from reproductions.ending import ended
from reproductions.inputs import CorruptInputError, runs_folder
from reproductions.judge import Judgement, Verdict
from reproductions.judged import JudgedClaims, judge_runs, shown_measured, shown_value, write_judged

EXAMPLES = """\
examples:
  python -m reproductions                         the claim table of the newest runs
  python -m reproductions --verdict failed        only what failed (may be given again)
  python -m reproductions --json | jq .figures    the same for scripts
  python -m reproductions --runs /tmp/runs        runs of another place
  python -m reproductions verify TREE             hold a Stage150 tree against itself (--help)
  python -m reproductions equal RUNS RUNS         are two checkouts' results the same? (--help)

verdicts: reproduced | reproduced by construction | structure reproduced | not run here | failed
exit status: 0 no claim failed, 1 a claim failed, 2 wrong request or unreadable file
"""
COMMANDS: Mapping[str, Callable[[Sequence[str]], int]] = {
    "verify": verify.main,
    "equal": equal.main,
}
_STYLES = {
    Verdict.REPRODUCED: "green",
    Verdict.BY_CONSTRUCTION: "green",
    Verdict.STRUCTURE: "cyan",
    Verdict.NOT_RUN: "yellow",
    Verdict.FAILED: "bold red",
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; return its exit status."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    if given and given[0] in COMMANDS:
        return COMMANDS[given[0]](given[1:])
    options = _parser().parse_args(given)
    wanted = {Verdict(name) for name in options.verdict} or set(Verdict)
    try:
        runs = runs_folder(options.runs)
        judged = judge_runs(runs, options.claims)
        out = options.out or runs / "claims.json"
        write_judged(judged, out)
    except (CorruptInputError, OSError) as error:
        print(f"python -m reproductions: {error}", file=sys.stderr)
        return 2
    rows = [row for row in judged.claims if row.verdict in wanted]
    if options.json:
        document = judged.model_copy(update={"claims": rows}).model_dump(mode="json")
        print(json.dumps(document, indent=2, ensure_ascii=False))
    elif sys.stdout.isatty():
        _show_rich(rows, judged)
    else:
        _show_plain(rows, judged)
    if not options.json:
        print(f"written: {out}")
    return 1 if any(row.verdict is Verdict.FAILED for row in judged.claims) else 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m reproductions",
        description="Judge the paper's claims against the newest runs.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--runs", type=Path, help="folder of run directories (default: runs)")
    parser.add_argument("--claims", type=Path, default=CLAIMS_FILE, help="another claims file")
    parser.add_argument("--out", type=Path, help="where to write (default: RUNS/claims.json)")
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    parser.add_argument(
        "--verdict",
        action="append",
        default=[],
        choices=[str(verdict) for verdict in Verdict],
        help="show only claims of this verdict",
    )
    return parser


def _summary(judged: JudgedClaims) -> str:
    counts = Counter(row.verdict for row in judged.claims)
    parts = [f"{counts[verdict]} {verdict}" for verdict in Verdict]
    return f"{len(judged.claims)} claims: " + ", ".join(parts)


def _show_rich(rows: Sequence[Judgement], judged: JudgedClaims) -> None:
    """One line a claim, failures once more in full below: the page holds every statement."""
    table = Table(title="Claims of the paper, judged", expand=True)
    table.add_column("claim", no_wrap=True)
    table.add_column("paper", no_wrap=True, max_width=18)
    table.add_column("measured here", no_wrap=True, max_width=28)
    table.add_column("verdict", no_wrap=True)
    table.add_column("why", no_wrap=True, ratio=1, style="dim")
    table.add_column("run", no_wrap=True, max_width=9)
    for row in rows:
        # Text, not str: what a run wrote is never read as console markup.
        table.add_row(
            Text(row.id),
            Text(shown_value(row.paper_value, row.unit)),
            Text(shown_measured(row)),
            Text(str(row.verdict), style=_STYLES[row.verdict]),
            Text(row.why),
            Text(row.run or "-"),
        )
    console = Console()
    console.print(table)
    for row in rows:
        if row.verdict is Verdict.FAILED:
            console.print(Text(f"failed: {row.statement} {row.why}", style="red"))
    console.print(Text(_summary(judged)))


def _show_plain(rows: Sequence[Judgement], judged: JudgedClaims) -> None:
    width = max((len(row.id) for row in rows), default=0)
    for row in rows:
        verdict = str(row.verdict)
        print(
            f"{row.id:<{width}}  {verdict:<26}  paper {shown_value(row.paper_value, row.unit)}"
            f" | measured {shown_measured(row)} | run {row.run or '-'}"
        )
        if row.verdict in (Verdict.NOT_RUN, Verdict.FAILED) and row.why:
            print(f"{'':<{width}}  why: {row.why}")
    print(_summary(judged))


if __name__ == "__main__":
    sys.exit(ended(main))

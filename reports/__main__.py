"""`python -m reports`: tables, plots, `figures.json` and the page, from the newest runs.

`python -m reports compare A B` says what changed between two runs instead (`reports.compare`);
`python -m reports readme` puts the headline claims into the README (`reports.readme`).

Exit status: 0 when the page was written, whatever it had to say; 2 for a wrong request or an
unreadable file. Tables and plots of an earlier report that this one no longer has are removed, as
listed in `written.json`; nothing else in the output folder is touched.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path, PurePosixPath

from rich.console import Console
from rich.progress import track

from reports import compare, readme, unchanged
from reports.figures import gather, write_figures
from reports.page import claim_table, figure_table, render
from reports.paper import write_for_paper
from reports.sections import sections
from reports.tables import write_table
from reproductions.ending import ended
from reproductions.inputs import CorruptInputError, read_json, runs_folder
from reproductions.judged import JudgedClaims, read_judged
from reproductions.not_run import read_notes
from reproductions.results import Choice, choose, read_runs

EXAMPLES = """\
examples:
  python -m reproductions && python -m reports    judge the claims, then write the report
  python -m reports --runs /tmp/runs --out /tmp/report
  python -m reports compare RUN_A RUN_B           what changed between two runs

written below OUT: index.html, figures.json, tables/*.csv|md|tex, plots/*.png|svg,
  figures/*.pdf with figures.tex, for a paper
exit status: 0 written, 2 wrong request or unreadable file
"""
LISTING = "written.json"
FOLDERS = ("tables", "plots", "figures")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; return its exit status."""
    given = sys.argv[1:] if arguments is None else list(arguments)
    if given[:1] == ["compare"]:
        return compare.main(given[1:])
    if given[:1] == ["readme"]:
        return readme.main(given[1:])
    options = _parser().parse_args(given)
    try:
        runs = runs_folder(options.runs)
        now = unchanged.made_of(runs)
        if unchanged.is_unchanged(options.out, now):
            print(f"report: {options.out / 'index.html'} (unchanged; remove it to write it anew)")
            return 0
        page = report(runs, options.out, now)
    except BrokenPipeError:
        raise  # nobody reads on: no matter of files
    except (CorruptInputError, OSError) as error:
        print(f"python -m reports: {error}", file=sys.stderr)
        return 2
    print(f"report: {page}")
    return 0


def report(runs: Path, out: Path, made_of: unchanged.State) -> Path:
    """Write the whole report below `out`; return the page's path.

    made_of: what it is made of, as `unchanged` tells it.
    """
    earlier = _written_before(out)
    found_runs = read_runs(runs)
    choices = choose(found_runs)
    chosen = [choice.run for choice in choices.values() if choice.run is not None]
    speaking = [c.run for c in choices.values() if c.run is not None and not c.stale]
    judged = read_judged(runs / "claims.json")
    others = [run for run in found_runs if run.result.status == "ok" and run not in chosen]
    gathered = gather(speaking, runs, judged, others)
    found = sections(choices, found_runs, read_notes(runs))
    text = render(found, gathered, judged, _unseen(judged, choices.values()))
    written: list[Path] = []
    tables = [table for section in found for table in section.tables]
    claims = claim_table(judged) if judged is not None else None
    tables += filter(None, [figure_table(gathered.figures), claims])
    for table in tables:
        written += write_table(table, out / "tables")
    plots = [plot for section in found for plot in section.plots]
    console = Console(stderr=True)
    for plot in track(plots, "plots", console=console, disable=not console.is_terminal):
        written += plot.write(out / "plots")
    written += write_for_paper(plots, out / "figures")
    write_figures(gathered, out / "figures.json")
    page = out / "index.html"
    page.write_text(text, encoding="utf-8")
    _remove_leftovers(out, earlier, written)
    unchanged.keep(out, made_of, [*written, page, out / "figures.json", out / LISTING])
    for section in found:
        if section.state != "measured":
            print(f"{section.title}: {section.message} Run: {section.command}")
    if judged is None:
        print("claims: not judged yet. Run: python -m reproductions")
    return page


def _unseen(judged: JudgedClaims | None, choices: Iterable[Choice]) -> list[str]:
    """Return runs on which the claims were judged and that this page neither shows nor names."""
    if judged is None:
        return []
    named = [run for choice in choices for run in (choice.run, choice.failed) if run is not None]
    shown = {run.result.run_id for run in named}
    return sorted({row.run for row in judged.claims if row.run and row.run not in shown})


def _written_before(out: Path) -> list[str]:
    """Return what the last report here wrote; a name that no report writes is refused."""
    listing = out / LISTING
    names = read_json(listing) if listing.is_file() else []
    for name in names if isinstance(names, list) else [names]:
        if not (isinstance(names, list) and isinstance(name, str) and _is_ours(out, name)):
            raise CorruptInputError(
                f"{listing}: {name!r} is no file that a report writes; remove the listing"
            )
    return list(names)


def _is_ours(out: Path, name: str) -> bool:
    """Tell whether a listed name is a file of one of the folders, and really lies inside `out`."""
    parts = PurePosixPath(name).parts
    if len(parts) != 2 or parts[0] not in FOLDERS or ".." in parts or "\0" in name:
        return False
    return (out / name).resolve().is_relative_to(out.resolve())


def _remove_leftovers(out: Path, earlier: Iterable[str], written: Iterable[Path]) -> None:
    """Remove what the last report here wrote and this one did not; keep the list for the next."""
    listing = out / LISTING
    now = sorted(path.relative_to(out).as_posix() for path in written)
    for name in earlier:
        if name not in now and (out / name).is_file():
            (out / name).unlink()
    listing.write_text(json.dumps(now, indent=2) + "\n", encoding="utf-8")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m reports",
        description="Write tables, plots and one self-contained page from the newest runs.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--runs", type=Path, help="folder of run directories (default: runs)")
    parser.add_argument("--out", type=Path, default=Path("reports/out"), help="where to write")
    return parser


if __name__ == "__main__":
    sys.exit(ended(main))

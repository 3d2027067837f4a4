"""The mutation run: `python -m tests.mutants.run` from the project's root.

Each mutant of the lists is made in a copy of `cma` and of the contract tests, never in place, and
the tests of the contracts that it names run on the copy. A mutant is killed when every one of them
fails. One that breaks the run otherwise (a copy that cannot be imported, a fixture that fails, a
time-out) proves nothing and counts as a failure of the list. First the untouched copy must pass.

Then every check of the store's code (tests/mutants/checks) is taken away in the same manner, and at
least one of the tests that its list names must fail.

Exit status: 0 when every mutant was killed, 1 when one survived or was broken, 2 for a bad list.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import re
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import Progress
from rich.table import Table

from tests.mutants.catalogue import LISTS, ROOT, Mutant, contract_tests, load_mutants
from tests.mutants.checks import finding, listed, removing
from tests.mutants.trying import BROKEN, KILLED, SURVIVED, copied, put, tried

RESULT = ROOT / "runs" / "mutate" / "result.json"
COPIED = ("cma", "tests/contracts", "pyproject.toml")
COPIED_FOR_CHECKS = (*COPIED, "tests/__init__.py", "tests/faults", "tests/unit")
TIMEOUT_SECONDS = 120
PATIENCE_SECONDS = 2


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the mutants and return the exit status."""
    options = parsed(arguments)
    console = Console()
    with tempfile.TemporaryDirectory(prefix="cma-mutants-") as folder:
        sources = Path(folder) / "sources"  # the project may be edited while this runs
        copied(ROOT, sources, COPIED_FOR_CHECKS)
        if options.checks is not None:
            return run_checks(sources, options, console)
        status = run_on(sources, options, console)
        return status or (0 if options.only else run_checks(sources, options, console))


def run_on(sources: Path, options: argparse.Namespace, console: Console) -> int:
    """Run the mutants of a copy of the project and return the exit status."""
    try:
        mutants, nodes = chosen(options.only), contract_tests(sources / "tests" / "contracts")
        for mutant in mutants:
            mutant.patched((sources / mutant.file).read_text(encoding="utf-8"))
            if missing := [name for name in mutant.contracts if name not in nodes]:
                raise ValueError(f"{mutant.id}: no test states {', '.join(missing)}")
    except (ValueError, OSError) as error:
        console.print(f"bad list: {error}", style="red", markup=False)
        return 2
    run = digest_of(sources)
    tests = {mutant.id: [nodes[name] for name in mutant.contracts] for mutant in mutants}
    needed = (
        nodes.values()
        if options.only is None
        else {name for each in tests.values() for name in each}
    )
    if counts_of(sources, None, sorted(needed)) != {"passed": len(needed)}:
        console.print("the contract tests fail on the untouched code: nothing to measure")
        return 1
    outcomes = outcomes_of(sources, mutants, tests, options.jobs, console)
    show(mutants, outcomes, console)
    killed = sum(outcome == KILLED for outcome in outcomes.values())
    if options.only is None:
        write_result(mutants, outcomes, run)
        console.print(f"written to {RESULT.relative_to(ROOT)}", highlight=False)
    console.print(f"{killed} of {len(mutants)} mutants killed", highlight=False)
    return 0 if killed == len(mutants) else 1


def run_checks(sources: Path, options: argparse.Namespace, console: Console) -> int:
    """Take the checks away one by one; return the exit status.

    `options.checks`: those alone whose ids begin so. A list that is out of step is a bad list.
    """
    checks = finding.every_check(sources)
    entries = listed.entries()
    wrong = listed.differences(entries, checks) + listed.strays(entries, sources)
    if wrong:
        console.print("bad list: " + "; ".join(wrong), style="red", markup=False)
        return 2
    prefixes = tuple(options.checks or ("",))
    tests = {each.id: each.tests for each in entries if not each.equivalent}
    chosen = [each for each in checks if each.id in tests and each.id.startswith(prefixes)]
    needed = sorted({node for each in chosen for node in tests[each.id]})
    outcome, words = removing.outcome(sources, None, needed)
    if outcome != SURVIVED:
        console.print(f"tests fail on the untouched code: {words}", markup=False)
        return 1
    progress = Progress(console=console, transient=True, disable=not console.is_terminal)
    with progress:
        bar = progress.add_task("checks", total=len(chosen))

        def done(check: finding.Check, outcome: str, _: str) -> None:
            progress.advance(bar)
            if outcome != KILLED:
                console.print(f"{outcome}: {check.id}: {check.was}", style="red", markup=False)

        outcomes = removing.outcomes(sources, chosen, tests, options.jobs, COPIED_FOR_CHECKS, done)
    killed = sum(outcome == KILLED for outcome in outcomes.values())
    if not options.checks:
        write_checks(outcomes, len(entries) - len(tests), digest_of(sources))
    console.print(
        f"{killed} of {len(chosen)} checks are noticed by a test when they are gone",
        highlight=False,
    )
    return 0 if killed == len(chosen) else 1


def parsed(arguments: Sequence[str] | None) -> argparse.Namespace:
    """Return the options of the command line."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.mutants.run",
        description="Take the contracts' rules away one by one and see that their tests notice.",
    )
    parser.add_argument(
        "--only",
        nargs="+",
        metavar="ID",
        help="run these mutants, or those of these contracts, and write no result",
    )
    parser.add_argument(
        "--checks",
        nargs="*",
        metavar="ID",
        help="run the checks of the store's code alone: all, or those whose ids begin so",
    )
    parser.add_argument("--jobs", type=int, default=2, help="how many at a time (default: 2)")
    options = parser.parse_args(arguments)
    if options.jobs < 1:
        parser.error("--jobs: at least 1")
    return options


def chosen(only: Sequence[str] | None) -> list[Mutant]:
    """Return the mutants of these ids or contracts, or all of them."""
    mutants = load_mutants()
    if only is None:
        return mutants
    wanted = set(only)
    known = {mutant.id for mutant in mutants}.union(*(mutant.contracts for mutant in mutants))
    if unknown := wanted - known:
        raise ValueError(f"no such mutant or contract: {', '.join(sorted(unknown))}")
    return [mutant for mutant in mutants if wanted & {mutant.id, *mutant.contracts}]


def outcomes_of(
    sources: Path,
    mutants: Sequence[Mutant],
    tests: dict[str, list[str]],
    jobs: int,
    console: Console,
) -> dict[str, str]:
    """Return what became of each mutant; show a bar when it takes a while."""
    began = time.monotonic()
    outcomes: dict[str, str] = {}
    progress = Progress(console=console, transient=True, disable=not console.is_terminal)
    with ThreadPoolExecutor(jobs) as pool:
        running: dict[Future[str], str] = {
            pool.submit(outcome_of, sources, mutant, tests[mutant.id]): mutant.id
            for mutant in mutants
        }
        pending = set(running)
        bar = progress.add_task("mutants", total=len(mutants))
        try:
            while pending:
                done, pending = wait(pending, PATIENCE_SECONDS, FIRST_COMPLETED)
                for future in done:
                    outcomes[running[future]] = future.result()
                progress.update(bar, completed=len(outcomes))
                if time.monotonic() - began > PATIENCE_SECONDS and not progress.live.is_started:
                    progress.start()
        finally:
            progress.stop()
            for future in pending:
                future.cancel()
    return outcomes


def outcome_of(sources: Path, mutant: Mutant, tests: Sequence[str]) -> str:
    """Return whether each of these tests noticed the mutant."""
    counts = counts_of(sources, mutant, tests)
    if counts is None:
        return BROKEN
    return KILLED if counts == {"failed": len(tests)} else SURVIVED


def counts_of(sources: Path, mutant: Mutant | None, tests: Sequence[str]) -> dict[str, int] | None:
    """Run these tests on a copy with the mutant's patch, or without one.

    Return how many `passed` and `failed`, or None when anything else came of it.
    """
    with tempfile.TemporaryDirectory(prefix="cma-mutant-") as folder:
        copy = Path(folder) / "copy"
        copied(sources, copy, COPIED)
        if mutant is not None:
            place = copy / mutant.file
            text = mutant.patched(place.read_text(encoding="utf-8"))
            put(place, text)
        done = tried(copy, tests, TIMEOUT_SECONDS)
    if done is None:
        return None
    summary = (done.stdout.strip().splitlines() or [""])[-1].partition(" in ")[0]
    counts = {name: int(count) for count, name in re.findall(r"(\d+) (\w+)", summary)}
    usual = done.returncode in (0, 1) and set(counts) <= {"failed", "passed"}
    return counts if usual and sum(counts.values()) == len(tests) else None


def digest_of(sources: Path) -> str:
    """Return 16 hex digits that name the lists, the library and the contract tests."""
    files = [path for path in sources.rglob("*") if path.suffix in (".py", ".sql")]
    parts = [path.read_bytes() for path in LISTS]
    for path in sorted(files):
        parts += [path.relative_to(sources).as_posix().encode(), path.read_bytes()]
    total = hashlib.sha256()
    for part in parts:
        total.update(len(part).to_bytes(8, "big") + part)
    return total.hexdigest()[:16]


def show(mutants: Sequence[Mutant], outcomes: dict[str, str], console: Console) -> None:
    """Print how many mutants of each contract were killed, and name those that were not."""
    totals, killed = Counter[str](), Counter[str]()
    for mutant in mutants:
        totals.update(mutant.contracts)
        if outcomes[mutant.id] == KILLED:
            killed.update(mutant.contracts)
    table = Table("contract", "mutants", "killed")
    for name in sorted(totals):
        style = None if killed[name] == totals[name] else "bold red"
        table.add_row(name, str(totals[name]), str(killed[name]), style=style)
    console.print(table)
    for mutant in mutants:
        if (outcome := outcomes[mutant.id]) != KILLED:
            line = f"{outcome}: {mutant.id} ({mutant.file}): {mutant.why}"
            console.print(line, style="red", markup=False, soft_wrap=True)


def write_result(mutants: Sequence[Mutant], outcomes: dict[str, str], run: str) -> None:
    """Write the figures and the outcome of each mutant, whole or not at all."""
    total, killed = len(mutants), sum(outcome == KILLED for outcome in outcomes.values())
    result = {
        "figures": {
            "mutants.killed": {"value": killed, "unit": "mutants", "n": total, "run": run},
            "mutants.total": {"value": total, "unit": "mutants", "n": total, "run": run},
        },
        "mutants": [
            {
                "id": mutant.id,
                "contracts": list(mutant.contracts),
                "file": mutant.file,
                "why": mutant.why,
                "killed": outcomes[mutant.id] == KILLED,
                "outcome": outcomes[mutant.id],
            }
            for mutant in mutants
        ],
    }
    _write(result)


def write_checks(outcomes: dict[str, str], equivalent: int, run: str) -> None:
    """Add the figures of the checks to the result, with the outcome of each."""
    result = json.loads(RESULT.read_text(encoding="utf-8")) if RESULT.exists() else {}
    total, killed = len(outcomes), sum(outcome == KILLED for outcome in outcomes.values())
    figures = result.setdefault("figures", {})
    for name, count in (("killed", killed), ("total", total), ("equivalent", equivalent)):
        figures[f"checks.{name}"] = {"value": count, "unit": "checks", "n": total, "run": run}
    result["checks"] = outcomes
    _write(result)


def _write(result: dict[str, Any]) -> None:
    """Write the result, whole or not at all."""
    RESULT.parent.mkdir(parents=True, exist_ok=True)
    draft = RESULT.with_suffix(".new")
    draft.write_text(json.dumps(result, indent=2, sort_keys=True) + "\n", encoding="utf-8")
    draft.replace(RESULT)


if __name__ == "__main__":
    sys.exit(main())

"""Takes checks away one at a time, each in a copy, and runs the tests that must then fail."""

from __future__ import annotations

import queue
import re
import tempfile
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path

from tests.mutants.checks.finding import Check
from tests.mutants.trying import BROKEN, KILLED, SURVIVED, copied, put, tried

TIMEOUT_SECONDS = 180
_FAILED = re.compile(r"^(?:FAILED|ERROR) (\S+)", re.MULTILINE)


def outcomes(
    sources: Path,
    checks: Sequence[Check],
    tests: Mapping[str, Sequence[str]],
    jobs: int,
    copied_names: Sequence[str],
    done: Callable[[Check, str, str], None],
) -> dict[str, str]:
    """Return what became of each check, by id; `done` is told as they come, with a failing test.

    A check is killed when one of its tests fails without it. A run that ends otherwise, as by an
    import that fails, proves nothing and counts as broken.
    """
    found: dict[str, str] = {}
    with (
        tempfile.TemporaryDirectory(prefix="cma-checks-") as folder,
        ThreadPoolExecutor(jobs) as pool,
    ):
        copies: queue.Queue[Path] = queue.Queue()
        for number in range(jobs):
            place = Path(folder) / str(number) / "copy"
            copied(sources, place, copied_names)
            copies.put(place)

        def removed(check: Check) -> tuple[str, str]:
            place = copies.get()
            try:
                return outcome(place, check, tests[check.id])
            finally:
                copies.put(place)

        running = {pool.submit(removed, check): check for check in checks}
        for future in as_completed(running):
            check = running[future]
            found[check.id], test = future.result()
            done(check, found[check.id], test)
    return found


def outcome(place: Path, check: Check | None, tests: Sequence[str]) -> tuple[str, str]:
    """Run tests on a copy without the check, and put it back; return what came of it and where.

    A check of None leaves the copy as it is.
    """
    if not tests:
        return SURVIVED, ""
    file = place / check.file if check else None
    whole = file.read_text(encoding="utf-8") if file else ""
    if file and check:
        put(file, check.patched(whole))
    try:
        done = tried(place, tests, TIMEOUT_SECONDS, ("-x", "-rfE"))
    finally:
        if file:
            put(file, whole)
    if done is None:
        return BROKEN, "no end"
    failed = _FAILED.search(done.stdout)
    if done.returncode == 1 and failed:
        return KILLED, failed[1]
    if done.returncode == 0:
        return SURVIVED, ""
    return BROKEN, done.stdout[-300:]

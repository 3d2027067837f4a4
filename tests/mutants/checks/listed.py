"""The committed lists of checks: each with the tests that fail without it, or why none can.

`python -m tests.mutants.checks.listed` writes the lists anew after the code has changed: entries
move along with their check, what is gone goes, and what is new stands there without tests, to be
given some.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from tests.mutants.catalogue import ROOT
from tests.mutants.checks.finding import Check, every_check

FOLDER = Path(__file__).parent
VERSIONS = ("orion", "rosette")
HEAD = """\
# Every check of the files in finding.py, by file, function and place. `tests`: at least one of them
# fails when the check is taken away. `equivalent`: why nothing that can be observed hangs on it.
# After a change of the code: python -m tests.mutants.checks.listed; new checks then need tests.
"""


class Listed(NamedTuple):
    """One entry. was: the check in a few words, to see that it is still the same."""

    id: str
    was: str
    tests: tuple[str, ...]
    equivalent: str


def entries(folder: Path = FOLDER) -> list[Listed]:
    """Return the entries of both lists. Raises ValueError for one that is not well formed."""
    found = []
    for version in VERSIONS:
        place = folder / f"{version}.yaml"
        told = yaml.safe_load(place.read_text(encoding="utf-8")) if place.exists() else None
        found += [_entry(version, each) for each in told or []]
    return found


def differences(listed: Sequence[Listed], checks: Sequence[Check]) -> list[str]:
    """Return how the lists are out of step with the code; nothing where they are in step."""
    there = {check.id: check.was for check in checks}
    told = {each.id: each.was for each in listed}
    wrong = [f"{name}: not in the lists" for name in there if name not in told]
    wrong += [f"{name}: no such check" for name in told if name not in there]
    wrong += [
        f"{name}: it is now {there[name]!r}"
        for name, was in told.items()
        if name in there and there[name] != was
    ]
    names = [each.id for each in listed]
    return wrong + [f"{name}: listed twice" for name in set(names) if names.count(name) > 1]


def moved(listed: Sequence[Listed], checks: Sequence[Check]) -> list[Listed]:
    """Return entries for these checks; each takes its tests along, by function and words."""
    known: dict[tuple[str, str], list[Listed]] = {}
    for each in listed:
        known.setdefault((each.id.rpartition(":")[0], each.was), []).append(each)
    found = []
    for check in checks:
        left = known.get((check.id.rpartition(":")[0], check.was))
        old = left.pop(0) if left else Listed("", "", (), "")
        found.append(Listed(check.id, check.was, old.tests, old.equivalent))
    return found


def write(listed: Sequence[Listed], folder: Path = FOLDER) -> None:
    """Write the lists."""
    for version in VERSIONS:
        told: list[dict[str, Any]] = []
        for each in listed:
            if each.id.startswith(f"{version}."):
                more: dict[str, Any] = {"equivalent": each.equivalent} if each.equivalent else {}
                told.append(
                    {"id": each.id, "was": each.was} | (more or {"tests": list(each.tests)})
                )
        text = yaml.safe_dump(told, sort_keys=False, allow_unicode=True, width=110)
        (folder / f"{version}.yaml").write_text(HEAD + text, encoding="utf-8")


def functions_of(file: Path) -> set[str]:
    """Return the test functions of a file."""
    return {
        node.name
        for node in ast.parse(file.read_text(encoding="utf-8")).body
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")
    }


def strays(listed: Sequence[Listed], root: Path = ROOT) -> list[str]:
    """Return tests that the lists name and that are not there."""
    known: dict[str, set[str]] = {}
    wrong = []
    for each in listed:
        for node in each.tests:
            file, _, name = node.partition("::")
            if file not in known:
                place = root / file
                known[file] = functions_of(place) if place.is_file() else set()
            if name.partition("[")[0] not in known[file]:
                wrong.append(f"{each.id}: no test {node}")
    return wrong


def _entry(version: str, told: Any) -> Listed:
    fields = set(told)
    one_of = fields - {"id", "was"}
    if not {"id", "was"} <= fields or one_of not in ({"tests"}, {"equivalent"}):
        raise ValueError(f"{version}.yaml: {told}: fields are id, was, and tests or equivalent")
    tests = tuple(map(str, told.get("tests", ())))
    return Listed(str(told["id"]), str(told["was"]), tests, str(told.get("equivalent", "")))


if __name__ == "__main__":
    present = moved(entries(), every_check())
    write(present)
    for each in present:
        if not each.tests and not each.equivalent:
            sys.stdout.write(f"needs tests: {each.id} ({each.was})\n")

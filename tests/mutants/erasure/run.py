"""The mutation run of erasure: `python -m tests.mutants.erasure.run [ID ...]` from the root.

Each mutant is made in a copy of `cma` and of the fault tests, and its tests run there. It is killed
when at least one of them fails and none breaks otherwise. First the untouched copy must pass.

Exit status: 0 when every mutant was killed, 1 when one survived, 2 for a bad list.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import yaml
from rich.console import Console
from rich.progress import track

from tests.mutants.catalogue import ROOT
from tests.mutants.trying import copied, put, tried

LIST = Path(__file__).with_name("mutants.yaml")
FIELDS = {"id", "tests", "file", "find", "replace", "why"}
COPIED = ("cma", "tests", "pyproject.toml")
FAULTS = "tests/faults"
TIMEOUT_SECONDS = 600
Entry = dict[str, Any]


def entries() -> list[Entry]:
    """Return the list. Raises ValueError that names an entry with other fields."""
    found: list[Entry] = yaml.safe_load(LIST.read_text(encoding="utf-8"))
    for place, entry in enumerate(found):
        if set(entry) != FIELDS:
            raise ValueError(f"entry {place}: fields are {', '.join(sorted(FIELDS))}")
    return found


def patched(entry: Entry, text: str) -> str:
    """Return a file's text with the rule taken away."""
    if text.count(entry["find"]) != 1 or entry["find"] == entry["replace"]:
        raise ValueError(f"{entry['id']}: its text does not stand once in {entry['file']}")
    return text.replace(entry["find"], entry["replace"])


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the mutants of these ids, or all, and return the exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.mutants.erasure.run",
        description="Take the rules of erasure away one by one and see that their tests notice.",
    )
    parser.add_argument("only", nargs="*", metavar="ID", help="run these mutants alone")
    only = parser.parse_args(arguments).only
    console = Console()
    try:
        chosen = [entry for entry in entries() if not only or entry["id"] in only]
        if unknown := set(only) - {entry["id"] for entry in chosen}:
            raise ValueError(f"no mutant is called {', '.join(sorted(unknown))}")
        for entry in chosen:
            patched(entry, (ROOT / entry["file"]).read_text(encoding="utf-8"))
    except (ValueError, OSError) as error:
        console.print(f"bad list: {error}", style="red", markup=False)
        return 2
    with tempfile.TemporaryDirectory(prefix="cma-erasure-") as folder:
        copy = Path(folder) / "copy"
        copied(ROOT, copy, COPIED)
        everything = sorted({test for entry in chosen for test in entry["tests"]})
        if _status(copy, everything) != 0:
            console.print("the tests fail on the untouched code: nothing to measure")
            return 1
        survived = []
        for entry in track(chosen, "mutants of erasure", console=Console(stderr=True)):
            place = copy / entry["file"]
            text = place.read_text(encoding="utf-8")
            put(place, patched(entry, text))
            if _status(copy, entry["tests"]) != 1:  # neither passed nor could not be run
                survived.append(entry)
            put(place, text)
    for entry in survived:
        console.print(f"survived: {entry['id']}: {entry['why']}", style="red", markup=False)
    console.print(f"{len(chosen) - len(survived)} of {len(chosen)} mutants killed")
    return 1 if survived else 0


def _status(copy: Path, tests: Sequence[str]) -> int | None:
    """Return pytest's exit status: 0 all passed, 1 some failed, others for what could not run."""
    done = tried(copy, [f"{FAULTS}/{test}" for test in tests], TIMEOUT_SECONDS, ("-x",))
    return None if done is None else done.returncode


if __name__ == "__main__":
    sys.exit(main())

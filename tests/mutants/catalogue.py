"""The hand-kept lists of mutants, one a version, and which test states which contract."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import yaml

ROOT = Path(__file__).resolve().parents[2]
LISTS = tuple(sorted(Path(__file__).parent.glob("*.yaml")))
CONTRACTS = ROOT / "tests" / "contracts"
FIELDS = ("id", "contracts", "file", "find", "replace", "why")


class Mutant(NamedTuple):
    """A patch that takes one rule away.

    contracts: the tests that must notice. find: a text that stands in the file exactly once.
    """

    id: str
    contracts: tuple[str, ...]
    file: str
    find: str
    replace: str
    why: str

    def patched(self, text: str) -> str:
        """Return the file's text with the rule taken away."""
        count = text.count(self.find)
        if count != 1:
            raise ValueError(
                f"{self.id}: its text stands {count} times in {self.file}, not once: {self.find!r}"
            )
        if self.find == self.replace:
            raise ValueError(f"{self.id}: changes nothing")
        return text.replace(self.find, self.replace)


def load_mutants(paths: Sequence[Path] = LISTS) -> list[Mutant]:
    """Return the mutants of all lists, the lists by name and each in its own order.

    Raises ValueError that names an entry with missing or unknown fields.
    """
    mutants = []
    for path in paths:
        for place, entry in enumerate(yaml.safe_load(path.read_text(encoding="utf-8"))):
            if tuple(sorted(entry)) != tuple(sorted(FIELDS)):
                raise ValueError(f"{path.name}, entry {place}: fields are {', '.join(FIELDS)}")
            fields = {name: entry[name] for name in FIELDS}
            mutants.append(Mutant(**{**fields, "contracts": tuple(fields["contracts"])}))
    return mutants


def contract_tests(folder: Path = CONTRACTS) -> dict[str, str]:
    """Return the pytest node of each contract, relative to the project's root."""
    nodes = {}
    for path in sorted(folder.rglob("test_*.py")):
        place = path.relative_to(folder.parents[1]).as_posix()
        for statement in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(statement, ast.FunctionDef):
                for mark in statement.decorator_list:
                    if isinstance(mark, ast.Call) and ast.unparse(mark.func).endswith(".contract"):
                        nodes[ast.literal_eval(mark.args[0])] = f"{place}::{statement.name}"
    return nodes

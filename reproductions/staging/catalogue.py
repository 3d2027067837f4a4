"""The declared composition of the tree, and the place of each file by what it says of itself."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from reproductions.inputs import CorruptInputError, read_yaml
from reproductions.staging.forms import FORMS

CATALOGUE_FORMAT = "cma.stage150-catalogue/1"
CATALOGUE_FILE = Path(__file__).with_name("catalogue.yaml")
MANIFEST, MACHINE, ENVIRONMENT = "manifest.json", "machine.json", "environment.json"
CLAIMS, GRAPH, TRAVERSALS = "claims.json", "graph/view.json", "graph/traversals.json"
SCHEMA = "schema"
INTEGRITY = "integrity_and_disclosure"
VERSIONS: Mapping[str, str] = {
    "orion": "O", "trifid": "T", "lagoon": "L", "eagle": "E", "rosette": "R",
}  # fmt: skip
"""Versions by the letter that their contracts begin with."""
_PLACES: Mapping[str, Callable[[Mapping[str, Any]], str]] = {
    "contract": lambda told: f"contracts/{told['contract']}.json",
    "failure": lambda told: f"failures/{told['case']}.json",
    "condition": lambda told: f"diagnostic/conditions/{told['condition']}.json",
    "checks": lambda told: f"diagnostic/checks/{told['dtype']}.json",
    "run": lambda told: run_place(told["experiment"]),
    "gate": lambda told: gate_place(told["gate"]),
    "graph": lambda _: GRAPH,
    "traversals": lambda _: TRAVERSALS,
    "claims": lambda _: CLAIMS,
    "environment": lambda _: ENVIRONMENT,
    "machine": lambda _: MACHINE,
    "manifest": lambda _: MANIFEST,
}


@dataclass(frozen=True, slots=True)
class Declared:
    """One declared file: its kind, and what it is."""

    kind: str
    about: str


@dataclass(frozen=True, slots=True)
class Catalogue:
    """Every file of a tree by path, in order, and those that may differ between equal trees."""

    files: Mapping[str, Declared]
    excepted: Mapping[str, str]

    def of_kind(self, kind: str) -> dict[str, Declared]:
        """Return the declared files of one kind by path."""
        return {path: each for path, each in self.files.items() if each.kind == kind}

    def contracts(self, version: str) -> list[str]:
        """Return the paths of one version's contracts."""
        prefix = f"contracts/{VERSIONS[version]}"
        return [path for path in self.files if path.startswith(prefix)]


@functools.cache
def catalogue() -> Catalogue:
    """Return the committed catalogue; raises CorruptInputError for one that is not whole."""
    content = read_yaml(CATALOGUE_FILE)
    try:
        files = {path: Declared(kind, about) for path, (kind, about) in content["files"].items()}
        known = Catalogue(files, dict(content["excepted"]))
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise CorruptInputError(f"{CATALOGUE_FILE.name}: not whole: {error}") from error
    kinds = {*FORMS, SCHEMA}
    wrong = [path for path, each in files.items() if each.kind not in kinds]
    if content.get("format") != CATALOGUE_FORMAT or wrong or not set(known.excepted) <= set(files):
        raise CorruptInputError(f"{CATALOGUE_FILE.name}: not whole: {wrong or 'format'}")
    return known


def run_place(experiment: str) -> str:
    """Return where the tree keeps the run of an experiment."""
    return f"runs/{experiment}.json"


def gate_place(gate: str) -> str:
    """Return where the tree keeps a gate."""
    return f"gates/{gate}.json"


def place_of(kind: str, content: Mapping[str, Any]) -> str:
    """Return the path at which a file that says this belongs."""
    return _PLACES[kind](content)

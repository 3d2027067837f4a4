"""Stage150: one tree of 153 declared files from the results of other experiments, and seven gates.

The same runs give the same bytes. A gate whose experiment is missing, failed, of other settings or
of other sources fails; the tree is still written, for what it tells, and the run fails naming the
gates. Run the experiments first: `make reproduce` does all of it in order.
"""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import pandas as pd

from experiments import ranges
from experiments.disclosure import names_of_this_machine
from experiments.failures import DataError, ExperimentError
from experiments.result import Figure, Result
from experiments.runs import ROOT, source_digest
from experiments.settings import Settings
from experiments.staging.building import Tree, build, write
from experiments.staging.private import private_texts
from reproductions.claims import load_claims
from reproductions.disclosing import Known
from reproductions.inputs import CorruptInputError
from reproductions.judge import Choices
from reproductions.results import choose, of_experiment, read_runs
from reproductions.staging.catalogue import MANIFEST, catalogue
from reproductions.staging.forms import EXPERIMENTS, Gate
from reproductions.staging.verifying import verify_tree

TREE = "tree"
SHOWN = 12
"""Digits of a digest that a message shows."""
JUDGING = ("reproductions/**/*.py", "reproductions/**/*.yaml", "reproductions/**/*.json")
"""Sources beyond those of every run that the tree is made with."""
SETTLED = ("pyproject.toml", "constraints.txt")


def check(settings: Settings) -> None:
    """Refuse a seed that is none; nothing else can be set."""
    ranges.whole("seed", settings.seed, 0, ranges.SEED_LIMIT)


def inputs(settings: Settings) -> dict[str, Any]:
    """Return what tells a run apart: the results that it reads, and the sources it judges by.

    Raises DataError for a run directory that cannot be read.
    """
    choices = _choices(settings)
    wanted = {*EXPERIMENTS, *(claim.experiment for claim in load_claims().claims)}
    results = {
        " ".join(filter(None, (experiment, choice.data_set))): [
            _sha256(run.folder / "result.json") for run in (choice.run, choice.failed) if run
        ]
        for experiment in sorted(filter(None, wanted))
        for choice in of_experiment(choices, experiment)
        if experiment != settings.experiment
    }
    paths = [path for pattern in (*JUDGING, *SETTLED) for path in ROOT.glob(pattern)]
    judging = hashlib.sha256()
    for path in sorted(paths):
        judging.update(f"{path.relative_to(ROOT).as_posix()}\0{_sha256(path)}\n".encode())
    return {"inputs": {"results": results, "judging": judging.hexdigest()}}


def run(settings: Settings, folder: Path) -> Result:
    """Build the tree, write it below the run's folder, and judge it.

    Raises ExperimentError that names the failed gates; the tree is there then, too.
    """
    hosts, users = names_of_this_machine()
    known = Known(hosts=hosts, users=users, private=private_texts(settings.delta))
    tree = build(
        _choices(settings), load_claims(), root=ROOT, source_digest=source_digest(), known=known
    )
    write(tree, folder / TREE)
    failed = [gate for gate in tree.gates if not gate.passed]
    if failed:
        raise ExperimentError(
            f"{len(tree.gates) - len(failed)} of {len(tree.gates)} gates passed; failed: "
            + "; ".join(f"{gate.gate} ({reason(gate)})" for gate in failed)
            + "; make reproduce runs what they rest on"
        )
    return result_of(tree)


def whole(place: Path) -> bool:
    """Tell whether the tree of a finished run is sound; one that is not is made anew."""
    try:
        return all(row.passed for row in verify_tree(place / TREE))
    except (CorruptInputError, OSError):
        return False


def result_of(tree: Tree) -> Result:
    """Count files, gates and disclosures, and list them."""
    known = catalogue()
    listed = [
        {"path": path, "kind": known.files[path].kind if path in known.files else "undeclared",
         "bytes": len(data), "sha256": hashlib.sha256(data).hexdigest()}
        for path, data in sorted(tree.files.items())
        if path not in known.excepted and path != MANIFEST
    ]  # fmt: skip
    checks = [
        {"gate": gate.gate, "title": gate.title, "passed": gate.passed, "check": each.what,
         "required": str(each.required), "observed": str(each.observed), "held": each.passed}
        for gate in tree.gates
        for each in gate.checks
    ]  # fmt: skip
    passed = sum(gate.passed for gate in tree.gates)
    return Result(
        figures={
            "stage150.files": Figure(len(tree.files), "files", len(known.files)),
            "stage150.gates_passed": Figure(passed, "gates", len(tree.gates)),
            "stage150.disclosures": Figure(len(tree.found), "findings", len(tree.files)),
        },
        tables={"files": pd.DataFrame(listed), "gates": pd.DataFrame(checks)},
        notes=(
            "The paper publishes neither its files nor its gates: both are of our catalogue.",
            "machine.json and its line in manifest.json may differ between equal trees.",
        ),
    )


def reason(gate: Gate) -> str:
    """Return the first check that a gate failed on, in words."""
    for each in gate.checks:
        if not each.passed:
            observed, required = (str(value)[:SHOWN] for value in (each.observed, each.required))
            return f"{each.what}: {observed}, where {required} is required"
    return "nothing was checked"


def _choices(settings: Settings) -> Choices:
    try:
        return choose(read_runs(Path(settings.paths.runs).expanduser()))
    except CorruptInputError as error:
        raise DataError(str(error)) from error


def _sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()

"""The tree: files collected, gates computed from them, the manifest last; written whole or not."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from experiments.failures import ExperimentError
from experiments.staging.collecting import files_of
from experiments.staging.surroundings import (
    claims_file,
    environment_file,
    machine_file,
    run_file,
)
from reproductions.claims import ClaimsFile
from reproductions.disclosing import Disclosure, Known, disclosures
from reproductions.judge import Choices
from reproductions.results import Run, of_experiment
from reproductions.staging.canonical import canonical
from reproductions.staging.catalogue import (
    INTEGRITY,
    MANIFEST,
    SCHEMA,
    catalogue,
    gate_place,
    place_of,
)
from reproductions.staging.forms import EXPERIMENTS, Gate, content_of
from reproductions.staging.gates import result_gates
from reproductions.staging.integrity import integrity_gate, schema_file, well_formed
from reproductions.staging.manifest import manifest_bytes
from reproductions.staging.parts import File


@dataclass(frozen=True, slots=True)
class Tree:
    """A tree before it is written: bytes by path, its gates, and what a scan found."""

    files: Mapping[str, bytes]
    gates: tuple[Gate, ...]
    found: tuple[Disclosure, ...]


def speaking(choices: Choices) -> dict[str, Run]:
    """Return the run that speaks for each of the tree's experiments, a failed one where it must."""
    found = {}
    for experiment in EXPERIMENTS:
        for choice in of_experiment(choices, experiment):
            run = choice.failed if choice.stale or choice.run is None else choice.run
            if run is not None:
                found[experiment] = run
    return found


def build(
    choices: Choices, claims: ClaimsFile, *, root: Path, source_digest: str, known: Known
) -> Tree:
    """Return the tree of these runs. root: the checkout; known: what must not be disclosed.

    What a missing or failed run would have given is absent, and its gates fail.
    """
    files = collected(choices, claims, root=root, source_digest=source_digest)
    files |= {
        path: schema_file(path.removeprefix("schemas/").removesuffix(".json"))
        for path in catalogue().of_kind(SCHEMA)
    }
    contents, _ = well_formed(files)
    gates = result_gates(contents)
    told_by_gates = {gate_place(each.gate): canonical(content_of(each)) for each in gates}
    contents |= well_formed(told_by_gates)[0]
    files |= told_by_gates
    found = disclosures(files, known)
    last = integrity_gate(files, contents, found)
    files[gate_place(INTEGRITY)] = canonical(content_of(last))
    files[MANIFEST] = manifest_bytes(files)
    return Tree(files, (*gates, last), tuple(found))


def collected(
    choices: Choices, claims: ClaimsFile, *, root: Path, source_digest: str
) -> dict[str, bytes]:
    """Return what the runs and their surroundings give, by path, before any gate."""
    runs = speaking(choices)
    told: list[File] = [run_file(run) for run in runs.values()]
    for run in runs.values():
        if run.result.status == "ok":
            told += files_of(run)
    told.append(claims_file(claims, choices))
    told.append(environment_file(root, source_digest))
    told.append(machine_file(runs.values()))
    return dict(_placed(told))


def write(tree: Tree, place: Path) -> None:
    """Write the tree to a place that is free: built beside it and renamed."""
    draft = Path(tempfile.mkdtemp(prefix=f".{place.name}-", dir=place.parent))
    try:
        draft.chmod(0o755)
        for path, data in tree.files.items():
            target = draft / path
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(data)
        draft.rename(place)
    except BaseException:
        shutil.rmtree(draft, ignore_errors=True)
        raise


def _placed(told: Iterable[File]) -> Iterable[tuple[str, bytes]]:
    seen: set[str] = set()
    for file in told:
        content = content_of(file)
        path = place_of(content["kind"], content)
        if path in seen:
            raise ExperimentError(f"two files would stand at {path}")
        seen.add(path)
        yield path, canonical(content)

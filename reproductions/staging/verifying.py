"""Holding a tree against itself and against this release: files, manifest, forms, gates, secrets.

Nothing that the tree says of itself is believed: gates and manifest are computed anew from the
files, and the schemas must be those of this release.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from reproductions.disclosing import NOTHING, Known, disclosures
from reproductions.staging.canonical import canonical, sha256
from reproductions.staging.catalogue import MANIFEST, catalogue, gate_place
from reproductions.staging.claimed import problems_of_claims
from reproductions.staging.forms import Gate, Manifest, content_of
from reproductions.staging.gates import result_gates
from reproductions.staging.integrity import integrity_gate, well_formed
from reproductions.staging.manifest import manifest_bytes
from reproductions.staging.reading import read_tree


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the table: what was held against what, and every problem that was found."""

    what: str
    told: str
    problems: tuple[str, ...] = ()

    @property
    def passed(self) -> bool:
        """Whether there was no problem."""
        return not self.problems


def verify_tree(root: Path, known: Known = NOTHING) -> list[Row]:
    """Return what verifying a tree found, a row a matter; it is sound if every row passed.

    Raises CorruptInputError where the folder cannot be read as a tree at all, OSError of the disk.
    """
    files, refused = read_tree(root)
    contents, malformed = well_formed(files)
    found = disclosures(files, known)
    rows = [
        _composition(files, refused),
        Row("forms", f"{len(contents)} files in their form", tuple(malformed)),
        _manifest(files, contents.get(MANIFEST)),
        Row("disclosure", f"{len(files)} files scanned",
            tuple(f"{each.path}: {each.kind} at {each.where}" for each in found)),
    ]  # fmt: skip
    rows.insert(3, Row("claims", "held against the runs", tuple(problems_of_claims(contents))))
    gates = [*result_gates(contents), integrity_gate(files, contents, found)]
    return [*rows, *(_gate(files, each) for each in gates)]


def _composition(files: Mapping[str, bytes], refused: Iterable[str]) -> Row:
    declared = set(catalogue().files)
    problems = [
        *refused,
        *(f"{path}: not there" for path in sorted(declared - set(files))),
        *(f"{path}: not declared" for path in sorted(set(files) - declared)),
    ]
    return Row("composition", f"{len(files)} of {len(declared)} files", tuple(problems))


def _manifest(files: Mapping[str, bytes], content: Any) -> Row:
    """Hold every file against its entry, then the whole manifest against one made anew."""
    if content is None:
        return Row("manifest", "none in its form", (f"{MANIFEST}: not there or not in its form",))
    told = Manifest.model_validate(content)
    entries = [*told.files, *told.excepted]
    listed = {entry.path: entry for entry in entries}
    problems = [f"{path}: listed twice" for path in _twice(entry.path for entry in entries)]
    problems += [
        f"{path}: listed and not there" for path in listed if path not in files or path == MANIFEST
    ]
    for path, data in files.items():
        if path == MANIFEST:
            continue
        if path not in listed:
            problems.append(f"{path}: not listed")
        elif len(data) != listed[path].bytes:
            problems.append(f"{path}: {len(data)} bytes, listed with {listed[path].bytes}")
        elif sha256(data) != listed[path].sha256:
            problems.append(f"{path}: another digest than listed")
    if not problems and files[MANIFEST] != manifest_bytes(files):
        problems.append(f"{MANIFEST}: not the manifest of these files")
    return Row("manifest", f"{len(listed)} files listed", tuple(problems))


def _gate(files: Mapping[str, bytes], computed: Gate) -> Row:
    """Hold a gate of the tree against the one that its files give."""
    path = gate_place(computed.gate)
    failing = [
        f"{each.what}: {each.observed}, where {each.required} is required"
        for each in computed.checks
        if not each.passed
    ]
    if path in files and files[path] != canonical(content_of(computed)):
        failing.append(f"{path}: says other than what the files give")
    passed = sum(each.passed for each in computed.checks)
    return Row(
        f"gate {computed.gate}", f"{passed} of {len(computed.checks)} checks", tuple(failing)
    )


def _twice(paths: Iterable[str]) -> list[str]:
    return sorted(path for path, times in Counter(paths).items() if times > 1)

"""The gate of the tree itself: every file there, in its form, in its place, disclosing nothing.

It covers all files but itself and the manifest, which comes last and seals them all.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from reproductions.disclosing import Disclosure
from reproductions.inputs import CorruptInputError
from reproductions.schemas.making import check_schema, committed
from reproductions.staging.canonical import canonical, parse_canonical
from reproductions.staging.catalogue import (
    INTEGRITY,
    MANIFEST,
    SCHEMA,
    catalogue,
    gate_place,
    place_of,
)
from reproductions.staging.forms import Gate
from reproductions.staging.gates import check, gate

LAST = frozenset({MANIFEST, gate_place(INTEGRITY)})
"""Files that the gate does not cover, since they are made from it."""


def schema_file(kind: str) -> bytes:
    """Return the schema of a kind as the tree holds it."""
    return canonical(committed(f"stage150/{kind}"))


def well_formed(files: Mapping[str, bytes]) -> tuple[dict[str, Any], list[str]]:
    """Return the content of the declared files that are in their form, and what is wrong.

    A file's form: canonical JSON, the schema of its kind, and the place that it says of itself.
    """
    contents: dict[str, Any] = {}
    problems: list[str] = []
    declared = catalogue().files
    for path, data in sorted(files.items()):
        if path not in declared:
            continue
        try:
            contents[path] = _content(path, declared[path].kind, data)
        except CorruptInputError as error:
            problems.append(f"{path}: {error}")
    return contents, problems


def integrity_gate(
    paths: Iterable[str], contents: Mapping[str, Any], found: Iterable[Disclosure]
) -> Gate:
    """Return the gate over the files of these paths.

    contents: of those in their form, by `well_formed`. found: what a scan of the files came to.
    """
    covered = set(paths) - LAST
    declared = set(catalogue().files) - LAST
    disclosed = sum(each.path not in LAST for each in found)
    return gate(
        INTEGRITY,
        [
            check("declared files there", len(declared & covered), len(declared)),
            check("files that are not declared", len(covered - declared), 0),
            check("files in their form", len(covered & set(contents)), len(declared)),
            check("disclosures", disclosed, 0),
        ],
    )


def _content(path: str, kind: str, data: bytes) -> Any:
    content = parse_canonical(data)
    if kind == SCHEMA:
        told = path.removeprefix("schemas/").removesuffix(".json")
        if data != schema_file(told):
            raise CorruptInputError(f"not the schema of {told} in this release")
        return content
    check_schema(f"stage150/{kind}", content)
    if place_of(kind, content) != path:
        raise CorruptInputError(f"says that it is {place_of(kind, content)}")
    return content

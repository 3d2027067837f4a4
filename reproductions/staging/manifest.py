"""The manifest: size and SHA-256 of every other file, and one digest that two trees compare."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from reproductions.staging.canonical import canonical, sha256
from reproductions.staging.catalogue import MANIFEST, catalogue
from reproductions.staging.forms import Entry, Excepted, Manifest, content_of


def manifest_of(files: Mapping[str, bytes]) -> Manifest:
    """Return the manifest of these files.

    A file that the catalogue does not declare is listed as `undeclared`. `comparable_sha256` is
    over the canonical list of all files that are not excepted: equal for trees of equal results.
    """
    known = catalogue()
    entries, excepted = [], []
    for path, data in sorted(files.items()):
        if path == MANIFEST:
            continue
        kind = known.files[path].kind if path in known.files else "undeclared"
        fields: dict[str, Any] = {
            "path": path,
            "kind": kind,
            "bytes": len(data),
            "sha256": sha256(data),
        }
        if path in known.excepted:
            excepted.append(Excepted(**fields, why=known.excepted[path]))
        else:
            entries.append(Entry(**fields))
    return Manifest(files=entries, excepted=excepted, comparable_sha256=_comparable(entries))


def manifest_bytes(files: Mapping[str, bytes]) -> bytes:
    """Return the manifest of these files as the tree holds it."""
    return canonical(content_of(manifest_of(files)))


def _comparable(entries: Sequence[Entry]) -> str:
    return sha256(canonical([entry.model_dump() for entry in entries]))

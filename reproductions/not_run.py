"""Notes of experiments that could not run here for want of data."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from reproductions.inputs import CorruptInputError, read_json


def read_notes(root: Path) -> Mapping[tuple[str, str], str]:
    """Return what the missing data is called, by experiment and data set."""
    found = {}
    for path in sorted(root.glob("*/*.not-run.json")):
        told = read_json(path)
        if not isinstance(told, Mapping) or not all(
            isinstance(told.get(key), str) for key in ("experiment", "data", "title")
        ):
            raise CorruptInputError(f"{path}: no note of a run that was not made; remove it")
        found[told["experiment"], told["data"]] = told["title"]
    return found

"""Whether two folders of runs are equal outside of what a run declares as of its machine.

Declared: `machine.json` of a run, the tables whose digests stand there, and its log; in a Stage150
tree the files that its manifest excepts, and their lines in the manifest; folders of benchmarks.
Everything else must be the same bytes, wherever and whenever it was made.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from reproductions.inputs import CorruptInputError, read_json
from reproductions.staging.catalogue import MANIFEST, catalogue

OF_THE_MACHINE = ("machine.json", "log.txt")
MEASURED = ("bench",)
SHOWN = 4


@dataclass(frozen=True, slots=True)
class Difference:
    """One file that is not the same, and how."""

    path: str
    how: str


def differences(one: Path, other: Path) -> tuple[int, list[Difference]]:
    """Return how many files were compared, and those that are not the same, by path.

    Raises CorruptInputError for a folder that is none or a result that cannot be read.
    """
    compared = [_comparable(root) for root in (one, other)]
    paths = sorted(set(compared[0]) | set(compared[1]))
    found = []
    for path in paths:
        first, second = (each.get(path) for each in compared)
        if first is None or second is None:
            found.append(
                Difference(path, "only in the " + ("second" if first is None else "first"))
            )
            continue
        how = _how(path, first, second)
        if how:
            found.append(Difference(path, how))
    return len(paths), found


def _comparable(root: Path) -> dict[str, Path]:
    """Return the files of a folder of runs that must be the same everywhere."""
    if not root.is_dir():
        raise CorruptInputError(f"{root}: there is no such folder")
    declared: set[str] = set()
    for machine in root.glob("*/*/machine.json"):
        content = read_json(machine)
        run = machine.parent.relative_to(root).as_posix()
        tables = content.get("table_digests", {}) if isinstance(content, dict) else {}
        declared |= {f"{run}/{name}" for name in (*OF_THE_MACHINE, *tables)}
        declared |= {f"{run}/tree/{path}" for path in catalogue().excepted}
    return {
        path: file
        for file in root.rglob("*")
        if file.is_file()
        and not file.is_symlink()
        and (path := file.relative_to(root).as_posix()) not in declared
        and not any(part.startswith(".") for part in path.split("/"))
        and path.split("/")[0] not in MEASURED
    }


def _how(path: str, first: Path, second: Path) -> str:
    """Return in what two files differ, nothing where they are the same."""
    data = first.read_bytes(), second.read_bytes()
    if data[0] == data[1]:
        return ""
    if path.endswith(".json"):
        contents = [_without_excepted(path, read_json(file)) for file in (first, second)]
        places = list(_places(*contents))
        if not places and path.endswith(f"tree/{MANIFEST}"):
            return ""
        return f"differs at {', '.join(places[:SHOWN]) or 'the form alone'}" + _more(len(places))
    lines = [each.decode("utf-8", "replace").splitlines() for each in data]
    if path.endswith(".csv") and lines[0][:1] == lines[1][:1]:
        heads = lines[0][0].split(",")
        columns = dict.fromkeys(
            head
            for one, other in zip(lines[0], lines[1], strict=False)
            for head, left, right in zip(heads, one.split(","), other.split(","), strict=False)
            if left != right
        )
        return f"differs in {', '.join(columns) or 'the number of rows'}"
    count = sum(one != other for one, other in zip(*lines, strict=False))
    return f"differs in {count} lines" if count else "differs in the number of lines"


def _without_excepted(path: str, content: Any) -> Any:
    if path.endswith(f"tree/{MANIFEST}") and isinstance(content, dict):
        return {key: value for key, value in content.items() if key != "excepted"}
    return content


def _places(one: Any, other: Any, where: str = "") -> Iterator[str]:
    """Yield where two JSON values differ, as deep as both go."""
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        for key in sorted(set(one) | set(other)):
            if key in one and key in other:
                yield from _places(one[key], other[key], f"{where}/{key}")
            else:
                yield f"{where}/{key}"
    elif isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
        for number, (left, right) in enumerate(zip(one, other, strict=True)):
            yield from _places(left, right, f"{where}/{number}")
    elif json.dumps(one) != json.dumps(other):
        yield where or "the whole"


def _more(count: int) -> str:
    return f" and {count - SHOWN} more" if count > SHOWN else ""

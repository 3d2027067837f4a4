"""A report that would come out the same: told by the files that it is made of, and that it wrote.

A report costs half a minute, most of it plots; what it would be made of is told in a second: by
digests, and of large files, which it takes from no run as they are, by size and time of change.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
SOURCES = ("reports/**/*", "reproductions/**/*", "configs/**/*", "pyproject.toml")
RUNS = ("*/*/*", "*/*.json", "*.json")
STAMP = "made_of.json"
LARGE = 1 << 23
State = dict[str, str]


def made_of(runs: Path) -> State:
    """Return what a report over these runs is made of: the runs' files and the report's sources."""
    return _state(ROOT, SOURCES) | _state(runs, RUNS)


def is_unchanged(out: Path, now: State) -> bool:
    """Tell whether the report in `out` was made of the same, and lies there as it was written."""
    try:
        told = json.loads((out / STAMP).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return False
    return bool(told == {"made_of": now, "written": _written(out, told)})


def keep(out: Path, now: State, written: Iterable[Path]) -> None:
    """Remember what a report was made of and what it wrote."""
    files = {path.relative_to(out).as_posix(): _told(path) for path in written}
    text = json.dumps({"made_of": now, "written": files}, sort_keys=True)
    (out / STAMP).write_text(text + "\n", encoding="utf-8")


def _written(out: Path, told: Any) -> State | None:
    try:
        return {name: _told(out / name) for name in told["written"]}
    except (OSError, KeyError, TypeError):
        return None


def _state(root: Path, patterns: Iterable[str]) -> State:
    return {
        path.relative_to(root).as_posix(): _told(path)
        for pattern in patterns
        for path in root.glob(pattern)
        if path.is_file() and "__pycache__" not in path.parts and "out" not in path.parts
    }


def _told(path: Path) -> str:
    found = path.stat()
    if found.st_size > LARGE:
        return f"{found.st_size} bytes at {found.st_mtime_ns}"
    return hashlib.sha256(path.read_bytes()).hexdigest()

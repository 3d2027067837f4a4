"""Reading files that others wrote: JSON and YAML become plain values, or a `CorruptInputError`.

Values read here are safe to hash, print and compute with: nested at most `DEPTH` deep, every text
can be written as UTF-8, and every whole number of JSON has a float.
"""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import yaml
from pydantic import ValidationError

DEPTH = 64
UNREADABLE = (
    OSError,
    ArithmeticError,
    AttributeError,
    LookupError,
    RecursionError,
    TypeError,
    ValueError,
    yaml.YAMLError,
)
"""What the parsers raise for one hostile text or another."""


class CorruptInputError(ValueError):
    """A file that should hold results or claims cannot be read as such."""


def finite(value: object) -> float | int | None:
    """Return `value` where it is a finite number, else None."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        return value if math.isfinite(value) else None
    except OverflowError:  # a whole number beyond every float
        return None


def read_json(path: Path) -> Any:
    """Return the parsed file, or raise an error that names it and what to do."""
    try:
        return checked_content(json.loads(path.read_text(encoding="utf-8"), parse_int=_whole))
    except UNREADABLE as error:
        raise CorruptInputError(
            f"{path}: cannot be read as JSON ({error}); remove it and run the experiment again"
        ) from error


def read_yaml(path: Path) -> Any:
    """Return the parsed file, or raise an error that names it."""
    try:
        return checked_content(yaml.safe_load(path.read_text(encoding="utf-8")))
    except UNREADABLE as error:
        raise CorruptInputError(f"{path}: cannot be read as YAML ({error})") from error


def runs_folder(given: Path | None, default: Path = Path("runs")) -> Path:
    """Return the folder of runs; one that was given and is not there is an error, not emptiness."""
    if given is not None and not given.is_dir():
        raise CorruptInputError(
            f"--runs {given}: there is no such folder; make one: "
            f"python -m experiments experiment=contract_tally paths.runs={given}"
        )
    return default if given is None else given


def first_problem(error: ValidationError) -> str:
    """Return the first problem of a validation as one line: place, what is wrong."""
    problem = error.errors()[0]
    place = ".".join(str(part) for part in problem["loc"]) or "the file"
    more = error.error_count() - 1
    return f"{place}: {problem['msg']}" + (f" (and {more} more)" if more else "")


def _whole(text: str) -> int:
    number = int(text)
    if finite(number) is None:
        raise ValueError(f"a number of {len(text)} digits is too large")
    return number


def checked_content(content: Any) -> Any:
    """Return the content, or raise ValueError for nesting or text that nothing here could handle.

    It walks without recursion, and once over what YAML aliases repeat.
    """
    seen: set[int] = set()
    level: list[Any] = [content]
    for _ in range(DEPTH + 1):
        below: list[Any] = []
        for value in level:
            if isinstance(value, str):
                value.encode("utf-8")  # raises for half of a surrogate pair
            elif isinstance(value, dict | list | tuple | set) and id(value) not in seen:
                seen.add(id(value))
                below += value
                below += value.values() if isinstance(value, dict) else ()
        if not below:
            return content
        level = below
    raise ValueError(f"nested more than {DEPTH} levels deep")

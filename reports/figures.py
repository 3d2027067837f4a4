"""`figures.json`: every headline figure in one place, each with the run that measured it.

Rules kept here: a figure comes from a chosen run, from a benchmark's or mutation run's own file, or
from the judged claims; one that is no finite number is left out and named; one that was not
measured is absent. Two sources of one key are never merged: the later wins, the clash is named.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from reproductions.inputs import CorruptInputError, finite, first_problem, read_json
from reproductions.judged import JudgedClaims
from reproductions.results import Figure, Run


@dataclass
class Gathered:
    """Headline figures by key, and what was wrong with others."""

    figures: dict[str, dict[str, Any]] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)

    def add(self, key: str, figure: Figure, run: str) -> None:
        """Take one figure if it is usable."""
        entry = usable(figure)
        if entry is None:
            self.problems.append(f"{key} of {run} is {figure.value!r}: left out, no finite number")
            return
        if key in self.figures:
            earlier = self.figures[key]["run"]
            self.problems.append(
                f"{key} was measured by {earlier} and by {run}: the latter is used"
            )
        self.figures[key] = {**entry, "run": run}


def usable(figure: Figure) -> dict[str, Any] | None:
    """Return value, unit, n and, where measured, interval and control; None if not finite."""
    if figure.number is None:
        return None
    entry: dict[str, Any] = {"value": figure.number, "unit": figure.unit}
    if (count := finite(figure.n)) is not None:
        entry["n"] = count
    bounds = [finite(bound) for bound in figure.interval or []]
    if len(bounds) == 2 and None not in bounds:
        entry["interval"] = bounds
    if (control := finite(figure.control)) is not None:
        entry["control"] = control
    return entry


def gather(
    runs: Iterable[Run],
    root: Path,
    judged: JudgedClaims | None,
    others: Iterable[Run] = (),
) -> Gathered:
    """Return the figures of the chosen runs, of the files beside them, and of the claims.

    others: runs with settings of their own; of them a figure is taken that no chosen run measured,
    such as that of a size beyond the usual ones. The newest speaks.
    """
    gathered = Gathered()
    for run in sorted(runs, key=lambda run: run.moment):
        for key, figure in (run.result.figures | run.machine.figures).items():
            gathered.add(key, figure, run.result.run_id)
    for path in [*sorted((root / "bench").glob("*.json")), root / "mutate" / "result.json"]:
        if path.is_file():
            for key, (figure, name) in _from_file(path).items():
                gathered.add(key, figure, name)
    if judged is not None:
        for key, count in judged.figures.items():
            gathered.add(key, Figure(value=count.value, unit=count.unit, n=count.n), count.run)
    for run in sorted(others, key=lambda run: run.moment, reverse=True):
        for key, figure in (run.result.figures | run.machine.figures).items():
            if key not in gathered.figures:
                gathered.add(key, figure, run.result.run_id)
    return gathered


def _from_file(path: Path) -> Mapping[str, tuple[Figure, str]]:
    """Return figures and their runs of a benchmark's file: `{key: {...}}`, bare or in `figures`."""
    content = read_json(path)
    if not isinstance(content, dict):
        raise CorruptInputError(f"{path}: holds no figures; make it again")
    entries = content.get("figures", content)
    fallback = f"bench/{path.stem}" if path.parent.name == "bench" else path.parent.name
    name = content.get("run") or content.get("run_id") or fallback
    try:
        return {
            key: (Figure.model_validate(entry), str(entry.get("run") or name))
            for key, entry in entries.items()
            if isinstance(entry, dict) and "value" in entry
        }
    except (ValidationError, AttributeError) as error:
        detail = first_problem(error) if isinstance(error, ValidationError) else "no mapping"
        raise CorruptInputError(f"{path}: holds no figures ({detail}); make it again") from error


def write_figures(gathered: Gathered, path: Path) -> None:
    """Write the file, keys sorted."""
    text = json.dumps(gathered.figures, indent=2, sort_keys=True, ensure_ascii=False) + "\n"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")

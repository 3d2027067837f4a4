"""The grid of a multirun: every cell that was declared, joined with what its run found.

A cell is one job of `-m`: the same overrides with one value of each list. Its run is found by its
identity, as resuming finds it, so that a cell without a run, or with a failed one, has a line too.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd
from hydra._internal.core_plugins.basic_sweeper import BasicSweeper
from hydra.core.override_parser.overrides_parser import OverridesParser

from experiments import runs
from experiments.failures import ExperimentError
from experiments.overrides import composed
from experiments.running import known

DONE, FAILED, REFUSED, MISSING = "done", "failed", "refused", "missing"
FOLDER = "grids"


@dataclass(frozen=True, slots=True)
class Cell:
    """One job of a grid. varied: the overrides that tell it apart from the others."""

    overrides: tuple[str, ...]
    varied: dict[str, str]
    status: str
    run_id: str = ""
    why: str = ""
    figures: tuple[dict[str, Any], ...] = ()


@dataclass(frozen=True, slots=True)
class Grid:
    """All cells in the order of the declared lists, and the one table that holds them."""

    cells: tuple[Cell, ...]

    @property
    def complete(self) -> bool:
        """Whether every cell is done."""
        return all(cell.status == DONE for cell in self.cells)

    def table(self) -> pd.DataFrame:
        """Return a line for each figure of each cell, and one for a cell without any."""
        lines = [
            cell.varied | {"status": cell.status, "run": cell.run_id} | figure
            for cell in self.cells
            for figure in (cell.figures or ({},))
        ]
        return pd.DataFrame(lines)

    def told(self) -> list[str]:
        """Say how many cells are done, and name each one that is not."""
        done = sum(cell.status == DONE for cell in self.cells)
        said = [f"grid: {done} of {len(self.cells)} cells done"]
        for cell in self.cells:
            if cell.status != DONE:
                name = " ".join(f"{key}={value}" for key, value in cell.varied.items())
                said.append(f"  {cell.status}: {name}" + (f" ({cell.why})" if cell.why else ""))
        return said

    def write(self, root: Path) -> Path:
        """Write the table below the runs' folder and return its place; one for each grid."""
        declared = json.dumps([cell.overrides for cell in self.cells])
        name = hashlib.sha256(declared.encode()).hexdigest()[: runs.ID_LENGTH]
        place = root / FOLDER / f"{name}.csv"
        place.parent.mkdir(parents=True, exist_ok=True)
        self.table().to_csv(place, index=False)
        return place


def collect(given: Sequence[str]) -> Grid:
    """Join the grid that these overrides declare with the runs that are there.

    Raises ExperimentError where an override is wrong for every cell.
    """
    parsed = OverridesParser.create().parse_overrides(
        [each for each in given if not each.lstrip("+~").startswith("hydra")]
    )
    swept = {each.key_or_group for each in parsed if each.is_sweep_override()}
    [jobs] = BasicSweeper.split_arguments(parsed, max_batch_size=None)
    return Grid(tuple(_cell(tuple(job), swept) for job in jobs))


def _cell(overrides: tuple[str, ...], swept: set[str]) -> Cell:
    pairs = (each.partition("=") for each in overrides)
    varied = {key: value for key, _, value in pairs if key.lstrip("+") in swept}
    try:
        asked = known(composed(overrides))
    except ExperimentError as error:
        return Cell(overrides, varied, REFUSED, why=str(error))
    place, run_id = asked.place, asked.identity.run_id
    if asked.is_finished():
        result = json.loads((place / "result.json").read_text(encoding="utf-8"))
        machine = json.loads((place / "machine.json").read_text(encoding="utf-8"))
        found = result["figures"] | machine.get("figures", {})
        return Cell(overrides, varied, DONE, run_id, figures=tuple(_figures(found)))
    if (place / "result.json").is_file():
        result = json.loads((place / "result.json").read_text(encoding="utf-8"))
        why = str((result.get("error") or {}).get("message", ""))
        return Cell(overrides, varied, FAILED, run_id, why)
    return Cell(overrides, varied, MISSING, run_id)


def _figures(found: dict[str, Any]) -> list[dict[str, Any]]:
    return [
        {
            "figure": key,
            "value": figure["value"],
            "unit": figure["unit"],
            "low": (figure.get("interval") or (None, None))[0],
            "high": (figure.get("interval") or (None, None))[1],
            "n": figure.get("n"),
        }
        for key, figure in sorted(found.items())
    ]

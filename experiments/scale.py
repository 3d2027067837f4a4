"""Scale: what a growing store costs to build, load, append to, hold and ask, beside its peers.

Texts are drawn from a Zipf-like vocabulary. Questions come in two mixes: drawn as the texts are,
and without the commonest words. Times and memory are facts of the machine; that the answers equal
brute force is the result.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

from experiments import ranges
from experiments.failures import UsageError
from experiments.progress import progress
from experiments.result import Figure, Result
from experiments.scaling import tables
from experiments.scaling.engines import ENGINES, LIMIT, there
from experiments.scaling.measuring import measure
from experiments.scaling.texts import COMMONEST, texts
from experiments.settings import Settings

CELLS_LIMIT = 100_000_000
LIMITS = {"vocabulary": (COMMONEST + 1, 10**8), "terms": (1, 10_000), "query_terms": (1, 1_000),
          "queries": (1, 10**6), "checked": (1, 10**6)}  # fmt: skip
STEPS = 3
"""Of a size, beside one for each engine that is built."""


def check(settings: Settings) -> None:
    """Refuse sizes that make no measurement."""
    asked = settings.scale
    ranges.whole("seed", settings.seed, 0, ranges.SEED_LIMIT)
    if not asked.cells:
        raise UsageError("scale.cells is empty: give at least one size, such as [1000,10000]")
    for cells in asked.cells:
        ranges.whole("scale.cells", cells, 10 * LIMIT, CELLS_LIMIT)
    if len(set(asked.cells)) != len(asked.cells):
        raise UsageError(f"scale.cells={asked.cells} names a size twice")
    for name, (low, high) in LIMITS.items():
        ranges.whole(f"scale.{name}", getattr(asked, name), low, high)
    ranges.above("scale.patience_seconds", asked.patience_seconds, 0.0, ranges.PATIENCE_LIMIT)
    ranges.names("scale.engines", asked.engines, ENGINES)
    if "cma" not in asked.engines:
        raise UsageError(f"scale.engines={asked.engines} lacks cma, which the peers stand beside")


def run(settings: Settings) -> Result:
    """Measure every size, the smallest first."""
    asked = settings.scale
    names = [name for name in ENGINES if name in asked.engines and there(name)]
    made = texts(asked, settings.seed)
    found = []
    steps = len(asked.cells) * (len(names) + STEPS)
    with (
        tempfile.TemporaryDirectory() as temporary,
        progress("scale", steps, "steps") as advance,
    ):
        for cells in sorted(asked.cells):
            folder = Path(temporary) / str(cells)
            folder.mkdir()
            found.append(measure(cells, made, names, asked, folder, advance))
    checked = sum(each.checked for each in found)
    return Result(
        figures={
            "scale.checked": Figure(checked, "questions", checked),
            "scale.equal_to_brute_force": Figure(
                sum(each.equal for each in found), "questions", checked
            ),
        },
        tables={"exactness": tables.checks(found)},
        measured=tables.measured(found),
        measured_tables={"latency": tables.latency(found), "costs": tables.costs(found)},
        notes=tables.NOTES,
    )

"""The failure matrix: each fault is really injected, and the answer held against the required one.

The documented eight rows, and one for each fault of memory semantics that users of comparable
systems reported. A row has a store of its own, on a clock that stands still and under a fixed name,
so that digests and failure records are the same on every machine. A row that fails is written like
the others and noted: the figures then fall short, and the claims that ask for them fail.
"""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

import pandas as pd

from experiments import ranges
from experiments.injections.documented import DOCUMENTED
from experiments.injections.inputs import INPUTS
from experiments.injections.row import Injection, Row, perform
from experiments.injections.semantics import SEMANTICS
from experiments.progress import progress
from experiments.result import Figure, Result
from experiments.settings import Settings

INJECTIONS: tuple[Injection, ...] = (*DOCUMENTED, *SEMANTICS, *INPUTS)
LEFT_OUT = (
    (
        "Left out: an erased fact that survives in a summary. This release erases nothing, so "
        "there is nothing to inject."
    ),
    (
        "There is no vector path in this release: scopes and stored instructions are tried on the "
        "paths that there are."
    ),
)


def check(settings: Settings) -> None:
    """Refuse a seed that is none; nothing else can be set."""
    ranges.whole("seed", settings.seed, 0, ranges.SEED_LIMIT)


def run(settings: Settings, folder: Path) -> Result:  # noqa: ARG001
    """Inject every fault into a store of its own and judge the answers."""
    rows = []
    with (
        tempfile.TemporaryDirectory() as temporary,
        progress("failures injected", len(INJECTIONS), "rows") as advance,
    ):
        for injection in INJECTIONS:
            rows.append(perform(injection, Path(temporary) / injection.case))
            advance(1)
    return result_of(rows)


def result_of(rows: Sequence[Row]) -> Result:
    """Return figures, the table, and a note for every row that failed."""
    failed = [row for row in rows if not row.passed]
    notes = [f"FAILED: {row.case}, which must {_words(row)}: {row.observed}." for row in failed]
    if failed:
        notes.insert(0, f"{len(failed)} of {len(rows)} rows FAILED.")
    figures = {
        "failures.rows": Figure(len(rows), "rows", len(rows)),
        "failures.passed": Figure(len(rows) - len(failed), "rows", len(rows)),
    }
    figures |= {
        f"failures.case.{row.case}": Figure(int(row.passed), "rows passed", 1) for row in rows
    }
    return Result(
        figures=figures,
        tables={"failures": pd.DataFrame([asdict(row) for row in rows])},
        notes=(*notes, *LEFT_OUT),
    )


def _words(row: Row) -> str:
    return row.required.replace("_", " ")

"""The section of Stage150: gates, files by kind, and what it says of a failed run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from reports.sections import Section, sections
from reproductions.inputs import CorruptInputError
from reproductions.results import choose, read_runs
from tests.harness.sample_runs import figure, write_run

CHECK = {"title": "What it asks", "check": "contracts", "required": "40", "observed": "40"}
CHECKS = [
    {"gate": "orion_tally", "passed": True, **CHECK, "held": True},
    {"gate": "orion_tally", "passed": True, **CHECK, "held": True},
    {"gate": "frozen_model", "passed": False, **CHECK, "observed": "ab" * 32, "held": False},
]
FILES = [
    {"path": f"contracts/O0{n}.json", "kind": "contract", "bytes": 100 + n, "sha256": "cd" * 32}
    for n in range(3)
]
FIGURES = {"stage150.files": figure(153, "files"), "stage150.disclosures": figure(0, n=153)}


def section(root: Path, **options: Any) -> Section:
    options.setdefault("tables", {"gates.csv": CHECKS, "files.csv": FILES})
    write_run(root, "stage150", **{"figures": FIGURES, **options})
    runs = read_runs(root)
    return next(each for each in sections(choose(runs), runs) if each.experiment == "stage150")


def test_gates_and_kinds_are_counted_and_a_failed_gate_is_named(tmp_path: Path) -> None:
    found = section(tmp_path)
    assert found.finding == (
        "1 of 2 release gates passed over a tree of 153 files, in which a scan found 0 "
        "disclosures. FAILED: frozen model."
    )
    gates, kinds, checks, files = (table.rows for table in found.tables)
    assert gates == [
        ["orion tally", "What it asks", "2", "2", "yes"],
        ["frozen model", "What it asks", "0", "1", "NO"],
    ]
    assert kinds == [["contract", "3", "303"]]
    assert [row[3] for row in checks] == ["40", "40", "ab" * 12]
    assert len(files) == 3
    assert found.title == "Artifact tree and release gates"


def test_a_failed_run_shows_nothing_but_its_reason(tmp_path: Path) -> None:
    error = {"type": "ExperimentError", "message": "6 of 7 gates passed; failed: frozen_model"}
    found = section(tmp_path, status="failed", error=error, figures={})
    assert (found.state, found.tables, found.finding) == ("failed", (), "")
    assert "failed: frozen_model" in found.message


@pytest.mark.parametrize("left", ["gates.csv", "files.csv"])
def test_a_run_without_its_tables_is_refused(tmp_path: Path, left: str) -> None:
    rows = {"gates.csv": CHECKS, "files.csv": FILES}[left]
    with pytest.raises(CorruptInputError, match=r"without gates\.csv or files\.csv"):
        section(tmp_path, tables={left: rows})


def test_a_run_without_its_figures_is_refused(tmp_path: Path) -> None:
    with pytest.raises(CorruptInputError, match="lacks a column or a number"):
        section(tmp_path, figures={})

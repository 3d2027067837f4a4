"""The concurrency experiment: its checker is no part of the library, and sees what is planted."""

from __future__ import annotations

import ast
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from experiments import concurrency
from experiments.contending.running import Contest, contest
from experiments.failures import ExperimentError, UsageError
from experiments.overrides import composed
from reports import concurrency as section
from reproductions.results import read_runs
from tests.harness.sample_runs import write_run

ROOM = Path(concurrency.__file__).parent / "contending"
NAMES = ("one", "two", "three")


@pytest.fixture(scope="module")
def held(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Contest]:
    folder = tmp_path_factory.mktemp("contest")
    return folder, contest(folder, [NAMES[:2], NAMES[2:]], 60, 5)


def copied(held: tuple[Path, Contest], tmp_path: Path) -> Path:
    return Path(shutil.copytree(held[0], tmp_path / "copy"))


def test_all_that_was_acknowledged_is_there(held: tuple[Path, Contest]) -> None:
    folder, done = held
    assert len(done.answers) == 3 * 60
    found = concurrency.checked(folder)
    assert found.wrong == {kind: [] for kind in concurrency.KINDS}
    for what in ("acknowledged cells", "acknowledged updates", "acknowledged approvals"):
        assert found.looked[what] > 3
    for what in ("heads seen", "contradicting claims", "opposite outcomes", "refusals by code"):
        assert found.looked[what] > 0


@pytest.mark.parametrize("fault", concurrency.CONTROLS)
def test_a_planted_fault_is_reported_by_its_kind(
    held: tuple[Path, Contest], tmp_path: Path, fault: str
) -> None:
    folder = copied(held, tmp_path)
    concurrency._child("experiments.contending.planting", folder, fault)
    wrong = concurrency.checked(folder).wrong
    assert wrong[fault]
    # The chain was made to fit: but for what was planted, each fault is seen by the logs alone.
    if fault == "lost":
        assert [kind for kind, cases in wrong.items() if cases and kind != "forks"] == ["lost"]
    assert all("follow" not in what for what in wrong["forks"])


def test_what_a_log_does_not_hold_is_nobodys(held: tuple[Path, Contest], tmp_path: Path) -> None:
    folder = copied(held, tmp_path)
    (folder / "one.log").write_text("")
    wrong = concurrency.checked(folder).wrong
    assert wrong["unacknowledged"]
    assert wrong["lost"]  # refusals on record that nobody was told of


def test_a_broken_row_is_a_fork_and_a_changed_record_a_disagreement(
    held: tuple[Path, Contest], tmp_path: Path
) -> None:
    folder = copied(held, tmp_path)
    script = (
        "import sqlite3, sys\n"
        "with sqlite3.connect(sys.argv[1]) as store:\n"
        "    store.execute('DROP TRIGGER audit_is_never_changed')\n"
        "    store.execute('UPDATE audit SET hash = zeroblob(32) WHERE seq = 9')\n"
        "    new = \"CAST(replace(record, 'null', '1') AS BLOB)\"\n"
        "    store.execute(f'UPDATE links SET record = {new}')\n"
        "    store.execute(\"DELETE FROM links WHERE kind = 'conflict'\")\n"
    )
    subprocess.run([sys.executable, "-c", script, str(folder / "shared.cma")], check=True)
    wrong = concurrency.checked(folder).wrong
    assert any("record 9 does not follow" in what for what in wrong["forks"])
    assert wrong["disagreements"]
    assert wrong["one_sided_conflicts"]


def test_a_fault_that_the_checker_does_not_see_fails_the_run(
    held: tuple[Path, Contest], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    blind = concurrency.Checked({}, {kind: [] for kind in concurrency.KINDS})
    monkeypatch.setattr(concurrency, "checked", lambda _: blind)
    with pytest.raises(ExperimentError, match="planted fault: lost"):
        concurrency.controls(copied(held, tmp_path))


def test_the_checker_imports_nothing_of_the_library() -> None:
    for name in ("chain", "checking", "planting", "__init__"):
        for node in ast.walk(ast.parse((ROOM / f"{name}.py").read_text())):
            modules = [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            modules += [each.name for each in node.names] if isinstance(node, ast.Import) else []
            for module in modules:
                assert module.startswith("experiments.contending") or (
                    module.partition(".")[0] in sys.stdlib_module_names
                ), (name, module)


def test_a_child_that_dies_fails_the_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", shutil.which("false"))
    with pytest.raises(ExperimentError, match="could not begin"):
        contest(tmp_path, [["one"]], 1, 1)


def test_numbers_out_of_range_are_refused() -> None:
    for given in ("concurrency.writers=1", "concurrency.operations=0", "seed=-1"):
        with pytest.raises(UsageError, match=given.partition("=")[0]):
            concurrency.check(composed(["experiment=concurrency", given]))


def test_figures_and_section_tell_what_was_wrong(
    held: tuple[Path, Contest], tmp_path: Path
) -> None:
    wrong = {kind: [] for kind in concurrency.KINDS} | {"lost": ["cell x"]}
    good = concurrency.Checked({"cells": 3}, {kind: [] for kind in concurrency.KINDS})
    rounds = [
        concurrency.Round("processes", held[1], good, concurrency.CONTROLS),
        concurrency.Round("threads", held[1], concurrency.Checked({}, wrong), ("forks",)),
    ]
    result = concurrency.result_of(3, rounds)
    assert result.figures["concurrency.operations"].value == 360
    lost = result.figures["concurrency.lost"]
    assert (lost.value, lost.n, lost.control) == (1, 360, 1)
    assert result.figures["concurrency.forks"].control == 2
    assert result.notes == ("FAILED: lost: cell x.",)
    assert result.measured["concurrency.write_p99_ms"].value > 0
    tables = {**result.tables, **result.measured_tables}
    rows = {f"{name}.csv": table.to_dict("records") for name, table in tables.items()}
    write_run(tmp_path, "concurrency", tables=rows)
    [run] = read_runs(tmp_path)
    finding, (found, answers) = section.build(run, "concurrency")
    assert finding.startswith("360 operations (180 by 3 processes and 180 by 3 threads): 1 case")
    assert "Cases" in found.numeric
    assert len(answers.rows) > 10

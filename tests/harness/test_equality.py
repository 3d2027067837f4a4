"""`python -m reproductions equal`: two folders of runs, and what may differ between them."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from experiments.staging.building import write
from reproductions.__main__ import main
from reproductions.equality import differences
from tests.harness.sample_runs import write_tally
from tests.harness.staged_runs import ROOT, tree_of, write_staged


@pytest.fixture
def pair(tmp_path: Path) -> tuple[Path, Path]:
    """Two folders of the same runs, made at other times on other machines."""
    roots = tmp_path / "one", tmp_path / "a" / "longer" / "other"
    for number, root in enumerate(roots):
        folder = write_tally(
            root, finished=f"2026-07-0{number + 1}T10:00:00+00:00",
            machine={"cpu_count": number, "table_digests": {"seconds.csv": "ab" * 32}},
        )  # fmt: skip
        (folder / "log.txt").write_text(f"at {number}")
        (folder / "seconds.csv").write_text(f"seconds\n{number}\n")
        (root / "bench").mkdir()
        (root / "bench" / "a.json").write_text(str(number))
        (root / ".drafts").mkdir()
        (root / ".drafts" / "x").write_text(str(number))
    return roots


def test_runs_that_differ_by_machine_and_moment_are_equal(
    pair: tuple[Path, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    assert differences(*pair) == (4, [])
    assert main(["equal", *map(str, pair)]) == 0
    assert "4 files compared, 0 not the same" in capsys.readouterr().out


def test_a_figure_and_a_table_that_differ_are_named_with_their_place(
    pair: tuple[Path, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    run = pair[1] / "contract_tally" / "0123456789abcdef"
    content = json.loads((run / "result.json").read_text())
    content["figures"]["contracts.orion"]["value"] = 39
    (run / "result.json").write_text(json.dumps(content))
    table = run / "tally.csv"
    table.write_text(table.read_text().replace("orion,40,40", "orion,39,40"))
    (run / "config.yaml").write_text("experiment: other\n")
    assert main(["equal", *map(str, pair)]) == 1
    said = capsys.readouterr().out
    run_name = "contract_tally/0123456789abcdef"
    assert f"{run_name}/result.json: differs at /figures/contracts.orion/value" in said
    assert f"{run_name}/tally.csv: differs in passed" in said
    assert f"{run_name}/config.yaml: differs in 1 lines" in said
    assert "3 not the same" in said


def test_a_run_that_is_in_one_alone_is_named(pair: tuple[Path, Path]) -> None:
    write_tally(pair[0], run_id="f" * 16)
    _, found = differences(*pair)
    assert {each.how for each in found} == {"only in the first"}
    assert all("ffffffffffffffff" in each.path for each in found)
    _, found = differences(*reversed(pair))
    assert {each.how for each in found} == {"only in the second"}


def test_numbers_that_only_look_alike_are_not_equal(pair: tuple[Path, Path]) -> None:
    for root, text in zip(pair, ('{"a":1}', '{"a":1.0}'), strict=True):
        (root / "claims.json").write_text(text)
    assert [each.how for each in differences(*pair)[1]] == ["differs at /a"]


def test_trees_differ_in_what_their_manifest_excepts_and_no_more(tmp_path: Path) -> None:
    roots = tmp_path / "one", tmp_path / "two"
    for number, root in enumerate(roots):
        write_staged(root, machine={"cpu_count": number})
        run = root / "stage150" / "0123456789abcdef"
        run.mkdir(parents=True)
        (run / "machine.json").write_text(json.dumps({"cpu_count": number}))
        write(tree_of(root), run / "tree")
    one, two = (root / "stage150" / "0123456789abcdef" / "tree" for root in roots)
    assert (one / "manifest.json").read_bytes() != (two / "manifest.json").read_bytes()
    assert differences(*roots)[1] == []
    contract = two / "contracts" / "O01.json"
    contract.write_bytes(contract.read_bytes().replace(b"passed", b"failed"))
    manifest = two / "manifest.json"
    manifest.write_bytes(manifest.read_bytes().replace(b'"kind":"contract"', b'"kind":"other"', 1))
    places = {each.path.rpartition("tree/")[2]: each.how for each in differences(*roots)[1]}
    assert places == {
        "contracts/O01.json": "differs at /outcome",
        "manifest.json": "differs at /files/1/kind",
    }


@pytest.mark.parametrize("kind", ["none", "empty", "corrupt"])
def test_what_cannot_be_compared_is_status_two(
    pair: tuple[Path, Path], tmp_path: Path, kind: str, capsys: pytest.CaptureFixture[str]
) -> None:
    given = [*map(str, pair)]
    if kind == "none":
        given[1] = str(tmp_path / "nowhere")
    elif kind == "empty":
        for root in pair:
            shutil.rmtree(root)
            root.mkdir()
    else:
        (pair[0] / "contract_tally" / "0123456789abcdef" / "machine.json").write_text("{")
    assert main(["equal", *given]) == 2
    assert "python -m reproductions equal: " in capsys.readouterr().err


def test_two_checkouts_give_equal_results(tmp_path: Path) -> None:
    """Other places, hash seeds, time zones and homes: the runs are the same but for the machine."""
    first, second = tmp_path / "one", tmp_path / "another" / "much" / "longer" / "place"
    leave = shutil.ignore_patterns("__pycache__", "out")
    for name in ("cma", "experiments", "configs", "reproductions"):
        shutil.copytree(ROOT / name, first / name, ignore=leave)
    for name in ("constraints.txt", "pyproject.toml"):
        shutil.copy(ROOT / name, first / name)
    shutil.copytree(first, second, ignore=leave)
    for place, zone, seed in ((first, "UTC", "1"), (second, "US/Pacific", "2")):
        environment = {
            **os.environ, "PYTHONPATH": str(place), "TZ": zone, "PYTHONHASHSEED": seed,
            "HOME": str(place),
        }  # fmt: skip
        subprocess.run(
            [sys.executable, "-m", "experiments", "experiment=explain"],
            cwd=place, env=environment, check=True, capture_output=True,
        )  # fmt: skip
    compared, found = differences(first / "runs", second / "runs")
    assert (compared, found) == (3, [])

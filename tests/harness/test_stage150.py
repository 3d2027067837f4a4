"""The Stage150 tree: its 153 files, its gates, and what makes each of them fail."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from cma.sun.interventions import CONDITIONS
from experiments import running, stage150
from experiments.failure_matrix import INJECTIONS
from experiments.failures import DataError, RunFailedError
from experiments.overrides import composed
from experiments.staging import private
from experiments.staging.building import Tree, write
from reproductions.disclosing import Known
from reproductions.staging.canonical import canonical
from reproductions.staging.catalogue import catalogue
from reproductions.staging.verifying import verify_tree
from tests.harness.staged_runs import (
    ROOT,
    SOURCES,
    Spoil,
    failed_results,
    tree_of,
    write_staged,
)

TALLIES = ["orion_tally", "trifid_tally", "lagoon_eagle_rosette_tally"]
GATES_OF = {
    "contract_tally": TALLIES, "failure_matrix": ["failure_matrix"],
    "graph_fixture": ["graph_fixture"], "delta_norm": ["frozen_model"],
}  # fmt: skip
INTEGRITY = "integrity_and_disclosure"


def failed(tree: Tree) -> list[str]:
    return [gate.gate for gate in tree.gates if not gate.passed]


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Tree:
    runs = tmp_path_factory.mktemp("runs")
    write_staged(runs)
    return tree_of(runs)


def test_a_tree_is_the_153_declared_files_and_passes_seven_gates(whole: Tree) -> None:
    assert len(catalogue().files) == 153
    assert set(whole.files) == set(catalogue().files)
    assert len(whole.gates) == 7
    assert failed(whole) == []
    assert whole.found == ()


def test_the_catalogue_is_that_of_the_contracts_the_injections_and_the_conditions() -> None:
    known = catalogue()
    listed = yaml.safe_load((ROOT / "experiments" / "contracts.yaml").read_text())
    contracts = {
        f"contracts/{name}.json": title
        for version in listed.values()
        for name, title in version["contracts"].items()
    }
    assert {path: each.about for path, each in known.of_kind("contract").items()} == contracts
    assert len(contracts) == 89
    rows = {f"failures/{each.case}.json": each.injected.lower() for each in INJECTIONS}
    assert {path: each.about.lower() for path, each in known.of_kind("failure").items()} == rows
    conditions = {f"diagnostic/conditions/{each.name}.json" for each in CONDITIONS}
    assert set(known.of_kind("condition")) == conditions
    delta = composed(["experiment=delta_norm"]).delta
    assert [Path(path).stem for path in known.of_kind("checks")] == delta.dtypes
    assert all(len(each.about) > 10 for each in known.files.values())


def test_every_file_is_canonical(whole: Tree) -> None:
    assert all(canonical(json.loads(data)) == data for data in whole.files.values())


def test_the_same_runs_give_the_same_bytes_wherever_they_lie(tmp_path: Path, whole: Tree) -> None:
    write_staged(tmp_path / "a" / "longer" / "place")
    assert tree_of(tmp_path / "a" / "longer" / "place").files == whole.files


def test_times_run_ids_and_machines_are_in_one_file_alone(tmp_path: Path, whole: Tree) -> None:
    machine = {"device": "cuda (Some GPU)", "platform": "Other arm64", "cpu_count": 99}
    write_staged(tmp_path, run_id="fedcba9876543210", finished="2026-09-09T09:09:09+00:00",
                 machine=machine)  # fmt: skip
    other = tree_of(tmp_path)
    differing = {path for path in whole.files if other.files[path] != whole.files[path]}
    assert differing == {"machine.json", "manifest.json"}
    one, two = (json.loads(tree.files["manifest.json"]) for tree in (whole, other))
    assert one["excepted"] != two["excepted"]
    assert one["comparable_sha256"] == two["comparable_sha256"]
    assert one["files"] == two["files"]
    told = b"".join(data for path, data in other.files.items() if path != "machine.json")
    assert not any(word in told for word in (b"fedcba9876543210", b"Some GPU", b"2026-09-09"))


@pytest.mark.parametrize("experiment", list(GATES_OF))
def test_a_missing_run_fails_its_gates_and_leaves_the_tree_short(
    tmp_path: Path, experiment: str
) -> None:
    write_staged(tmp_path, leave_out=[experiment])
    tree = tree_of(tmp_path)
    assert failed(tree) == [*GATES_OF[experiment], INTEGRITY]
    assert len(tree.files) < 153
    assert f"runs/{experiment}.json" not in tree.files


@pytest.mark.parametrize("experiment", list(GATES_OF))
def test_a_failed_run_fails_its_gates(tmp_path: Path, experiment: str) -> None:
    error = {"type": "ExperimentError", "message": "it broke"}
    write_staged(tmp_path, **{experiment: {"status": "failed", "error": error}})
    tree = tree_of(tmp_path)
    assert failed(tree) == [*GATES_OF[experiment], INTEGRITY]
    assert b"it broke" in tree.files[f"runs/{experiment}.json"]


@pytest.mark.parametrize("experiment", list(GATES_OF))
def test_a_stale_run_fails_its_gates_and_no_other(tmp_path: Path, experiment: str) -> None:
    write_staged(tmp_path, **{experiment: {"source_digest": "99" * 32}})
    assert failed_results(tmp_path) == GATES_OF[experiment]


@pytest.mark.parametrize("experiment", list(GATES_OF))
def test_a_run_of_other_settings_fails_its_gates(tmp_path: Path, experiment: str) -> None:
    machine = {"overrides": [f"experiment={experiment}", "seed=5"]}
    write_staged(tmp_path, **{experiment: {"machine": machine}})
    assert failed_results(tmp_path) == GATES_OF[experiment]


def test_a_run_superseded_by_a_failure_of_new_sources_fails(tmp_path: Path) -> None:
    write_staged(tmp_path)
    late: dict[str, Any] = {"run_id": "f" * 16, "finished": "2026-08-01T00:00:00+00:00"}
    left = [name for name in GATES_OF if name != "graph_fixture"]
    write_staged(tmp_path, leave_out=left, status="failed", source_digest="99" * 32,
                 error={"type": "E", "message": "m"}, **late)  # fmt: skip
    assert "graph_fixture" in failed_results(tmp_path)


def setting(table: str, place: int, **values: Any) -> Spoil:
    return lambda tables, _: tables[f"{table}.csv"][place].update(values)


def figure_of(key: str, value: Any) -> Spoil:
    return lambda _, figures: figures[key].update(value=value)


def another_start(tables: Any, _: Any) -> None:
    first, second = tables["traversal.csv"][:2]
    first["node"], second["node"] = second["node"], first["node"]


@pytest.mark.parametrize(
    ("experiment", "spoil", "gate"),
    [
        ("graph_fixture", another_start, "graph_fixture"),
        ("contract_tally", setting("contracts", 0, outcome="failed"), "orion_tally"),
        ("contract_tally", setting("contracts", 39, outcome="missing"), "orion_tally"),
        ("contract_tally", setting("contracts", 40, outcome="failed"), "trifid_tally"),
        ("contract_tally", setting("contracts", 88, outcome="failed"), TALLIES[2]),
        ("contract_tally", figure_of("contracts.orion", 39), "orion_tally"),
        ("contract_tally", figure_of("contracts.eagle", 8), TALLIES[2]),
        ("failure_matrix", setting("failures", 3, passed=False), "failure_matrix"),
        ("failure_matrix", setting("failures", 3, fell_short="digest"), "failure_matrix"),
        ("failure_matrix", figure_of("failures.passed", 23), "failure_matrix"),
        ("failure_matrix", setting("failures", 6, digest_after="00" * 32), "failure_matrix"),
        ("failure_matrix", setting("failures", 6, reason=""), "failure_matrix"),
        ("graph_fixture", setting("nodes", 0, scale="schema"), "graph_fixture"),
        ("graph_fixture", setting("edges", 4, adjacency="derivation"), "graph_fixture"),
        ("graph_fixture", setting("edges", 4, target="E9"), "graph_fixture"),
        ("graph_fixture", setting("ways", 2, digest="13" * 32), "graph_fixture"),
        ("graph_fixture", setting("traversal", 4, node="E1"), "graph_fixture"),
        ("graph_fixture", setting("traversal", 1, node="E2"), "graph_fixture"),
        ("graph_fixture", figure_of("graph.nodes_reached", 4), "graph_fixture"),
        ("delta_norm", setting("norms", 0, delta_norm=0.0), "frozen_model"),
        ("delta_norm", setting("norms", 2, delta_norm=0.001), "frozen_model"),
        ("delta_norm", setting("norms", 2, logits_equal=False), "frozen_model"),
        ("delta_norm", setting("norms", 0, logits_equal=True), "frozen_model"),
        ("delta_norm", setting("checks", 1, trainable=1), "frozen_model"),
        ("delta_norm", setting("checks", 1, gradients=2), "frozen_model"),
        ("delta_norm", setting("checks", 0, weights_unchanged=False), "frozen_model"),
        ("delta_norm", setting("checks", 0, context="1 x 2 x 1024"), "frozen_model"),
        ("delta_norm", figure_of("delta.context.mask_true", 0), "frozen_model"),
    ],
)
def test_a_wrong_value_fails_its_gate_and_no_other(
    tmp_path: Path, experiment: str, spoil: Spoil, gate: str
) -> None:
    write_staged(tmp_path, spoil={experiment: spoil})
    assert failed_results(tmp_path) == [gate]


def test_private_text_and_a_host_name_fail_the_last_gate(tmp_path: Path) -> None:
    spoil = setting("failures", 0, observed="Ann drinks tea on build-host-7, she said")
    write_staged(tmp_path, spoil={"failure_matrix": spoil})
    assert failed(tree_of(tmp_path)) == []
    for known in (Known(private=("Ann drinks tea",)), Known(hosts=("build-host-7",))):
        tree = tree_of(tmp_path, known)
        assert failed(tree) == [INTEGRITY]
        assert {each.path for each in tree.found} == {"failures/ttl_expiration.json"}


def test_labels_of_a_session_are_not_in_the_tree(whole: Tree) -> None:
    assert not any(b"what a session says" in data for data in whole.files.values())


@pytest.fixture
def staged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setattr(stage150, "source_digest", lambda: SOURCES)
    monkeypatch.setattr(stage150, "private_texts", lambda _: ("what a session says",))
    return composed(["experiment=stage150", f"paths.runs={tmp_path}"])


def test_the_experiment_writes_a_sound_tree_and_its_figures(staged: Any, tmp_path: Path) -> None:
    write_staged(tmp_path)
    place = running.run(staged).place
    result = json.loads((place / "result.json").read_text())
    assert {key: (each["value"], each["n"]) for key, each in result["figures"].items()} == {
        "stage150.files": (153, 153),
        "stage150.gates_passed": (7, 7),
        "stage150.disclosures": (0, 153),
    }
    assert all(row.passed for row in verify_tree(place / "tree"))
    assert {path.name for path in place.iterdir()} == {
        "config.yaml", "files.csv", "gates.csv", "log.txt", "machine.json", "result.json", "tree",
    }  # fmt: skip
    assert running.run(staged).reused


@pytest.mark.parametrize("path", ["contracts/O01.json", ""])
def test_a_damaged_tree_is_made_anew(staged: Any, tmp_path: Path, path: str) -> None:
    write_staged(tmp_path)
    tree = running.run(staged).place / "tree"
    if path:
        (tree / path).unlink()
    else:
        tree.rename(tree.with_name("moved"))
    again = running.run(staged)
    assert not again.reused
    assert all(row.passed for row in verify_tree(again.place / "tree"))


def test_other_results_make_another_run(staged: Any, tmp_path: Path) -> None:
    write_staged(tmp_path)
    first = running.run(staged)
    result = tmp_path / "graph_fixture" / "0123456789abcdef" / "result.json"
    content = json.loads(result.read_text())
    result.write_text(json.dumps(content | {"notes": ["another"]}))
    second = running.run(staged)
    assert not second.reused
    assert second.place != first.place


def test_a_failed_gate_is_a_failed_run_that_names_it_and_keeps_the_tree(
    staged: Any, tmp_path: Path
) -> None:
    write_staged(tmp_path, leave_out=["delta_norm"])
    with pytest.raises(RunFailedError, match=r"frozen_model .run of delta_norm") as stopped:
        running.run(staged)
    assert stopped.value.exit_status == 1
    [result] = (tmp_path / "stage150").glob("*/result.json")
    told = json.loads(result.read_text())
    assert (told["status"], told["figures"]) == ("failed", {})
    rows = {row.what: row.passed for row in verify_tree(result.parent / "tree")}
    assert not rows["gate frozen_model"]
    assert rows["gate orion_tally"]


def test_a_run_that_cannot_be_read_stops_before_anything_is_written(
    staged: Any, tmp_path: Path
) -> None:
    write_staged(tmp_path)
    (tmp_path / "graph_fixture" / "0123456789abcdef" / "result.json").write_text("{")
    with pytest.raises(DataError, match="cannot be read"):
        running.run(staged)
    assert not (tmp_path / "stage150").exists()


def test_tables_that_do_not_fit_are_named(staged: Any, tmp_path: Path) -> None:
    write_staged(tmp_path, spoil={"failure_matrix": setting("failures", 0, artifact="one")})
    with pytest.raises(RunFailedError, match="'one' is no failure record"):
        running.run(staged)


def test_a_tree_that_cannot_be_written_leaves_nothing(
    tmp_path: Path, whole: Tree, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_: Path, __: Any) -> None:
        raise OSError("disk full")

    monkeypatch.setattr(Path, "rename", refuse)
    with pytest.raises(OSError, match="disk full"):
        write(whole, tmp_path / "tree")
    assert list(tmp_path.iterdir()) == []


def test_private_texts_are_those_of_session_cells(monkeypatch: pytest.MonkeyPatch) -> None:
    few = [each for each in INJECTIONS if each.case in ("missing_approval", "equal_scores")]
    monkeypatch.setattr(private, "INJECTIONS", few)
    found = private.private_texts(composed(["experiment=delta_norm"]).delta)
    assert {"Ann drinks green tea", "The release went out", "Ann drinks tea, 0"} <= set(found)
    assert not any("equal cell" in text for text in found), "a global cell is no session's"

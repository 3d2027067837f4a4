"""The graph fixture: what the experiment builds and counts, and what its section shows."""

from __future__ import annotations

import copy
import shutil
from pathlib import Path
from typing import Any

import pytest

from cma.rosette.graph import Edge, GraphView, Node
from experiments import graph_fixture
from experiments.dispatch import EXPERIMENTS
from experiments.failures import ExperimentError, UsageError
from experiments.overrides import composed
from experiments.result import Result
from reports import graph
from reports.__main__ import main
from reports.plots import DARK, LIGHT
from reproductions.__main__ import main as judge_main
from reproductions.results import read_runs
from tests.harness.sample_runs import figure, write_run

NODES = [
    {"name": "C1", "scale": "control", "label": "defer", "q": 0, "r": 0, "reached": 3, "id": "d"},
    {"name": "S1", "scale": "schema", "label": "<b>&_", "q": 0, "r": -1, "reached": 3, "id": "c"},
    {"name": "E1", "scale": "episode", "label": "one", "q": 0, "r": -2, "reached": 3, "id": "f"},
]
EDGES = [
    {"adjacency": "derivation", "source": "S1", "target": "E1"},
    {"adjacency": "governance", "source": "C1", "target": "E1"},
]
WAYS = [{"way": "built", "same": True, "starts": 3, "digest": "ab"},
        {"way": "another process", "same": False, "starts": 3, "digest": "cd"}]  # fmt: skip
TRAVERSAL = [{"bounds": "none", "start": "C1", "place": 1, "node": "C1", "cut": ""}]
TABLES = {"nodes.csv": NODES, "edges.csv": EDGES, "ways.csv": WAYS, "traversal.csv": TRAVERSAL}


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> Result:
    settings = composed(["experiment=graph_fixture"])
    return graph_fixture.run(settings, tmp_path_factory.mktemp("run"))


def test_five_nodes_of_three_scales_are_all_reached(found: Result) -> None:
    assert {name: (each.value, each.n) for name, each in found.figures.items()} == {
        "graph.nodes": (5, 5),
        "graph.scales": (3, 3),
        "graph.adjacencies": (3, 3),
        "graph.nodes_reached": (5, 5),
    }
    assert found.notes == ()
    nodes = found.tables["nodes"]
    assert nodes["name"].tolist() == ["C1", "S1", "S2", "E1", "E2"]
    assert nodes["reached"].tolist() == [5] * 5
    assert set(found.tables["edges"]["adjacency"]) == {"temporal", "derivation", "governance"}


def test_the_graph_is_the_same_in_every_way(found: Result) -> None:
    ways = found.tables["ways"]
    assert ways["way"].tolist() == [
        "built", "asked again", "restored from a snapshot", "another process",
    ]  # fmt: skip
    assert ways["same"].all()
    assert ways["digest"].nunique() == 1


def test_every_traversal_is_tabled_with_what_it_cut(found: Result) -> None:
    rows = found.tables["traversal"]
    assert set(rows["bounds"]) == set(graph_fixture.BOUNDS)
    for (bounds, _), own in rows.groupby(["bounds", "start"]):
        visited = own[own["cut"] == ""]
        assert visited["place"].tolist() == list(range(1, len(visited) + 1))
        assert not own["node"].duplicated().any()
        assert set(own["cut"]) <= {"", bounds.split("=")[0].replace("ies", "y").rstrip("s")}
    assert len(rows[(rows["bounds"] == "none")]) == 25


def seen_again(**changes: Any) -> tuple[Any, dict[str, Any]]:
    """Return a small view, and what two ways tell of it; `changes` are made to the second."""
    view = GraphView(
        scope="global",
        generation=1,
        nodes=tuple(Node(id=n, scale="episode", label=n, q=0, r=r) for r, n in enumerate("ab")),
        edges=(Edge(source="a", target="b", adjacency="temporal"),),
    )
    told = {"digest": view.digest, "orders": {"a": ["a", "b"], "b": ["b", "a"]}}
    other = copy.deepcopy(told)
    other["orders"].update(changes.get("orders", {}))
    other["digest"] = changes.get("digest", other["digest"])
    return view, {"built": told, "restored": other}


@pytest.mark.parametrize(
    ("changes", "reached", "same"),
    [
        ({}, 2, True),
        ({"digest": "other"}, 2, False),
        ({"orders": {"b": ["b"]}}, 0, False),
        ({"orders": {"a": ["b", "a"]}}, 0, False),
    ],
)
def test_a_way_that_differs_is_counted_and_noted(
    changes: dict[str, Any], reached: int, same: bool
) -> None:
    view, seen = seen_again(**changes)
    result = graph_fixture.result_of(view, seen, [])
    assert result.figures["graph.nodes_reached"].value == reached
    assert (result.figures["graph.nodes"].value, result.figures["graph.nodes"].n) == (2, 5)
    assert result.figures["graph.scales"].value == 1
    assert result.notes == (() if same else ("The graph differs: restored.",))
    assert result.tables["ways"]["same"].tolist() == [True, same]


def test_a_process_that_fails_fails_the_experiment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(graph_fixture.sys, "executable", shutil.which("false"))
    with pytest.raises(ExperimentError, match="another process"):
        graph_fixture.another_process()


def test_the_experiment_is_in_the_table_and_its_seed_is_checked() -> None:
    assert EXPERIMENTS["graph_fixture"].run
    settings = composed(["experiment=graph_fixture", "seed=-1"])
    with pytest.raises(UsageError, match="seed"):
        EXPERIMENTS["graph_fixture"].check(settings)


# ---- The section


def test_the_section_shows_the_honeycomb_and_the_tables(tmp_path: Path) -> None:
    runs, out = tmp_path / "runs", tmp_path / "out"
    write_run(
        runs, "graph_fixture", tables=TABLES,
        figures={"graph.nodes": figure(3, "nodes"), "graph.nodes_reached": figure(3, "nodes", 3)},
    )  # fmt: skip
    assert judge_main(["--runs", str(runs)]) == 1  # three nodes are not the paper's five
    assert main(["--runs", str(runs), "--out", str(out)]) == 0
    page = (out / "index.html").read_text()
    assert "The graph over three scales" in page
    assert "1 of 2 ways of seeing the graph agree" in page
    assert "<b>&_" not in page
    assert (out / "plots" / "graph-fixture-honeycomb.svg").is_file()
    for name in ("nodes", "edges", "ways", "traversal"):
        assert (out / "tables" / f"graph-fixture-{name}.csv").is_file()


def section(tmp_path: Path, **changes: Any) -> Any:
    write_run(tmp_path, "graph_fixture", tables=TABLES | changes)
    [run] = read_runs(tmp_path)
    return graph.build(run, "graph-fixture")


def test_the_picture_has_words_and_two_themes(tmp_path: Path) -> None:
    finding, _, (plot,) = section(tmp_path)
    assert finding.startswith("3 nodes of 3 scales, joined by 2 types of adjacency;")
    for part in ("1 control (C1)", "1 schema (S1)", "derivation S1 to E1", "governance C1 to E1"):
        assert part in plot.alternative
    light, dark = plot.svg(LIGHT), plot.svg(DARK)
    assert light == plot.svg(LIGHT)
    assert LIGHT.paper in light
    assert DARK.paper in dark
    for colour in graph.SCALES.values():
        assert colour.lower() in light.lower()


def test_an_edge_curves_around_a_node_in_its_way() -> None:
    low, middle, high = (graph.Hexagon(name, "episode", 0.0, y) for name, y in
                         (("a", 0.0), ("b", 1.5), ("c", 3.0)))  # fmt: skip
    assert graph.bend(low, middle, [low, middle, high]) == 0.0
    assert graph.bend(low, high, [low, middle, high]) != 0.0


@pytest.mark.parametrize(
    "changes",
    [
        {"nodes.csv": [NODES[0] | {"q": "left"}]},
        {"nodes.csv": [{"name": "C1"}]},
        {"edges.csv": [EDGES[0] | {"target": "X9"}]},
    ],
)
def test_a_table_that_is_no_graph_is_status_two(
    tmp_path: Path, changes: dict[str, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    write_run(tmp_path / "runs", "graph_fixture", tables=TABLES | changes)
    assert main(["--runs", str(tmp_path / "runs"), "--out", str(tmp_path / "out")]) == 2
    assert "experiment=graph_fixture resume=false" in capsys.readouterr().err

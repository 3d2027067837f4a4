"""Files of released formats load for ever: a store, a snapshot, results, claims, figures."""

from __future__ import annotations

import json
import shutil
from datetime import UTC, datetime
from pathlib import Path

import pytest

from cma import Caller, FixedClock, Memory
from reports.figures import gather
from reports.sections import sections
from reproductions.claims import load_claims
from reproductions.judged import read_judged
from reproductions.results import choose, read_runs
from reproductions.schemas.making import first_problem

FORMATS = Path(__file__).resolve().parents[1] / "fixtures" / "formats"
V0_2 = FORMATS / "v0_2"
DIGEST = "47be567e3c04dcb3b434b6dfd915cbcb9c0fd179461a65fd054b415d7b80f0cd"
RECEIPT = "receipt-71987f67bc421d313eb0b9bd22b0c4004ff6b294"
CELL = "cell-eddb1f01a1d59938e717b2f27a8927b7cd04d16b"
CLOCK = FixedClock(datetime(2026, 3, 1, 12, 30, tzinfo=UTC))
ANN = Caller(name="ann", authority="user")


def looked_at(memory: Memory) -> None:
    """Everything that was put into the store is there, and can be told backwards."""
    assert memory.digest() == DIGEST
    told = memory.verify()
    assert (told.cells, told.links, told.governed, told.attendant, told.traces) == (6, 3, 7, 5, 1)
    view = memory.within("session:s")
    assert view.get(CELL).content == "the server runs in Oslo"
    assert view.get(CELL).approval_id == "CR-1"
    assert [len(frame.cells) for frame in view.frames()] == [2, 2]
    assert [each.handling for each in view.decisions()] == ["preserve_both"]
    assert CELL in [hit.cell.id for hit in view.recall("where does the server run").hits]
    explained = view.explain(RECEIPT)
    assert explained.verified
    assert len(explained.lineages) == 1
    view.write("still writable", kind="episodic", origin="x", observed_at=CLOCK.now())


def test_a_store_of_0_2_opens_and_goes_on(tmp_path: Path) -> None:
    shutil.copyfile(V0_2 / "store.sqlite", tmp_path / "agent.cma")
    shutil.copyfile(V0_2 / "store.head", tmp_path / "agent.cma.head")
    with Memory.open(tmp_path / "agent.cma", caller=ANN, clock=CLOCK) as memory:
        looked_at(memory)
    with Memory.open(tmp_path / "agent.cma", caller=ANN, clock=CLOCK) as memory:
        memory.verify()


def test_a_snapshot_of_0_2_is_restored(tmp_path: Path) -> None:
    shutil.copyfile(V0_2 / "snapshot.cma.jsonl", tmp_path / "old.cma.jsonl")
    restored = tmp_path / "agent.cma"
    with Memory.restore(tmp_path / "old.cma.jsonl", restored, caller=ANN, clock=CLOCK) as memory:
        looked_at(memory)


def test_results_of_0_2_are_read_and_shown() -> None:
    runs = read_runs(V0_2 / "results")
    assert [run.result.experiment for run in runs] == ["graph_fixture"]
    assert runs[0].result.figures["graph.nodes_reached"].number == 5
    found = {section.experiment: section for section in sections(choose(runs), runs)}
    assert found["graph_fixture"].state == "measured"
    figures = gather(runs, V0_2, read_judged(V0_2 / "claims.json"))
    assert figures.figures["graph.nodes"]["value"] == 5
    assert figures.problems == []


def test_claims_and_figures_of_0_2_are_read() -> None:
    assert len(load_claims(V0_2 / "claims.yaml").claims) == 3
    judged = read_judged(V0_2 / "claims.json")
    assert judged is not None
    assert judged.figures["claims.total"].value == 87
    assert list(first_problem("figures", json.loads((V0_2 / "figures.json").read_text()))) == []


@pytest.mark.parametrize("name", ["result", "machine"])
def test_results_of_0_2_fit_the_schema_of_results(name: str) -> None:
    [path] = (V0_2 / "results").glob(f"*/*/{name}.json")
    assert list(first_problem(name, json.loads(path.read_text()))) == []

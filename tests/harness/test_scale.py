"""Scale: what it measures, what it holds against brute force, and what the page says of it."""

from __future__ import annotations

import json
from pathlib import Path

import pandas as pd
import pytest

from experiments import scale
from experiments.failures import ExperimentError, UsageError
from experiments.overrides import composed
from experiments.result import Result
from experiments.running import run
from experiments.scaling import engines, measuring
from experiments.scaling.loading import loaded
from experiments.scaling.texts import COMMONEST, texts
from reports import scale as section
from reports.plots import LIGHT
from reports.sections import sections
from reproductions.inputs import CorruptInputError
from reproductions.results import choose, read_runs

TINY = [
    "experiment=scale",
    "scale.cells=[200,400]",
    "scale.vocabulary=500",
    "scale.queries=6",
    "scale.checked=4",
]


@pytest.fixture(scope="module")
def found() -> Result:
    return scale.run(composed(TINY))


def test_every_engine_that_is_there_is_measured_at_every_size(found: Result) -> None:
    latency, costs = found.measured_tables["latency"], found.measured_tables["costs"]
    there = {name for name in engines.ENGINES if engines.there(name)}
    assert {"cma", "bm25s", "fts5"} <= there
    assert set(costs["engine"]) == there | {measuring.KEPT}
    assert set(latency["mix"]) == {"zipf", "rare"}
    assert set(latency["cells"]) == {200, 400}
    assert {"cma index", "cma recall", "SQLite FTS5"} <= set(latency["engine"])
    assert (latency["n"] == 6).all()
    assert (latency["median_ms"] > 0).all()
    assert (latency["median_ms"] <= latency["p95_ms"]).all()
    assert (latency["p95_ms"] <= latency["p99_ms"]).all()
    still = costs["engine"].isin(["bm25s", measuring.KEPT])
    assert costs.loc[still, "append_ms"].isna().all()
    assert costs.loc[~still, "append_ms"].notna().all()
    assert (costs["disk_mb"] > 0).all()


def test_answers_are_those_of_brute_force(found: Result) -> None:
    assert found.tables["exactness"].to_dict("records") == [
        {"cells": 200, "questions": 8, "equal": 8},
        {"cells": 400, "questions": 8, "equal": 8},
    ]
    assert found.figures["scale.equal_to_brute_force"].value == 16


def test_an_answer_that_is_not_exact_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    honest = engines.Cma.found_at
    monkeypatch.setattr(engines.Cma, "found_at", lambda *given: honest(*given)[::-1])
    wrong = scale.run(composed([*TINY, "scale.cells=[200]", "scale.engines=[cma]"]))
    assert wrong.figures["scale.equal_to_brute_force"].value < 8


def test_times_are_facts_of_the_machine_and_no_result(tmp_path: Path) -> None:
    settings = composed([*TINY, "scale.engines=[cma,fts5]", f"paths.runs={tmp_path}"])
    place = run(settings).place
    result = json.loads((place / "result.json").read_bytes())
    machine = json.loads((place / "machine.json").read_bytes())
    assert result["tables"] == ["exactness.csv"]
    assert set(machine["table_digests"]) == {"latency.csv", "costs.csv"}
    assert set(machine["figures"]) == {
        f"scale.{cells}.{name}"
        for cells in (200, 400)
        for name in ("zipf.ratio_to_best_peer", "rare.ratio_to_best_peer", "append_ms")
    }
    assert not any("ratio" in key for key in result["figures"])
    assert run(settings).reused
    table = (place / "latency.csv").read_text()
    (place / "latency.csv").write_text(table.replace("zipf", "rare"))
    assert not run(settings).reused  # a table that was changed is no finished run

    found = [each for each in sections(choose(read_runs(tmp_path))) if each.experiment == "scale"]
    assert [each.state for each in found] == ["measured"]
    assert "quickest peer, SQLite FTS5" in found[0].finding
    assert {each.name for each in found[0].tables} == {
        "scale-latency", "scale-slopes", "scale-costs", "scale-exactness",
    }  # fmt: skip
    svg = found[0].plots[0].svg(LIGHT)
    assert svg.startswith("<?xml")
    (place / "latency.csv").write_text(table + "\n")
    with pytest.raises(CorruptInputError, match="changed after the run"):
        sections(choose(read_runs(tmp_path)))


def test_engines_that_are_not_installed_are_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scale, "there", lambda name: name == "cma")
    run(composed([*TINY, "scale.cells=[200]", f"paths.runs={tmp_path}"]))
    (choice,) = choose(read_runs(tmp_path)).values()
    assert choice.run is not None
    finding, _, _ = section.build(choice.run, "scale")
    assert "not measured: bm25s, SQLite FTS5, tantivy" in finding


def test_an_engine_beyond_its_patience_is_asked_no_more() -> None:
    settings = composed(
        [*TINY, "scale.cells=[200]", "scale.engines=[cma]", "scale.patience_seconds=1e-9"]
    )
    latency = scale.run(settings).measured_tables["latency"]
    assert (latency["n"] == 1).all()


def test_texts_are_the_same_for_a_seed_and_rare_questions_lack_common_words() -> None:
    asked = composed(TINY).scale
    one, other = texts(asked, 7), texts(asked, 7)
    pd.testing.assert_frame_equal(pd.DataFrame(one.cells), pd.DataFrame(other.cells))
    assert (one.questions["rare"] >= COMMONEST).all()
    assert (one.questions["zipf"] < COMMONEST).any()
    assert one.cells.shape == (400, 12)


def test_an_engine_that_cannot_be_opened_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ExperimentError, match="bm25s could not be opened"):
        loaded("bm25s", tmp_path / "nothing", "w1")


@pytest.mark.parametrize(
    ("override", "said"),
    [
        ("scale.cells=[]", "scale.cells is empty"),
        ("scale.cells=[99]", "scale.cells=99 is out of range"),
        ("scale.cells=[200,200]", "names a size twice"),
        ("scale.queries=0", "scale.queries=0 is out of range"),
        ("scale.vocabulary=100", "scale.vocabulary=100 is out of range"),
        ("scale.engines=[cma,lucene]", "'lucene' is unknown"),
        ("scale.engines=[fts5]", "lacks cma"),
        ("scale.patience_seconds=0", "scale.patience_seconds"),
    ],
)
def test_settings_that_measure_nothing_are_refused(override: str, said: str) -> None:
    with pytest.raises(UsageError, match=said.replace("[", r"\[")):
        scale.check(composed([*TINY[:1], override]))


def test_the_slope_is_that_of_logarithms() -> None:
    assert section.slope([(10, 1.0), (100, 10.0), (1000, 100.0)]) == pytest.approx(1.0)
    assert section.slope([(10, 5.0), (1000, 5.0)]) == pytest.approx(0.0)
    assert section.slope([(10, 5.0)]) is None


def test_quantiles_are_in_milliseconds() -> None:
    assert measuring.milliseconds([0.001, 0.002, 0.003], 0.5) == pytest.approx(2.0)

"""The version ladder: rules and rungs computed by hand, tables, and what its section shows."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from cma.orion.cells import Kind
from cma.rosette.tokens import PLAIN
from experiments import climbing, version_ladder
from experiments.claiming import claim, mentions, policy_of
from experiments.climbing import PACKINGS, bind_sessions, climb, line_counter
from experiments.data.conversations import Conversation, Corpus, Question, Turn
from experiments.data.generated import generate
from experiments.dispatch import EXPERIMENTS
from experiments.engines import LEXICAL_ONLY, retrieval
from experiments.failures import ExperimentError, UsageError
from experiments.ingest import ingested
from experiments.overrides import composed
from experiments.result import Result
from experiments.rungs import Packing, Served, best_sources, neighbours, packed, spread
from experiments.settings import Settings
from reports import ladder
from reports.__main__ import main
from reports.plots import DARK, LIGHT
from reproductions.inputs import CorruptInputError
from reproductions.results import read_runs
from tests.harness.sample_runs import figure, write_run

START = datetime(2025, 3, 1, 12, 0, tzinfo=UTC)


def turn(name: str, session: int, speaker: str, words: str, minutes: int) -> Turn:
    return Turn(name, session, speaker, words, "", START + timedelta(minutes=minutes))


TALK = Conversation(
    "talk-1",
    (
        turn("D1:1", 1, "Ada", "My garden grows tomatoes", 0),  # 9 tokens with the speaker
        turn("D1:2", 1, "Bo", "Nice, what kind?", 1),  # 7
        turn("D1:3", 1, "Ada", "Roma", 2),
        turn("D2:1", 2, "Ada", "The garden froze", 1000),  # 7
        turn("D2:2", 2, "Bo", "Oh dear", 1001),
        turn("D2:3", 2, "Ada", "Hello", 1002),
    ),
    (
        Question("q_1", "Garden tomatoes?", "multi_hop", ("D1:1", "D1:2"), ("D1:1", "D1:2")),
        Question("q_2", "the of", "temporal", ("D2:2",), ("D2:2",)),
        Question("q_3", "Who labels nothing?", "temporal", (), ()),
    ),
)
SMALL = ["experiment=version_ladder", "data=generated", "evaluation.resamples=200"]
BY_HAND = [*SMALL, "ladder.budgets=[10,16,1000]", "ladder.lexical=overlap"]


# ---- Rules by hand


def test_a_hit_brings_its_neighbours_and_nothing_comes_twice() -> None:
    brings = neighbours([("a", "b", "c"), ("d",)], 1)
    assert brings == {"a": ("b",), "b": ("a", "c"), "c": ("b",), "d": ()}
    assert spread(["c", "x", "a", "b"], brings) == ["c", "b", "x", "a"]
    assert neighbours([("a", "b", "c", "d", "e")], 2)["c"] == ("b", "d", "a", "e")
    assert spread(["b", "a"], neighbours([("a", "b")], 0)) == ["b", "a"]


def test_a_claim_brings_its_best_ranked_sources_then_the_earliest() -> None:
    sources = {"claim": ["s1", "s2", "s3", "s4"], "no hit": ["s9"]}
    brings = best_sources(sources, ["s4", "claim", "s3"], 3)
    assert brings == {"claim": ("s4", "s3", "s1")}
    assert spread(["s4", "claim", "s3"], brings) == ["s4", "claim", "s3", "s1"]


def test_what_does_not_fit_is_left_out_and_a_smaller_one_may_still_fit() -> None:
    packing = Packing("packet", 2, {"a": 5, "b": 9, "c": 3})
    assert packed(["a", "b", "c"], packing, 10) == Served(("a", "c"), 10)
    assert packed(["a", "b", "c"], packing, 9) == Served(("a",), 7)
    assert packed(["a", "b", "c"], packing, 4) == Served((), 0)


def test_a_text_counts_line_by_line_as_a_whole() -> None:
    text = "One line, two\n\n| [12] 2025-01-01 caf\u00e9\u2019s \u6f22\u5b57\n"
    assert line_counter().count(text) == PLAIN.count(text)


def test_mentions_are_words_of_several_sessions_by_one_speaker() -> None:
    asked = composed(SMALL).ladder
    [found] = mentions(TALK, asked)
    assert (found.speaker, found.word, found.episodes) == ("Ada", "garden", (("D1:1",), ("D2:1",)))
    assert mentions(TALK, replace(asked, frames=3)) == []
    assert mentions(TALK, replace(asked, claims=0)) == []
    last = turn("D3:1", 3, "Ada", "Gardens and tomato, tomato", 2000)
    longer = replace(TALK, turns=(*TALK.turns, last))
    found = mentions(longer, asked)
    assert [(each.word, each.turns) for each in found] == [("garden", 3), ("tomato", 2)]
    for change, words in (({"claims": 1}, ["garden"]), ({"sessions": 2}, ["tomato"])):
        assert [each.word for each in mentions(longer, replace(asked, **change))] == words


def test_claims_go_through_frames_replay_and_approval(tmp_path: Path) -> None:
    asked = composed(SMALL).ladder
    with ingested(TALK, "test", tmp_path, policy_of(asked)) as held:
        cell_of_turn = {name: cell for cell, name in held.turn_of_cell.items()}
        frames = bind_sessions(held.memory, TALK, cell_of_turn, 2)
        assert [[held.turn_of_cell[cell] for cell in frame] for frame in frames] == [
            ["D1:1", "D1:2"], ["D1:3"], ["D2:1", "D2:2"], ["D2:3"],
        ]  # fmt: skip
        claimed = claim(held.memory, mentions(TALK, asked), cell_of_turn)
        assert (claimed.proposals, claimed.frames) == (1, 2)
        [cell] = claimed.cells
        assert (cell.kind, cell.content) == (Kind.SEMANTIC, "Ada mentions garden")
        assert {held.turn_of_cell[source] for source in cell.derived_from} == {"D1:1", "D2:1"}
        assert cell.approval_id == "CR-1"
        assert len(held.memory.frames()) == 6
        assert held.memory.proposals("approved")
        assert not held.memory.conflicts()
        held.memory.verify()
        assert claim(held.memory, [], cell_of_turn).cells == ()


# ---- The whole ladder on a case computed by hand


def value(table: pd.DataFrame, **wanted: Any) -> float:
    rows = table
    for name, each in wanted.items():
        rows = rows[rows[name] == each]
    [found] = rows["value"].tolist()
    return float(found)


def test_every_rung_is_what_was_computed_by_hand(tmp_path: Path) -> None:
    # q_1 recalls D1:1 (both terms), then D2:1; q_2 is stop words alone and recalls nothing.
    settings = composed(BY_HAND)
    result = version_ladder.run(settings, Corpus("test", (TALK,), ()), tmp_path)
    table = result.tables["ladder"]
    expected = {
        ("orion", "text"): {10: 0.5, 16: 0.5, 1000: 0.5},
        ("trifid", "text"): {10: 0.5, 16: 1.0, 1000: 1.0},
        ("lagoon", "text"): {10: 0.5, 16: 1.0, 1000: 1.0},
        ("rosette", "packet"): {10: 0.0, 16: 0.0, 1000: 1.0},
    }
    for (rung, packing), by_budget in expected.items():
        for budget, share in by_budget.items():
            about = {"rung": rung, "packing": packing, "budget": budget, "metric": "recall"}
            assert value(table, **about, category="multi_hop") == share
            assert value(table, **about, category="temporal") == 0.0
            assert value(table, **about, category="all") == share / 2
    at_ten = {"budget": 0, "metric": "recall@10", "category": "multi_hop"}
    assert [value(table, rung=rung, **at_ten) for rung in ("orion", "trifid", "lagoon")] == [
        0.5, 1.0, 1.0,
    ]  # fmt: skip
    costs = result.tables["costs"].set_index(["rung", "packing", "budget"])
    assert costs.loc[("orion", "text", 16), "tokens"] == 16 / 2  # 9 + 7, and nothing for q_2
    assert costs.loc[("orion", "text", 10), "cells_served"] == 1 / 2
    assert costs.loc[("lagoon", "text", 1000), "claims_served"] == 1 / 2
    assert costs.loc[("orion", "text", 10), ["cells", "frames", "claims"]].tolist() == [6, 0, 0]
    assert costs.loc[("trifid", "text", 10), ["cells", "frames", "claims"]].tolist() == [6, 2, 0]
    assert costs.loc[("lagoon", "text", 10), ["cells", "frames", "claims"]].tolist() == [7, 4, 1]
    assert "2 questions judged, 1 left out" in " ".join(result.notes)


# ---- Generated conversations


@pytest.fixture(scope="module")
def settings() -> Settings:
    return composed(
        [
            *SMALL,
            "data.generated.conversations=2",
            "data.generated.turns=60",
            "data.generated.questions=15",
            "ladder.budgets=[128,1024]",
        ]
    )


@pytest.fixture(scope="module")
def corpus(settings: Settings) -> Corpus:
    return generate(settings.data.generated)


@pytest.fixture(scope="module")
def result(settings: Settings, corpus: Corpus, tmp_path_factory: pytest.TempPathFactory) -> Result:
    return version_ladder.run(settings, corpus, tmp_path_factory.mktemp("run"))


def test_tables_are_whole_and_tidy(result: Result) -> None:
    table, gains = result.tables["ladder"], result.tables["differences"]
    assert list(table.columns) == [
        "data", "rung", "packing", "budget", "category", "metric", "value", "low", "high", "n",
    ]  # fmt: skip
    assert len(table) == (len(PACKINGS) * 2 + 3) * 6
    assert len(gains) == (5 * 2 + 2) * 6
    for each in (table, gains):
        assert (each["low"] <= each["value"] + 1e-12).all()
        assert (each["value"] <= each["high"] + 1e-12).all()
        assert (each.loc[each["category"] == "all", "n"] == 30).all()
    assert table["value"].between(0, 1).all()
    wide = table[table["metric"] == "recall"].pivot_table(
        index=["rung", "packing", "category"], columns="budget", values="value"
    )
    assert (wide[128] <= wide[1024] + 1e-12).all()


def test_a_difference_is_that_of_the_two_values(result: Result) -> None:
    table = result.tables["ladder"].set_index(["rung", "packing", "budget", "category"])["value"]
    for row in result.tables["differences"].to_dict("records"):
        place = (row["budget"], row["category"])
        own = table[row["rung"], row["packing"], *place]
        below = table[row["against"], row["against_packing"], *place]
        assert row["value"] == pytest.approx(own - below)


def test_no_text_is_longer_than_its_budget(result: Result) -> None:
    costs = result.tables["costs"]
    assert (costs["tokens"] <= costs["budget"]).all()
    summed = costs["turns_served"] + costs["claims_served"]
    assert np.allclose(summed, costs["cells_served"])


def test_figures_are_rows_of_the_table(result: Result) -> None:
    table = result.tables["ladder"]
    for rung, packing in PACKINGS[:4]:
        found = result.figures[f"generated.ladder.recall_1024.{rung}"]
        about = {"rung": rung, "packing": packing, "budget": 1024, "category": "all"}
        assert found.value == value(table, **about)
        assert found.n == 30
        assert found.interval is not None
    assert (result.figures["ladder.rungs"].value, result.figures["ladder.rungs"].n) == (4, 6)
    packages = result.tables["versions"]
    assert result.figures["ladder.versions"].value == packages["package"].sum()
    assert packages["rung"].sum() == 4
    assert packages[~packages["rung"]]["why"].str.len().gt(0).all()


def test_the_same_settings_give_the_same_result(
    settings: Settings, corpus: Corpus, result: Result, tmp_path: Path
) -> None:
    again = version_ladder.run(settings, corpus, tmp_path)
    assert again.figures == result.figures
    for name, table in result.tables.items():
        pd.testing.assert_frame_equal(table, again.tables[name])


def test_the_packet_of_the_whole_list_is_what_was_served(
    settings: Settings, corpus: Corpus, tmp_path: Path
) -> None:
    conversation = corpus.conversations[0]
    asked = settings.ladder
    how = retrieval(asked.analyser, asked.lexical, LEXICAL_ONLY)
    climbed = climb(conversation, corpus.name, asked, how, tmp_path, lambda _: None)
    with climbing.Memory.open(tmp_path / f"{conversation.id}.cma") as opened:
        memory = opened.within(f"session:{conversation.id}")
        trace = memory.recall("anything", retrieval=how).trace
        for question, offered in climbed.lists["lagoon"].items():
            hits = tuple(climbing.TraceHit(cell, 1, 0.0, {}) for cell in offered)
            for budget in asked.budgets:
                packet = memory.packet(trace.model_copy(update={"hits": hits}), budget=budget)
                served = climbed.served["rosette", "packet", budget][question]
                assert tuple(cell.id for cell in packet.cells) == served.cells
                assert packet.used == served.tokens == PLAIN.count(packet.text)


def test_a_packet_that_is_not_its_sum_fails_the_experiment(
    settings: Settings, corpus: Corpus, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def wrong(cells: Any) -> Packing:
        return Packing("packet", 0, {cell.id: 1 for cell in cells})

    monkeypatch.setattr(climbing, "packet_packing", wrong)
    with pytest.raises(ExperimentError, match="not the sum of its records"):
        version_ladder.run(settings, corpus, tmp_path)


@pytest.mark.parametrize(
    ("override", "said"),
    [
        ("ladder.budgets=[]", "ladder.budgets is empty"),
        ("ladder.budgets=[0]", "ladder.budgets=0"),
        ("ladder.budgets=[5,5]", "names a budget twice"),
        ("ladder.analyser=french", "ladder.analyser"),
        ("ladder.lexical=luck", "ladder.lexical"),
        ("ladder.hits=9", "ladder.hits=9"),
        ("ladder.window=0", "ladder.window=0"),
        ("ladder.neighbours=-1", "ladder.neighbours=-1"),
        ("ladder.sessions=1", "ladder.sessions=1"),
        ("evaluation.confidence=1", "evaluation.confidence"),
    ],
)
def test_settings_that_make_no_ladder_are_refused(override: str, said: str) -> None:
    with pytest.raises(UsageError, match=said.replace("[", r"\[")):
        EXPERIMENTS["version_ladder"].check(composed([*SMALL, override]))


# ---- The section


def row(rung: str, packing: str, budget: int, share: float, **more: Any) -> dict[str, Any]:
    return {
        "data": "locomo", "rung": rung, "packing": packing, **more, "budget": budget,
        "category": "all", "metric": "recall", "value": share, "low": share - 0.02,
        "high": share + 0.01, "n": 40,
    }  # fmt: skip


def tables(**changes: Any) -> dict[str, Any]:
    values = [
        row(rung, packing, budget, share + budget / 10_000)
        for budget in (512, 1024)
        for rung, packing, share in (
            ("orion", "text", 0.5), ("trifid", "text", 0.6), ("lagoon", "text", 0.6),
            ("rosette", "packet", 0.4), ("orion", "packet", 0.3), ("trifid", "packet", 0.4),
        )
    ]  # fmt: skip
    gains = [
        row(rung, packing, 1024, share, against=below, against_packing=other)
        for rung, packing, below, other, share in (
            ("trifid", "text", "orion", "text", 0.1),
            ("lagoon", "text", "trifid", "text", 0.0),
            ("rosette", "packet", "lagoon", "text", -0.2),
            ("rosette", "packet", "trifid", "packet", 0.3),
        )
    ]
    return {"ladder.csv": values, "differences.csv": gains} | changes


def test_the_section_says_what_adds_and_what_costs(tmp_path: Path) -> None:
    runs, out = tmp_path / "runs", tmp_path / "out"
    write_run(
        runs, "version_ladder", tables=tables(), data_set="locomo",
        figures={"ladder.recall_1024.orion": figure(0.6, "share", 40, (0.5, 0.7))},
    )  # fmt: skip
    assert main(["--runs", str(runs), "--out", str(out)]) == 0
    page = (out / "index.html").read_text()
    assert "The version ladder: LoCoMo" in page
    assert "within 1,024 tokens, Orion alone serves 60.2% [58.2, 61.2]" in page
    assert "Trifid adds +10.0 points [+8.0, +11.0]" in page
    assert "Lagoon makes no clear difference, +0.0 points [-2.0, +1.0]" in page
    assert "Rosette costs -20.0 points [-22.0, -19.0]" in page
    assert (out / "plots" / "version-ladder-locomo-recall.svg").is_file()
    for name in ("recall", "differences", "category", "ladder"):
        assert (out / "tables" / f"version-ladder-locomo-{name}.csv").is_file()


def test_the_plot_has_words_and_two_themes(tmp_path: Path) -> None:
    write_run(tmp_path, "version_ladder", tables=tables(), data_set="locomo")
    [run] = read_runs(tmp_path)
    _, _, (plot,) = ladder.build(run, "version-ladder")
    assert "+ Trifid at 512 tokens 0.651 [0.631, 0.661]" in plot.alternative
    light, dark = plot.svg(LIGHT), plot.svg(DARK)
    assert light == plot.svg(LIGHT)
    assert DARK.paper in dark
    for colour, _ in ladder.STYLES.values():
        assert colour.lower() in light.lower()


@pytest.mark.parametrize(
    "broken",
    [
        {"ladder.csv": [row("pluto", "text", 512, 0.5)]},
        {"differences.csv": [row("trifid", "text", 512, float("nan"), against="orion")]},
    ],
)
def test_a_table_that_is_no_ladder_is_an_error(tmp_path: Path, broken: dict[str, Any]) -> None:
    write_run(tmp_path, "version_ladder", tables=tables(**broken), data_set="locomo")
    [run] = read_runs(tmp_path)
    with pytest.raises(CorruptInputError):
        ladder.build(run, "version-ladder")

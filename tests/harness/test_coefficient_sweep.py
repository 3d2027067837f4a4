"""The coefficient sweep: ranks against sorting, lines against sampling, choices, and its page."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from cma.orion.scoring import EVERY_PART, PARTS, Weights, total
from experiments import coefficient_sweep, running
from experiments.comparison import Comparison
from experiments.data.conversations import Corpus
from experiments.data.generated import generate
from experiments.engines import Row
from experiments.evaluation import METRICS, Judge
from experiments.failures import ExperimentError, UsageError
from experiments.headline import headline
from experiments.overrides import composed
from experiments.result import Result
from experiments.rungs import Packing
from experiments.settings import Settings
from experiments.sweeping import study
from experiments.sweeping.budget import BudgetRecall, budget_recall
from experiments.sweeping.choosing import (
    ascended,
    best_by_lines,
    best_of_design,
    counted,
    held_out,
    means,
    sums,
)
from experiments.sweeping.designs import DESIGNS, design, lexical_alone, space
from experiments.sweeping.features import SUPPORTS, Features, Held, How
from experiments.sweeping.lines import lines
from experiments.sweeping.objectives import Objective, objective
from experiments.sweeping.packets import check_packets
from experiments.sweeping.ranks import BLOCK, NEVER, ranks
from experiments.sweeping.rerun import always, check_equal, recalled
from reports.__main__ import main
from tests.harness.sample_runs import write_run

SMALL = [
    "experiment=coefficient_sweep",
    "data=generated",
    "data.generated.conversations=3",
    "data.generated.turns=80",
    "data.generated.questions=15",
    "evaluation.resamples=200",
    "sweep.points=200",
    "sweep.sample=2",
    "sweep.parts=[confidence,importance,recency,link]",
]
LIMIT = 20
LINK, TWO = SUPPORTS


def made(seed: int, *, questions: int = 40, levels: int = 4) -> Features:
    """Features by chance: parts from few levels, so that many scores are equal."""
    rng = np.random.default_rng(seed)
    sizes = rng.integers(0, 25, questions)
    wanted = rng.integers(1, 4, questions)
    starts = np.concatenate(([0], np.cumsum(sizes)))
    evidence = np.concatenate(
        [
            rng.permutation(np.concatenate([np.arange(first, last), -np.ones(3, np.int64)]))[:count]
            for (first, last), count in zip(pairwise(starts.tolist()), wanted, strict=True)
        ]
    ).astype(np.int64)
    parts = rng.integers(0, levels, (starts[-1], len(EVERY_PART))) / max(levels - 1, 1)
    parts[rng.random(len(parts)) < 0.5, TWO] = 0.0
    parts[rng.random(len(parts)) < 0.3, 0] = 0.0
    return Features(
        questions=tuple(f"talk-{place // 10} q_{place}" for place in range(questions)),
        fold_starts=np.arange(0, questions + 1, 10),
        parts=parts,
        reach=(parts[:, 0] > 0) * 1 | (parts[:, LINK] > 0) * 2 | (parts[:, TWO] > 0) * 4,
        cells=tuple(f"cell-{place:03d}" for size in sizes.tolist() for place in range(size)),
        starts=starts,
        evidence=evidence,
        evidence_starts=np.concatenate(([0], np.cumsum(wanted))),
        grades=np.ones(len(evidence)),
    )


def vector(*five: float, **others: float) -> np.ndarray:
    """Coefficients of the paper's five parts, and of others by name."""
    weights = np.zeros(len(EVERY_PART))
    weights[: len(five)] = five
    for name, value in others.items():
        weights[EVERY_PART.index(name)] = value
    return weights


def sorted_places(features: Features, question: int, weights: np.ndarray) -> list[int]:
    """The oracle: score, sort by score and then id, one candidate after another."""
    found = []
    for place in range(features.starts[question], features.starts[question + 1]):
        own = features.parts[place]
        if not (own[0] > 0 or (weights[LINK] > 0 < own[LINK]) or (weights[TWO] > 0 < own[TWO])):
            continue
        score = 0.0
        for weight, value in zip(weights.tolist(), features.parts[place].tolist(), strict=True):
            score += weight * value
        found.append((-score, features.cells[place], place))
    return [place for _, _, place in sorted(found)]


def brute_ranks(features: Features, weights: np.ndarray) -> np.ndarray:
    found = np.full((len(features.evidence), len(weights)), NEVER)
    for setting, own in enumerate(weights):
        for question, (first, last) in enumerate(pairwise(features.evidence_starts.tolist())):
            order = sorted_places(features, question, own)
            for each in range(first, last):
                if features.evidence[each] in order:
                    found[each, setting] = order.index(features.evidence[each])
    return found


# ---- Ranks


@pytest.mark.parametrize("levels", [1, 2, 4, 1000])
def test_ranks_are_those_of_sorting_and_ties_go_by_id(levels: int) -> None:
    features = made(levels, levels=levels)
    rng = np.random.default_rng(5)
    size = len(EVERY_PART)
    weights = rng.integers(-2, 4, (30, size)) / 2.0
    weights = np.vstack([weights, lexical_alone(), np.zeros(size), rng.random((5, size)) - 0.3])
    expected = brute_ranks(features, weights)
    assert (ranks(features, weights) == expected).all()
    for place in range(len(weights)):  # one setting alone is counted another way
        assert (ranks(features, weights[place : place + 1])[:, 0] == expected[:, place]).all()


@pytest.mark.parametrize("used", [[0], [4], [0, 5], [0, 3, 4], [1, 2, 3, 4], [0, 1, 6, 9, 12]])
def test_parts_that_are_left_out_change_nothing(used: list[int]) -> None:
    features = made(3, levels=1000)
    weights = np.zeros((9, len(EVERY_PART)))
    weights[:, used] = np.random.default_rng(6).random((9, len(used)))
    assert (ranks(features, weights) == brute_ranks(features, weights)).all()


def test_scores_are_added_as_the_index_adds_them() -> None:
    # 0.1 + 0.2 + 0.3 and 0.3 + 0.2 + 0.1 differ in the last bit: so would a rank.
    weights, parts = np.zeros((1, len(EVERY_PART))), np.zeros((2, len(EVERY_PART)))
    weights[0, :3] = 1.0
    parts[:, :3] = [[0.3, 0.2, 0.1], [0.1, 0.2, 0.3]]
    columns = {name: parts[:, place] for place, name in enumerate(EVERY_PART)}
    scores = total(Weights(*weights[0].tolist()), columns)
    assert scores[0] != scores[1]
    features = replace(
        made(1), questions=("t q",), fold_starts=np.array([0, 1]), parts=parts,
        reach=np.array([1, 1]), cells=("cell-0", "cell-1"), starts=np.array([0, 2]),
        evidence=np.array([0, 1]), evidence_starts=np.array([0, 2]), grades=np.ones(2),
    )  # fmt: skip
    assert ranks(features, weights)[:, 0].tolist() == np.argsort(np.argsort(-scores)).tolist()


def test_blocks_and_threads_change_nothing() -> None:
    features, aim = made(8), objective("ndcg@10", LIMIT)
    weights = np.random.default_rng(1).random((2 * BLOCK + 7, len(EVERY_PART)))
    seen: list[int] = []
    one = sums(features, weights, aim, threads=1, advance=seen.append)
    assert (one == sums(features, weights, aim, threads=3)).all()
    assert seen == [BLOCK, BLOCK, 7]
    direct = aim.values(features, ranks(features, weights[-9:])).sum(axis=0)
    assert np.allclose(one.sum(axis=0)[-9:], direct)


@pytest.mark.parametrize("graded", [False, True])
def test_objectives_are_the_metrics_of_the_field(graded: bool) -> None:
    features = made(4)
    cells = tuple(f"cell-{place:05d}" for place in range(len(features.cells)))
    grades = np.random.default_rng(3).integers(1, 5, len(features.evidence)).astype(float)
    features = replace(features, cells=cells, grades=grades if graded else features.grades)
    weights = vector(0.7, 0.1, 0.2, 0.3, 0.4, two_links=0.2, month=0.1)
    evidence, given, rankings = {}, {}, {}
    for place, name in enumerate(features.questions):
        some = slice(*features.evidence_starts[place : place + 2])
        evidence[name] = [
            cells[each] if each >= 0 else f"never-{name}-{number}"
            for number, each in enumerate(features.evidence[some].tolist())
        ]
        given[name] = [int(grade) for grade in features.grades[some]]
        rankings[name] = features.ranking(place, weights, LIMIT)
        order = sorted_places(features, place, weights)
        assert rankings[name] == [cells[each] for each in order[:LIMIT]]
    judged = Judge(evidence, given).values(rankings)
    found = ranks(features, weights[np.newaxis])
    for place, name in enumerate(METRICS):
        own = objective(name, LIMIT).values(features, found)[:, 0]
        assert np.allclose(own, judged[:, place]), name
    with pytest.raises(ValueError, match="unknown"):
        objective("precision", LIMIT)


# ---- Designs


def test_designs_are_those_that_the_settings_may_name() -> None:
    assert set(coefficient_sweep.DESIGNS) == set(DESIGNS)


@pytest.mark.parametrize("name", sorted(DESIGNS))
def test_a_design_stays_in_its_range_and_is_the_same_again(name: str) -> None:
    within = space(["link", "recency", "importance"], -0.5, 1.5)
    found = design(name, within, 300, 7)
    assert 200 < len(found) <= 300
    assert (found == design(name, within, 300, 7)).all()
    assert len(np.unique(found, axis=0)) == len(found)
    assert (found[:, EVERY_PART.index("confidence")] == 0.0).all()
    assert (found == np.round(found, 6)).all()
    if name == "simplex":
        assert np.allclose(found.sum(axis=1), 1.0, atol=1e-5)
        assert (found >= 0).all()
        assert (lexical_alone() == found).all(axis=1).any()
    else:
        assert (found[:, 0] == 1.0).all()
        assert found[:, 2:5].min() >= -0.5
        assert found[:, 2:5].max() <= 1.5
        assert not found[:, 5:].any()


def test_a_grid_is_even_and_nothing_to_vary_is_one_setting() -> None:
    found = design("grid", space(["link", "recency"], 0.0, 1.0), 30, 0)
    assert len(found) == 25
    assert sorted(set(found[:, LINK].tolist())) == [0.0, 0.25, 0.5, 0.75, 1.0]
    assert (design("sobol", space([], 0.0, 1.0), 30, 0) == lexical_alone()).all()


# ---- Line search


@pytest.mark.parametrize("name", ["recall@10", "recall@1", "ndcg@10", "mrr"])
@pytest.mark.parametrize("part", ["confidence", "recency", "link", "two_links", "speaker"])
def test_a_line_is_what_a_fine_grid_finds(name: str, part: str) -> None:
    features, aim, at = made(11, levels=1000), objective(name, LIMIT), EVERY_PART.index(part)
    kept = counted(features, 1)
    weights = vector(1.0, 0.2, 0.1, 0.3, 0.4, reply=0.3)
    span = (-0.8, 1.2)
    found = lines(features, weights, at, span, aim, kept)
    assert len(found) == (2 if part in ("link", "two_links") else 1)
    assert found[0].edges[0] == span[0]
    assert found[-1].edges[-1] == span[1]
    fine = np.linspace(*span, 4001)[1:-1] + 1e-7
    tried = np.tile(weights, (len(fine), 1))
    tried[:, at] = fine
    expected = aim.values(features, ranks(features, tried))[kept].mean(axis=0)
    for value, mean in zip(fine, expected, strict=True):
        own = next(each for each in found if each.edges[0] < value < each.edges[-1])
        step = int(np.searchsorted(own.edges, value)) - 1
        assert own.values[step] == pytest.approx(mean, abs=1e-9), value
    top = max(filter(None, (each.best() for each in found)), key=lambda each: each[1])
    assert top[1] >= expected.max() - 1e-9
    tried[0, at] = top[0]
    assert aim.values(features, ranks(features, tried[:1]))[kept].mean() == pytest.approx(top[1])


@pytest.mark.parametrize("gains", [[1.0, 0.0], [1.0, 0.5, 0.25, 0.0], [1.0, 1.0, 1.0, 1.0, 0.0]])
def test_only_the_first_to_overtake_and_the_last_to_fall_behind_matter(gains: list[float]) -> None:
    features, at = made(19, levels=1000), EVERY_PART.index("recency")
    aim = Objective("recall", np.array(gains), greatest=False)
    weights = vector(1.0, 0.5, 0.4, reply=0.3)
    [line] = lines(features, weights, at, (-1.0, 2.0), aim, counted(features, None))
    tried = np.tile(weights, (1499, 1))
    tried[:, at] = np.linspace(-1.0, 2.0, 1501)[1:-1] + 1e-7
    expected = aim.measured(features, tried).mean(axis=0)
    own = line.values[np.searchsorted(line.edges, tried[:, at]) - 1]
    assert np.allclose(own, expected, atol=1e-9)
    assert len(line.values) > 10


def test_equal_scores_on_a_line_go_by_id() -> None:
    features, aim = made(12, levels=2), objective("recall@5", LIMIT)
    kept = counted(features, None)
    weights = vector(1.0, 0.0, 0.0, 0.5, 0.25, two_links=0.5)
    [line] = lines(features, weights, 1, (0.0, 1.0), aim, kept)
    for low, high, value in zip(line.edges, line.edges[1:], line.values, strict=False):
        tried = weights.copy()
        tried[1] = (low + high) / 2
        mean = aim.values(features, ranks(features, tried[np.newaxis])).mean()
        assert mean == pytest.approx(value, abs=1e-9)
    low, high = line.around((line.edges[0] + line.edges[1]) / 2, line.values[0])
    assert low == line.edges[0]
    assert high >= line.edges[1]
    assert line.around(0.5, -1.0) == (0.0, 1.0)


def test_line_searches_end_where_no_coefficient_alone_is_better() -> None:
    features, aim = made(13, levels=1000), objective("mrr", LIMIT)
    within = space(["recency", "link", "importance"], 0.0, 1.0)
    start = lexical_alone()
    reached = ascended(features, start, aim, within)
    alone = aim.values(features, ranks(features, start[np.newaxis])).mean()
    assert reached.value > alone
    for part in within.varied:
        tried = np.tile(reached.weights, (2001, 1))
        tried[:, part] = np.linspace(0.0, 1.0, 2001)
        assert means(features, sums(features, tried, aim, threads=1), None).max() <= (
            reached.value + 1e-12
        )


# ---- Choices


def shuffled(features: Features, fold: int) -> Features:
    """The same features, the labels of one fold being others."""
    first, last = features.fold_starts[fold : fold + 2]
    changed = features.evidence.copy()
    for question in range(first, last):
        some = slice(*features.evidence_starts[question : question + 2])
        start, end = features.starts[question : question + 2]
        fresh = [place for place in range(start, end) if place not in changed[some]]
        changed[some] = (fresh + [-1] * 3)[: some.stop - some.start]
    return replace(features, evidence=changed)


@pytest.mark.parametrize("searched", [False, True])
def test_no_fold_has_a_say_in_what_it_is_judged_with(searched: bool) -> None:
    features, aim = made(14, levels=1000), objective("ndcg@10", LIMIT)
    within = space(["recency", "link", "confidence"], 0.0, 1.0)
    weights = design("sobol", within, 256, 1)
    others = 0
    for fold in range(4):
        changed = shuffled(features, fold)
        chosen, whole = [], []
        for each in (features, changed):
            found = sums(each, weights, aim, threads=1)
            for without, kept in ((fold, chosen), (None, whole)):
                if searched:
                    kept.append(best_by_lines(each, weights, found, aim, within, without))
                else:
                    kept.append(best_of_design(each, weights, found, without))
        assert (chosen[0].weights == chosen[1].weights).all()
        assert chosen[0].value == chosen[1].value
        others += bool((whole[0].weights != whole[1].weights).any())
    assert others, "labels that change no choice at all show nothing"


def test_the_best_of_a_design_is_the_first_of_the_best() -> None:
    features, aim = made(15), objective("recall@5", LIMIT)
    weights = np.tile(lexical_alone(), (4, 1)) * np.array([[1.0], [2.0], [4.0], [8.0]])
    found = sums(features, weights, aim, threads=1)
    choice = best_of_design(features, weights, found, None)
    assert (choice.weights == weights[0]).all()
    assert choice.value == pytest.approx(found[:, 0].sum() / len(features.questions))


def test_what_is_held_out_is_the_value_under_the_choice_of_the_others() -> None:
    features, aim = made(16, levels=1000), objective("mrr", LIMIT)
    weights = design("random", space(["link"], 0.0, 1.0), 50, 1)
    found = sums(features, weights, aim, threads=1)
    choices = [best_of_design(features, weights, found, fold) for fold in range(4)]
    own = held_out(features, choices, aim)
    for question in range(40):
        value = aim.values(features, ranks(features, choices[question // 10].weights[np.newaxis]))
        assert own[question] == value[question, 0]


# ---- On a corpus, through the store


@pytest.fixture(scope="module")
def settings() -> Settings:
    return composed(SMALL)


@pytest.fixture(scope="module")
def corpus(settings: Settings) -> Corpus:
    return generate(settings.data.generated)


@pytest.fixture(scope="module")
def held(corpus: Corpus) -> Iterator[list[Held]]:
    with study.ingested_all(corpus) as found:
        yield found


@pytest.fixture(scope="module")
def result(settings: Settings, corpus: Corpus) -> Result:
    return coefficient_sweep.run(settings, corpus)


HOW = How("english", "idf_overlap", 604_800.0)


@pytest.mark.parametrize(
    "weights",
    [
        [1.0, 0.0, 0.0, 0.0, 0.0],
        [1.0, 0.0, 0.0, 0.01, 0.7],
        [0.6, 0.1, 0.1, 0.1, 0.1],
        [1.0, 0.0, 0.0, 0.3, -0.4],
        [0.0, 0.0, 0.0, 1.0, 0.0],
    ],
)
@pytest.mark.parametrize("lexical", ["overlap", "bm25"])
@pytest.mark.parametrize("context", [False, True])
def test_the_sweep_ranks_as_the_audited_recall(
    settings: Settings,
    corpus: Corpus,
    held: list[Held],
    weights: list[float],
    lexical: str,
    context: bool,
) -> None:
    how = HOW._replace(lexical=lexical, context=context)
    report = Comparison(settings, corpus, "published", lambda question: question.evidence)
    features = study.gather(held, report.evidence, how, lambda _: None)
    own = vector(*weights)
    if how.context:
        own[len(PARTS) :] = np.linspace(0.1, 0.5, len(EVERY_PART) - len(PARTS))
    found, seconds = recalled(held, always(own), how, LIMIT)
    assert check_equal(features, always(own), found, LIMIT) == len(report.evidence)
    assert seconds > 0
    turns = {cell: turn for _, each in held for cell, turn in each.turn_of_cell.items()}
    judged = report.judge.values({k: [turns[cell] for cell in v] for k, v in found.items()})
    for place, name in enumerate(METRICS):
        values = objective(name, LIMIT).values(features, ranks(features, own[np.newaxis]))
        assert np.allclose(values[:, 0], judged[:, place])
    key = next(key for key, cells in found.items() if len(cells) > 1)
    found[key] = found[key][::-1]
    with pytest.raises(ExperimentError, match=f"{key}: Memory.recall ranks otherwise"):
        check_equal(features, always(own), found, LIMIT)


def test_a_sweep_that_recall_contradicts_reports_nothing(
    settings: Settings, corpus: Corpus, monkeypatch: pytest.MonkeyPatch
) -> None:
    honest = study.gather

    def gather(*given: object) -> Features:
        found = honest(*given)  # type: ignore[arg-type]
        return replace(found, parts=found.parts[:, [0, 1, 2, 3, 3, *range(5, len(EVERY_PART))]])

    monkeypatch.setattr(study, "gather", gather)
    with pytest.raises(ExperimentError, match="ranks otherwise"):
        coefficient_sweep.run(settings, corpus)


def test_tables_are_whole(settings: Settings, corpus: Corpus, result: Result) -> None:
    tables = result.tables
    best = tables["sweep"]
    assert list(best.columns) == ["place", "setting", *EVERY_PART, "recall@10", *(
        name for name in METRICS if name != "recall@10"
    )]  # fmt: skip
    assert len(best) == 200
    assert (best["recall@10"].diff().dropna() <= 0).all()
    folds = tables["folds"]
    assert folds["fold"].tolist() == [*(each.id for each in corpus.conversations), "all"]
    parts = folds.iloc[:-1]
    for column in ("held_out", "optimum", "lexical_alone", "bm25"):
        whole = (parts[column] * parts["n"]).sum() / parts["n"].sum()
        assert folds.iloc[-1][column] == pytest.approx(whole)
    assert folds.iloc[-1]["chosen_at"] == pytest.approx(folds.iloc[-1]["optimum"])
    assert folds.iloc[-1]["optimum"] >= folds.iloc[-1]["lexical_alone"]
    assert set(tables["one_at_a_time"]["part"]) == set(tables["ablation"]["part"])
    for _, curve in tables["one_at_a_time"].groupby("part"):
        assert curve["optimum"].sum() == 1
        assert curve["coefficient"].is_monotonic_increasing
        at = curve[curve["optimum"]]["value"].item()
        assert at == pytest.approx(curve["value"].max())  # no line leads further up
        assert at == pytest.approx(folds.iloc[-1]["optimum"])
    for _, row in tables["flatness"].iterrows():
        assert row["low"] <= row["coefficient"] <= row["high"]
    assert len(tables["surface"]) == 31 * 31
    assert tables["near"]["settings"].is_monotonic_increasing


def test_figures_are_rows_of_the_tables(result: Result) -> None:
    rows = result.tables["recall"]
    rows = rows[(rows["labels"] == "published") & (rows["category"] == "all")]
    for metric in ("recall@10", "ndcg@10"):
        key = f"generated.{metric.replace('@', '')}"
        own = rows[rows["metric"] == metric].set_index(["scorer", "analyser", "engine"])
        tuned = own.loc[("tuned", "dialogue", "cma")]
        assert result.figures[f"{key}.tuned"].value == pytest.approx(tuned["value"])
        assert result.figures[f"{key}.tuned"].interval == pytest.approx(
            (tuned["low"], tuned["high"])
        )
        peer = own[own.index.get_level_values("engine") == "bm25s"]["value"].max()
        gap = result.figures[f"{key}.tuned_minus_bm25"]
        assert gap.value == pytest.approx(tuned["value"] - peer)
        assert gap.interval is not None
        assert gap.interval[0] <= gap.value <= gap.interval[1]
    held = result.tables["folds"].iloc[-1]["held_out"]
    assert result.figures["generated.recall10.tuned"].value == pytest.approx(held)
    assert result.figures["generated.sweep.settings"].value == 200


def test_seconds_are_facts_of_the_machine_and_not_of_the_result(
    settings: Settings, result: Result
) -> None:
    assert set(result.measured) == {"generated.sweep.seconds", "generated.sweep.speedup"}
    assert all(each.value > 0 for each in result.measured.values())
    assert not set(result.measured) & set(result.figures)


def test_parts_that_tell_nothing_apart_are_left_out_and_said(result: Result) -> None:
    assert set(result.tables["ablation"]["part"]) == {"recency", "link"}
    assert any("Left at 0" in note and "confidence, importance" in note for note in result.notes)


def test_the_same_settings_give_the_same_result(
    settings: Settings, corpus: Corpus, result: Result
) -> None:
    again = coefficient_sweep.run(
        replace(settings, sweep=replace(settings.sweep, threads=1)), corpus
    )
    assert again.figures == result.figures
    for name, table in result.tables.items():
        pd.testing.assert_frame_equal(table, again.tables[name])


def test_one_conversation_is_judged_by_tenths_of_its_questions(settings: Settings) -> None:
    one = generate(replace(settings.data.generated, conversations=1, questions=30))
    asked = replace(settings, sweep=replace(settings.sweep, design="grid", points=100, sample=0))
    found = coefficient_sweep.run(asked, one)
    assert found.tables["folds"]["fold"].tolist()[:2] == ["questions 1 to 3", "questions 4 to 6"]
    assert len(found.tables["folds"]) == 11
    assert not found.measured


def test_rows_of_the_sweep_cannot_be_bound() -> None:
    row = study._row("tuned", "english")
    assert isinstance(row, Row)
    with pytest.raises(TypeError):
        row.bind(None, 1)  # type: ignore[arg-type]


# ---- Settings and the page


@pytest.mark.parametrize(
    ("override", "said"),
    [
        ("sweep.design=annealing", "annealing"),
        ("sweep.points=0", "sweep.points=0"),
        ("sweep.objective=precision", "precision"),
        ("sweep.analyser=german", "german"),
        ("sweep.lexical=tfidf", "tfidf"),
        ("sweep.half_life_seconds=0", "sweep.half_life_seconds=0"),
        ("sweep.low=1.0", "sweep.high=1.0"),
        ("sweep.high=inf", "sweep.high=inf"),
        ("sweep.sample=-1", "sweep.sample=-1"),
        ("sweep.threads=-1", "sweep.threads=-1"),
        ("sweep.parts=[]", "at least one part"),
        ("sweep.parts=[link,link]", "each once"),
        ("sweep.parts=[lexical]", "lexical"),
        ("evaluation.peer=false", "nothing to be held against"),
        ("evaluation.limit=5", "evaluation.limit=5"),
    ],
)
def test_settings_that_make_no_sweep_are_refused(override: str, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        coefficient_sweep.check(composed([*SMALL, override]))


def test_a_design_of_too_few_points_is_refused() -> None:
    for name, points in (("grid", 15), ("simplex", 4)):
        asked = [*SMALL, f"sweep.design={name}", f"sweep.points={points}"]
        with pytest.raises(UsageError, match=f"give at least {points + 1}"):
            coefficient_sweep.check(composed(asked))
        coefficient_sweep.check(composed([*asked, f"sweep.points={points + 1}"]))


# ---- Evidence within a budget


def costly(features: Features, seed: int, *, budget: int, hits: int) -> BudgetRecall:
    """The objective over records of a few sizes by chance."""
    costs = np.random.default_rng(seed).choice([3, 5, 8, 30], len(features.cells))
    return BudgetRecall(budget, hits, Packing("packet", 2, {}), costs)


def packed_share(features: Features, question: int, own: np.ndarray, aim: BudgetRecall) -> float:
    """The oracle: sort, go down the first `hits` cells, take whatever still fits."""
    left, taken = aim.budget - aim.packing.overhead, []
    for place in sorted_places(features, question, own)[: aim.hits]:
        if aim.costs[place] <= left:
            left -= aim.costs[place]
            taken.append(place)
    some = slice(*features.evidence_starts[question : question + 2])
    wanted = features.evidence[some].tolist()
    return sum(place in taken for place in wanted) / len(wanted)


@pytest.mark.parametrize(("budget", "hits"), [(2, 20), (9, 20), (20, 20), (40, 4), (90, 25)])
@pytest.mark.parametrize("levels", [1, 2, 4, 1000])
def test_what_fits_is_what_packing_in_order_lets_in(levels: int, budget: int, hits: int) -> None:
    features = made(levels, levels=levels)
    aim = costly(features, budget, budget=budget, hits=hits)
    rng = np.random.default_rng(5)
    size = len(EVERY_PART)
    weights = rng.integers(-2, 4, (12, size)) / 2.0
    weights = np.vstack([weights, lexical_alone(), np.zeros(size), rng.random((3, size)) - 0.3])
    expected = [
        [packed_share(features, question, own, aim) for own in weights]
        for question in range(len(features.questions))
    ]
    assert np.allclose(aim.measured(features, weights), expected, atol=0.0)
    if budget == 2 or levels == 1:  # no room, no candidates
        assert not np.any(expected)
    else:
        assert np.any(expected)


def test_what_fits_does_not_depend_on_threads_and_is_chosen_by_folds() -> None:
    features = made(18, levels=1000)
    aim = costly(features, 1, budget=25, hits=20)
    weights = design("sobol", space(["link", "recency"], 0.0, 1.0), BLOCK + 9, 1)
    found = sums(features, weights, aim, threads=1)
    assert (found == sums(features, weights, aim, threads=3)).all()
    choices = [best_of_design(features, weights, found, fold) for fold in range(4)]
    own = held_out(features, choices, aim)
    for question in range(40):
        expected = packed_share(features, question, choices[question // 10].weights, aim)
        assert own[question] == expected


@pytest.mark.parametrize("budget", [150, 400])
def test_what_fits_is_what_memory_puts_into_the_packet(
    settings: Settings, corpus: Corpus, held: list[Held], budget: int
) -> None:
    report = Comparison(settings, corpus, "published", lambda question: question.evidence)
    features = study.gather(held, report.evidence, HOW, lambda _: None)
    aim = budget_recall(held, features, budget=budget, hits=25)
    own = always(vector(1.0, 0.0, 0.0, 0.01, 0.7))
    found = check_packets(features, held, own, HOW, aim)
    assert check_equal(features, own, found, 25) == len(report.evidence)
    value = aim.measured(features, own("")[np.newaxis]).mean()
    assert 0.0 < value < 1.0
    dearest = aim.costs + np.where(aim.costs == aim.costs.min(), budget, 0)
    heavier = {cell: tokens + 1 for cell, tokens in aim.packing.costs.items()}
    for wrong in (
        replace(aim, costs=dearest),  # what the sweep counts with
        replace(aim, packing=replace(aim.packing, costs=heavier)),  # what names the cells
    ):
        with pytest.raises(ExperimentError, match=r"Memory\.packet serves otherwise"):
            check_packets(features, held, own, HOW, wrong)


def test_conflict_links_are_refused(corpus: Corpus) -> None:
    with study.ingested_all(replace(corpus, conversations=corpus.conversations[:1])) as held:
        [one, other] = list(held[0].ingested.turn_of_cell)[:2]
        held[0].ingested.memory.link("conflict", one, other)
        with pytest.raises(ExperimentError, match=f"{corpus.conversations[0].id}.*conflict links"):
            budget_recall(held, made(1), budget=100, hits=20)


BUDGET = [
    *SMALL,
    "sweep.objective=budget_recall",
    "sweep.design=sobol",
    "sweep.points=50",
    "sweep.budget=200",
    "sweep.hits=25",
    "sweep.sample=0",
    "evaluation.analysers=[english]",
]


@pytest.fixture(scope="module")
def budgeted(corpus: Corpus) -> Result:
    asked = composed(BUDGET)
    coefficient_sweep.check(asked)
    return coefficient_sweep.run(asked, corpus)


def test_tables_hold_the_objective_within_a_budget(corpus: Corpus, budgeted: Result) -> None:
    tables = budgeted.tables
    rows = tables["recall"]
    rows = rows[(rows["metric"] == "budget_recall") & (rows["category"] == "all")]
    own = rows.set_index("scorer")["value"]
    assert list(own.index) == ["tuned", "tuned_in_sample", "idf_overlap", "hand_set", "bm25"]
    assert own["tuned_in_sample"] >= own["idf_overlap"]
    figure = budgeted.figures["generated.budget_recall.tuned"]
    assert (figure.value, figure.control) == pytest.approx((own["tuned"], own["bm25"]))
    assert figure.interval is not None
    assert figure.interval[0] < figure.value < figure.interval[1]
    gap = budgeted.figures["generated.budget_recall.tuned_minus_bm25"]
    assert gap.value == pytest.approx(own["tuned"] - own["bm25"])
    last = tables["folds"].iloc[-1]
    assert last["fold"] == "all"
    assert last["objective"] == "budget_recall"
    assert last["held_out"] == pytest.approx(own["tuned"])
    assert last["optimum"] == pytest.approx(last["chosen_at"])
    assert last["optimum"] == pytest.approx(own["tuned_in_sample"])
    assert last["lexical_alone"] == pytest.approx(own["idf_overlap"])
    assert last["bm25"] == pytest.approx(own["bm25"])
    best = tables["sweep"]["budget_recall"]
    assert len(best) == 50
    assert best.iloc[0] == pytest.approx(last["optimum"])
    assert (best.diff().dropna() <= 0).all()
    assert "recall@10" in tables["sweep"]
    for name in ("one_at_a_time", "ablation", "near"):
        assert set(tables[name]["objective"]) == {"budget_recall"}
    assert len(tables["surface"]) == 31 * 31
    assert "flatness" not in tables
    assert any("no exact line along a coefficient" in note for note in budgeted.notes)
    gaps = tables["differences"]
    gaps = gaps[(gaps["metric"] == "budget_recall") & (gaps["category"] == "all")]
    assert gaps.set_index("scorer")["value"]["tuned"] == pytest.approx(gap.value)


def test_a_sweep_that_a_packet_contradicts_reports_nothing(
    corpus: Corpus, monkeypatch: pytest.MonkeyPatch
) -> None:
    def cheaper(*given: object, **asked: object) -> BudgetRecall:
        found = budget_recall(*given, **asked)  # type: ignore[arg-type]
        return replace(found, costs=found.costs // 2)

    monkeypatch.setattr(study, "budget_recall", cheaper)
    with pytest.raises(ExperimentError, match=r"Memory\.packet serves otherwise"):
        coefficient_sweep.run(composed([*BUDGET, "sweep.points=20"]), corpus)


@pytest.mark.parametrize(
    ("override", "said"),
    [
        ("sweep.design=line_search", "has no line search"),
        ("sweep.budget=0", "sweep.budget=0"),
        ("sweep.hits=19", "sweep.hits=19"),
        ("sweep.hits=10000", "sweep.hits=10000"),
    ],
)
def test_settings_that_fill_no_packet_are_refused(override: str, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        coefficient_sweep.check(composed([*BUDGET, override]))


def test_a_run_keeps_its_seconds_in_machine_json_and_the_page_shows_them(tmp_path: Path) -> None:
    runs, out = tmp_path / "runs", tmp_path / "out"
    outcome = running.run(composed([*SMALL, f"paths.runs={runs}"]))
    written = json.loads((outcome.place / "result.json").read_text())
    machine = json.loads((outcome.place / "machine.json").read_text())
    assert set(machine["figures"]) == {"generated.sweep.seconds", "generated.sweep.speedup"}
    assert "seconds" not in json.dumps(written["figures"])
    with (outcome.place / "folds.csv").open() as file:
        chosen = {row["fold"]: row for row in csv.DictReader(file)}["all"]
    worth, choice = (headline(outcome.place) or "").splitlines()
    assert f"held out {written['figures']['generated.recall10.tuned']['value']:.3f}" in worth
    assert choice.split(" (")[0] == "chosen on all questions by recall@10: " + ", ".join(
        f"{part}={float(chosen[part]):g}" for part in EVERY_PART if float(chosen[part])
    )
    assert running.run(composed([*SMALL, f"paths.runs={runs}", "sweep.threads=1"])).reused
    assert main(["--runs", str(runs), "--out", str(out)]) == 0
    figures = json.loads((out / "figures.json").read_text())
    assert figures["generated.sweep.speedup"]["value"] > 0
    assert figures["generated.recall10.tuned_minus_bm25"]["run"] == outcome.place.name
    page = (out / "index.html").read_text()
    assert "Coefficients swept" in page
    assert "times faster than recalling every question" in page
    for stem in ("compared-published", "folds", "ablation", "flatness", "near", "best"):
        with (out / "tables" / f"coefficient-sweep-generated-{stem}.csv").open() as file:
            assert len(list(csv.reader(file))) > 1
    assert {path.stem for path in (out / "plots").glob("*.svg")} == {
        "coefficient-sweep-generated-curves",
        "coefficient-sweep-generated-surface",
    }


def test_the_page_tells_of_evidence_in_a_packet(tmp_path: Path) -> None:
    runs, out = tmp_path / "runs", tmp_path / "out"
    asked = [*BUDGET, "sweep.points=20", "evaluation.resamples=50", f"paths.runs={runs}"]
    outcome = running.run(composed(asked))
    assert main(["--runs", str(runs), "--out", str(out)]) == 0
    figures = json.loads((out / "figures.json").read_text())
    assert figures["generated.budget_recall.tuned"]["run"] == outcome.place.name
    page = (out / "index.html").read_text()
    assert "of the evidence turns in a packet of 200 tokens" in page
    assert "Each left out in turn: budget_recall" in page
    assert "best in the packet first" in page
    with (out / "tables" / "coefficient-sweep-generated-compared-published.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert "tuned" in rows[0]["Scorer"]
    assert not (out / "tables" / "coefficient-sweep-generated-flatness.csv").exists()


def test_a_sweep_without_its_tables_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = write_run(tmp_path / "runs", "coefficient_sweep", data_set="generated")
    assert main(["--runs", str(tmp_path / "runs"), "--out", str(tmp_path / "out")]) == 2
    assert f"{folder}: a sweep without recall.csv" in capsys.readouterr().err

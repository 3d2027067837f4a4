"""Metrics against hand calculations, and intervals against what is known of them."""

import math

import numpy as np
import pytest

from experiments.bootstrap import Bootstrap
from experiments.evaluation import METRICS, Judge


def judged(evidence, ranking):
    (values,) = Judge({"q": evidence}).values({"q": ranking})
    return dict(zip(METRICS, values.tolist(), strict=True))


def test_metrics_by_hand():
    found = judged(("b", "x", "d"), ["a", "b", "c", "d"])
    assert found["recall@1"] == 0.0
    assert found["recall@5"] == found["recall@10"] == found["recall@20"] == pytest.approx(2 / 3)
    assert found["mrr"] == 0.5
    gained = 1 / math.log2(3) + 1 / math.log2(5)
    ideal = 1 + 1 / math.log2(3) + 1 / math.log2(4)
    assert found["ndcg@10"] == pytest.approx(gained / ideal)


def test_rank_decides_and_not_the_name():
    """The library underneath sorts equal scores by name; ours must not be re-sorted."""
    ranking = [f"t{number}" for number in (3, 9, 1, 7, 5)]
    for place, turn in enumerate(ranking, start=1):
        assert judged((turn,), ranking)["mrr"] == pytest.approx(1 / place)


def test_cutoffs_look_no_further():
    ranking = [f"t{number:02}" for number in range(20)]
    for place, expected in ((0, [1, 1, 1, 1]), (4, [0, 1, 1, 1]), (5, [0, 0, 1, 1]),
                            (10, [0, 0, 0, 1])):  # fmt: skip
        found = judged((ranking[place],), ranking)
        assert [found[name] for name in METRICS[:4]] == expected


def test_nothing_recalled_is_zero_and_not_left_out():
    values = Judge({"q1": ("a",), "q2": ("a",)}).values({"q1": [], "q2": ["a"]})
    assert values.tolist() == [[0.0] * len(METRICS), [1.0] * len(METRICS)]


def test_question_that_was_not_asked_is_an_error():
    with pytest.raises(ValueError, match="not asked"):
        Judge({"q1": ("a",)}).values({})


def test_question_without_evidence_cannot_be_judged():
    with pytest.raises(ValueError, match="without evidence"):
        Judge({"q1": ()})


def drawn(values, *, seed=3, name="all", confidence=0.95):
    column = np.asarray(values, dtype=float)
    boot = Bootstrap(len(column), resamples=2000, confidence=confidence, seed=seed, name=name)
    return boot.intervals(column[:, None])[0]


def test_interval_of_a_share_is_that_of_theory():
    found = drawn([1.0] * 300 + [0.0] * 700)
    assert found.mean == pytest.approx(0.3)
    spread = 1.96 * math.sqrt(0.3 * 0.7 / 1000)
    assert found.low == pytest.approx(0.3 - spread, abs=0.004)
    assert found.high == pytest.approx(0.3 + spread, abs=0.004)


def test_constant_has_no_spread():
    found = drawn([0.25] * 50)
    assert found.low == pytest.approx(0.25)
    assert found.high == pytest.approx(0.25)


def test_less_confidence_is_a_narrower_interval():
    values = [0.0, 1.0] * 100
    wide, narrow = drawn(values, confidence=0.95), drawn(values, confidence=0.5)
    assert wide.low < narrow.low < narrow.high < wide.high


def test_same_seed_and_set_same_interval():
    values = np.random.default_rng(0).random(100)
    assert drawn(values) == drawn(values)
    assert drawn(values) != drawn(values, seed=4)
    assert drawn(values) != drawn(values, name="temporal")


def test_differences_are_paired():
    """Two scorers with a constant gap differ by exactly that gap on every resample."""
    first = np.random.default_rng(0).random(100)
    boot = Bootstrap(100, resamples=500, confidence=0.95, seed=1, name="all")
    (found,) = boot.intervals(((first + 0.1) - first)[:, None])
    assert found.low == pytest.approx(0.1)
    assert found.high == pytest.approx(0.1)

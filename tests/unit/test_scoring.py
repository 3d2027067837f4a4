"""The parts of a score, by hand and against the peer that defines BM25 here."""

from __future__ import annotations

import hashlib
import math
import random

import bm25s
import numpy as np
import pytest

from cma.orion.index import Entry, Index
from cma.orion.scoring import LEXICAL, PARTS, Weights, idf, recency, settle, total

ONLY_LEXICAL = Weights(1.0, 0.0, 0.0, 0.0, 0.0)


def entry(number: int, terms: list[str], scope: int = 0) -> Entry:
    name = "cell-" + hashlib.sha256(str(number).encode()).hexdigest()[:40]
    return Entry(name, 1, scope, 1.0, 0.5, 0, terms)


def lexical(name: str, query: list[str], *texts: list[str]) -> list[float]:
    """The lexical part of each text, 0 where it is no hit."""
    index = Index()
    cells = [entry(i, text) for i, text in enumerate(texts)]
    index.add_many(cells)
    result = index.search(
        query, viewer=(0,), at_us=0, limit=len(texts), lexical=name, weights=ONLY_LEXICAL
    )
    got = dict(zip(result.ids, result.parts["lexical"].tolist(), strict=True))
    return [got.get(cell.id, 0.0) for cell in cells]


def test_overlap_is_the_share_of_distinct_query_terms() -> None:
    query = ["a", "b", "b", "x"]
    assert lexical("overlap", query, ["a", "a"], ["b", "a", "c"], ["c"]) == [1 / 3, 2 / 3, 0.0]


def test_jaccard_divides_by_all_distinct_terms() -> None:
    query = ["a", "b", "b", "x"]
    assert lexical("jaccard", query, ["a", "a"], ["b", "a", "c"], ["c"]) == [1 / 3, 2 / 4, 0.0]


def test_idf_overlap_counts_unknown_terms_in_the_whole() -> None:
    common, rare, unknown = idf(3, 2), idf(3, 1), idf(3, 0)
    whole = common + rare + unknown
    assert lexical("idf_overlap", ["a", "b", "x"], ["a"], ["a", "b"], ["c"]) == [
        common / whole, (common + rare) / whole, 0.0,
    ]  # fmt: skip


def test_idf_is_settled_positive_and_close_to_the_formula() -> None:
    for size, holding in ((1, 1), (10, 3), (10**10, 10**10), (5, 0)):
        value = idf(size, holding)
        exact = math.log(1 + (size - holding + 0.5) / (holding + 0.5))
        assert value > 0
        assert (value * 2**30).is_integer()
        assert abs(value - exact) <= 2**-30


def test_recency_halves_at_each_half_life_and_never_exceeds_one() -> None:
    day = 86_400_000_000
    observed = np.array([0, -day, -2 * day, day, -day // 2, -(10**17)], np.int64)
    assert recency(observed, 0, 86_400.0).tolist() == [
        1.0, 0.5, 0.25, 1.0, round(2**-0.5 * 2**30) / 2**30, 0.0,
    ]  # fmt: skip


def test_settling_hides_last_bit_differences() -> None:
    values = np.array([0.1, 1 / 3, 0.7])
    assert (settle(values) == settle(np.nextafter(values, 1.0))).all()


def test_the_total_is_added_from_left_to_right() -> None:
    parts = {name: np.array([0.1 * (i + 1)]) for i, name in enumerate(PARTS)}
    weights = Weights(0.7, 0.1, 1e-9, -0.3, 0.2)
    by_hand = weights[0] * 0.1
    for weight, name in zip(weights[1 : len(PARTS)], PARTS[1:], strict=True):
        by_hand = by_hand + weight * float(parts[name][0])
    assert total(weights, parts).tolist() == [by_hand]


@pytest.mark.parametrize("seed", range(3))
def test_bm25_is_that_of_bm25s(seed: int) -> None:
    chance = random.Random(seed)
    words = [f"w{i}" for i in range(60)]
    odds = [1 / (i + 1) for i in range(60)]
    texts = [chance.choices(words, odds, k=chance.randint(1, 30)) for _ in range(300)]
    peer = bm25s.BM25(method="lucene", k1=1.5, b=0.75, backend="numpy", dtype="float64")
    peer.index(texts, show_progress=False)
    for _ in range(40):
        query = chance.choices(words, odds, k=chance.randint(1, 9))
        query += query[:1]  # a repeated term counts twice in both
        known = [word for word in query if word in peer.vocab_dict]
        if not known:
            continue
        theirs = np.asarray(peer.get_scores(known), np.float64)
        whole = sum(idf(300, sum(word in text for text in texts)) for word in query)
        ours = np.array(lexical("bm25", query, *texts)) * whole
        np.testing.assert_allclose(ours, theirs, rtol=0, atol=2e-7)


def test_bm25_of_one_scope_knows_nothing_of_another() -> None:
    alone, both = Index(), Index()
    own = [entry(i, ["a", "b"][: 1 + i % 2] * (1 + i % 3)) for i in range(9)]
    alone.add_many(own)
    both.add_many(own)
    both.add_many([entry(100 + i, ["a"] * 40, scope=7) for i in range(50)])
    for name in LEXICAL:
        one, two = (
            index.search(["a", "b"], viewer=(0,), at_us=0, limit=9, lexical=name)
            for index in (alone, both)
        )
        assert one.ids == two.ids
        assert one.scores.tobytes() == two.scores.tobytes()


@pytest.mark.parametrize("name", sorted(LEXICAL))
def test_lexical_parts_lie_between_zero_and_one(name: str) -> None:
    texts = [["a"] * n + ["b"] * (n % 2) for n in range(1, 40)]
    parts = lexical(name, ["a", "b", "b"], *texts)
    assert all(0.0 < part <= 1.0 for part in parts)

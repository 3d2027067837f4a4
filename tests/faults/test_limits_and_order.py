"""Limits that mean what they say, and an order that nothing but content decides."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest

from cma import Coefficients, FixedClock, Memory, Reason, Retrieval
from tests.faults.injection import START, draft, refused, remember


@pytest.mark.parametrize("limit", [0, -1, None, True, False, 1.0, "3", 2**64, float("inf")])
def test_a_limit_is_a_whole_number_of_at_least_one(memory: Memory, limit: Any) -> None:
    remember(memory, "something")
    with refused(memory, Reason.LIMIT_INVALID, "limit"):
        memory.recall("something", limit=limit)


@pytest.mark.parametrize("limit", [1, 2, 3, 1000, 2**53 - 1])
def test_a_limit_is_honoured_and_never_means_more(memory: Memory, limit: int) -> None:
    for number in range(5):
        remember(memory, f"something {number}")
    recollection = memory.recall("something", limit=limit)
    assert len(recollection.hits) == min(limit, 5)
    assert recollection.trace.limit == limit
    assert recollection.trace.excluded.get("below_limit", 0) == max(0, 5 - limit)


@pytest.mark.parametrize("seed", range(6))
def test_equal_scores_are_cut_by_id_whatever_the_order_of_writing(
    tmp_path: Path, seed: int
) -> None:
    texts = [f"equal cell {letter}" for letter in "abcdefghij"]
    random.Random(seed).shuffle(texts)
    with Memory.open(tmp_path / "shuffled.cma", clock=FixedClock(START)) as memory:
        if seed % 2:
            receipt = memory.write_many([draft(text) for text in texts])
            ids = list(receipt.ids)
        else:
            ids = [remember(memory, text).id for text in texts]
        recollection = memory.recall("equal cell", limit=3)
        assert [hit.cell.id for hit in recollection.hits] == sorted(ids)[:3]
        assert len({hit.score for hit in recollection.hits}) == 1
        left = [exclusion.cell for exclusion in recollection.trace.exclusions]
        assert left == sorted(ids)[3:]
        (first, second, _) = recollection.trace.hits
        assert "comes first by its id" in recollection.trace.why(first.cell, second.cell)


def test_a_weight_of_zero_and_below_does_what_it_says(memory: Memory) -> None:
    low = remember(memory, "the same words", importance=0.0)
    high = remember(memory, "the same words", importance=1.0)
    for weight, expected in ((1.0, [high, low]), (-1.0, [low, high])):
        wanted = Retrieval(
            coefficients=Coefficients(lexical=0, confidence=0, importance=weight, recency=0, link=0)
        )
        hits = memory.recall("same", retrieval=wanted).hits
        assert [hit.cell.id for hit in hits] == [cell.id for cell in expected]
        assert [hit.score for hit in hits] == sorted((weight, 0.0), reverse=True)


@pytest.mark.parametrize("weight", [float("nan"), float("inf"), "much", None, 1e7])
def test_a_coefficient_is_a_bounded_number(weight: Any) -> None:
    with pytest.raises(ValueError, match="recency"):
        Coefficients(recency=weight)

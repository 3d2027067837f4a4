"""The index against the one-cell-at-a-time oracle, on random stores."""

from __future__ import annotations

import hashlib
import random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cma.orion import index as indexing
from cma.orion import postings, ranking, searching
from cma.orion.index import NEVER, Entry, Index, Ranking
from cma.orion.scoring import LEXICAL, Weights
from tests.property import oracle

TERMS = [f"t{i}" for i in range(7)]
AT = 1_700_000_000_000_000
HOUR = 3_600_000_000
SHARES = st.sampled_from([0.0, 0.25, 0.5, 0.7, 1.0])


def cell_id(number: int) -> str:
    # Pairs share their first 16 digits, so that the prefix alone cannot order them.
    head = hashlib.sha256(str(number // 2).encode()).hexdigest()[:16]
    return f"cell-{head}{hashlib.sha256(str(number).encode()).hexdigest()[:24]}"


@st.composite
def entries(draw: st.DrawFn, number: int, revision: int) -> Entry:
    return Entry(
        id=cell_id(number),
        revision=revision,
        scope=draw(st.integers(0, 2)),
        confidence=draw(SHARES),
        importance=draw(SHARES),
        observed_us=AT + draw(st.sampled_from([-900, -30, -30, -1, 0, 5])) * HOUR,
        terms=draw(st.lists(st.sampled_from(TERMS), max_size=9)),
        expires_us=draw(st.sampled_from([NEVER, NEVER, AT - 1, AT, AT + 1])),
        inactive=draw(st.sampled_from([False, False, False, True])),
    )


@st.composite
def histories(draw: st.DrawFn) -> list[tuple[str, Any]]:
    """Steps: add a batch, replace a cell, link two, or search between (which seals)."""
    steps: list[tuple[str, Any]] = []
    count = 0
    for _ in range(draw(st.integers(1, 8))):
        kind = draw(st.sampled_from(["add", "add", "replace", "link", "seal"]))
        if kind == "add":
            size = draw(st.integers(1, 8))
            steps.append((kind, [draw(entries(count + i, 1)) for i in range(size)]))
            count += size
        elif kind == "replace" and count:
            steps.append((kind, draw(entries(draw(st.integers(0, count - 1)), len(steps) + 2))))
        elif kind == "link" and count:
            ends = st.integers(0, count - 1).map(cell_id)
            steps.append((kind, draw(st.lists(st.tuples(ends, ends), min_size=1, max_size=12))))
        elif kind == "seal":
            steps.append((kind, None))
    return steps


WEIGHTS = st.one_of(
    st.just(Weights()),
    st.just(Weights(1.0, 0.0, 0.0, 0.0, 0.0)),
    st.tuples(*[st.sampled_from([-1.0, -0.3, 0.0, 0.1, 0.6, 1.0])] * 5).map(
        lambda five: Weights(*five)
    ),
)
QUESTIONS = st.fixed_dictionaries(
    {
        "viewer": st.lists(st.integers(0, 3), min_size=1, max_size=3).map(tuple),
        "at_us": st.just(AT),
        "limit": st.integers(1, 40),
        "lexical": st.sampled_from(sorted(LEXICAL)),
        "weights": WEIGHTS,
        "half_life_seconds": st.sampled_from([604800.0, 3600.0, 1.0, 1e9]),
        "include_inactive": st.booleans(),
        "exclusion_limit": st.integers(0, 12),
    }
)
ASKED = st.lists(st.sampled_from([*TERMS, "unknown"]), min_size=1, max_size=6)


def build(steps: list[tuple[str, Any]]) -> tuple[Index, oracle.OracleStore]:
    index, store = Index(), oracle.OracleStore()
    for kind, what in steps:
        if kind == "add":
            index.add_many(what)
            store.cells.update((entry.id, entry) for entry in what)
        elif kind == "replace":
            index.replace(what)
            store.cells[what.id] = what
        elif kind == "link":
            index.add_links(what)
            store.links.update(what)
        else:
            index.search(["t0"], viewer=(0,), at_us=AT, limit=1)
    return index, store


def rows(result: Ranking) -> list[tuple[str, float, dict[str, float]]]:
    return [
        (name, float(score), {part: float(values[i]) for part, values in result.parts.items()})
        for i, (name, score) in enumerate(zip(result.ids, result.scores, strict=True))
    ]


@given(histories(), ASKED, QUESTIONS)
@settings(max_examples=400, deadline=None)
def test_a_search_is_what_scoring_every_cell_gives(
    steps: list[tuple[str, Any]], asked: list[str], question: dict[str, Any]
) -> None:
    index, store = build(steps)
    result = index.search(asked, **question)
    expected = oracle.rank(store, asked, **question)
    assert rows(result) == expected.hits
    assert list(result.exclusions) == expected.exclusions
    assert result.excluded == expected.excluded
    assert [index.ordinal(name) for name in result.ids] == result.ordinals.tolist()


@given(histories(), ASKED, QUESTIONS)
@settings(max_examples=150, deadline=None)
def test_the_sparse_way_is_the_dense_way(
    steps: list[tuple[str, Any]], asked: list[str], question: dict[str, Any]
) -> None:
    index, store = build(steps)
    expected = oracle.rank(store, asked, **question)
    with pytest.MonkeyPatch.context() as patch:
        for share in (0, 10**9):  # always sparse, never sparse
            patch.setattr(searching, "_SPARSE", share)
            patch.setattr(ranking, "_GROUPS", 2)
            assert rows(index.search(asked, **question)) == expected.hits


@given(histories(), ASKED, QUESTIONS)
@settings(max_examples=200, deadline=None)
def test_old_revisions_that_are_still_in_the_postings_are_never_seen(
    steps: list[tuple[str, Any]], asked: list[str], question: dict[str, Any]
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(indexing, "_PURGE_SHARE", 0)
        index, store = build(steps)
        everyone = {**question, "viewer": (0, 1, 2)}
        for how in (question, everyone):
            assert rows(index.search(asked, **how)) == oracle.rank(store, asked, **how).hits
        for number, entry in enumerate(list(store.cells.values())[:3]):
            store.cells[entry.id] = entry._replace(terms=["t0", f"t{number}"], revision=99)
            index.replace(store.cells[entry.id])
            result = index.search(asked, **everyone)  # the same viewer as before
            assert rows(result) == oracle.rank(store, asked, **everyone).hits


@pytest.mark.parametrize("seed", range(4))
def test_what_is_kept_between_searches_changes_no_answer(seed: int) -> None:
    """One index that grows, asked in many ways; few hits, so that a wrong rough score shows."""
    chance = random.Random(seed)
    index, store = Index(), oracle.OracleStore()
    for batch in range(40):
        new = [
            Entry(
                cell_id(batch * 8 + i), 1, 0, chance.random(), chance.random(),
                AT + int(chance.gauss(0.0, 1.0) * HOUR * 10 ** chance.randint(0, 4)),
                [chance.choice([*TERMS, *map(str, range(300))]) for _ in range(3)],
            )
            for i in range(8)
        ]  # fmt: skip
        index.add_many(new)
        store.cells.update((entry.id, entry) for entry in new)
        links = [(one.id, chance.choice(list(store.cells))) for one in new[:3]]
        index.add_links(links)
        store.links.update(links)
        for _ in range(3):
            asked = chance.sample([*TERMS, *map(str, range(300))], chance.choice([1, 2, 6]))
            weights = [chance.choice([0.0, 0.1, 0.5, 1.0, -0.2]) for _ in range(5)]
            question: dict[str, Any] = {
                "viewer": (0,),
                "at_us": AT + chance.choice([-1000, 0, 0, 3, 10**5]) * HOUR,
                "limit": chance.choice([1, 2, 5]),
                "lexical": "overlap",
                "weights": chance.choice([Weights(), Weights(*weights)]),
                "half_life_seconds": chance.choice([3600.0, 36000.0, 604800.0]),
                "include_inactive": False,
                "exclusion_limit": chance.choice([0, 2]),
            }
            assert (
                rows(index.search(asked, **question)) == oracle.rank(store, asked, **question).hits
            )


@given(histories(), ASKED, QUESTIONS, st.randoms(use_true_random=False))
@settings(max_examples=150, deadline=None)
def test_insertion_order_changes_nothing(
    steps: list[tuple[str, Any]], asked: list[str], question: dict[str, Any], chance: random.Random
) -> None:
    index, store = build(steps)
    other = Index()
    cells = list(store.cells.values())
    chance.shuffle(cells)
    for entry in cells:
        other.add_many([entry])
        if chance.random() < 0.3:
            other.search(["t0"], viewer=(0,), at_us=AT, limit=1)
    pairs = list(store.links)
    chance.shuffle(pairs)
    other.add_links(pairs)
    ours, theirs = index.search(asked, **question), other.search(asked, **question)
    assert rows(ours) == rows(theirs)
    assert ours.scores.tobytes() == theirs.scores.tobytes()
    assert ours.exclusions == theirs.exclusions
    assert index.digest == other.digest


@given(st.lists(st.tuples(st.integers(1, 3), st.booleans()), max_size=40))
@settings(max_examples=100, deadline=None)
def test_postings_in_any_batches_are_one_list(batches: list[tuple[int, bool]]) -> None:
    kept = postings.Postings()
    texts: list[list[str]] = []
    for size, seal in batches:
        new = [TERMS[: (len(texts) + i) % 4] * (1 + i % 2) for i in range(size)]
        kept.extend(new)
        texts.extend(new)
        if seal:
            kept.seal()
    kept.seal()
    for term, (cells, shapes) in zip(TERMS, kept.find(TERMS), strict=True):
        assert cells.tolist() == [i for i, text in enumerate(texts) if term in text]
        assert kept.frequencies[shapes].tolist() == [t.count(term) for t in texts if term in t]
        assert kept.lengths[shapes].tolist() == [len(t) for t in texts if term in t]
    assert kept.distinct.tolist() == [len(set(text)) for text in texts]

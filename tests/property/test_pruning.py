"""Pruning against the one-cell-at-a-time oracle: every store here is large enough for it."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cma.orion import bitmaps, kernel_inputs, pruning, resolving, searching
from cma.orion.index import NEVER, Entry, Index, Weights
from tests.faults.test_interrupts import interrupted_at
from tests.property import oracle
from tests.property.test_ranking import ASKED, AT, HOUR, QUESTIONS, build, cell_id, histories, rows

numba = pytest.importorskip("numba")
kernels = pytest.importorskip("cma.orion.kernels")
kernel_ranking = pytest.importorskip("cma.orion.kernel_ranking")


WEIGHTS = st.tuples(st.sampled_from([0.1, 0.6, 1.0]), *[st.sampled_from([0.0, 0.1, 1.0])] * 4).map(
    lambda five: Weights(*five)
)


@pytest.fixture
def eager(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Prune from the first cell on, with few rows and little room; count what was pruned."""
    calls: list[int] = []
    honest = pruning.Pruner.best

    def counted(self: pruning.Pruner, asked: resolving.Asked, *rest: Any, **more: Any) -> Any:
        calls.append(len(asked.slots))
        return honest(self, asked, *rest, **more)

    monkeypatch.setattr(pruning.Pruner, "best", counted)
    monkeypatch.setattr(pruning, "LARGE", 0)
    monkeypatch.setattr(resolving, "_COMMON_LEAST", 1)
    monkeypatch.setattr(pruning, "_ROOM", 3)
    monkeypatch.setattr(pruning, "_WORTH", 0)
    return calls


@given(histories(), ASKED, QUESTIONS, WEIGHTS)
@settings(max_examples=200, deadline=None)
def test_any_history_gives_what_scoring_every_cell_gives(
    steps: list[tuple[str, Any]], asked: list[str], question: dict[str, Any], weights: Weights
) -> None:
    question = {**question, "weights": weights}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pruning, "LARGE", 0)
        patch.setattr(resolving, "_COMMON_LEAST", 1)
        patch.setattr(resolving, "_COMMON_SHARE", 4)
        index, store = build([step for step in steps if step[0] != "link"])
        result = index.search(asked, **question)
        expected = oracle.rank(store, asked, **question)
        assert rows(result) == expected.hits
        assert list(result.exclusions) == expected.exclusions
        assert result.excluded == expected.excluded


@pytest.mark.parametrize("seed", range(8))
def test_growing_stores(seed: int, eager: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    chance = random.Random(seed)
    monkeypatch.setattr(resolving, "_COMMON_SHARE", chance.choice([1, 4, 64, 10**6]))
    monkeypatch.setattr(bitmaps, "_MOST", chance.choice([1, 2, 256]))
    index, store = Index(), oracle.OracleStore()
    words = [f"t{i}" for i in range(chance.choice([4, 30, 200]))]
    for _ in range(4):
        for _ in range(chance.choice([1, 5, 120])):
            entry = random_entry(chance, len(store.cells), words)
            index.add_many([entry])
            store.cells[entry.id] = entry
        for _ in range(chance.choice([0, 1, 20])):
            old = chance.choice(list(store.cells.values()))
            entry = old._replace(terms=chance.sample(words, 3), revision=old.revision + 1)
            index.replace(entry)
            store.cells[entry.id] = entry
        for _ in range(8):
            size = chance.choice([1, 2, 5, 8, 12, 20])
            asked = [chance.choice([*words, "unknown"]) for _ in range(size)]
            question = random_question(chance)
            result, expected = (
                index.search(asked, **with_threads(question, chance)),
                oracle.rank(store, asked, **question),
            )
            assert rows(result) == expected.hits
            assert list(result.exclusions) == expected.exclusions
            assert result.excluded == expected.excluded
    assert len(eager) >= 8  # others ask from so far away that nothing can be kept


def random_entry(chance: random.Random, number: int, words: list[str]) -> Entry:
    return Entry(
        id=cell_id(number),
        revision=1,
        scope=chance.choice([0, 0, 0, 1, 2]),
        confidence=chance.choice([0.0, 0.25, 1.0]),
        importance=chance.choice([0.5, 0.5, 0.1]),
        observed_us=AT + int(chance.gauss(0.0, 1.0) * HOUR * 10 ** chance.randint(0, 3)),
        terms=[chance.choice(words[: chance.choice([2, len(words)])]) for _ in range(6)],
        expires_us=chance.choice([NEVER] * 8 + [AT - 1, AT + 1]),
        inactive=chance.random() < 0.05,
    )


def random_question(chance: random.Random) -> dict[str, Any]:
    return {
        "viewer": chance.choice([(0,), (0, 1), (0, 1, 2), (2,), (5,)]),
        "at_us": AT + chance.choice([-1000, 0, 0, 3, 10**5]) * HOUR,
        "limit": chance.choice([1, 2, 5, 40]),
        "lexical": chance.choice(["overlap", "idf_overlap"]),
        "weights": chance.choice(
            [
                Weights(),
                Weights(1.0, 0.0, 0.0, 0.0, 0.0),
                Weights(0.1, *(chance.choice([0.0, 0.1, 1.0]) for _ in range(4))),
            ]
        ),
        "half_life_seconds": chance.choice([3600.0, 604800.0]),
        "include_inactive": chance.random() < 0.3,
        "exclusion_limit": chance.choice([0, 2, 20]),
    }


def with_threads(question: dict[str, Any], chance: random.Random) -> dict[str, Any]:
    return {**question, "threads": chance.choice([1, 1, 2, 3, 7])}


def test_a_large_index_answers_as_it_does_without_a_compiler(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rng = np.random.default_rng(1)
    size, words = pruning.LARGE + 500, 400
    shares = 1.0 / np.arange(1, words + 1)
    drawn = rng.choice(words, size=(size, 6), p=shares / shares.sum()).tolist()
    entries = [
        Entry(cell_id(i), 1, 0, 1.0, 0.5, AT + i * HOUR // 60, [f"w{w}" for w in row])
        for i, row in enumerate(drawn)
    ]
    with_compiler, without = Index(), Index()
    for index in (with_compiler, without):
        index.add_many(entries)
    without._searcher._without_pruner = True
    for lexical in ("overlap", "idf_overlap"):
        for row in rng.choice(words, size=(40, 5), p=shares / shares.sum()).tolist():
            one, other = (
                index.search([f"w{w}" for w in row], viewer=(0,), at_us=AT, limit=10,
                             lexical=lexical)
                for index in (with_compiler, without)
            )  # fmt: skip
            assert rows(one) == rows(other)
            assert one.exclusions == other.exclusions
            assert one.excluded == other.excluded
    assert with_compiler._searcher._pruner is not None
    assert without._searcher._pruner is None
    # Without numba no pruner can be made, and the same way is taken.
    monkeypatch.setattr(pruning.Pruner, "__init__", refuse)
    alone = Index()
    alone.add_many(entries)
    assert rows(alone.search(["w1", "w7"], viewer=(0,), at_us=AT, limit=5)) == rows(
        with_compiler.search(["w1", "w7"], viewer=(0,), at_us=AT, limit=5)
    )
    assert alone._searcher._without_pruner


@pytest.mark.parametrize("far", [0.0, 3.0, 29.3, 60.0])
@pytest.mark.parametrize("terms", [2, 5, 11])
def test_ties_of_thousands(far: float, terms: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Far in half-lives, scores tie: recency has few values left, and then none but zero."""
    monkeypatch.setattr(pruning, "_WORTH", 0)
    rng = np.random.default_rng(int(far) + terms)
    size, words = pruning.LARGE + 500, 300
    shares = 1.0 / np.arange(1, words + 1)
    drawn = rng.choice(words, size=(size, 4), p=shares / shares.sum()).tolist()
    sure, step = rng.choice([0.5, 1.0], size), HOUR * 24 * 7 // 1000
    entries = [
        Entry(cell_id(i), 1, int(i % 7 == 0), float(sure[i]), 0.5, AT + i // 50 * step,
              [f"w{w}" for w in row])
        for i, row in enumerate(drawn)
    ]  # fmt: skip
    pruned, whole = Index(), Index()
    for index in (pruned, whole):
        index.add_many(entries[:-200])
        index.add_many(entries[-200:])
    whole._searcher._without_pruner = True
    latest = AT + size // 50 * step
    for lexical in ("overlap", "idf_overlap"):
        for row in rng.choice(words, size=(20, terms)).tolist():
            asked = {
                "viewer": [(0,), (0, 1)][row[0] % 2],
                "at_us": latest + int(far * HOUR * 24 * 7) + row[0],
                "limit": 10,
                "lexical": lexical,
                "exclusion_limit": 20,
            }
            told = [f"w{w}" for w in row]
            one, other = (index.search(told, **asked) for index in (pruned, whole))
            shared = pruned.search(told, **asked, threads=3)
            assert rows(one) == rows(other) == rows(shared)
            assert one.exclusions == other.exclusions == shared.exclusions
            assert one.excluded == other.excluded == shared.excluded
    assert pruned._searcher._pruner is not None


@pytest.mark.parametrize("near", [0.0953076923076923, 0.1455128205128205, 0.5471538461538461])
def test_recency_next_to_a_boundary_of_settling(
    near: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whether it settles up or down is for numpy to say: the kernel's last bits may differ."""
    monkeypatch.setattr(pruning, "LARGE", 0)
    half_life_seconds = 1e10  # so that microseconds tell last bits apart
    value = 2**30 * near // 1 + 0.5
    age = -np.log2(value / 2**30) * half_life_seconds * 1e6
    entries = [
        Entry(cell_id(i), 1, 0, 0.5, 0.5, AT - int(age) - i + 200, ["w"]) for i in range(400)
    ]
    pruned, whole = Index(), Index()
    for index in (pruned, whole):
        index.add_many(entries)
    whole._searcher._without_pruner = True
    for limit in range(150, 250):
        one, other = (
            index.search(["w"], viewer=(0,), at_us=AT, limit=limit, exclusion_limit=0,
                         half_life_seconds=half_life_seconds)
            for index in (pruned, whole)
        )  # fmt: skip
        assert rows(one) == rows(other)
    assert pruned._searcher._pruner is not None


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("stopped", ["gather", "rank"])
def test_an_interrupted_search_leaves_no_marks(
    threads: int, stopped: str, monkeypatch: pytest.MonkeyPatch, eager: list[int]
) -> None:
    index = Index()
    index.add_many(
        [Entry(cell_id(i), 1, 0, 0.5, 0.5, AT, [f"w{i % 2}", f"v{i % 3}"]) for i in range(300)]
    )
    asked: dict[str, Any] = {"viewer": (0,), "at_us": AT, "limit": 5, "threads": threads}
    expected = rows(index.search(["v2"], **asked))
    with monkeypatch.context() as patch:
        patch.setattr(resolving, "_COMMON_LEAST", 10**6)
        honest = getattr(kernels, stopped)
        turns = iter(range(100))

        def interrupted(*given: Any) -> Any:
            answer = honest(*given) if stopped == "gather" else None
            if next(turns) == 0:
                raise KeyboardInterrupt
            return answer if stopped == "gather" else honest(*given)

        patch.setattr(kernels, stopped, interrupted)
        with pytest.raises(KeyboardInterrupt):
            index.search(["w1", "v1"], **asked)
    assert rows(index.search(["v2"], **asked)) == expected
    assert eager


@pytest.mark.parametrize("large", [0, 10**6], ids=["pruned", "whole"])
def test_an_interrupt_at_any_line_of_a_search_leaves_nothing(
    large: int, eager: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pruning, "LARGE", large)
    index = Index()
    index.add_many(marked(100))
    asked: dict[str, Any] = {"viewer": (0,), "at_us": AT, "limit": 5}
    expected = rows(index.search(["v2", "v1"], **asked))
    line, stopped = 0, True
    while stopped:
        line += 1
        try:
            interrupted_at(line, lambda: index.search(["w1", "v1"], **asked))
            stopped = False
        except KeyboardInterrupt:
            assert rows(index.search(["v2", "v1"], **asked)) == expected
    assert line > 200
    assert bool(eager) == (large == 0)


@pytest.mark.parametrize(
    ("large", "module", "amid"), [(0, kernels, "gather"), (10**6, searching, "plausible")]
)
def test_a_search_amid_another_one(
    large: int, module: Any, amid: str, eager: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """As one of a signal's handler is: the lock lets its own thread in."""
    monkeypatch.setattr(pruning, "LARGE", large)
    monkeypatch.setattr(resolving, "_COMMON_LEAST", 10**6)
    index = Index()
    index.add_many(marked(300))
    asked: dict[str, Any] = {"viewer": (0,), "at_us": AT, "limit": 5}
    outer, inner = (rows(index.search([*told], **asked)) for told in (("w1", "v1"), ("v2", "w1")))
    honest = getattr(module, amid)

    def interposed(*given: Any) -> Any:
        answer = honest(*given)
        with monkeypatch.context() as patch:
            patch.setattr(module, amid, honest)
            assert rows(index.search(["v2", "w1"], **asked)) == inner
        return answer

    monkeypatch.setattr(module, amid, interposed)
    assert rows(index.search(["w1", "v1"], **asked)) == outer
    assert bool(eager) == (large == 0)


def marked(count: int) -> list[Entry]:
    return [
        Entry(cell_id(i), 1, 0, i / count, 0.5, AT, [f"w{i % 2}", f"v{i % 3}"])
        for i in range(count)
    ]


@pytest.mark.parametrize("lexical", ["overlap", "idf_overlap"])
@pytest.mark.parametrize("small", [5e-324, 1e-320, 1e-307, 1e-299])
def test_weights_that_leave_few_digits(
    lexical: str, small: float, eager: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(0)
    pruned, whole = Index(), Index()
    entries = [
        Entry(f"cell-{rng.bytes(20).hex()}", 1, 0, float(rng.random()), 0.5, AT - i * HOUR,
              [f"w{w}" for w in range(12) if rng.random() < 0.5] or ["x"])
        for i in range(1000)
    ]  # fmt: skip
    for index in (pruned, whole):
        index.add_many(entries)
    whole._searcher._without_pruner = True
    for weights in (Weights(small, 0.0, 0.0, 0.0, 0.0), Weights(*[small] * 5)):
        for terms in (3, 7, 11):
            one, other = (
                index.search([f"w{w}" for w in range(terms)], viewer=(0,), at_us=AT, limit=20,
                             weights=weights, lexical=lexical)
                for index in (pruned, whole)
            )  # fmt: skip
            assert rows(one) == rows(other)
    assert eager


def test_any_number_of_exclusions_may_be_asked_for(eager: list[int]) -> None:
    index = Index()
    index.add_many([entry._replace(inactive=entry.confidence > 0.5) for entry in marked(100)])
    few, many = (
        index.search(["w1"], viewer=(0,), at_us=AT, limit=5, exclusion_limit=bound)
        for bound in (100, 2**63)
    )
    assert rows(few) == rows(many)
    assert few.exclusions == many.exclusions
    assert eager


def test_a_half_life_too_short_to_divide_by(eager: list[int]) -> None:
    index = Index()
    entries = [entry._replace(observed_us=AT - i * HOUR) for i, entry in enumerate(marked(99))]
    index.add_many(entries)
    with np.errstate(over="raise"):
        found = index.search(["w0"], viewer=(0,), at_us=AT, limit=3, half_life_seconds=5e-324)
    assert found.parts["recency"].tolist() == [1.0, 0.0, 0.0]
    assert eager


def test_weights_whose_sum_is_not_finite_are_refused() -> None:
    index = Index()
    index.add_many(marked(3))
    with pytest.raises(ValueError, match="must be finite, and their sum"):
        index.search(["w1"], viewer=(0,), at_us=AT, limit=1, weights=Weights(1e308, 1e308))


def test_a_number_of_threads_below_one_is_refused() -> None:
    index = Index()
    with pytest.raises(ValueError, match="threads: 0"):
        index.search(["w"], viewer=(0,), at_us=AT, limit=1, threads=0)


def test_fields_that_move_are_compiled_anew() -> None:
    """What is kept of the compiled code knows them by their place, and goes by this text."""
    forms = (
        kernel_inputs.Held, kernel_inputs.Common, kernel_inputs.How, kernel_inputs.Columns,
        kernel_inputs.Room, kernel_inputs.Best,
    )  # fmt: skip
    assert tuple(" ".join(form._fields) for form in forms) == kernel_ranking.FIELDS


def refuse(*_: Any) -> None:
    raise ImportError("no compiler here")

"""The index by example: what is kept, what is served, what is refused."""

from __future__ import annotations

import hashlib
import threading
from typing import Any

import numpy as np
import pytest

from cma.orion.columns import Column
from cma.orion.index import Entry, Index, Ranking, Weights
from cma.orion.neighbours import Neighbours

AT = 1_700_000_000_000_000


def name(number: int) -> str:
    return "cell-" + hashlib.sha256(str(number).encode()).hexdigest()[:40]


def entry(number: int, *terms: str, **fields: Any) -> Entry:
    whole = Entry(name(number), 1, 0, 1.0, 0.5, AT, terms or ("a",))
    return whole._replace(**fields)


def ask(index: Index, *terms: str, **changed: Any) -> Ranking:
    how: dict[str, Any] = {"viewer": (0,), "at_us": AT, "limit": 10, **changed}
    return index.search(terms or ("a",), **how)


def filled(*entries: Entry) -> Index:
    index = Index()
    index.add_many(entries)
    return index


def test_equal_scores_are_cut_in_order_of_id() -> None:
    for order in (range(3000), reversed(range(3000))):
        index = filled(*(entry(i) for i in order))
        result = ask(index, limit=3, exclusion_limit=2)
        expected = sorted(name(i) for i in range(3000))
        assert list(result.ids) == expected[:3]
        assert result.exclusions == tuple((i, "below_limit") for i in expected[3:5])
        assert result.excluded == {"other_scope": 0, "inactive": 0, "below_limit": 2997}


def test_ids_that_share_sixteen_digits_are_ordered_by_the_rest() -> None:
    ids = [f"cell-{'ab' * 8}{i:024x}" for i in (5, 3, 9, 1, 7)]
    index = filled(*(entry(0, id=i) for i in ids))
    assert list(ask(index, limit=2, exclusion_limit=0).ids) == sorted(ids)[:2]


def test_fewer_candidates_than_the_limit_are_all_there_is() -> None:
    index = filled(entry(1, "a"), entry(2, "b"), entry(3))
    result = ask(index, "a", limit=10**12)
    assert set(result.ids) == {name(1), name(3)}
    assert result.exclusions == ()
    assert ask(index, "nowhere").ids == ()
    assert ask(Index(), "a").ids == ()


def test_a_new_revision_takes_the_place_of_the_old() -> None:
    index = filled(entry(1, "old"), entry(2, "old"))
    assert index.replace(entry(1, "new", revision=2)) == 2
    assert ask(index, "old").ids == (name(2),)
    assert ask(index, "new").ids == (name(1),)
    assert index.ordinal(name(1)) == 2
    assert len(index) == 2
    assert name(1) in index
    for revision in range(3, 40):  # enough of them that old postings are dropped
        index.replace(entry(1, f"new{revision}", revision=revision))
        assert ask(index, f"new{revision}", "new").ids == (name(1),)
        assert ask(index, "old").ids == (name(2),)
    assert index.digest == filled(entry(2, "old"), entry(1, "new39", revision=39)).digest


def test_statistics_are_those_of_live_revisions() -> None:
    index = filled(entry(1, "a"), entry(2, "a", "b"))
    for revision in range(2, 9):
        index.replace(entry(1, *["c"] * revision, revision=revision))
    index.replace(entry(1, "a", revision=9))
    fresh = filled(entry(1, "a", revision=9), entry(2, "a", "b"))
    for lexical in ("idf_overlap", "bm25"):
        one, two = (ask(i, "a", "b", lexical=lexical) for i in (index, fresh))
        assert one.scores.tobytes() == two.scores.tobytes()


def test_an_expired_or_inactive_cell_is_listed_as_such() -> None:
    index = filled(
        entry(1, expires_us=AT), entry(2, expires_us=AT + 1), entry(3, inactive=True), entry(4)
    )
    result = ask(index)
    assert set(result.ids) == {name(2), name(4)}
    assert set(result.exclusions) == {(name(1), "inactive"), (name(3), "inactive")}
    assert result.excluded["inactive"] == 2
    everything = ask(index, include_inactive=True)
    assert len(everything.ids) == 4
    assert everything.excluded["inactive"] == 0


def test_another_scope_is_counted_and_never_named() -> None:
    index = filled(entry(1), entry(2, scope=1), entry(3, scope=1, inactive=True))
    index.add_links([(name(1), name(2))])
    result = ask(index)
    assert result.ids == (name(1),)
    assert result.parts["link"].tolist() == [0.0]
    assert result.exclusions == ()
    assert result.excluded == {"other_scope": 2, "inactive": 0, "below_limit": 0}
    assert ask(index, "nowhere").excluded["other_scope"] == 2  # whatever is asked
    assert set(ask(index, viewer=(0, 1)).ids) == {name(1), name(2)}


def test_support_makes_a_neighbour_a_candidate() -> None:
    index = filled(entry(1, "a", "b"), entry(2, "c"), entry(3, "d"))
    index.add_links([(name(1), name(2)), (name(2), name(3)), (name(2), name(2))])
    result = ask(index, "a", "x")
    assert result.ids == (name(1), name(2))
    assert result.parts["link"].tolist() == [0.0, 0.5]
    assert result.parts["lexical"].tolist() == [0.5, 0.0]
    assert ask(index, "a", "x", weights=Weights(link=0.0)).ids == (name(1),)
    assert ask(index, "a", "x", weights=Weights(link=-1.0)).ids == (name(1),)


def test_an_inactive_neighbour_lends_no_support() -> None:
    index = filled(entry(1, "a", inactive=True), entry(2, "c"))
    index.add_links([(name(1), name(2))])
    assert ask(index).ids == ()
    assert ask(index, include_inactive=True).ids == (name(1), name(2))


def test_links_stay_with_a_replaced_cell() -> None:
    index = filled(*(entry(i, "c") for i in range(10)))
    index.add_links((name(0), name(i)) for i in range(1, 10))  # more than there are columns
    for number in (0, 9, 1, 0):
        index.replace(entry(number, "c", f"d{number}", revision=2))
    index.replace(entry(0, "a", revision=4))
    assert sorted(ask(index).ids) == sorted(name(i) for i in range(10))
    index.replace(entry(0, "z", revision=5))
    index.replace(entry(9, "a", revision=3))
    assert sorted(ask(index).ids) == sorted([name(0), name(9)])


def test_an_old_row_keeps_no_link() -> None:
    index = filled(entry(1, "a"), entry(2, "c"))
    index.add_links([(name(1), name(2))])
    index.replace(entry(2, "d", revision=2))
    assert ask(index).ids == (name(1), name(2))


def test_a_cell_expires_at_its_instant() -> None:
    index = filled(entry(1, expires_us=AT))
    assert ask(index, at_us=AT - 1).ids == (name(1),)
    assert ask(index, at_us=AT).ids == ()


def test_neighbours_are_what_pairs_say() -> None:
    pairs = np.array([(a, (a * a + b) % 30) for a in range(30) for b in range(a % 7)], np.int64)
    whole, by_one = Neighbours(), Neighbours()
    for links in (whole, by_one):
        links.extend(30)
    whole.connect(pairs[:, 0], pairs[:, 1])
    for pair in pairs:
        by_one.connect(pair[:1], pair[1:])
    values = np.append(np.linspace(0.1, 1.0, 30), 0.0)
    expected = [
        max((values[a + b - cell] for a, b in pairs if cell in (a, b) and a != b), default=0.0)
        for cell in range(30)
    ]
    assert whole.crowded
    for links in (whole, by_one):
        assert links.best(values, slice(0, 30)).tolist() == expected
        assert links.best(values, np.array([7, 3])).tolist() == [expected[7], expected[3]]


def test_the_digest_names_the_set_and_every_field() -> None:
    base = [entry(1, "a"), entry(2, "b")]
    whole = filled(*base).digest
    assert len(whole) == 64
    assert filled(*reversed(base)).digest == whole
    assert Index().digest == "0" * 64
    changes: list[dict[str, Any]] = [
        {"revision": 2}, {"confidence": 0.5}, {"importance": 0.4}, {"observed_us": AT + 1},
        {"terms": ("a", "a")}, {"expires_us": AT}, {"inactive": True}, {"id": name(9)},
    ]  # fmt: skip
    digests = {filled(base[0]._replace(**change), base[1]).digest for change in changes}
    assert len(digests | {whole}) == len(changes) + 1
    assert filled(base[0]._replace(scope=5), base[1]).digest == whole


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"limit": 0}, "limit"),
        ({"limit": -1}, "limit"),
        ({"exclusion_limit": -1}, "limit"),
        ({"lexical": "tfidf"}, "use one of overlap, idf_overlap, jaccard, bm25"),
        ({"weights": Weights(float("nan"))}, "finite"),
        ({"half_life_seconds": 0.0}, "above zero"),
        ({"half_life_seconds": float("inf")}, "above zero"),
    ],
)
def test_a_question_without_an_answer_is_refused(change: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        ask(filled(entry(1)), **change)


def test_an_empty_query_is_refused_and_never_matches_all() -> None:
    with pytest.raises(ValueError, match="at least one term"):
        filled(entry(1)).search([], viewer=(0,), at_us=AT, limit=1)


@pytest.mark.parametrize(
    "bad",
    [
        {"id": "cell-xyz"}, {"id": "cell-" + "AB" * 20}, {"id": "cell-" + "zz" * 20},
        {"id": "link-" + "ab" * 20}, {"scope": -1}, {"scope": 2**31}, {"confidence": 1.5},
        {"importance": float("nan")}, {"observed_us": 2**62}, {"expires_us": 2**63},
        {"id": name(1)},
    ],
)  # fmt: skip
def test_a_bad_entry_changes_nothing(bad: dict[str, Any]) -> None:
    index = filled(entry(1))
    digest = index.digest
    with pytest.raises(ValueError, match=r"id|scope|confidence|observed_us"):
        index.add_many([entry(2), entry(3, **bad)])
    assert index.digest == digest
    assert len(index) == 1
    assert ask(index).ids == (name(1),)
    index.add_many([entry(2), entry(3)])
    assert len(ask(index).ids) == 3


def test_unknown_cells_are_named() -> None:
    index = filled(entry(1))
    with pytest.raises(ValueError, match=name(2)):
        index.replace(entry(2))
    with pytest.raises(ValueError, match=name(2)):
        index.add_links([(name(1), name(2))])


def test_no_entries_and_no_links_are_no_change() -> None:
    index = filled(entry(1))
    assert list(index.add_many([])) == []
    index.add_links([])
    assert index.add_many([entry(2), entry(3)]) == range(1, 3)


def test_kept_values_follow_times_far_apart() -> None:
    index = Index()
    far = 10**17
    for number, shift in enumerate((0, -far, far, 1_000_000, -5_000_000)):
        index.add_many([entry(number, observed_us=AT + shift)])
        for at in (AT, AT - far, AT + far, AT + 2_000_000):
            for half_life in (1.0, 1e12, 1e-300, 1e300):
                result = ask(index, at_us=at, half_life_seconds=half_life)
                assert result.scores.tolist() == sorted(result.scores.tolist(), reverse=True)
                assert len(result.ids) == number + 1


def test_ten_thousand_batches_of_one_stay_few_runs() -> None:
    index = Index()
    for number in range(10_000):
        index.add_many([entry(number, f"t{number % 7}", f"u{number}")])
        if number % 10 == 0:
            assert ask(index, f"u{number}").ids == (name(number),)
    assert ask(index, "t3", limit=1).excluded["below_limit"] == 1428
    assert len(index._postings._runs) <= 8


def test_a_search_sees_whole_batches_of_another_thread() -> None:
    index, seen, failures = Index(), threading.Event(), []

    def write() -> None:
        for batch in range(200):
            index.add_many([entry(batch * 5 + i) for i in range(5)])
        seen.set()

    def read() -> None:
        while not seen.is_set():
            result = ask(index, limit=2)
            found = len(result.ids) + result.excluded["below_limit"]
            if found % 5:
                failures.append(found)

    threads = [threading.Thread(target=work) for work in (write, read, read)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    assert ask(index, limit=1).excluded["below_limit"] == 999


def test_a_column_grows_with_what_it_holds() -> None:
    column = Column(np.int64, 2)
    for i in range(50):
        column.extend([(i, -i)], 1)
    assert column.values.tolist() == [[i, -i] for i in range(50)]

"""Recall with every part against an oracle that looks at one cell at a time, in plain Python."""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any, NamedTuple

from hypothesis import given, settings
from hypothesis import strategies as st

from cma.orion.analysis import ANALYSERS
from cma.orion.context import Context, Told, asked
from cma.orion.index import NEVER, Entry, Index
from cma.orion.scoring import CONTEXT_PARTS, EVERY_PART, LEXICAL, Weights
from cma.orion.surroundings import Surroundings
from tests.property import oracle
from tests.property.test_ranking import AT, HOUR, SHARES, cell_id, rows

WORDS = ["tea", "cake", "Ann", "Bob", "yesterday", "may", "june", "when", "how", "long", "x?"]
TALK = st.lists(st.sampled_from(WORDS), max_size=7).map(" ".join)
MONTHS = {"may": 5, "june": 6}
SAYS_A_TIME = {"yesterday", "may", "june"}


class Turn(NamedTuple):
    """A cell and what stands around it."""

    entry: Entry
    told: Told


@st.composite
def turns(draw: st.DrawFn, number: int, revision: int = 1) -> Turn:
    text, scope = draw(TALK), draw(st.integers(0, 2))
    terms = ANALYSERS["unicode"](text)
    observed = AT - draw(st.sampled_from([0, 1, 30, 30, 24 * 170])) * HOUR
    entry = Entry(
        id=cell_id(number),
        revision=revision,
        scope=scope,
        confidence=draw(SHARES),
        importance=draw(SHARES),
        observed_us=observed,
        terms=terms,
        expires_us=draw(st.sampled_from([NEVER, NEVER, AT])),
        inactive=draw(st.sampled_from([False, False, False, True])),
    )
    who = draw(st.sampled_from(["", "Ann", "Bob", "Ann Lee"]))
    sitting = draw(st.sampled_from(["", "s1", "s2"]))
    return Turn(entry, Told(scope, text, who, sitting, observed, terms))


@st.composite
def talks(draw: st.DrawFn) -> tuple[list[Turn], list[Turn], list[tuple[int, int]]]:
    """Turns, later revisions of some, and links between their numbers."""
    count = draw(st.integers(1, 9))
    first = [draw(turns(number)) for number in range(count)]
    again = [draw(turns(number, 2)) for number in draw(st.sets(st.integers(0, count - 1)))]
    ends = st.integers(0, count - 1)
    return first, again, draw(st.lists(st.tuples(ends, ends), max_size=12))


def month(at_us: int) -> int:
    return (datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=at_us)).month


def expected(
    live: Sequence[Turn],
    links: Sequence[tuple[str, str]],
    query: str,
    *,
    viewer: Sequence[int],
    limit: int,
    lexical: str,
    weights: Weights,
    include_inactive: bool,
) -> list[tuple[str, float, dict[str, float]]]:
    terms = ANALYSERS["unicode"](query)
    seen = {turn.entry.id: turn for turn in live if turn.entry.scope in viewer}
    cells = [turn.entry for turn in seen.values()]
    own = {each.id: oracle._lexical(lexical, terms, each, cells) for each in cells}
    active = {
        each.id: include_inactive or (not each.inactive and each.expires_us > AT) for each in cells
    }
    near: dict[str, set[str]] = {name: set() for name in seen}
    for one, other in links:
        if one != other and one in near:
            near[one] |= {other} & seen.keys()
        if one != other and other in near:
            near[other] |= {one} & seen.keys()

    def lent(name: str) -> float:
        return own[name] if active[name] else 0.0

    sittings: dict[tuple[int, str], set[str]] = {}
    for name, turn in seen.items():
        if active[name] and turn.told.session:
            sittings.setdefault((turn.told.scope, turn.told.session), set()).update(
                turn.entry.terms
            )
    distinct = sorted(set(terms))
    pairs = dict.fromkeys(pairwise(terms))
    words = set(terms)
    wants_time = "when" in words or {"how", "long"} <= words
    named = {MONTHS[word] for word in words & MONTHS.keys()}

    def session_idf(term: str) -> float:
        holding = sum(term in said for said in sittings.values())
        whole = len(sittings)
        value = oracle.rounded(math.log(1 + (whole - holding + 0.5) / (holding + 0.5)))
        return max(value, 2.0**-30)

    def telling() -> dict[str, float]:
        first = sorted((-lent(name), name) for name in seen if lent(name) > 0)[:5]
        told: dict[str, float] = {}
        for value, name in first:
            for term in sorted(set(seen[name].entry.terms) - words):
                told[term] = told.get(term, 0.0) - value
        found = []
        for term, value in told.items():
            holding = sum(term in each.terms for each in cells)
            ratio = (len(cells) - holding + 0.5) / (holding + 0.5)
            found.append((-value * max(oracle.rounded(math.log(1 + ratio)), 2.0**-30), term))
        return {term: -weight for weight, term in sorted(found)[:10]}

    terms_told = telling()

    def parts(name: str) -> dict[str, float]:
        entry, told = seen[name]
        age = max(0, AT - entry.observed_us) / (604800.0 * 1e6)
        said = sittings.get((told.scope, told.session), set()) if told.session else set()
        weighed = [session_idf(term) for term in distinct]
        return {
            "lexical": own[name],
            "confidence": entry.confidence,
            "importance": entry.importance,
            "recency": oracle.rounded(2.0**-age),
            "link": max((lent(other) for other in near[name]), default=0.0),
            "two_links": max(
                (
                    lent(far)
                    for other in near[name]
                    if active[other]
                    for far in near[other]
                    if far != name
                ),
                default=0.0,
            ),
            "reply": max(
                (
                    lent(other)
                    for other in near[name]
                    if "?" in seen[other].told.content
                    and seen[other].entry.observed_us < entry.observed_us
                ),
                default=0.0,
            ),
            "session": oracle.added(
                weight for term, weight in zip(distinct, weighed, strict=True) if term in said
            )
            / oracle.added(weighed),
            "bigrams": sum(pair in set(pairwise(entry.terms)) for pair in pairs)
            / max(1, len(pairs)),
            "speaker": float(bool(words & set(ANALYSERS["unicode"](told.speaker)))),
            "statement": float("?" not in told.content),
            "month": float(month(entry.observed_us) in named),
            "moment": float(wants_time and bool(SAYS_A_TIME & set(entry.terms))),
            "feedback": oracle.added(
                weight for term, weight in terms_told.items() if term in entry.terms
            )
            / (oracle.added(terms_told.values()) or 1.0),
        }

    ranked = []
    for name in seen:
        found = parts(name)
        supported = any(getattr(weights, by) > 0 and found[by] > 0 for by in ("link", "two_links"))
        if not active[name] or (found["lexical"] == 0 and not supported):
            continue
        score = 0.0
        for part in EVERY_PART:
            score += getattr(weights, part) * found[part]
        kept = {
            part: value
            for part, value in found.items()
            if part not in CONTEXT_PARTS or getattr(weights, part)
        }
        ranked.append((-score, name, kept))
    ranked.sort(key=lambda item: item[:2])
    return [(name, -score, kept) for score, name, kept in ranked[:limit]]


def built(
    first: Sequence[Turn], again: Sequence[Turn], links: Sequence[tuple[str, str]]
) -> tuple[Index, Context]:
    index, context = Index(), Context("unicode")
    index.add_many([turn.entry for turn in first])
    context.extend([turn.told for turn in first])
    index.add_links(links)
    for turn in again:
        index.replace(turn.entry)
        context.extend([turn.told])
    return index, context


@given(
    talks(),
    TALK.filter(bool),
    st.tuples(*[st.sampled_from([-0.5, 0.0, 0.0, 0.3, 1.0])] * len(EVERY_PART)),
    st.sampled_from(sorted(LEXICAL)),
    st.lists(st.integers(0, 2), min_size=1, max_size=2).map(tuple),
    st.integers(1, 12),
    st.booleans(),
)
@settings(max_examples=300, deadline=None)
def test_all_parts_are_what_looking_at_every_cell_gives(
    talk: tuple[list[Turn], list[Turn], list[tuple[int, int]]],
    query: str,
    values: tuple[float, ...],
    lexical: str,
    viewer: tuple[int, ...],
    limit: int,
    include_inactive: bool,
) -> None:
    first, again, numbers = talk
    links = [(cell_id(one), cell_id(other)) for one, other in numbers]
    index, context = built(first, again, links)
    weights = Weights(*values)
    if not weights.of_context:
        weights = weights._replace(month=0.25)
    question: dict[str, Any] = {
        "viewer": viewer,
        "limit": limit,
        "lexical": lexical,
        "weights": weights,
        "include_inactive": include_inactive,
    }
    terms = ANALYSERS["unicode"](query)
    result = index.search(
        terms, at_us=AT, surroundings=Surroundings(context, asked(query, terms)), **question
    )
    later = {turn.entry.id: turn for turn in again}
    live = [later.get(turn.entry.id, turn) for turn in first]
    assert rows(result) == expected(live, links, query, **question)
    assert all(0.0 <= value <= 1.0 for _, _, parts in rows(result) for value in parts.values())

"""Ranking as the design says it, one cell at a time, in plain Python and without the index."""

from __future__ import annotations

import math
import operator
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import reduce

from cma.orion.index import Entry
from cma.orion.scoring import Weights


def added(values: Iterable[float]) -> float:
    """One after the other, as floats are added: from Python 3.12 on `sum` keeps what they lose."""
    return reduce(operator.add, values, 0.0)


def rounded(value: float) -> float:
    return round(value * 2**30) / 2**30


@dataclass
class OracleStore:
    cells: dict[str, Entry] = field(default_factory=dict)
    links: set[tuple[str, str]] = field(default_factory=set)


@dataclass
class Expected:
    hits: list[tuple[str, float, dict[str, float]]]
    exclusions: list[tuple[str, str]]
    excluded: dict[str, int]


def _lexical(name: str, query: Sequence[str], entry: Entry, seen: Sequence[Entry]) -> float:
    terms = sorted(set(query))
    shared = [term for term in terms if term in entry.terms]
    if name == "overlap":
        return len(shared) / len(terms)
    if name == "jaccard":
        return len(shared) / len(set(terms) | set(entry.terms))

    def idf(term: str) -> float:
        holding = sum(term in other.terms for other in seen)
        return rounded(math.log(1 + (len(seen) - holding + 0.5) / (holding + 0.5)))

    if name == "idf_overlap":
        return added(idf(term) for term in shared) / added(idf(term) for term in terms)
    assert name == "bm25"
    mean = sum(len(other.terms) for other in seen) / len(seen)
    repeats, own = Counter(query), Counter(entry.terms)
    score = 0.0
    for term in shared:
        norm = 1.5 * ((1 - 0.75) + 0.75 * (len(entry.terms) / mean))
        score += repeats[term] * idf(term) * (own[term] / (norm + own[term]))
    return score / added(repeats[term] * idf(term) for term in terms)


def rank(
    store: OracleStore,
    query: Sequence[str],
    *,
    viewer: Sequence[int],
    at_us: int,
    limit: int,
    lexical: str,
    weights: Weights,
    half_life_seconds: float,
    include_inactive: bool,
    exclusion_limit: int,
) -> Expected:
    seen = [entry for entry in store.cells.values() if entry.scope in viewer]
    part = {entry.id: _lexical(lexical, query, entry, seen) for entry in seen}
    active = {
        entry.id: include_inactive or (not entry.inactive and entry.expires_us > at_us)
        for entry in seen
    }
    ranked: list[tuple[float, str, dict[str, float]]] = []
    for entry in seen:
        near = [b if a == entry.id else a for a, b in store.links if entry.id in (a, b) and a != b]
        support = max((part[other] for other in near if active.get(other)), default=0.0)
        if part[entry.id] == 0 and not (support > 0 and weights.link > 0):
            continue
        age = max(0, at_us - entry.observed_us) / (half_life_seconds * 1e6)
        parts = {
            "lexical": part[entry.id],
            "confidence": entry.confidence,
            "importance": entry.importance,
            "recency": rounded(2.0**-age),
            "link": support,
        }
        score = weights.lexical * parts["lexical"]
        score += weights.confidence * parts["confidence"]
        score += weights.importance * parts["importance"]
        score += weights.recency * parts["recency"]
        score += weights.link * parts["link"]
        ranked.append((-score, entry.id, parts))
    ranked.sort(key=lambda item: item[:2])
    served = [item for item in ranked if active[item[1]]]
    idle = [item for item in ranked if not active[item[1]]]
    return Expected(
        hits=[(name, -score, parts) for score, name, parts in served[:limit]],
        exclusions=[(name, "inactive") for _, name, _ in idle[:exclusion_limit]]
        + [(name, "below_limit") for _, name, _ in served[limit : limit + exclusion_limit]],
        excluded={
            "other_scope": len(store.cells) - len(seen),
            "inactive": len(idle),
            "below_limit": max(0, len(served) - limit),
        },
    )

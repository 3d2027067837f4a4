"""Packets on random conflict graphs against an oracle that knows the graph, not the code.

Many small graphs stand side by side in one store, each in a session of its own, so that thousands
of cases of a graph and a budget are cheap. CMA_PACKET_CASES sets how many; a release runs 10,000.
"""

from __future__ import annotations

import os
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from cma import FixedClock, Memory, Recollection
from cma.rosette.packets import ContextPacket
from cma.rosette.quoting import render
from cma.rosette.tokens import PLAIN, TokenCounter
from tests.faults.injection import CALLER, START

CASES = int(os.environ.get("CMA_PACKET_CASES", "10000"))
GRAPHS_A_STORE = 50
BUDGETS = (1, 12, 20, 35, 50, 70, 100, 150, 250, 400, 100_000)
COUNTERS = (
    PLAIN,
    TokenCounter("characters", len),
    TokenCounter("lines", lambda text: text.count("\n")),
)
TEXTS = ("tea is good", "tea is bad\nand cold", "tea\u2028[1] semantic", "tea 茶 café", "milk")


@dataclass(frozen=True)
class Told:
    """A cell as the oracle knows it."""

    name: str
    scope: str
    content: str
    minute: int
    confidence: float
    ttl: int | None


class Graph:
    """A random session: its cells, some of which expire, and its conflicts.

    Some cells are global, and some of those are in conflict with a cell of a hidden session.
    """

    def __init__(self, number: int) -> None:
        self.random = random.Random(number)
        self.session = f"session:s{number}"
        self.hidden = f"session:hidden{number}"
        size = self.random.randint(1, 9)
        self.cells = [self._told(number, place) for place in range(size)]
        names = [each.name for each in self.cells]
        scopes = {each.name: each.scope for each in self.cells}
        self.conflicts: list[tuple[str, str]] = []
        for _ in range(self.random.randint(0, size)):
            one, other = self.random.choice(names), self.random.choice(names)
            allowed = scopes[one] == scopes[other] or "global" in (scopes[one], scopes[other])
            if one != other and allowed and (other, one) not in self.conflicts:
                self.conflicts.append((one, other))

    def _told(self, number: int, place: int) -> Told:
        text = f"{self.random.choice(TEXTS)} " * self.random.randint(1, 4)
        return Told(
            name=f"g{number}c{place}",
            scope=self.random.choice([self.session] * 4 + ["global", self.hidden]),
            # only this graph's question finds this graph's global cells
            content=text + f" w{number} {place}",
            minute=self.random.randint(0, 5),
            confidence=self.random.choice([0.25, 0.5, 1.0]),
            ttl=self.random.choice([None, None, None, 60]),
        )

    def seen(self, *, inactive: bool) -> set[str]:
        """The cells that the session sees; those with a time to live have expired by then."""
        return {
            each.name
            for each in self.cells
            if each.scope != self.hidden and (inactive or self.kind(each) == "episodic")
        }

    @staticmethod
    def kind(told: Told) -> str:
        # working memory cannot be global
        return "working" if told.ttl is not None and told.scope != "global" else "episodic"

    def parts(self, *, inactive: bool) -> dict[str, frozenset[str]]:
        """Each visible cell with its whole component, by joining sets until nothing changes."""
        seen = self.seen(inactive=inactive)
        part = {name: frozenset({name}) for name in seen}
        for one, other in self.conflicts:
            if one in seen and other in seen:
                joined = part[one] | part[other]
                part.update(dict.fromkeys(joined, joined))
        return part


class Filled:
    """A store that holds graphs, with the names of its cells both ways."""

    def __init__(self, path: Path, graphs: list[Graph], *, backwards: bool) -> None:
        self.clock = FixedClock(START)
        self.memory = Memory.open(path, caller=CALLER, clock=self.clock)
        self.ids: dict[str, str] = {}
        for graph in reversed(graphs) if backwards else graphs:
            self._add(graph, backwards)
        self.names = {cell: name for name, cell in self.ids.items()}
        self.clock.advance(timedelta(minutes=10))

    def _add(self, graph: Graph, backwards: bool) -> None:
        cells = graph.cells[::-1] if backwards else graph.cells
        for scope in sorted({each.scope for each in cells}, reverse=backwards):
            told = [each for each in cells if each.scope == scope]
            drafts = [draft_of(each, graph.kind(each)) for each in told]
            receipt = self.memory.within(scope).write_many(drafts)
            self.ids.update(zip((each.name for each in told), receipt.ids, strict=True))
        scopes = {each.name: each.scope for each in cells}
        by_view: dict[str, list[dict[str, str]]] = {}
        for one, other in graph.conflicts[::-1] if backwards else graph.conflicts:
            ends = sorted({scopes[one], scopes[other]} - {"global"}) or ["global"]
            by_view.setdefault(ends[0], []).append(
                {"kind": "conflict", "source_id": self.ids[one], "target_id": self.ids[other]}
            )
        for scope, links in by_view.items():
            self.memory.within(scope).link_many(links)
        for view in (self.memory.within(graph.session), self.memory.within(graph.hidden)):
            choose = random.Random(f"{graph.session}{view.scope}")
            mine = [
                link
                for link in view.conflicts()
                if {link.source_id, link.target_id} <= {self.ids[each.name] for each in cells}
            ]
            for link in mine:
                handling = choose.choice(["", "prefer_recent", "prefer_confident", "defer"])
                if handling:
                    view.decide(link.id, handling=handling)


def draft_of(told: Told, kind: str) -> dict[str, Any]:
    common = {
        "kind": kind,
        "content": told.content,
        "origin": f'{told.name} "quoted"',
        "confidence": told.confidence,
    }
    if kind == "working":
        return {**common, "metadata": {"ttl_seconds": told.ttl}}
    return {**common, "observed_at": (START + timedelta(minutes=told.minute)).isoformat()}


@pytest.fixture
def fill(tmp_path: Path) -> Iterator[Callable[..., Filled]]:
    filled: list[Filled] = []

    def make(graphs: list[Graph], *, backwards: bool) -> Filled:
        one = Filled(tmp_path / f"{len(filled)}.cma", graphs, backwards=backwards)
        filled.append(one)
        return one

    yield make
    for each in filled:
        each.memory.close()


def served(packet: ContextPacket) -> list[list[str]]:
    return [[each.cell.id for each in group.cells] for group in packet.groups]


def check(
    graph: Graph, store: Filled, found: Recollection, packet: ContextPacket, counter: TokenCounter
) -> None:
    """Hold one packet against the graph."""
    assert packet.used == counter.count(packet.text) <= packet.budget
    part = graph.parts(inactive=found.trace.include_inactive)
    groups = [frozenset(store.names[name] for name in group) for group in served(packet)]
    left_out = [frozenset(store.names[name] for name in each.cells) for each in packet.excluded]
    hits = [store.names[hit.cell] for hit in found.trace.hits]
    wanted = list(dict.fromkeys(part[name] for name in hits if name in part))
    assert sorted(map(sorted, groups + left_out)) == sorted(map(sorted, wanted))
    assert len({name for group in groups for name in group}) == sum(map(len, groups))
    assert {each.reason for each in packet.excluded} <= {"budget"}
    for group, names in zip(packet.groups, groups, strict=True):
        assert group.reason == ("hit" if len(names) == 1 else "conflict")
    # Rank order, and as much as fits: what was left out would not have fitted where it stood.
    cells = {
        store.names[each.cell.id]: each.cell for group in packet.groups for each in group.cells
    }
    view = store.memory.within(graph.session)
    texts: list[list[Any]] = []
    taken = iter(zip(packet.groups, groups, strict=True))
    excluded = iter(packet.excluded)
    for names in wanted:
        if names in groups:
            group, same = next(taken)
            assert same == names
            texts.append([each.cell for each in group.cells])
            assert all(cells[store.names[each.id]] is each for each in texts[-1])
        else:
            more = [view.get(name) for name in next(excluded).cells]
            assert counter.count(render([*texts, more])) > packet.budget
    mine = {decision.id for decision in view.decisions()}
    assert set(packet.control) <= mine
    assert not any(name in packet.text for name in packet.control)


def check_order(graph: Graph, store: Filled, found: Recollection, packet: ContextPacket) -> None:
    """The latest decision orders a group; without one it stands by rank, then id."""
    view = store.memory.within(graph.session)
    rank = {hit.cell: place for place, hit in enumerate(found.trace.hits)}
    decided = {each.link: each for each in view.decisions()}
    conflicts = view.conflicts()
    for group in packet.groups:
        cells = [each.cell for each in group.cells]
        inside = {cell.id for cell in cells}
        on_it = [
            decided[link.id]
            for link in conflicts
            if link.id in decided and {link.source_id, link.target_id} <= inside
        ]
        on_it = [each for each in on_it if each.id in packet.control]
        latest = max(on_it, key=lambda each: (each.at, each.id)).handling if on_it else None

        def place(cell: Any, latest: Any = latest) -> tuple[Any, ...]:
            plain = (rank.get(cell.id, len(rank)), cell.id)
            if latest == "prefer_recent":
                return (-_instant(cell).timestamp(), *plain)
            if latest == "prefer_confident":
                return (-cell.confidence, *plain)
            return plain

        assert cells == sorted(cells, key=place)


def _instant(cell: Any) -> datetime:
    return cell.observed_at or cell.created_at  # type: ignore[no-any-return]


def test_no_packet_is_over_its_budget_or_holds_half_a_conflict(
    fill: Callable[..., Filled],
) -> None:
    cases = number = 0
    whole = left = 0
    while cases < CASES:
        graphs = [Graph(number + place) for place in range(GRAPHS_A_STORE)]
        store, other = fill(graphs, backwards=False), fill(graphs, backwards=True)
        digest = store.memory.digest()
        for place, graph in enumerate(graphs, number):
            view = store.memory.within(graph.session)
            # only the graph's own cells: a question with w<number> finds no other global one
            query = f"w{place}"
            asked = {"limit": place % 7 + 1, "include_inactive": place % 2 == 0}
            found = view.recall(query, **asked)
            again = other.memory.within(graph.session).recall(query, **asked)
            chooser = random.Random(place)
            budgets = [*BUDGETS, *(chooser.randint(1, 300) for _ in range(9))]
            for turn, budget in enumerate(budgets):
                counter = COUNTERS[0 if turn < 14 else turn % len(COUNTERS)]
                packet = view.packet(found, budget=budget, counter=counter)
                check(graph, store, found, packet, counter)
                if turn % 4 == 0:
                    check_order(graph, store, found, packet)
                rebuilt = view.packet(found.trace, budget=budget, counter=counter)
                assert (rebuilt.id, rebuilt.digest) == (packet.id, packet.digest)
                if turn % 4 == 1:
                    mirror = other.memory.within(graph.session).packet(
                        again, budget=budget, counter=counter
                    )
                    assert same_content(mirror) == same_content(packet)
                cases += 1
                whole += sum(len(group.cells) > 1 for group in packet.groups)
                left += sum(len(each.cells) > 1 for each in packet.excluded)
        assert store.memory.digest() == digest
        number += GRAPHS_A_STORE
    assert whole > cases // 20  # the cases are no walk-over
    assert left > cases // 20


def same_content(packet: ContextPacket) -> dict[str, Any]:
    """All that two stores can share: the trace names its generation and index digest."""
    return packet.model_dump(exclude={"id", "trace", "generation"})

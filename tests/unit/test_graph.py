"""The graph view, its honeycomb and its traversal, on stores filled as an agent fills them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from datetime import timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from cma import CmaError, FixedClock, Memory, Reason
from cma.rosette.graph import Adjacency, Edge, GraphView, Node, Scale
from cma.rosette.honeycomb import DIRECTIONS, hexes, ring
from cma.rosette.traversal import traverse
from tests.faults.injection import CALLER, START, remember, tamper

ANN = "session:ann"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "memory.cma"


@pytest.fixture
def memory(path: Path) -> Iterator[Memory]:
    with Memory.open(path, caller=CALLER, clock=FixedClock(START)) as opened:
        yield opened


@pytest.fixture
def ann(memory: Memory) -> Memory:
    return memory.within(ANN)


class Built:
    """The five-node fixture: what each part is called."""

    def __init__(self, view: Memory, **claim: Any) -> None:
        self.cells = [remember(view, f"release {n}", minutes=n).id for n in range(4)]
        self.frames = [
            view.bind(scene=f"scene {n}", sources=self.cells[2 * n : 2 * n + 2], actions=["ships"])
            for n in (0, 1)
        ]
        assert all(view.replay(frame.id).complete for frame in self.frames)
        parts = {"content": "Ann ships", "subject": "Ann", "predicate": "ships", "object": "it"}
        proposed = view.propose(frames=[each.id for each in self.frames], **{**parts, **claim})
        self.claim = view.approve(proposed.id, approval_id="CR-1")
        runs = [
            view.execute(task="ship", steps=["go"], outcome=outcome, sources=[self.cells[place]]).id
            for outcome, place in (("success", 1), ("failure", 3))
        ]
        self.skill = view.approve(view.propose_skill(executions=runs).id, approval_id="CR-2")
        [self.conflict] = view.conflicts()
        self.decision = view.decide(self.conflict.id, handling="preserve_both")


def refused(read: Callable[[], object]) -> CmaError:
    with pytest.raises(CmaError) as info:
        read()
    return info.value


def edges_of(view: GraphView, adjacency: str) -> set[tuple[str, str]]:
    return {(edge.source, edge.target) for edge in view.edges if edge.adjacency == adjacency}


# ---- The view


def test_an_empty_store_has_an_empty_graph(ann: Memory) -> None:
    view = ann.graph()
    assert (view.nodes, view.edges, view.scope) == ((), (), ANN)


def test_the_fixture_has_these_nodes_and_edges(ann: Memory) -> None:
    built = Built(ann)
    view = ann.graph()
    first, second = (frame.id for frame in built.frames)
    schemas = {built.claim.id, built.skill.id}
    assert {node.id: (node.scale, node.label) for node in view.nodes} == {
        first: ("episode", "scene 0"),
        second: ("episode", "scene 1"),
        built.claim.id: ("schema", "Ann ships"),
        built.skill.id: ("schema", "ship: go"),
        built.decision.id: ("control", "preserve_both"),
    }
    assert edges_of(view, "temporal") == {(first, second)}
    assert edges_of(view, "derivation") == {(s, f) for s in schemas for f in (first, second)}
    governed = {first, second, *schemas}
    assert edges_of(view, "governance") == {(built.decision.id, each) for each in governed}
    assert view.generation == ann.generation


def test_edges_come_once_and_in_one_order(ann: Memory) -> None:
    Built(ann)
    keys = [(edge.adjacency, edge.source, edge.target) for edge in ann.graph().edges]
    assert keys == sorted(set(keys))


def test_a_decision_on_two_claims_governs_those_alone(ann: Memory) -> None:
    claims = []
    for place, drink in enumerate(("tea", "mate")):
        frames = []
        for number in (0, 1):
            cell = remember(ann, f"{drink} {number}", minutes=10 * place + number).id
            frame = ann.bind(scene=f"{drink} {number}", sources=[cell], actions=[drink])
            ann.replay(frame.id)
            frames.append(frame.id)
        told = {"subject": "Ann", "predicate": "drinks", "object": drink}
        proposed = ann.propose(frames=frames, content=f"Ann drinks {drink}", **told)
        claims.append(ann.approve(proposed.id, approval_id=f"CR-{place}").id)
    decision = ann.decide(ann.conflicts()[0].id, handling="defer")
    governed = edges_of(ann.graph(), "governance")
    assert governed == {(decision.id, claim) for claim in claims}


def test_frames_follow_each_other_by_start_end_and_id_within_their_scope(
    memory: Memory, ann: Memory
) -> None:
    def bind(view: Memory, name: str, minutes: int, lasts: int = 0) -> str:
        cell = remember(view, name, minutes=minutes).id
        end = START + timedelta(minutes=minutes + lasts)
        return view.bind(scene=name, sources=[cell], end=end).id

    late, same = bind(ann, "late", 9), bind(ann, "same", 9)
    by_end = [bind(ann, f"lasting {lasts}", 1, lasts) for lasts in (5, 3, 1, 4, 2, 0)]
    by_end = [by_end[place] for place in (5, 2, 4, 1, 3, 0)]
    apart = bind(memory, "global", 3)
    view = ann.graph()
    assert by_end != sorted(by_end)
    order = [*by_end, *sorted((late, same))]
    assert edges_of(view, "temporal") == set(pairwise(order))
    assert apart in {node.id for node in view.nodes}


def test_a_session_sees_its_own_and_the_global_ones(memory: Memory, ann: Memory) -> None:
    built = Built(ann, scope="global")
    assert [node.id for node in memory.graph().nodes] == [built.claim.id]
    assert [node.id for node in memory.within("session:bob").graph().nodes] == [built.claim.id]
    assert len(ann.graph().nodes) == 5


def test_a_retracted_schema_is_no_node_and_a_revised_one_is_one_node(ann: Memory) -> None:
    built = Built(ann)
    ann.update(built.skill.id, summary="how to ship")
    assert len(ann.graph().nodes) == 5
    ann.update(built.claim.id, lifecycle="retracted")
    view = ann.graph()
    assert built.claim.id not in {node.id for node in view.nodes}
    assert len(view.nodes) == 4
    known = {node.id for node in view.nodes}
    assert all({edge.source, edge.target} <= known for edge in view.edges)


def test_building_changes_nothing_and_the_digest_is_of_the_graph(ann: Memory) -> None:
    Built(ann)
    before = (ann.digest(), ann.generation)
    first, second = ann.graph(), ann.graph()
    assert first == second
    assert first.digest == second.digest
    assert (ann.digest(), ann.generation) == before
    remember(ann, "nothing of the graph", minutes=50)
    later = ann.graph()
    assert later.digest == first.digest
    assert later.generation > first.generation
    ann.bind(scene="more", sources=[remember(ann, "more", minutes=60).id])
    assert ann.graph().digest != first.digest


@pytest.mark.parametrize(
    ("table", "target", "node"),
    [
        ("cells", lambda b: b.cells[0], lambda b: b.frames[0].id),
        ("cells", lambda b: b.cells[3], lambda b: b.frames[1].id),
        ("cells", lambda b: b.claim.id, lambda b: b.claim.id),
        ("cells", lambda b: b.skill.id, lambda b: b.skill.id),
        ("links", lambda b: b.conflict.id, lambda b: b.decision.id),
        ("governed", lambda b: b.frames[0].id, lambda b: b.claim.id),
        ("attendant", lambda b: b.claim.source.origin, lambda b: b.claim.id),
    ],
)
def test_a_graph_with_a_record_missing_is_refused_whole(
    ann: Memory, path: Path, table: str, target: Any, node: Any
) -> None:
    built = Built(ann)
    tamper(path, (f"DELETE FROM {table} WHERE id = ?", target(built)))
    error = refused(ann.graph)
    assert error.reason is Reason.GRAPH_CELL_MISSING
    assert (error.field, error.value) == (node(built), target(built))
    assert refused(lambda: ann.traverse(built.decision.id)).reason is Reason.GRAPH_CELL_MISSING


def test_what_is_missing_in_another_session_refuses_nobody_else(
    memory: Memory, ann: Memory, path: Path
) -> None:
    built = Built(ann)
    tamper(path, ("DELETE FROM cells WHERE id = ?", built.cells[0]))
    tamper(path, ("DELETE FROM cells WHERE id = ?", built.conflict.source_id))
    assert memory.graph().nodes == ()
    assert memory.within("session:bob").graph().nodes == ()
    assert refused(ann.graph).reason is Reason.GRAPH_CELL_MISSING


def test_building_takes_a_number_of_queries_that_is_linear_in_records(ann: Memory) -> None:
    def steps(count: int) -> int:
        known = len(ann.frames())
        for number in range(known, count):
            cell = remember(ann, f"event {number}", minutes=number).id
            ann.bind(scene=f"scene {number}", sources=[cell])
        seen = 0

        def counted() -> bool:
            nonlocal seen
            seen += 1
            return False

        connection = ann.store.connection
        connection.set_progress_handler(counted, 50)
        ann.graph()
        connection.set_progress_handler(None)
        return seen

    small, large = steps(60), steps(240)
    assert large < 6 * small


# ---- The honeycomb


def test_rings_hold_six_hexagons_a_radius_and_none_twice() -> None:
    seen: set[tuple[int, int]] = set()
    for radius in range(6):
        spots = list(ring(radius))
        assert len(spots) == max(1, 6 * radius)
        assert {max(abs(q), abs(r), abs(q + r)) for q, r in spots} == {radius}
        for spot, following in pairwise(spots):
            assert (following[0] - spot[0], following[1] - spot[1]) in DIRECTIONS
        assert not seen & set(spots)
        seen |= set(spots)


@pytest.mark.parametrize("sizes", [(1, 2, 2), (0, 3, 9), (2, 0, 40), (8, 6, 1), (0, 0, 0)])
def test_each_scale_begins_on_a_ring_of_its_own(sizes: tuple[int, ...]) -> None:
    scales = ("control", "schema", "episode")
    owners = {
        f"{scale[0]}{n:03}": scale
        for scale, size in zip(scales, sizes, strict=True)
        for n in range(size)
    }
    places = hexes(owners, scales)
    assert places == hexes(dict(reversed(owners.items())), scales)
    assert len(set(places.values())) == len(places) == sum(sizes)
    rings: dict[int, set[str]] = {}
    for name, (q, r) in places.items():
        rings.setdefault(max(abs(q), abs(r), abs(q + r)), set()).add(owners[name])
    assert all(len(own) == 1 for own in rings.values())
    assert list(rings) == list(range(len(rings)))
    order = [own for radius in sorted(rings) for own in rings[radius]]
    assert order == sorted(order, key=scales.index)
    assert list(places) == sorted(places, key=lambda name: (scales.index(owners[name]), name))


# ---- The traversal


def graph(edges: str, scales: dict[str, str] | None = None) -> GraphView:
    """Return a graph of edges such as `ab:temporal`; nodes are episodes unless said otherwise."""
    parts = [each.split(":") for each in edges.split()]
    names = sorted({name for ends, _ in parts for name in ends} | set(scales or {}))
    return GraphView(
        scope="global",
        generation=1,
        nodes=tuple(
            Node(id=name, scale=Scale((scales or {}).get(name, "episode")), label="", q=n, r=0)
            for n, name in enumerate(names)
        ),
        edges=tuple(
            Edge(source=ends[0], target=ends[1], adjacency=Adjacency(kind)) for ends, kind in parts
        ),
    )


MANY = graph("ac:temporal ab:temporal ad:derivation ae:governance fa:temporal bg:temporal")


def cuts(view: GraphView, start: str, **bounds: Any) -> dict[str, str]:
    return {cut.node: cut.reason for cut in traverse(view, start, **bounds).cut}


def test_neighbours_come_by_adjacency_then_id_in_both_directions() -> None:
    done = traverse(MANY, "a")
    assert done.order == tuple("adebcfg")
    assert done.cut == ()
    assert traverse(MANY, "g").order == tuple("gbadecf")
    assert (done.start, done.depth, done.budget) == ("a", None, 64)
    assert (done.scales, done.adjacencies) == (tuple(Scale), tuple(Adjacency))


def test_a_circle_is_gone_round_once() -> None:
    assert traverse(graph("ab:temporal bc:temporal ca:derivation"), "a").order == tuple("acb")


def test_the_budget_bounds_and_names_what_waited() -> None:
    for budget in range(1, 8):
        done = traverse(MANY, "a", budget=budget)
        assert done.order == tuple("adebcfg")[:budget]
    assert cuts(MANY, "a", budget=3) == dict.fromkeys("bcf", "budget")
    assert cuts(MANY, "a", budget=7) == {}


def test_depth_zero_visits_the_start_alone() -> None:
    assert traverse(MANY, "a", depth=0).order == ("a",)
    assert cuts(MANY, "a", depth=0) == dict.fromkeys("bcdef", "depth")
    assert traverse(MANY, "a", depth=1).order == tuple("adebcf")
    assert cuts(MANY, "a", depth=1) == {"g": "depth"}
    assert traverse(MANY, "a", depth=2).order == tuple("adebcfg")


def test_filters_bound_and_name_what_they_cut() -> None:
    view = graph("ab:temporal ac:derivation cd:temporal", {"c": "schema"})
    assert traverse(view, "a", scales=["episode"]).order == ("a", "b")
    assert cuts(view, "a", scales=["episode"]) == {"c": "scale"}
    assert traverse(view, "a", adjacencies="temporal").order == ("a", "b")
    assert cuts(view, "a", adjacencies=["temporal"]) == {"c": "adjacency"}
    assert traverse(view, "a", adjacencies=[]).order == ("a",)
    asked = traverse(view, "a", scales=["schema", "episode", "schema"])
    assert asked.scales == (Scale.SCHEMA, Scale.EPISODE)


def test_what_is_reached_another_way_is_not_cut() -> None:
    view = graph("ab:derivation ac:temporal cb:temporal")
    done = traverse(view, "a", adjacencies=["temporal"])
    assert (done.order, done.cut) == (("a", "c", "b"), ())


def test_a_node_that_only_the_budget_stops_says_so() -> None:
    view = graph("ab:derivation ac:temporal cb:temporal")
    assert cuts(view, "a", adjacencies=["temporal"], budget=2) == {"b": "budget"}


@pytest.mark.parametrize("budget", [0, -1, True, 1.0, "5", None, 2**60])
def test_a_budget_is_a_whole_number_of_at_least_one(budget: Any) -> None:
    error = refused(lambda: traverse(MANY, "a", budget=budget))
    assert (error.reason, error.field) == (Reason.BUDGET_INVALID, "budget")


@pytest.mark.parametrize("depth", [-1, False, 1.5, "1", 2**60])
def test_a_depth_is_nothing_or_a_whole_number(depth: Any) -> None:
    error = refused(lambda: traverse(MANY, "a", depth=depth))
    assert (error.reason, error.field) == (Reason.BUDGET_INVALID, "depth")


@pytest.mark.parametrize("field", ["scales", "adjacencies"])
@pytest.mark.parametrize("given", [["nope"], "nope", [None], [["episode"]], 5, [5]])
def test_a_filter_that_is_none_names_those_there_are(field: str, given: Any) -> None:
    error = refused(lambda: traverse(MANY, "a", **{field: given}))
    assert (error.reason, error.field) == (Reason.FIELD_INVALID, field)
    valid = Scale if field == "scales" else Adjacency
    assert all(each.value in str(error) for each in valid)


@pytest.mark.parametrize("bounds", [{}, {"scales": ["episode"]}])
def test_an_unknown_start_is_not_found(bounds: Any) -> None:
    error = refused(lambda: traverse(MANY, "cell-no", **bounds))
    assert (error.reason, error.value) == (Reason.NODE_NOT_FOUND, "cell-no")


def test_a_start_that_the_scales_shut_out_is_not_found() -> None:
    error = refused(lambda: traverse(MANY, "a", scales=["control"]))
    assert error.reason is Reason.NODE_NOT_FOUND


def test_the_fixture_is_reached_whole_from_every_node(ann: Memory) -> None:
    Built(ann)
    view = ann.graph()
    for node in view.nodes:
        done = ann.traverse(node.id)
        assert done.order[0] == node.id
        assert Counter(done.order) == Counter(each.id for each in view.nodes)
        assert done == ann.traverse(node.id)

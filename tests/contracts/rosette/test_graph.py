"""The graph over three scales and its traversal: R07 to R09."""

from __future__ import annotations

from collections import Counter, deque
from itertools import permutations

import pytest

from cma import CmaError, Reason


def edges(view, adjacency):
    return {(edge.source, edge.target) for edge in view.edges if edge.adjacency == adjacency}


def breadth_first(view, start):
    """The order by the contract's words, from nodes and edges alone."""
    order, seen, waiting = [], {start}, deque([start])
    while waiting:
        node = waiting.popleft()
        order.append(node)
        near = [(edge.adjacency.value, edge.target) for edge in view.edges if edge.source == node]
        near += [(edge.adjacency.value, edge.source) for edge in view.edges if edge.target == node]
        for _, other in sorted(near):
            if other not in seen:
                seen.add(other)
                waiting.append(other)
    return tuple(order)


@pytest.mark.contract("R07")
def test_the_graph_has_three_scales_and_three_adjacencies(memory, ann, bob, five, tamper):
    """The five-node graph has three scales and three adjacency types, a hexagon each node."""
    made = five(ann)
    digest, generation = memory.digest(), memory.generation
    view = ann.graph()
    assert Counter(node.scale.value for node in view.nodes) == {
        "episode": 2,
        "schema": 2,
        "control": 1,
    }
    assert {node.id: (node.scale.value, node.label) for node in view.nodes} == {
        made.frames[0].id: ("episode", "scene 0"),
        made.frames[1].id: ("episode", "scene 1"),
        made.claim.id: ("schema", "Ann ships it"),
        made.skill.id: ("schema", "ship: go"),
        made.decision.id: ("control", "preserve_both"),
    }
    first, second = (frame.id for frame in made.frames)
    schemas = {made.claim.id, made.skill.id}
    assert {edge.adjacency.value for edge in view.edges} == {"temporal", "derivation", "governance"}
    assert edges(view, "temporal") == {(first, second)}
    assert edges(view, "derivation") == {(s, frame) for s in schemas for frame in (first, second)}
    assert edges(view, "governance") == {
        (made.decision.id, each) for each in made.nodes - {made.decision.id}
    }
    rings = {node.id: max(abs(node.q), abs(node.r), abs(node.q + node.r)) for node in view.nodes}
    assert len({(node.q, node.r) for node in view.nodes}) == 5
    assert [rings[made.decision.id], rings[made.skill.id], rings[first]] == [0, 1, 2]
    assert (view.scope, view.generation) == ("session:ann", generation)
    assert (memory.digest(), memory.generation) == (digest, generation)
    assert ann.graph().digest == view.digest
    assert bob.graph().nodes == memory.graph().nodes == ()
    ann.update(made.skill.id, lifecycle="retracted")
    assert {node.id for node in ann.graph().nodes} == made.nodes - {made.skill.id}
    tamper(memory.store.path, ("DELETE FROM cells WHERE id = ?", (made.cells[0],)))
    with pytest.raises(CmaError) as caught:
        ann.graph()
    assert caught.value.reason is Reason.GRAPH_CELL_MISSING
    assert (caught.value.field, caught.value.value) == (first, made.cells[0])
    assert bob.graph().nodes == ()


@pytest.mark.contract("R08")
def test_its_traversal_reaches_all_in_one_order(ann, five, open_memory, clock):
    """Its traversal reaches all five nodes, breadth first, in one order, from each of them."""
    made = five(ann)
    view = ann.graph()
    orders = {}
    for node in view.nodes:
        done = ann.traverse(node.id)
        assert set(done.order) == made.nodes
        assert len(done.order) == 5
        assert done.order == breadth_first(view, node.id)
        assert done.cut == ()
        assert ann.traverse(node.id) == done
        orders[node.id] = done.order
    first, second = (frame.id for frame in made.frames)
    near = sorted([made.claim.id, made.skill.id])
    assert orders[first] == (first, *near, made.decision.id, second)
    elsewhere = open_memory(clock=clock).within("session:ann")
    assert {node: elsewhere.traverse(node).order for node in orders} == orders
    other = open_memory("other.cma", clock=clock).within("session:ann")
    assert five(other).nodes == made.nodes
    assert {node: other.traverse(node).order for node in orders} == orders
    with pytest.raises(CmaError) as caught:
        ann.traverse(made.cells[0])
    assert caught.value.reason is Reason.NODE_NOT_FOUND


@pytest.mark.contract("R09")
def test_type_scale_and_budget_bound_a_traversal(ann, five):
    """Adjacency type, scale, depth and budget bound a traversal; what was cut is named."""
    made = five(ann)
    first, second = (frame.id for frame in made.frames)
    schemas = sorted([made.claim.id, made.skill.id])
    whole = ann.traverse(first).order

    def cuts(done):
        return {cut.node: cut.reason for cut in done.cut}

    for budget in range(1, 6):
        done = ann.traverse(first, budget=budget)
        assert done.order == whole[:budget]
        assert cuts(done) == dict.fromkeys(whole[budget:], "budget")
    by_time = ann.traverse(first, adjacencies=["temporal"])
    assert by_time.order == (first, second)
    assert cuts(by_time) == dict.fromkeys([*schemas, made.decision.id], "adjacency")
    derived = ann.traverse(first, adjacencies=["derivation"])
    assert derived.order == (first, *schemas, second)
    assert cuts(derived) == {made.decision.id: "adjacency"}
    episodes = ann.traverse(first, scales=["episode"])
    assert episodes.order == (first, second)
    assert cuts(episodes) == dict.fromkeys([*schemas, made.decision.id], "scale")
    assert ann.traverse(made.decision.id, scales=["control", "schema"]).order == (
        made.decision.id,
        *schemas,
    )
    assert ann.traverse(first, depth=0).order == (first,)
    near = ann.traverse(schemas[0], depth=1)
    assert set(near.order) == made.nodes - {schemas[1]}
    assert cuts(near) == {schemas[1]: "depth"}
    assert set(ann.traverse(schemas[0], depth=2).order) == made.nodes
    assert ann.traverse(first, scales=["episode"], adjacencies=["derivation"]).order == (first,)
    for scales in permutations(["episode", "schema"]):
        assert made.decision.id not in ann.traverse(first, scales=list(scales)).order
    with pytest.raises(CmaError) as caught:
        ann.traverse(first, scales=["control"])
    assert caught.value.reason is Reason.NODE_NOT_FOUND
    for wrong in (0, -1, True, None, 2.0):
        with pytest.raises(CmaError) as caught:
            ann.traverse(first, budget=wrong)
        assert caught.value.reason is Reason.BUDGET_INVALID
    for wrong in (-1, True, 1.5):
        with pytest.raises(CmaError) as caught:
            ann.traverse(first, depth=wrong)
        assert caught.value.reason is Reason.BUDGET_INVALID
    for bound in ({"scales": ["cell"]}, {"adjacencies": ["spatial"]}):
        with pytest.raises(CmaError) as caught:
            ann.traverse(first, **bound)
        assert caught.value.reason is Reason.FIELD_INVALID

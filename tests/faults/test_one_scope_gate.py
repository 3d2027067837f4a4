"""The same text in two sessions: no way by which memory is asked gives one to the other."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from cma import Memory, Reason
from tests.faults.claiming import frames, proposed
from tests.faults.injection import hold, refused, remember

ANN, BOB = "session:ann", "session:bob"
Ids = dict[str, str]


@pytest.fixture
def ids(ann: Memory, bob: Memory) -> dict[str, Ids]:
    """Cells, frames, claims, a conflict, a decision, a skill and a delivery in each session."""
    return {view.scope: _filled(view) for view in (ann, bob)}


def _filled(view: Memory) -> Ids:
    proposals = [
        proposed(view, f"Zoe prefers {drink}", frames(view, f"sips {drink}", first=first))
        for drink, first in (("tea", 20), ("mate", 30))
    ]
    cells = [view.approve(each.id, approval_id=each.id) for each in proposals]
    link = view.conflicts()[0]
    run = view.execute(
        task="deploy",
        steps=["ship"],
        outcome="success",
        sources=[remember(view, "it was shipped", minutes=50).id],
    )
    held = hold(view, "Zoe is here")
    trace = view.recall("Zoe prefers tea shipped here", limit=50).trace
    receipt = view.deliver(view.packet(trace, budget=10_000))
    return {
        "cell": cells[0].id,
        "other cell": cells[1].id,
        "held": held.id,
        "frame": view.frames()[-1].id,
        "proposal": proposals[0].id,
        "execution": run.id,
        "link": link.id,
        "decision": view.decide(link.id, handling="defer").id,
        "trace": trace.id,
        "receipt": receipt.id,
    }


def _link(view: Memory, ids: Ids) -> Any:
    return view.link("task", view.recall("public").hits[0].cell.id, ids["cell"])


WAYS: dict[str, tuple[Callable[[Memory, Ids], Any], Reason]] = {
    "get": (lambda v, i: v.get(i["cell"]), Reason.CELL_NOT_FOUND),
    "get working": (lambda v, i: v.get(i["held"]), Reason.CELL_NOT_FOUND),
    "links_of": (lambda v, i: v.links_of(i["cell"]), Reason.CELL_NOT_FOUND),
    "update": (lambda v, i: v.update(i["cell"], summary="x"), Reason.CELL_NOT_FOUND),
    "link": (_link, Reason.LINK_ENDPOINT_MISSING),
    "bind": (lambda v, i: v.bind(scene="x", sources=[i["cell"]]), Reason.SOURCE_MISSING),
    "frame": (lambda v, i: v.frame(i["frame"]), Reason.FRAME_NOT_FOUND),
    "replay": (lambda v, i: v.replay(i["frame"]), Reason.FRAME_NOT_FOUND),
    "propose": (lambda v, i: proposed(v, "a b c", [i["frame"]]), Reason.FRAME_NOT_FOUND),
    "proposal": (lambda v, i: v.proposal(i["proposal"]), Reason.PROPOSAL_NOT_FOUND),
    "regenerate": (lambda v, i: v.regenerate(i["proposal"]), Reason.PROPOSAL_NOT_FOUND),
    "reject": (lambda v, i: v.reject(i["proposal"], reason="x"), Reason.PROPOSAL_NOT_FOUND),
    "approve": (lambda v, i: v.approve(i["proposal"], approval_id="x"), Reason.PROPOSAL_NOT_FOUND),
    "propose_skill": (
        lambda v, i: v.propose_skill(executions=[i["execution"]]),
        Reason.EXECUTION_NOT_FOUND,
    ),
    "decide": (lambda v, i: v.decide(i["link"], handling="defer"), Reason.CONFLICT_NOT_FOUND),
    "traverse": (lambda v, i: v.traverse(i["cell"]), Reason.NODE_NOT_FOUND),
    "traverse control": (lambda v, i: v.traverse(i["decision"]), Reason.NODE_NOT_FOUND),
    "explain a recall": (lambda v, i: v.explain(i["trace"]), Reason.TRACE_NOT_FOUND),
    "explain a delivery": (lambda v, i: v.explain(i["receipt"]), Reason.RECEIPT_NOT_FOUND),
}


@pytest.mark.parametrize("way", WAYS)
def test_what_is_named_by_id(memory: Memory, bob: Memory, ids: dict[str, Ids], way: str) -> None:
    use, reason = WAYS[way]
    remember(memory, "a public notice")
    for view in (bob, memory):
        with refused(memory, reason) as caught:
            use(view, ids[ANN])
        assert "Zoe" not in str(caught[0])


def test_what_is_listed(memory: Memory, bob: Memory, ids: dict[str, Ids]) -> None:
    for view in (bob, memory):
        found = view.recall("Zoe prefers tea mate shipped here sips", limit=500)
        packet = view.packet(found, budget=100_000)
        listed = [found, packet, packet.text, view.graph(), view.frames(), view.proposals()]
        listed += [view.conflicts(), view.decisions(), view.decisions(ids[ANN]["link"])]
        told = repr(listed)
        assert not [name for name, value in ids[ANN].items() if value in told]
        assert {hit.cell.scope for hit in found.hits} <= {"global", view.scope}
    assert memory.recall("Zoe prefers", limit=500).hits == ()
    assert memory.graph().nodes == ()
    own = bob.explain(ids[BOB]["receipt"])
    assert own.verified
    assert not [name for name, value in ids[ANN].items() if value in repr(own)]


def test_a_recall_of_one_session_packs_nothing_for_another(
    ann: Memory, bob: Memory, ids: dict[str, Ids]
) -> None:
    """A packet asks the gate again, whatever trace it is given."""
    found = ann.recall("Zoe prefers tea", limit=50)
    assert found.hits
    assert bob.packet(found, budget=100_000).groups == ()
    with refused(bob, Reason.PACKET_ALTERED):
        bob.deliver(ann.packet(found, budget=100_000))


def test_the_two_are_told_apart(ids: dict[str, Ids]) -> None:
    assert not set(ids[ANN].values()) & set(ids[BOB].values())

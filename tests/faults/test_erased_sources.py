"""What was derived from an erased cell: out of service until somebody approves it anew."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest

from cma import CmaError, Memory, Reason
from cma.lagoon.standing import Status
from tests.faults.injection import CALLER, refused, remember

WHY = "person-request"
CLAIM = {"subject": "Ann", "predicate": "drinks", "object": "tea", "content": "Ann drinks tea"}
DEPLOY = {"task": "deploy", "steps": ["build", "ship"], "outcome": "success"}


def cup(ann: Memory, number: int) -> tuple[str, str]:
    """Witness one cup of tea; return the cell and its frame, replayed."""
    cell = remember(ann, f"a cup of tea at {number}", minutes=number)
    frame = ann.bind(scene=f"kitchen {number}", sources=[cell.id], entities=["Ann"])
    ann.replay(frame.id)
    return cell.id, frame.id


@pytest.fixture
def known(ann: Memory) -> SimpleNamespace:
    """A fact from two cups, approved and served."""
    cups = [cup(ann, number) for number in range(2)]
    proposal = ann.propose(frames=[frame for _, frame in cups], **CLAIM)
    fact = ann.approve(proposal.id, approval_id="CR-1")
    return SimpleNamespace(cups=cups, proposal=proposal.id, fact=fact.id)


def served(view: Memory, query: str = "Ann drinks", **how: bool) -> list[str]:
    return [hit.cell.id for hit in view.recall(query, **how).hits]


def test_a_fact_whose_source_was_erased_is_not_served(ann: Memory, known: SimpleNamespace) -> None:
    packet = ann.packet(ann.recall("Ann drinks"), budget=200)
    assert served(ann) == [known.fact]
    done = ann.erase(known.cups[0][0], reason=WHY)
    assert done.quarantined == (known.fact,)
    assert served(ann) == []
    assert served(ann, include_inactive=True) == [known.fact]
    assert ann.get(known.fact).lifecycle == "quarantined"
    assert ann.get(known.fact).content == "Ann drinks tea"  # for whoever decides on it
    assert ann.proposal(known.proposal).status is Status.QUARANTINED
    assert ann.proposals("quarantined") == (ann.proposal(known.proposal),)
    assert [node.scale for node in ann.graph().nodes] == ["episode"]  # neither fact nor frame
    last = [each for each in ann.store.audit_rows() if each[1] == "quarantine"]
    assert b'"reason":"source-erased"' in last[0][4]
    with refused(ann, Reason.PACKET_STALE):
        ann.deliver(packet)
    with refused(ann, Reason.CELL_INACTIVE):
        ann.update(known.fact, lifecycle="active")
    ann.verify()


def test_it_is_approved_anew_from_what_stands(
    ann: Memory, known: SimpleNamespace, tmp_path: Path
) -> None:
    ann.erase(known.cups[0][0], reason=WHY)
    with refused(ann, Reason.REPLAY_INCOMPLETE):
        ann.propose(frames=[frame for _, frame in known.cups], **CLAIM)
    with refused(ann, Reason.EVIDENCE_INCOMPLETE):
        ann.approve(known.proposal, approval_id="CR-2")
    with pytest.raises(CmaError, match=Reason.FRAMES_TOO_FEW.value):
        ann.regenerate(known.proposal)
    cup(ann, 7)
    again = ann.regenerate(known.proposal)
    assert (again.status, again.cell_id) == (Status.PENDING, None)
    fact = ann.approve(again.id, approval_id="CR-3")
    assert fact.id != known.fact
    assert known.cups[0][0] not in fact.derived_from
    assert served(ann) == [fact.id]
    assert ann.proposal(again.id).cell_id == fact.id
    explained = ann.explain(ann.recall("Ann drinks").trace.id)
    assert (explained.verified, [each.cell for each in explained.lineages]) == (True, [fact.id])
    # The new admission stands: the same claim once more is a repeat of it.
    more = ann.propose(frames=list(again.candidate.frames), **{**CLAIM, "summary": "again"})
    assert ann.approve(more.id, approval_id="CR-4").id == fact.id
    ann.verify()
    ann.snapshot(tmp_path / "s.cma.jsonl")
    with Memory.restore(tmp_path / "s.cma.jsonl", tmp_path / "r", caller=CALLER) as restored:
        assert restored.verify().store_digest == ann.digest()
        assert served(restored.within("session:ann")) == [fact.id]


def test_it_can_fall_again(ann: Memory, known: SimpleNamespace) -> None:
    for number, approval in ((7, "CR-5"), (8, "CR-6")):
        ann.erase(known.cups[0][0], reason=WHY)
        known.cups = [*known.cups[1:], cup(ann, number)]
        again = ann.regenerate(known.proposal)
        known.proposal = again.id
        fact = ann.approve(again.id, approval_id=approval)
        assert served(ann) == [fact.id]
        ann.verify()


def test_an_erased_fact_takes_its_proposals_along(
    ann: Memory, known: SimpleNamespace, path: Path
) -> None:
    more = cup(ann, 7)
    frames = [known.cups[1][1], more[1]]
    pending = ann.propose(frames=frames, **{**CLAIM, "content": "Ann likes teaquag"})
    words = {**CLAIM, "content": "Ann drinks teaquag, always", "object": "Tea"}
    once = ann.propose(frames=frames, **words)
    done = ann.erase(known.fact, reason=WHY)
    assert {known.proposal, pending.id, once.id} <= set(done.blanked)
    assert b"teaquag" not in path.read_bytes()
    assert b"Ann drinks" not in path.read_bytes()
    assert {each.id for each in ann.proposals("erased")} == {known.proposal, pending.id, once.id}
    with refused(ann, Reason.PROPOSAL_DECIDED):
        ann.reject(pending.id, reason="no more")
    for name in (known.proposal, pending.id):
        with refused(ann, Reason.RECORD_ERASED):
            ann.approve(name, approval_id="CR-9")
    assert ann.get(known.cups[0][0]).content == "a cup of tea at 0"  # the evidence stays
    fresh = ann.propose(frames=frames, **{**CLAIM, "content": "She drinks tea"})
    assert ann.approve(fresh.id, approval_id="CR-10").content == "She drinks tea"
    ann.verify()


def test_a_quarantined_fact_can_be_erased_too(
    ann: Memory, known: SimpleNamespace, path: Path
) -> None:
    ann.erase(known.cups[0][0], reason=WHY)
    assert b"Ann drinks" in path.read_bytes()
    ann.erase(known.fact, reason=WHY)
    assert b"Ann drinks" not in path.read_bytes()
    assert ann.proposal(known.proposal).status is Status.ERASED
    more = [known.cups[1][1], cup(ann, 7)[1]]
    again = ann.approve(ann.propose(frames=more, **CLAIM).id, approval_id="CR-8")
    assert served(ann) == [again.id]
    ann.verify()


def test_a_skill_falls_and_comes_back_without_the_erased_run(ann: Memory) -> None:
    seen = [remember(ann, f"deployment {number} went well", minutes=number) for number in range(3)]
    runs = [ann.execute(**DEPLOY, sources=[cell.id]) for cell in seen[:2]]
    proposal = ann.propose_skill(executions=[run.id for run in runs])
    skill = ann.approve(proposal.id, approval_id="CR-1")
    done = ann.erase(seen[0].id, reason=WHY)
    assert done.quarantined == (skill.id,)
    assert runs[0].id in done.blanked
    again = ann.regenerate(proposal.id)
    assert again.candidate.executions == (runs[1].id,)
    assert ann.approve(again.id, approval_id="CR-2").id != skill.id
    assert ann.execute(**DEPLOY, sources=[seen[2].id]).sources[0].cell == seen[2].id
    ann.verify()


def test_what_was_derived_step_by_step_falls_with_it(ann: Memory) -> None:
    first = remember(ann, "she said so")
    fields = {"kind": "episodic", "origin": "note", "observed_at": first.observed_at}
    steps = [first.id]
    for number in range(4):
        receipt = ann.write_many(
            [{**fields, "content": f"note {number} on it", "derived_from": [steps[-1]]}]
        )
        steps += receipt.ids
    ann.update(steps[2], lifecycle="retracted")  # no longer in service, and in between
    done = ann.erase(first.id, reason=WHY)
    assert set(done.quarantined) == {steps[1], steps[3], steps[4]}
    with refused(ann, Reason.SOURCE_ERASED):
        ann.write_many([{**fields, "content": "one more", "derived_from": [steps[2]]}])
    ann.verify()


def test_words_that_others_hold_are_named_and_stay(ann: Memory, bob: Memory) -> None:
    text = "the door code is 4711-quag"
    cell, same = remember(ann, text), remember(ann, f"note: {text}", minutes=1)
    remember(bob, f"I heard {text}")
    frame = ann.bind(scene="hall", sources=[same.id], outcome=text)
    done = ann.erase(cell.id, reason=WHY)
    assert done.still_quoting == (same.id, frame.id)  # nothing of what bob holds
    assert ann.get(same.id).content == f"note: {text}"


def test_a_short_text_is_looked_for_as_a_whole(ann: Memory) -> None:
    cell = remember(ann, "4711")
    remember(ann, "area 47112", minutes=1)
    asked = {query: ann.within("session:bob").recall(query).trace for query in ("4711", "47112")}
    done = ann.erase(cell.id, reason=WHY)
    assert [name in done.blanked for name in (asked["4711"].id, asked["47112"].id)] == [True, False]


def test_a_note_shares_no_word_with_what_is_erased(ann: Memory) -> None:
    cell = remember(ann, "Ann moved to Leeds", metadata={"attributes": {"street": "Elm Row"}})
    for note in ("leeds", "asked by ann", "no elm", "moved-away", "a street"):
        with refused(ann, Reason.ERASURE_QUOTES, "reason"):
            ann.erase(cell.id, reason=note)
    for note in ("", "Asked", "x" * 65, 5, None, "a\nb", "what? no"):
        with refused(ann, Reason.FIELD_INVALID, "reason"):
            ann.erase(cell.id, reason=note)
    assert ann.erase(cell.id, reason="ticket 55 closed").reason == "ticket 55 closed"


def test_a_conflict_keeps_its_other_side(ann: Memory, known: SimpleNamespace) -> None:
    frames = [frame for _, frame in (cup(ann, 20), cup(ann, 21))]
    other = ann.propose(frames=frames, **{**CLAIM, "object": "mate", "content": "Ann drinks mate"})
    mate = ann.approve(other.id, approval_id="CR-7")
    (conflict,) = ann.conflicts()
    ann.decide(conflict.id, handling="preserve_both")
    ann.erase(known.fact, reason=WHY)
    packet = ann.packet(ann.recall("Ann drinks", include_inactive=True), budget=500)
    assert [cell.id for cell in packet.cells] == [mate.id]
    assert ann.conflicts() == (conflict,)
    assert [node.scale for node in ann.graph().nodes if node.scale == "control"] == ["control"]
    ann.verify()

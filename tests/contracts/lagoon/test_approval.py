"""Approved semantic memory: L01 to L09."""

from __future__ import annotations

import json
from datetime import timedelta

import pytest

from cma import Caller, Policy, Reason
from cma.orion.governed import record_id
from cma.values.identity import canonical

MODEL = Caller(name="model", authority="model")


@pytest.mark.contract("L01")
def test_a_candidate_lists_its_evidence(ann, episodes, claim):
    """A candidate lists its frames and their cells."""
    frames = episodes(ann, 3)
    proposal = claim(ann, frames, summary="a habit", confidence=0.8)
    candidate = ann.proposal(proposal.id).candidate
    assert set(candidate.frames) == {frame.id for frame in frames}
    assert set(candidate.cells) == {cell for frame in frames for cell in frame.cells}
    assert len(candidate.cells) == 6
    assert candidate.signature == frames[0].signature
    assert candidate.proposed_by == "tester"
    assert (candidate.summary, candidate.confidence) == ("a habit", 0.8)
    assert candidate.metadata["subject"] == "Ann"
    evidence = dict(candidate.evidence)
    assert evidence == {frame.id: ann.replay(frame.id).digest for frame in frames}


@pytest.mark.contract("L02")
def test_no_approval_no_cell(memory, ann, bob, episodes, claim, refused, clock):
    """Without an approval id there is no cell; one of another proposal, or expired, is none."""
    proposal = claim(ann, episodes(ann, 2))
    other = claim(ann, episodes(ann, 2, first=50, entities=["Bob"]), subject="Bob")
    for missing in (None, "CR-unknown"):
        with refused(memory, Reason.APPROVAL_REQUIRED) as caught:
            ann.admit(proposal.id, approval_id=missing)
    assert caught[0].subjects == (proposal.id,)
    with refused(memory, Reason.APPROVAL_REQUIRED):
        ann.approve(proposal.id, approval_id=None)
    ann.grant(other.id, approval_id="CR-2")
    with refused(memory, Reason.APPROVAL_MISMATCH):
        ann.admit(proposal.id, approval_id="CR-2")
    with refused(memory, Reason.APPROVAL_MISMATCH):
        ann.approve(proposal.id, approval_id="CR-2")
    with refused(memory, Reason.APPROVAL_MISMATCH):
        ann.grant(proposal.id, approval_id="CR-2")
    ann.grant(proposal.id, approval_id="CR-3", expires_at=clock.now() + timedelta(hours=1))
    clock.advance(timedelta(hours=1))
    with refused(memory, Reason.APPROVAL_EXPIRED):
        ann.admit(proposal.id, approval_id="CR-3")
    with refused(memory, Reason.PROPOSAL_NOT_FOUND):
        bob.approve(proposal.id, approval_id="CR-4")
    assert memory.verify().cells == 8
    assert ann.proposal(proposal.id).status == "pending"


@pytest.mark.contract("L03")
def test_an_approved_cell_keeps_sources_and_approval(memory, ann, episodes, claim, audit):
    """An approved cell keeps its sources and its approval id, and the audit tells who approved."""
    frames = episodes(ann, 2)
    proposal = claim(ann.acting_as(MODEL), frames)
    seen = len(audit(memory))
    cell = ann.approve(proposal.id, approval_id="CR-17")
    assert cell == ann.get(cell.id)
    assert cell.kind == "semantic"
    assert cell.approval_id == "CR-17"
    assert cell.derived_from == proposal.candidate.cells
    assert cell.content == "Ann drinks tea"
    assert (cell.source.origin, cell.source.authority) == (proposal.id, "model")
    assert cell.metadata.object == "tea"
    records = audit(memory, after=seen)
    assert [record["operation"] for record in records] == ["approve", "consolidate", "consolidate"]
    assert {record["policy"] for record in records} == {"default"}
    assert records[1]["subjects"][:2] == [cell.id, proposal.id]
    told = ann.proposal(proposal.id)
    assert (told.status, told.cell_id) == ("approved", cell.id)
    [hit] = ann.recall("drinks tea", limit=1).hits
    assert hit.cell == cell
    assert ann.explain(ann.recall("drinks tea", limit=1).trace.id).lineages[0].verified


@pytest.mark.contract("L04")
def test_a_source_gone_at_approval_rejects(memory, ann, episodes, claim, refused, tamper):
    """A source missing, altered or retired at approval rejects."""
    frames = episodes(ann, 2)
    proposal = claim(ann, frames)
    ann.update(frames[0].cells[0], lifecycle="retracted")
    with refused(memory, Reason.EVIDENCE_INCOMPLETE) as caught:
        ann.approve(proposal.id, approval_id="CR-1")
    assert caught[0].subjects == (proposal.id,)
    others = episodes(ann, 2, first=50, entities=["Bob"])
    other = claim(ann, others, subject="Bob")
    ann.update(others[0].cells[1], metadata={"speaker": "Eve"})
    with refused(memory, Reason.EVIDENCE_INCOMPLETE):
        ann.approve(other.id, approval_id="CR-2")
    third = episodes(ann, 2, first=90, entities=["Cleo"])
    last = claim(ann, third, subject="Cleo")
    tamper(memory.store.path, ("DELETE FROM cells WHERE id = ?", (third[1].cells[0],)))
    with refused(memory, Reason.SOURCE_MISSING) as caught:
        ann.approve(last.id, approval_id="CR-3")
    assert caught[0].value == third[1].cells[0]
    with refused(memory, Reason.SOURCE_MISSING):  # whatever else is wanting
        ann.admit(last.id, approval_id=None)
    with refused(memory, Reason.EVIDENCE_INCOMPLETE):
        ann.acting_as(MODEL).admit(other.id, approval_id=None)


@pytest.mark.contract("L05")
def test_kinds_that_do_not_fit_reject(memory, ann, episodes, events, claim, refused, hold, tamper):
    """Incompatible kinds reject: a claim rests on frames alone."""
    frames = episodes(ann, 2)
    execution = ann.execute(
        task="deploy", steps=["build"], outcome="success", sources=events(ann, 1, first=99)
    )
    for wrong in (execution.id, frames[0].cells[0], claim(ann, frames).id):
        with refused(memory, Reason.KINDS_INCOMPATIBLE) as caught:
            ann.propose(
                frames=[frames[0].id, wrong],
                content="x",
                subject="a",
                predicate="b",
                object="c",
            )
        assert caught[0].value == wrong
    with refused(memory, Reason.KINDS_INCOMPATIBLE):
        ann.propose_skill(executions=[frames[0].id])
    [proposal] = ann.proposals()
    row = memory.store.connection.execute(
        "SELECT record FROM attendant WHERE id = ?", (proposal.id,)
    ).fetchone()
    note = hold(ann, "a working note")
    for change in ({"kind": "procedural"}, {"cells": [*proposal.candidate.cells, note.id]}):
        record = json.loads(row[0])
        record["identity"].update(change)
        record["id"] = record_id("candidate", record["identity"])
        values = (record["id"], "candidate", record["scope"], record["subject"], canonical(record))
        sql = "INSERT INTO attendant (id, kind, scope, subject, record) VALUES (?, ?, ?, ?, ?)"
        tamper(memory.store.path, (sql, values))
        with refused(memory, Reason.KINDS_INCOMPATIBLE) as caught:
            ann.approve(record["id"], approval_id="CR-1")
        assert caught[0].value == record["id"]


@pytest.mark.contract("L06")
def test_a_policy_without_authority_rejects(memory, ann, episodes, claim, refused, open_memory):
    """An approver whom the policy does not name or whose authority it lacks rejects."""
    proposal = claim(ann, episodes(ann, 2))
    model = ann.acting_as(MODEL)
    with refused(memory, Reason.POLICY_UNAUTHORISED) as caught:
        model.approve(proposal.id, approval_id="CR-1")
    assert caught[0].policy == "default"
    model.grant(proposal.id, approval_id="CR-2")
    with refused(memory, Reason.POLICY_UNAUTHORISED):
        ann.admit(proposal.id, approval_id="CR-2")
    ann.grant(proposal.id, approval_id="CR-3")
    assert model.admit(proposal.id, approval_id="CR-3").approval_id == "CR-3"
    another = claim(ann, episodes(ann, 2, first=50, entities=["Bob"]), subject="Bob")
    ann.grant(another.id, approval_id="CR-4")
    renamed = open_memory(policy=Policy(name="other")).within("session:ann")
    with refused(memory, Reason.POLICY_UNAUTHORISED):
        renamed.admit(another.id, approval_id="CR-4")
    board = Policy(name="board", approvers=("chair",))
    strict = open_memory("strict.cma", policy=board).within("session:ann")
    held = claim(strict, episodes(strict, 2))
    with refused(strict, Reason.POLICY_UNAUTHORISED):
        strict.approve(held.id, approval_id="CR-1")
    chair = strict.acting_as(Caller(name="chair", authority="user"))
    assert chair.approve(held.id, approval_id="CR-2").kind == "semantic"


@pytest.mark.contract("L07")
def test_one_fingerprint_is_one_cell(memory, ann, bob, episodes, claim, audit, refused):
    """Approving the same fingerprint again returns the same cell and changes nothing."""
    frames = episodes(ann, 2)
    first = claim(ann, frames)
    cell = ann.approve(first.id, approval_id="CR-1")
    digest, generation, cells = memory.digest(), memory.generation, memory.verify().cells
    assert ann.approve(first.id, approval_id="CR-1") == cell
    assert ann.approve(first.id, approval_id="CR-2") == cell
    reworded = claim(ann, frames, subject="ANN", object=" Tea", content="Ann likes her tea")
    assert reworded.id != first.id
    assert reworded.candidate.fingerprint == first.candidate.fingerprint
    assert ann.approve(reworded.id, approval_id="CR-3") == cell
    assert (memory.digest(), memory.generation) == (digest, generation)
    assert memory.verify().cells == cells
    assert ann.get(cell.id).approval_id == "CR-1"
    repeats = [each for each in audit(memory) if each["reason"] in ("repeated", "duplicate")]
    assert [each["operation"] for each in repeats][-3:] == ["consolidate"] * 3
    assert memory.failures() == ()
    apart = bob.approve(claim(bob, episodes(bob, 2)).id, approval_id="CR-4")
    assert (apart.content, apart.scope) == (cell.content, "session:bob")
    assert apart.id != cell.id
    ann.update(cell.id, lifecycle="retracted")
    with refused(memory, Reason.CELL_INACTIVE):
        ann.approve(first.id, approval_id="CR-5")


@pytest.mark.contract("L08")
def test_a_rejection_leaves_one_failure(memory, ann, episodes, claim, refused):
    """A refused transition leaves one failure artifact and the digest as it was."""
    frames = episodes(ann, 2)
    proposal = claim(ann, frames)
    other = claim(ann, episodes(ann, 2, first=50, entities=["Bob"]), subject="Bob")
    before = memory.verify()
    with refused(memory, Reason.POLICY_UNAUTHORISED):
        ann.acting_as(MODEL).approve(proposal.id, approval_id="CR-1")
    [failure] = memory.failures()
    assert failure.reason == "policy-unauthorised"
    assert failure.subjects[0] == proposal.id
    assert failure.policy == "default"
    assert failure.actor == "model"
    with refused(memory, Reason.PROPOSAL_NOT_FOUND):
        ann.approve_many([proposal.id, other.id, "candidate-" + "0" * 40], approval_id="CR-2")
    after = memory.verify()
    assert (after.cells, after.links, after.governed, after.attendant) == (
        before.cells,
        before.links,
        before.governed,
        before.attendant,
    )
    assert [each.status for each in ann.proposals()] == ["pending", "pending"]
    cells = ann.approve_many([proposal.id, other.id], approval_id="CR-2")
    assert [cell.approval_id for cell in cells] == ["CR-2/1", "CR-2/2"]


@pytest.mark.contract("L09")
def test_a_proposal_changes_no_memory(memory, ann, bob, episodes, claim, refused):
    """A proposal can be read, rejected and regenerated without changing memory."""
    frames = episodes(ann, 2)
    further = episodes(ann, 1, first=50)
    digest, generation = memory.digest(), memory.generation
    proposal = claim(ann, frames)
    assert ann.proposals("pending") == (proposal,)
    assert ann.proposal(proposal.id) == proposal
    assert bob.proposals() == ()
    assert claim(ann, frames) == proposal
    rejected = ann.reject(proposal.id, reason="hearsay")
    assert (rejected.status, rejected.rejection_reason) == ("rejected", "hearsay")
    assert ann.proposals("rejected") == (rejected,)
    assert ann.proposals("pending") == ()
    assert claim(ann, frames).status == "rejected"
    with refused(memory, Reason.PROPOSAL_DECIDED):
        ann.approve(proposal.id, approval_id="CR-1")
    with refused(memory, Reason.PROPOSAL_DECIDED):
        ann.reject(proposal.id, reason="again")
    anew = ann.regenerate(proposal.id)
    assert anew.status == "pending"
    assert set(anew.candidate.frames) == {frame.id for frame in (*frames, *further)}
    assert anew.candidate.fingerprint == proposal.candidate.fingerprint
    assert ann.regenerate(anew.id) == anew
    assert (memory.digest(), memory.generation) == (digest, generation)
    assert ann.approve(anew.id, approval_id="CR-2").kind == "semantic"
    with refused(memory, Reason.PROPOSAL_DECIDED):
        ann.reject(anew.id, reason="too late")

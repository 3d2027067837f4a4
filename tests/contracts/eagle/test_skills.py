"""Procedural memory with its outcomes: E01 to E09."""

from __future__ import annotations

import pytest

from cma import Caller, CmaError, Policy, Reason
from cma.eagle.decisions import Decision

MODEL = Caller(name="model", authority="model")
TASK = {"task": "deploy", "steps": ["build", "ship"]}


@pytest.fixture
def runs(ann, events):
    """Record executions of one skill with these outcomes, a source each."""

    def record(*outcomes, first=0, view=ann, **parts):
        skill = {**TASK, **parts}
        return [
            view.execute(
                outcome=outcome,
                sources=events(view, 1, first=first + number, text=f"run {first + number}"),
                **skill,
            )
            for number, outcome in enumerate(outcomes)
        ]

    return record


def ids(executions):
    return [execution.id for execution in executions]


@pytest.mark.contract("E01")
def test_a_skill_candidate_comes_from_executions(memory, ann, runs, episodes, refused):
    """A skill candidate comes from execution traces of one task and its steps."""
    executions = runs("success", "success")
    proposal = ann.propose_skill(executions=ids(executions))
    candidate = proposal.candidate
    assert candidate.kind == "procedural"
    assert set(candidate.executions) == set(ids(executions))
    assert candidate.metadata["task"] == "deploy"
    assert candidate.metadata["steps"] == ["build", "ship"]
    assert candidate.content == "deploy: build; ship"
    assert set(candidate.cells) == {execution.cells[0] for execution in executions}
    other = runs("success", first=50, steps=["ship", "build"])
    with refused(memory, Reason.EXECUTIONS_MIXED):
        ann.propose_skill(executions=ids([*executions, *other]))
    with refused(memory, Reason.EXECUTION_NOT_FOUND):
        ann.propose_skill(executions=["execution-" + "0" * 40])
    frame = episodes(ann, 1, first=80)[0]
    with refused(memory, Reason.KINDS_INCOMPATIBLE):
        ann.propose_skill(executions=[frame.id])


@pytest.mark.contract("E02")
def test_it_keeps_successes_and_failures(memory, ann, runs, refused):
    """It keeps the provenance of successes and of failures; none can be left out."""
    executions = runs("success", "failure", "success", "failure")
    candidate = ann.propose_skill(executions=ids(executions)).candidate
    assert set(candidate.successes) == {executions[0].id, executions[2].id}
    assert set(candidate.failures) == {executions[1].id, executions[3].id}
    assert candidate.confidence == 0.5
    for kept in ([0, 2], [0, 1, 2], [0, 1, 3]):
        with refused(memory, Reason.EXECUTION_OMITTED) as caught:
            ann.propose_skill(executions=[executions[place].id for place in kept])
        assert caught[0].value in ids(executions)


@pytest.mark.contract("E03")
def test_a_skill_needs_an_approval(memory, ann, runs, refused):
    """A skill needs an approval, by somebody whom the policy lets approve."""
    proposal = ann.propose_skill(executions=ids(runs("success")))
    with refused(memory, Reason.APPROVAL_REQUIRED):
        ann.admit(proposal.id, approval_id="CR-1")
    with refused(memory, Reason.APPROVAL_REQUIRED):
        ann.approve(proposal.id, approval_id=None)
    with refused(memory, Reason.POLICY_UNAUTHORISED):
        ann.acting_as(MODEL).approve(proposal.id, approval_id="CR-1")
    with refused(memory, Reason.APPROVAL_REQUIRED):
        ann.write(
            "deploy: build",
            kind="procedural",
            origin="x",
            metadata={"task": "deploy", "steps": ["build"]},
        )
    assert memory.verify().cells == 1


@pytest.mark.contract("E04")
def test_a_skill_keeps_traces_and_approval(ann, runs):
    """An approved skill keeps its traces and its approval id."""
    executions = runs("success", "failure")
    proposal = ann.propose_skill(executions=ids(executions), summary="how we ship")
    skill = ann.approve(proposal.id, approval_id="CR-9")
    assert skill == ann.get(skill.id)
    assert skill.kind == "procedural"
    assert skill.approval_id == "CR-9"
    assert skill.derived_from == proposal.candidate.cells
    assert skill.metadata.task == "deploy"
    assert skill.metadata.steps == ("build", "ship")
    assert skill.summary == "how we ship"
    [lineage] = ann.explain(ann.recall("deploy build", limit=1).trace.id).lineages
    assert {execution.id for execution in lineage.executions} == set(ids(executions))
    assert lineage.approval.id == "CR-9"
    assert lineage.verified


@pytest.mark.contract("E05")
def test_one_fingerprint_is_one_skill(memory, ann, bob, runs):
    """The same fingerprint again is the same skill, also from further executions."""
    executions = runs("success")
    first = ann.propose_skill(executions=ids(executions))
    skill = ann.approve(first.id, approval_id="CR-1")
    more = runs("success", first=20, task=" DEPLOY", steps=["Build", "ship"])
    second = ann.propose_skill(executions=ids([*executions, *more]))
    assert second.id != first.id
    assert second.candidate.fingerprint == first.candidate.fingerprint
    digest, cells = memory.digest(), memory.verify().cells
    assert ann.approve(second.id, approval_id="CR-2") == skill
    assert (memory.digest(), memory.verify().cells) == (digest, cells)
    assert ann.get(skill.id).approval_id == "CR-1"
    others = [
        runs("success", first=40, view=bob),
        runs("success", first=50, steps=["ship", "build"]),
        runs("success", first=60, task="deploy twice"),
    ]
    prints = {each[0].fingerprint for each in others}
    assert len(prints | {first.candidate.fingerprint}) == 4
    apart = bob.approve(bob.propose_skill(executions=ids(others[0])).id, approval_id="CR-3")
    assert apart.id != skill.id


@pytest.mark.contract("E06")
def test_opposite_outcomes_are_a_conflict(memory, ann, bob, runs, audit):
    """Opposite outcomes make a conflict relation, and both stay."""
    win, loss = runs("success", "failure")
    [link] = ann.conflicts()
    assert {link.source_id, link.target_id} == {win.cells[-1], loss.cells[-1]}
    assert ann.links_of(win.cells[-1]) == ann.links_of(loss.cells[-1]) == (link,)
    assert ann.get(win.cells[-1]).lifecycle == ann.get(loss.cells[-1]).lifecycle == "active"
    assert "conflict" in {record["operation"] for record in audit(memory)}
    runs("success", "failure", first=20)
    assert len(ann.conflicts()) == 3
    runs("success", "success", first=40, task="other")
    runs("failure", first=60, view=bob)
    assert len(ann.conflicts()) == 3
    assert bob.conflicts() == ()


@pytest.mark.contract("E07")
def test_without_a_success_it_is_inadmissible(memory, ann, runs, refused, open_memory, events):
    """Without a success a skill is inadmissible, and with fewer executions than configured."""
    losses = runs("failure", "failure")
    with refused(memory, Reason.SUCCESS_MISSING):
        ann.propose_skill(executions=ids(losses))
    win = runs("success", first=20)
    assert ann.propose_skill(executions=ids([*losses, *win])).status == "pending"
    strict = open_memory("strict.cma", policy=Policy(executions=2)).within("session:ann")
    one = runs("success", view=strict)
    with refused(strict, Reason.EXECUTIONS_TOO_FEW):
        strict.propose_skill(executions=ids(one))


@pytest.mark.contract("E08")
def test_a_refused_skill_changes_nothing(memory, ann, runs, refused):
    """A rejection changes nothing: what happened since the proposal refuses it."""
    executions = runs("success")
    proposal = ann.propose_skill(executions=ids(executions))
    with refused(memory, Reason.EVIDENCE_SHARED):
        ann.execute(outcome="failure", sources=list(executions[0].cells), **TASK)
    later = runs("failure", first=20)
    with refused(memory, Reason.EVIDENCE_INCOMPLETE):
        ann.approve(proposal.id, approval_id="CR-1")
    anew = ann.regenerate(proposal.id)
    assert set(anew.candidate.failures) == set(ids(later))
    ann.update(executions[0].cells[0], lifecycle="retracted")
    with refused(memory, Reason.EVIDENCE_INCOMPLETE):
        ann.approve(anew.id, approval_id="CR-1")
    steady = runs("success", first=40, task="other")
    other = ann.propose_skill(executions=ids(steady))
    ann.update(steady[0].cells[0], metadata={"speaker": "somebody else"})
    with refused(memory, Reason.EVIDENCE_INCOMPLETE):
        ann.approve(other.id, approval_id="CR-2")
    before = memory.digest()
    assert ann.reject(anew.id, reason="too brittle").status == "rejected"
    assert memory.digest() == before
    assert {cell.cell.kind for cell in ann.recall("deploy run").hits} == {"episodic"}


@pytest.mark.contract("E09")
def test_a_decision_is_control(memory, ann, bob, runs, refused):
    """A decision on a conflict is control and never a fact."""
    win, loss = runs("success", "failure")
    [link] = ann.conflicts()
    cells, digest = memory.verify().cells, memory.digest()
    decision = ann.decide(link.id, handling="prefer_recent")
    assert isinstance(decision, Decision)
    assert (decision.handling, decision.by) == ("prefer_recent", "tester")
    assert ann.decisions() == ann.decisions(link.id) == (decision,)
    assert bob.decisions() == ()
    assert memory.digest() != digest
    assert memory.verify().cells == cells
    assert ann.conflicts() == (link,)
    assert ann.get(win.cells[0]).lifecycle == ann.get(loss.cells[0]).lifecycle == "active"
    found = ann.recall("prefer recent decision success failure run", include_inactive=True)
    assert {hit.cell.id for hit in found.hits} == {win.cells[0], loss.cells[0]}
    with pytest.raises(CmaError):
        ann.get(decision.id)
    for kind in ("decision", "control"):
        with refused(memory, Reason.KIND_UNKNOWN):
            ann.write("prefer the recent side", kind=kind, origin="y")
    with refused(memory, Reason.SOURCE_MISSING):
        ann.bind(scene="x", sources=[decision.id])
    with refused(memory, Reason.KINDS_INCOMPATIBLE):
        ann.propose(frames=[decision.id], content="x", subject="a", predicate="b", object="c")
    with refused(memory, Reason.CONFLICT_NOT_FOUND):
        bob.decide(link.id, handling="defer")
    with refused(memory, Reason.KIND_UNKNOWN):
        ann.decide(link.id, handling="delete_one")
    causal = ann.link("causal", win.cells[0], loss.cells[0])
    with refused(memory, Reason.CONFLICT_NOT_FOUND):
        ann.decide(causal.id, handling="defer")
    one, other = runs("success", "failure", first=20, view=memory)
    [shared] = memory.conflicts()
    assert {shared.source_id, shared.target_id} == {one.cells[0], other.cells[0]}
    kept = bob.decide(shared.id, handling="defer")
    assert bob.decisions() == bob.decisions(shared.id) == (kept,)
    assert ann.decisions() == (decision,)
    assert ann.decisions(shared.id) == ()

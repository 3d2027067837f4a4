"""Rows of frames, proposals, approvals, skills and conflicts (Trifid, Lagoon, Eagle)."""

from __future__ import annotations

from typing import Any

from cma import Caller, Reason
from tests.faults.rejections.memory_rows import BIG, NAIVE, UNKNOWN
from tests.faults.rejections.row import Row, Use, read, row, shell
from tests.faults.rejections.world import DEPLOY, NOWHERE, World, claim

FRAME, CANDIDATE, EXECUTION = (f"{kind}-{NOWHERE}" for kind in ("frame", "candidate", "execution"))
R = Reason


def bound(reason: Reason, *sources: str, before: Use | None = None) -> list[Row]:
    """Sources that can witness neither an episode nor an execution."""

    def ids(w: World) -> list[str]:
        return [getattr(w.ids, name, name) for name in sources]

    what = sources[0][:5]
    return [
        row(
            reason,
            f"bind {sources[0][:5]}",
            lambda w: w.ann.bind(scene="x", sources=ids(w)),
            before,
        ),
        row(
            reason,
            f"execute {what}",
            lambda w: w.ann.execute(**DEPLOY, outcome="success", sources=ids(w)),
            before,
        ),
    ]


def admitted(
    reason: Reason,
    name: str,
    before: Use | None = None,
    *,
    approval: str | None = "CR-7",
    ways: str = "admit approve many shell",
    **how: Any,
) -> list[Row]:
    """A proposal that is refused by each of the ways in. `before` grants CR-7 where it must."""

    def id_of(w: World) -> str:
        return str(getattr(w.ids, name, name))

    rows = {
        "admit": row(
            reason, "admit", lambda w: w.ann.admit(id_of(w), approval_id=approval), before
        ),
        "approve": row(
            reason, "approve", lambda w: w.ann.approve(id_of(w), approval_id=approval), before
        ),
        "many": row(
            reason,
            "approve_many",
            lambda w: w.ann.approve_many([w.ids.other, id_of(w)], approval_id=approval),
            before,
        ),
        "shell": shell(
            reason,
            f"proposals approve {{path}} {{{name}}} -a {approval}"
            if not name.startswith("candidate-")
            else f"proposals approve {{path}} {name} -a {approval}",
            before,
            records=1,
        ),
    }
    return [Row(**{**vars(rows[way]), **how}) for way in ways.split()]


def _grant(name: str, approval: str = "CR-7", **parts: Any) -> Use:
    return lambda w: w.ann.grant(getattr(w.ids, name), approval_id=approval, **parts)


def _all(*steps: Use) -> Use:
    return lambda w: [step(w) for step in steps]


def _retract_cup(w: World) -> None:
    w.retract(w.ids.cups[2])


def _drop_cup(w: World) -> None:
    w.drop(w.ids.cups[2])


def _another_kind(w: World) -> None:
    sql = "UPDATE cells SET record = CAST(replace(CAST(record AS TEXT), ?, ?) AS BLOB) WHERE id = ?"
    w.tamper((sql, '"episodic"', '"working"', w.ids.cups[2]))


def told(w: World, **parts: Any) -> Any:
    return claim(w.ann, w.ids.frames[:2], **parts)


GRANTED = _grant("pending")
TRIFID = [
    row(R.FIELD_INVALID, "bind", lambda w: w.ann.bind(scene="x", sources=[])),
    *bound(R.FIELD_INVALID, "one", "one"),
    row(R.FIELD_INVALID, "replay", lambda w: w.ann.replay(w.ids.bare, sequence="cell")),
    row(R.TIME_NAIVE, "bind", lambda w: w.ann.bind(scene="x", sources=[w.ids.one], start=NAIVE)),
    *bound(R.SOURCE_MISSING, UNKNOWN),
    *bound(R.SOURCE_MISSING, "bobs"),
    *bound(R.SOURCE_KIND, "held"),
    *bound(R.SOURCE_KIND, "cell"),
    *bound(R.SOURCE_INACTIVE, "retired"),
    *bound(R.SOURCES_DISORDERED, "two", "one"),
    row(
        R.INTERVAL_TOO_NARROW,
        "bind",
        lambda w: w.ann.bind(scene="x", sources=[w.ids.one], end="2026-03-01T12:00:00Z"),
    ),
    read(R.FRAME_NOT_FOUND, "frame", lambda w: w.ann.frame(FRAME)),
    read(R.FRAME_NOT_FOUND, "frame of another", lambda w: w.bob.frame(w.ids.bare)),
    row(R.FRAME_NOT_FOUND, "replay", lambda w: w.ann.replay(FRAME)),
    row(R.FRAME_NOT_FOUND, "propose", lambda w: claim(w.ann, [FRAME])),
    row(R.FRAMES_TOO_FEW, "propose", lambda w: claim(w.ann, w.ids.frames[:1])),
    row(R.FRAMES_TOO_FEW, "regenerate", lambda w: w.ann.regenerate(w.ids.pending), _retract_cup),
    row(
        R.FRAMES_TOO_FEW,
        "propose under a policy",
        lambda w: claim(w.with_policy(frames=3), w.ids.frames[:2]),
    ),
    row(R.SIGNATURES_MIXED, "propose", lambda w: claim(w.ann, w.ids.frames[1:3])),
    row(R.EVIDENCE_SHARED, "propose", lambda w: claim(w.ann, [w.ids.frames[0], w.ids.again])),
    row(
        R.EVIDENCE_SHARED,
        "execute",
        lambda w: w.ann.execute(**DEPLOY, outcome="failure", sources=[w.ids.runs[0].cells[0]]),
    ),
    row(R.REPLAY_INCOMPLETE, "propose", lambda w: claim(w.ann, [w.ids.frames[0], w.ids.bare])),
    row(R.REPLAY_INCOMPLETE, "propose", lambda w: claim(w.ann, w.ids.frames[2:]), _retract_cup),
    row(
        R.REPLAY_INCOMPLETE,
        "regenerate",
        lambda w: w.ann.regenerate(w.ids.pending),
        _all(_retract_cup, lambda w: w.retract(w.ids.cups[3])),
    ),
    row(R.EVIDENCE_NOT_NEW, "propose", lambda w: claim(w.ann, [w.ids.frames[0], w.ids.echo])),
]
LAGOON = [
    row(R.FIELD_INVALID, "propose", lambda w: claim(w.ann, w.ids.frames[:2], confidence=2.0)),
    row(
        R.FIELD_INVALID,
        "propose scope",
        lambda w: claim(w.ann, w.ids.frames[:2], scope="session:bob"),
    ),
    row(R.FIELD_INVALID, "grant", lambda w: _grant("pending", expires_at="soon")(w)),
    row(
        R.FIELD_INVALID,
        "approve",
        lambda w: w.ann.approve(w.ids.pending, approval_id="CR-7", expires_at="soon"),
    ),
    row(
        R.FIELD_INVALID,
        "approve_many of 5",
        lambda w: w.ann.approve_many(5, approval_id="C"),
    ),
    row(R.FIELD_INVALID, "reject", lambda w: w.ann.reject(w.ids.pending, reason=" ")),
    row(
        R.FIELD_INVALID,
        "reject_many",
        lambda w: w.ann.reject_many([w.ids.pending, w.ids.other], reason=""),
    ),
    row(R.FIELD_INVALID, "reject_many of no batch", lambda w: w.ann.reject_many(5, reason="no")),
    read(R.FIELD_INVALID, "proposals", lambda w: w.ann.proposals("odd")),
    shell(R.FIELD_INVALID, "proposals reject {path} {pending} -r \u2423", records=1),
    shell(R.FIELD_INVALID, "proposals approve {path} {pending} -a C --expires-at soon", records=1),
    shell(R.FIELD_INVALID, "proposals approve {path} {pending} -a C --as a\x07b"),
    row(R.TIME_NAIVE, "grant", lambda w: _grant("pending", expires_at=NAIVE)(w)),
    row(
        R.TIME_NAIVE,
        "approve",
        lambda w: w.ann.approve(w.ids.pending, approval_id="CR-7", expires_at=NAIVE),
    ),
    shell(
        R.TIME_NAIVE, "proposals approve {path} {pending} -a C --expires-at 2026-01-01", records=1
    ),
    row(R.CONTENT_EMPTY, "propose", lambda w: claim(w.ann, w.ids.frames[:2], content="\u200b")),
    row(R.CONTENT_TOO_LARGE, "propose", lambda w: claim(w.ann, w.ids.frames[:2], content=BIG)),
    row(R.NOT_CANONICAL, "reject", lambda w: w.ann.reject(w.ids.pending, reason="\ud800")),
    row(R.KINDS_INCOMPATIBLE, "propose", lambda w: claim(w.ann, w.ids.executions)),
    *admitted(
        R.KINDS_INCOMPATIBLE, "pending", _all(_grant("pending"), _another_kind), damaged=True
    ),
    *admitted(R.SOURCE_MISSING, "pending", _all(GRANTED, _drop_cup), damaged=True),
    *admitted(R.EVIDENCE_INCOMPLETE, "pending", _all(GRANTED, _retract_cup)),
    *admitted(
        R.EVIDENCE_INCOMPLETE,
        "skill",
        _all(_grant("skill"), lambda w: w.retract(w.ids.runs[1].cells[0])),
    ),
    row(
        R.EVIDENCE_INCOMPLETE,
        "approve under a policy",
        lambda w: w.with_policy(frames=3).approve(w.ids.pending, approval_id="CR-7"),
    ),
    *admitted(R.APPROVAL_REQUIRED, "pending", approval=None, ways="admit approve many"),
    row(
        R.APPROVAL_REQUIRED, "admit unknown", lambda w: w.ann.admit(w.ids.pending, approval_id="no")
    ),
    row(R.APPROVAL_REQUIRED, "grant", lambda w: _grant("pending", "")(w)),
    shell(R.APPROVAL_REQUIRED, "proposals approve {path} {pending} -a \u2423", records=1),
    *admitted(R.APPROVAL_MISMATCH, "pending", _grant("other"), ways="admit approve shell"),
    row(R.APPROVAL_MISMATCH, "grant", lambda w: _grant("pending")(w), _grant("other")),
    row(
        R.APPROVAL_MISMATCH,
        "approve_many",
        lambda w: w.ann.approve_many([w.ids.other, w.ids.pending], approval_id="CR-7"),
        _grant("other", "CR-7/2"),
    ),
    *admitted(
        R.APPROVAL_EXPIRED,
        "pending",
        _all(_grant("pending", expires_at="2026-03-01T12:01:00Z"), lambda w: w.later(minutes=1)),
        ways="admit approve",
    ),
    row(
        R.APPROVAL_EXPIRED,
        "approve_many",
        lambda w: w.ann.approve_many(
            [w.ids.pending, w.ids.other], approval_id="CR-7", expires_at="2026-03-01T12:00:00Z"
        ),
    ),
    shell(
        R.APPROVAL_EXPIRED,
        "proposals approve {path} {pending} -a C --expires-at 2000-01-01T00:00:00Z",
        records=1,
    ),
    row(
        R.POLICY_UNAUTHORISED,
        "approve",
        lambda w: w.model.approve(w.ids.pending, approval_id="CR-7"),
    ),
    row(
        R.POLICY_UNAUTHORISED,
        "admit",
        lambda w: w.ann.admit(w.ids.pending, approval_id="CR-7"),
        lambda w: w.model.grant(w.ids.pending, approval_id="CR-7"),
    ),
    row(
        R.POLICY_UNAUTHORISED,
        "approve_many",
        lambda w: w.model.approve_many([w.ids.pending, w.ids.other], approval_id="CR-7"),
    ),
    row(
        R.POLICY_UNAUTHORISED,
        "approve by another person",
        lambda w: (
            w.with_policy(approvers=("zoe",))
            .acting_as(Caller(name="eve", authority="user"))
            .approve(w.ids.pending, approval_id="CR-7")
        ),
    ),
    shell(
        R.POLICY_UNAUTHORISED,
        "proposals approve {path} {pending} -a CR-7 --policy strict",
        GRANTED,
        records=1,
    ),
    read(R.PROPOSAL_NOT_FOUND, "proposal", lambda w: w.ann.proposal(CANDIDATE)),
    read(R.PROPOSAL_NOT_FOUND, "proposal of another", lambda w: w.bob.proposal(w.ids.pending)),
    row(R.PROPOSAL_NOT_FOUND, "regenerate", lambda w: w.ann.regenerate(CANDIDATE)),
    *admitted(R.PROPOSAL_NOT_FOUND, CANDIDATE),
    row(R.PROPOSAL_NOT_FOUND, "grant", lambda w: w.ann.grant(CANDIDATE, approval_id="CR-7")),
    row(R.PROPOSAL_NOT_FOUND, "reject", lambda w: w.bob.reject(w.ids.pending, reason="no")),
    row(
        R.PROPOSAL_NOT_FOUND,
        "reject_many",
        lambda w: w.ann.reject_many([w.ids.pending, CANDIDATE], reason="no"),
    ),
    shell(R.PROPOSAL_NOT_FOUND, f"proposals show {{path}} {CANDIDATE}"),
    shell(R.PROPOSAL_NOT_FOUND, f"proposals reject {{path}} {CANDIDATE} -r no", records=1),
    *admitted(R.PROPOSAL_DECIDED, "rejected"),
    row(R.PROPOSAL_DECIDED, "grant", lambda w: _grant("rejected")(w)),
    row(R.PROPOSAL_DECIDED, "reject", lambda w: w.ann.reject(w.ids.approved, reason="late")),
    row(R.PROPOSAL_DECIDED, "reject again", lambda w: w.ann.reject(w.ids.rejected, reason="so")),
    row(
        R.PROPOSAL_DECIDED,
        "reject_many",
        lambda w: w.ann.reject_many([w.ids.pending, w.ids.approved], reason="late"),
    ),
    shell(R.PROPOSAL_DECIDED, "proposals reject {path} {approved} -r late", records=1),
    *admitted(R.CELL_INACTIVE, "repeat", _all(_grant("repeat"), lambda w: w.retract(w.ids.cell))),
]
EAGLE = [
    row(
        R.FIELD_INVALID,
        "propose_skill",
        lambda w: w.ann.propose_skill(executions=w.ids.executions, scope="session:bob"),
    ),
    row(R.FIELD_INVALID, "decide", lambda w: w.ann.decide(5, handling="defer")),
    row(
        R.FIELD_INVALID, "execute", lambda w: w.ann.execute(**DEPLOY, outcome="success", sources=[])
    ),
    row(
        R.KIND_UNKNOWN,
        "execute",
        lambda w: w.ann.execute(**DEPLOY, outcome="maybe", sources=[w.ids.one]),
    ),
    row(R.KIND_UNKNOWN, "decide", lambda w: w.ann.decide(w.ids.conflict, handling="win")),
    row(
        R.CONTENT_EMPTY,
        "propose_skill",
        lambda w: w.ann.propose_skill(executions=w.ids.executions, content=" "),
    ),
    row(
        R.CONTENT_TOO_LARGE,
        "propose_skill",
        lambda w: w.ann.propose_skill(executions=w.ids.executions, content=BIG),
    ),
    row(
        R.KINDS_INCOMPATIBLE,
        "propose_skill",
        lambda w: w.ann.propose_skill(executions=w.ids.frames[:1]),
    ),
    row(
        R.SOURCE_MISSING,
        "propose_skill",
        lambda w: w.ann.propose_skill(executions=w.ids.executions),
        lambda w: w.drop(w.ids.runs[0].cells[0]),
        damaged=True,
    ),
    row(
        R.SOURCE_MISSING,
        "regenerate",
        lambda w: w.ann.regenerate(w.ids.skill),
        lambda w: w.drop(w.ids.runs[0].cells[0]),
        damaged=True,
    ),
    row(
        R.EVIDENCE_INCOMPLETE,
        "propose_skill",
        lambda w: w.ann.propose_skill(executions=w.ids.executions),
        lambda w: w.retract(w.ids.runs[0].cells[0]),
    ),
    row(
        R.EVIDENCE_INCOMPLETE,
        "regenerate",
        lambda w: w.ann.regenerate(w.ids.skill),
        lambda w: w.retract(w.ids.runs[0].cells[0]),
    ),
    row(
        R.EXECUTION_NOT_FOUND,
        "propose_skill",
        lambda w: w.ann.propose_skill(executions=[EXECUTION]),
    ),
    row(
        R.EXECUTION_NOT_FOUND,
        "propose_skill of another's",
        lambda w: w.bob.propose_skill(executions=w.ids.executions),
    ),
    row(
        R.EXECUTIONS_MIXED,
        "propose_skill",
        lambda w: w.ann.propose_skill(executions=[*w.ids.executions, w.ids.painted]),
    ),
    row(
        R.EXECUTION_OMITTED,
        "propose_skill",
        lambda w: w.ann.propose_skill(executions=w.ids.executions[:1]),
    ),
    row(
        R.EXECUTIONS_TOO_FEW,
        "propose_skill",
        lambda w: w.with_policy(executions=3).propose_skill(executions=w.ids.executions),
    ),
    row(
        R.EXECUTIONS_TOO_FEW,
        "regenerate",
        lambda w: w.with_policy(executions=3).regenerate(w.ids.skill),
    ),
    row(
        R.SUCCESS_MISSING,
        "propose_skill",
        lambda w: w.ann.propose_skill(executions=[w.ids.flown]),
    ),
    row(
        R.CONFLICT_NOT_FOUND,
        "decide",
        lambda w: w.ann.decide(f"link-{NOWHERE}", handling="defer"),
    ),
    row(
        R.CONFLICT_NOT_FOUND,
        "decide on another's",
        lambda w: w.ann.decide(w.ids.bobs_conflict, handling="defer"),
    ),
]
ROWS = [*TRIFID, *LAGOON, *EAGLE]

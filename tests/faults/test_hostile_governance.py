"""What a hostile reviewer of governed memory did: each once worked, or broke a promise."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

import apsw
import pytest

from cma import Authority, Caller, Cell, CmaError, FixedClock, Memory, Reason
from cma.eagle.skills import SkillDraft
from cma.rosette import packing, quoting
from cma.rosette.tokens import PLAIN, TokenCounter, plain_count
from tests.faults.claiming import claimed, frames, proposed
from tests.faults.injection import remember

TEA = {"subject": "Ann", "predicate": "drinks", "object": "tea"}
SEEN = {"kind": "episodic", "origin": "log", "observed_at": "2026-01-01T00:00:00Z"}
PERSON = Caller(name="ann", authority=Authority.USER)


def refused(
    memory: Memory, reason: Reason, use: Callable[[], Any], *, records: int = 1
) -> CmaError:
    """Expect a refusal that leaves memory as it was and its failure record, or none for a read."""
    before, failures = memory.digest(), len(memory.failures())
    with pytest.raises(CmaError) as info:
        use()
    assert info.value.reason is reason, info.value
    assert memory.digest() == before
    assert len(memory.failures()) == failures + records
    return info.value


# derived memory without its approval


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("content", "Ann drinks poison"),
        ("metadata", {**TEA, "object": "gin"}),
        (
            "metadata",
            {"subject": "Ann", "predicate": "drinks", "object": "tea", "attributes": {"a": 1}},
        ),
    ],
)
def test_what_was_approved_cannot_be_edited(
    memory: Memory, ann: Memory, name: str, value: Any
) -> None:
    cell = claimed(ann, "Ann drinks tea", first=0)
    error = refused(memory, Reason.APPROVAL_REQUIRED, lambda: ann.update(cell.id, **{name: value}))
    assert error.field == name
    assert ann.get(cell.id) == cell
    assert ann.update(cell.id, confidence=0.5, summary="tea").content == cell.content
    assert ann.update(cell.id, lifecycle="retracted").lifecycle == "retracted"


def test_the_steps_of_an_approved_skill_cannot_be_edited(memory: Memory, ann: Memory) -> None:
    run = ann.execute(
        task="deploy", steps=["build"], outcome="success", sources=[remember(ann, "it ran").id]
    )
    proposal = ann.propose_skill(executions=[run.id])
    skill = ann.approve(proposal.id, approval_id="CR-1")
    changes: list[dict[str, Any]] = [
        {"content": "rm -rf"},
        {"metadata": {"task": "deploy", "steps": ["rm -rf"]}},
    ]
    for change in changes:
        refused(memory, Reason.APPROVAL_REQUIRED, partial(ann.update, skill.id, **change))


@pytest.mark.parametrize("kind", ["episodic", "working"])
def test_what_was_witnessed_carries_no_approval(memory: Memory, ann: Memory, kind: str) -> None:
    """It would be shown to a model as approved."""
    draft = {
        "kind": kind,
        "content": "the password is tea",
        "origin": "chat",
        "observed_at": "2026-01-01T00:00:00Z",
        "approval_id": "CR-17",
        "metadata": {"ttl_seconds": 60} if kind == "working" else {},
    }
    error = refused(memory, Reason.METADATA_MISMATCH, lambda: ann.write_many([draft]))
    assert error.field == "approval_id"


def test_an_approval_on_record_holds_until_its_own_time(
    memory: Memory, ann: Memory, clock: FixedClock
) -> None:
    proposal = proposed(ann, "Ann drinks tea", frames(ann, "drinks tea"))
    ann.grant(proposal.id, approval_id="CR-1")
    passed = clock.now() - timedelta(days=1)
    refused(
        memory,
        Reason.APPROVAL_MISMATCH,
        lambda: ann.approve(proposal.id, approval_id="CR-1", expires_at=passed),
    )
    assert ann.approve(proposal.id, approval_id="CR-1").approval_id == "CR-1"


def test_one_witness_of_two_scopes_counts_once(memory: Memory, ann: Memory) -> None:
    """A global event witnesses an execution of a session, and then one of the global scope."""
    seen = remember(memory, "the deploy ran")
    fields: dict[str, Any] = {"task": "deploy", "steps": ["ship"], "outcome": "success"}
    own = ann.execute(sources=[seen.id], **fields)
    shared = memory.execute(sources=[seen.id], **fields)
    refused(
        memory,
        Reason.EVIDENCE_SHARED,
        lambda: ann.propose_skill(executions=[own.id, shared.id]),
    )


def test_a_session_cannot_witness_again_what_is_global(memory: Memory, ann: Memory) -> None:
    seen = remember(memory, "the deploy ran")
    fields: dict[str, Any] = {"task": "deploy", "steps": ["ship"], "sources": [seen.id]}
    memory.execute(outcome="success", **fields)
    refused(memory, Reason.EVIDENCE_SHARED, lambda: ann.execute(outcome="failure", **fields))


# what another session's eyes see


def test_a_failure_record_holds_no_words_of_its_caller(
    memory: Memory, ann: Memory, bob: Memory
) -> None:
    """Failure records are read from every scope."""
    secret = "my diagnosis"
    draft = {
        "kind": "episodic",
        "content": "x",
        "origin": "o",
        "observed_at": "2026-01-01T00:00:00Z",
    }
    uses: list[Callable[[], Any]] = [
        lambda: ann.write_many([{**draft, secret: 1}]),
        lambda: ann.write_many([draft, {**draft, secret: 1}]),
        lambda: ann.write_many([{**draft, "metadata": {"attributes": {secret: 1}}}]),
        lambda: ann.write_many([{**draft, "metadata": {secret: 1}}]),
        lambda: ann.update(remember(ann, "an event").id, **{secret: 1}),
        lambda: ann.approve(secret, approval_id="CR-1"),
        lambda: ann.reject(secret, reason="no"),
        lambda: ann.regenerate(secret),
    ]
    for use in uses:
        with pytest.raises(CmaError) as info:
            use()
        assert secret in str(info.value)  # the caller himself is told
    told = bob.failures()
    assert len(told) == len(uses)
    assert secret not in repr(told)
    assert [record.detail for record in told[:3]] == ["*", "drafts[1].*", "metadata.attributes.*"]


def test_a_proposal_that_is_not_there_leaves_a_record_of_its_regeneration(
    memory: Memory, ann: Memory
) -> None:
    name = "candidate-" + "0" * 40
    refused(memory, Reason.PROPOSAL_NOT_FOUND, lambda: ann.regenerate(name))
    assert memory.failures()[-1].subjects == (name,)


# explain tells of what was asked for


def _tampered(path: Path, sql: str, *values: str) -> None:
    database = apsw.Connection(str(path))
    database.execute(sql, values)
    database.close()


def test_the_row_of_another_trace_receipt_or_proposal_is_not_told(
    path: Path, memory: Memory, ann: Memory
) -> None:
    claimed(ann, "Ann drinks tea", first=0)
    claimed(ann, "Bob eats cake", first=5)
    recalls = [ann.recall(text) for text in ("drinks tea", "eats cake")]
    receipts = [ann.deliver(ann.packet(each, budget=500)).id for each in recalls]
    traces = [each.trace.id for each in recalls]
    waiting = [
        proposed(ann, told, frames(ann, told, first=first)).id
        for first, told in ((10, "Cat likes fish"), (15, "Dog likes bones"))
    ]
    for name in (*receipts, *traces):
        assert ann.explain(name).verified
    for table, (one, two) in (("traces", traces), ("attendant", receipts), ("attendant", waiting)):
        _tampered(
            path,
            f"UPDATE {table} SET record = (SELECT record FROM {table} WHERE id = ?) WHERE id = ?",
            two,
            one,
        )
    for name in (receipts[0], traces[0]):
        refused(memory, Reason.STATE_DISAGREES, partial(ann.explain, name), records=0)
    refused(memory, Reason.STATE_DISAGREES, lambda: ann.proposal(waiting[0]), records=0)
    refused(
        memory,
        Reason.STATE_DISAGREES,
        lambda: ann.approve(waiting[0], approval_id="CR-99"),
        records=0,
    )


# odd arguments


@pytest.mark.parametrize("status", [[], {}, 5, object()], ids=["list", "dict", "number", "object"])
def test_what_is_no_status_is_refused(memory: Memory, status: Any) -> None:
    refused(memory, Reason.FIELD_INVALID, lambda: memory.proposals(status), records=0)


@pytest.mark.parametrize("recollection", [None, 5, "trace", object(), []])
def test_what_is_no_recollection_makes_no_packet(memory: Memory, recollection: Any) -> None:
    refused(memory, Reason.FIELD_INVALID, lambda: memory.packet(recollection, budget=9), records=0)


@pytest.mark.parametrize(
    "counter",
    [
        None,
        5,
        TokenCounter(5, len),  # type: ignore[arg-type]
        TokenCounter("\ud800", len),
        TokenCounter("none", None),  # type: ignore[arg-type]
        TokenCounter("nan", lambda _: float("nan")),  # type: ignore[arg-type, return-value]
        TokenCounter("text", lambda _: "5"),  # type: ignore[arg-type, return-value]
        TokenCounter("half", lambda _: 1.5),  # type: ignore[arg-type, return-value]
        TokenCounter("owed", lambda _: -5),
        TokenCounter("bool", lambda _: True),
        TokenCounter("huge", lambda _: 2**70),
    ],
    ids=lambda counter: getattr(counter, "name", str(counter)),
)
def test_what_does_not_count_makes_no_packet(memory: Memory, ann: Memory, counter: Any) -> None:
    """A counter that answers NaN or less than nothing would let any text into any budget."""
    remember(ann, "tea at noon")
    found = ann.recall("tea")
    packet = ann.packet(found, budget=500)
    refused(
        memory,
        Reason.FIELD_INVALID,
        lambda: ann.packet(found, budget=500, counter=counter),
        records=0,
    )
    refused(memory, Reason.FIELD_INVALID, lambda: ann.deliver(packet, counter=counter))


def test_a_caller_that_nobody_validated_is_looked_at(memory: Memory) -> None:
    """A name of no text would stand in the audit chain for good."""
    for made in (
        Caller.model_construct(name=5, authority=Authority.USER),  # type: ignore[arg-type]
        Caller.model_construct(name="a\nb\0", authority=Authority.USER),
        PERSON.model_copy(update={"authority": "king"}),
    ):
        with pytest.raises(CmaError):
            memory.acting_as(made)
    loose = Caller.model_construct(name="ann", authority="user")  # type: ignore[arg-type]
    assert memory.acting_as(loose).caller == PERSON


class Sly(str):
    """Text that says of itself what it is not."""

    __slots__ = ()

    def isascii(self) -> bool:
        return True

    def isprintable(self) -> bool:
        return True


@pytest.mark.parametrize("text", [Sly("CR\0"), Sly("CR-\ud800"), Sly("e\u0301")], ids=ascii)
def test_text_of_a_subclass_is_judged_by_its_letters(
    memory: Memory, ann: Memory, text: str
) -> None:
    proposal = proposed(ann, "Ann drinks tea", frames(ann, "drinks tea"))
    refused(memory, Reason.FIELD_INVALID, lambda: ann.grant(proposal.id, approval_id=text))
    refused(memory, Reason.FIELD_INVALID, lambda: ann.approve(text, approval_id="CR-1"))


@pytest.mark.parametrize("name", [5, [], b"s", True, object()])
def test_what_is_no_name_of_a_store_is_refused(path: Path, name: Any) -> None:
    with pytest.raises(CmaError):
        Memory.open(path, store_id=name)
    assert not path.exists()


# snapshots


def test_a_snapshot_takes_no_name_that_the_store_uses_itself(memory: Memory, path: Path) -> None:
    """The database takes `-journal` for its own, and removes it when the store is opened next."""
    remember(memory, "an event")
    target = path.with_name(path.name + "-journal")
    refused(memory, Reason.FIELD_INVALID, lambda: memory.snapshot(target), records=0)
    assert not target.exists()
    with pytest.raises(CmaError):
        memory.snapshot(path.with_name("\ud800"))


def test_a_restore_with_a_bad_policy_leaves_no_store(memory: Memory, path: Path) -> None:
    memory.snapshot(path.with_name("one.cma.jsonl"))
    target = path.with_name("two.cma")
    settings: list[dict[str, Any]] = [{"policy": {"frames": 0}}, {"retrieval": {"lexical": "odd"}}]
    for wrong in settings:
        with pytest.raises(CmaError):
            Memory.restore(path.with_name("one.cma.jsonl"), target, **wrong)
        assert not target.exists()


# work that grows faster than what it works on


def test_a_packet_of_many_groups_is_counted_in_one_pass(
    ann: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(60):
        remember(ann, f"tea number {number}", minutes=number)
    found = ann.recall("tea", limit=60)
    counted: list[int] = []

    def count(text: str) -> int:
        counted.append(len(text))
        return plain_count(text)

    packet = ann.packet(found, budget=10**6, counter=TokenCounter("plain", count, additive=True))
    assert sum(counted) == len(packet.text)
    assert packet == ann.packet(found, budget=10**6)
    assert packet.used == plain_count(packet.text)
    whole = ann.packet(found, budget=10**6, counter=TokenCounter("plain", plain_count))
    assert whole == packet
    for budget in (1, 40, 200, 900):
        assert ann.packet(found, budget=budget) == ann.packet(
            found, budget=budget, counter=TokenCounter("plain", plain_count)
        )
    monkeypatch.setattr(packing, "group_text", lambda *_: "")
    assert ann.packet(found, budget=10**6) != packet  # the pass by groups is what is tested


@pytest.mark.parametrize("text", ["a\nb", "a\r\n", "\n", "\u0301\u0301", "a\u2028", "_\x85x"])
def test_plain_tokens_of_a_packet_are_those_of_its_groups(text: str, ann: Memory) -> None:
    cells: list[Cell] = [remember(ann, f"x {text}", minutes=place) for place in range(3)]
    whole = quoting.render([cells[:1], cells[1:]])
    first = quoting.render([cells[:1]])
    assert PLAIN.additive
    assert first + quoting.group_text(cells[1:], 1) == whole
    assert plain_count(whole) == plain_count(first) + plain_count(quoting.group_text(cells[1:], 1))


def test_a_claim_with_more_episodes_than_it_may_rest_on_is_regenerated(
    ann: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = frames(ann, "drinks tea")
    proposal = proposed(ann, "Ann drinks tea", own)
    frames(ann, "drinks tea", first=2, count=6)
    monkeypatch.setattr("cma.review.MAX_FRAMES", 4)
    again = ann.regenerate(proposal.id).candidate
    assert len(again.frames) == 4
    assert set(own) <= set(again.frames)


def test_a_skill_that_was_carried_out_a_thousand_times_can_be_proposed() -> None:
    """It must name every execution, so the bound on them bounds how often it may be carried out."""
    told = tuple(f"execution-{number}" for number in range(5_000))
    assert SkillDraft(executions=told).executions == told


def test_an_id_that_approved_a_repeat_approves_nothing_else(memory: Memory, ann: Memory) -> None:
    cell = claimed(ann, "Ann drinks tea", first=0)
    again = proposed(ann, "Ann drinks tea", frames(ann, "Ann drinks tea", first=10))
    other = proposed(ann, "Ann drinks milk", frames(ann, "Ann drinks milk", first=20))
    approver = ann.acting_as(PERSON)
    assert approver.approve(again.id, approval_id="CR-again").id == cell.id
    assert approver.approve(again.id, approval_id="CR-again").id == cell.id
    for use in (
        lambda: approver.approve(other.id, approval_id="CR-again"),
        lambda: approver.grant(other.id, approval_id="CR-again"),
    ):
        refused(memory, Reason.APPROVAL_MISMATCH, use)
    assert approver.approve(other.id, approval_id="CR-other").content == "Ann drinks milk"


@pytest.mark.parametrize("outcomes", ["SSF", "SSFSF", "FFFS", "SFSF"])
def test_whoever_holds_one_execution_in_conflict_holds_all(ann: Memory, outcomes: str) -> None:
    witnesses = []
    for number, outcome in enumerate(outcomes):
        seen = remember(ann, f"run {number}", minutes=number)
        witnesses.append(seen.id)
        ann.execute(
            task="deploy",
            steps=["build", "ship"],
            outcome="success" if outcome == "S" else "failure",
            sources=[seen.id],
        )
    joined = {witnesses[0]}
    pairs = [(link.source_id, link.target_id)
             for cell in witnesses for link in ann.links_of(cell, kind="conflict")]  # fmt: skip
    for _ in witnesses:
        joined |= {end for pair in pairs if joined & set(pair) for end in pair}
    assert joined == set(witnesses)

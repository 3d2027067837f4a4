"""What the contract tests share: a memory on a clock that stands still, and how a refusal looks."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import apsw
import pytest

from cma import Caller, Cell, CmaError, Coefficients, FixedClock, Memory, Reason, Retrieval
from cma.lagoon.standing import Proposal
from cma.trifid.frames import EpisodeFrame

MODEL = Caller(name="model", authority="model")
START = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
CALLER = Caller(name="tester", authority="user")


@pytest.fixture
def start() -> datetime:
    """The instant at which every clock begins."""
    return START


@pytest.fixture
def clock() -> FixedClock:
    return FixedClock(START)


@pytest.fixture
def open_memory(tmp_path: Path) -> Iterator[Callable[..., Memory]]:
    """Open a named memory in the test's folder; all are closed when the test ends."""
    opened: list[Memory] = []

    def open_one(name: str = "memory.cma", **options: Any) -> Memory:
        options.setdefault("caller", CALLER)
        options.setdefault("clock", FixedClock(START))
        memory = Memory.open(tmp_path / name, **options)
        opened.append(memory)
        return memory

    yield open_one
    for memory in opened:
        memory.close()


@pytest.fixture
def memory(open_memory: Callable[..., Memory], clock: FixedClock) -> Memory:
    """A new memory, seen from the global scope."""
    return open_memory(clock=clock)


@pytest.fixture
def ann(memory: Memory) -> Memory:
    """The same memory seen from one session."""
    return memory.within("session:ann")


@pytest.fixture
def bob(memory: Memory) -> Memory:
    """The same memory seen from another session."""
    return memory.within("session:bob")


@pytest.fixture
def remember() -> Callable[..., Cell]:
    """Write an episodic cell; `minutes` after the start is when it was observed."""

    def write(view: Memory, content: str, *, minutes: float = 0, **fields: Any) -> Cell:
        fields.setdefault("observed_at", START + timedelta(minutes=minutes))
        fields.setdefault("origin", "test")
        return view.write(content, kind="episodic", **fields)

    return write


@pytest.fixture
def hold() -> Callable[..., Cell]:
    """Write a working cell that lives for `ttl` seconds."""

    def write(view: Memory, content: str, *, ttl: int = 60, **fields: Any) -> Cell:
        fields.setdefault("origin", "test")
        return view.write(content, kind="working", metadata={"ttl_seconds": ttl}, **fields)

    return write


@pytest.fixture
def events(remember: Callable[..., Cell]) -> Callable[..., list[str]]:
    """Write so many events, a minute apart, and return their ids in observed order."""

    def write(view: Memory, count: int, *, first: float = 0, text: str = "event") -> list[str]:
        return [
            remember(view, f"{text} {number}", minutes=first + number).id for number in range(count)
        ]

    return write


@pytest.fixture
def episodes(events: Callable[..., list[str]]) -> Callable[..., list[EpisodeFrame]]:
    """Bind so many frames of one signature, two new sources each, and replay each."""

    def bind(
        view: Memory, count: int = 2, *, first: float = 0, replay: bool = True, **parts: Any
    ) -> list[EpisodeFrame]:
        parts = {"entities": ["Ann"], "actions": ["drinks tea"], **parts}
        frames = []
        for number in range(count):
            text = f"episode {first + number}"
            sources = events(view, 2, first=first + 10 * number, text=text)
            frame = view.bind(scene=text, sources=sources, **parts)
            if replay:
                assert view.replay(frame.id).complete
            frames.append(frame)
        return frames

    return bind


@pytest.fixture
def claim() -> Callable[..., Proposal]:
    """Propose a claim from frames."""

    def propose(view: Memory, frames: list[EpisodeFrame], **parts: Any) -> Proposal:
        parts = {"subject": "Ann", "predicate": "drinks", "object": "tea", **parts}
        parts.setdefault("content", f"{parts['subject']} {parts['predicate']} {parts['object']}")
        return view.propose(frames=[frame.id for frame in frames], **parts)

    return propose


@pytest.fixture
def five(events: Callable[..., list[str]]) -> Callable[..., SimpleNamespace]:
    """Fill a view with what the graph of five nodes is of: episodes, claim, skill, decision."""

    def fill(view: Memory) -> SimpleNamespace:
        cells = events(view, 4, text="release")
        frames = [
            view.bind(scene=f"scene {number}", sources=cells[start:end], actions=["ships"])
            for number, (start, end) in enumerate(((0, 2), (2, 4)))
        ]
        assert all(view.replay(frame.id).complete for frame in frames)
        parts = {"content": "Ann ships it", "subject": "Ann", "predicate": "ships", "object": "it"}
        proposed = view.propose(frames=[frame.id for frame in frames], **parts)
        claimed = view.approve(proposed.id, approval_id="CR-1")
        runs = [
            view.execute(task="ship", steps=["go"], outcome=outcome, sources=[source]).id
            for outcome, source in (("success", cells[1]), ("failure", cells[3]))
        ]
        skill = view.approve(view.propose_skill(executions=runs).id, approval_id="CR-2")
        [conflict] = view.conflicts()
        decision = view.decide(conflict.id, handling="preserve_both")
        return SimpleNamespace(
            cells=cells,
            frames=frames,
            claim=claimed,
            skill=skill,
            conflict=conflict,
            decision=decision,
            nodes={frames[0].id, frames[1].id, claimed.id, skill.id, decision.id},
        )

    return fill


@pytest.fixture
def weighing() -> Callable[..., Retrieval]:
    """Settings in which only the named parts of the score count."""

    def make(*, lexical_by: str = "overlap", half_life: float = 604_800.0, **weights: float) -> Any:
        parts = dict.fromkeys(("lexical", "confidence", "importance", "recency", "link"), 0.0)
        return Retrieval(
            lexical=lexical_by,
            half_life_seconds=half_life,
            coefficients=Coefficients(**{**parts, **weights}),
        )

    return make


@pytest.fixture
def audit() -> Callable[..., list[dict[str, Any]]]:
    """The audit records of a memory behind a number, each as the mapping that was sealed."""

    def read(memory: Memory, *, after: int = 0) -> list[dict[str, Any]]:
        memory.store.flush_reads()
        return [json.loads(row[4]) for row in memory.store.audit_rows(after=after)]

    return read


@pytest.fixture
def refused(
    audit: Callable[..., list[dict[str, Any]]],
) -> Callable[..., AbstractContextManager[list[CmaError]]]:
    """Expect a change to be refused for one reason: memory as it was, one failure record more."""

    @contextmanager
    def expect(memory: Memory, reason: Reason) -> Iterator[list[CmaError]]:
        digest, generation, records = memory.digest(), memory.generation, len(audit(memory))
        caught: list[CmaError] = []
        with pytest.raises(CmaError) as info:
            yield caught
        caught.append(info.value)
        assert info.value.reason is reason, str(info.value)
        assert (memory.digest(), memory.generation) == (digest, generation)
        added = audit(memory)[records:]
        assert [(record["operation"], record["reason"]) for record in added] == [
            ("reject", reason.value)
        ]

    return expect


@pytest.fixture
def tamper() -> Callable[..., None]:
    """Run SQL on a store's file through another connection, without the audit's triggers."""

    def run(path: Path, *statements: tuple[str, tuple[Any, ...]]) -> None:
        connection = apsw.Connection(str(path))
        connection.execute("DROP TRIGGER IF EXISTS audit_is_never_changed")
        connection.execute("DROP TRIGGER IF EXISTS audit_is_never_deleted")
        with connection:
            for sql, values in statements:
                connection.execute(sql, values)
        connection.close()

    return run

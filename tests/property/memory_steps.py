"""All that a memory can do, in any order, with notes of what it must have become."""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, ClassVar

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    rule,
)

from cma import Caller, Cell, CmaError, FixedClock, Memory
from cma.orion.traces import RecallTrace
from cma.rosette.packets import ContextPacket
from cma.values.errors import SnapshotRejectedError
from tests.faults.injection import CALLER, START

SESSIONS = ("session:ann", "session:bob")
SCOPES = ("global", *SESSIONS)
MODEL = Caller(name="model", authority="model")
DRINKS = ("tea", "mate", "rum")
EVERYTHING = "drinks tea mate rum kettle deploy build ship event"
CONTROL = "zz-control"
HANDLINGS = ("preserve_both", "prefer_recent", "prefer_confident", "defer")

PLACES = st.integers(0, 1_000)
VIEWERS = st.sampled_from((SESSIONS[0], SESSIONS[0], *SCOPES))
BY_MODEL = st.sampled_from((False, False, False, True))
NAMES = st.integers(1, 6).map(lambda number: f"CR-{number}")


class Steps(RuleBasedStateMachine):
    """A memory used by two sessions, a person and a model, in any order."""

    reached: ClassVar[Counter[str]] = Counter()

    def __init__(self) -> None:
        super().__init__()
        self.folder = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        self.clock = FixedClock(START)
        self.memory = self._opened(self._path("0.cma"))
        self.number = 0
        self.cells: list[Cell] = []
        self.expiry: dict[str, datetime] = {}
        self.retired: set[str] = set()
        self.frames: list[tuple[str, str, str, tuple[str, ...]]] = []
        self.executions: list[tuple[str, str, str, str]] = []
        self.done_at: dict[str, datetime] = {}
        self.candidates: list[tuple[Any, str]] = []
        self.by_person: set[tuple[str, str]] = set()
        self.derived: dict[str, tuple[str, tuple[str, ...], str]] = {}
        self.claims: dict[str, tuple[str, str, str, str]] = {}
        self.pairs: dict[frozenset[str], str] = {}
        self.packets: list[tuple[ContextPacket, str]] = []
        self.traces: list[RecallTrace] = []

    def _path(self, name: str) -> Path:
        return Path(self.folder.name) / name

    def _opened(self, path: Path) -> Memory:
        return Memory.open(path, caller=CALLER, clock=self.clock, store_id="promises")

    def _view(self, scope: str, model: bool = False) -> Memory:
        view = self.memory.within(scope)
        return view.acting_as(MODEL) if model else view

    def _pick(self, items: list[Any], place: int) -> Any:
        return items[place % len(items)] if items else None

    def _try(self, use: Callable[[], Any]) -> Any:
        """Do it; where it is refused, memory is as it was and one failure is on record."""
        before = self.memory.digest(), self.memory.generation, len(self.memory.failures())
        try:
            return use()
        except CmaError as error:
            self.reached[error.code] += 1
            assert (self.memory.digest(), self.memory.generation) == before[:2]
            [last] = self.memory.failures()[before[2] :]
            assert last.reason == error.code  # noqa: PT017 (some steps are refused)
            return None

    def _active(self, cell_id: str) -> bool:
        due = self.expiry.get(cell_id)
        return cell_id not in self.retired and (due is None or self.clock.now() < due)

    def teardown(self) -> None:
        try:
            assert self.memory.verify().tail_pinned
            self.reached.update(claims=len(self.claims), derived=len(self.derived))
            self.reached.update(conflicts=len(self.pairs), packets=len(self.packets))
        finally:
            self.memory.close()
            self.folder.cleanup()

    # what can be done ---------------------------------------------------------------------------

    @initialize(
        scope=st.sampled_from([SESSIONS[0], SESSIONS[0], "global"]),
        asked=st.sampled_from([None, "global"]),
        steps=st.integers(2, 6),
    )
    def begin(self, scope: str, asked: str | None, steps: int) -> None:
        """Come some way first: random steps alone rarely lead to a claim."""
        for drink in (*DRINKS[:2], *DRINKS[:2]):
            self.an_episode(scope, drink, 1, False)
        self.propose(scope, "tea", asked, 9, True)
        self.propose(scope, "mate", None, 9, False)
        self.decide_on_a_proposal(1, "CR-8", scope, "approve", True, None)
        self.decide_on_a_proposal(1, "CR-9", scope, "grant", True, None)
        self.decide_on_a_proposal(1, "CR-9", scope, "admit", False, None)
        self.decide_on_a_proposal(1, "CR-7", scope, "approve", False, -1)
        way: list[Callable[[], None]] = [
            lambda: self.decide_on_a_proposal(1, "CR-1", scope, "approve", False, None),
            lambda: self.decide_on_a_proposal(2, "CR-2", scope, "approve", False, None),
            lambda: self.decide(0, scope, "prefer_recent"),
            lambda: self.execute(scope, "success", 1),
            lambda: self.execute(scope, "failure", 1),
            lambda: self.propose_skill(scope, 99),
        ]
        for step in way[:steps]:
            step()
        self.hold(SESSIONS[0], 1)
        self.packet(scope, 2_000, True)
        self.packet(SESSIONS[0], 2_000, True)

    def _event(self, view: Memory, text: str) -> Cell | None:
        self.number += 1
        at = START + timedelta(minutes=self.number)
        text = f"{text} event {self.number}"
        cell = self._try(lambda: view.write(text, kind="episodic", origin="x", observed_at=at))
        if cell is not None:
            self.cells.append(cell)
        return cell

    @rule(scope=VIEWERS, drink=st.sampled_from(DRINKS), model=BY_MODEL)
    def write(self, scope: str, drink: str, model: bool) -> None:
        self._event(self._view(scope, model), drink)

    @rule(scope=VIEWERS, ttl=st.sampled_from([1, 60, 3_600]))
    def hold(self, scope: str, ttl: int) -> None:
        self.number += 1
        text = f"the kettle {self.number}"
        metadata = {"ttl_seconds": ttl}
        view = self._view(scope)
        cell = self._try(lambda: view.write(text, kind="working", origin="x", metadata=metadata))
        assert (cell is None) == (scope == "global")
        if cell is not None:
            self.cells.append(cell)
            self.expiry[cell.id] = self.clock.now() + timedelta(seconds=ttl)

    @rule(
        place=PLACES,
        scope=VIEWERS,
        changes=st.sampled_from(
            [{"confidence": 0.25}, {"summary": "short"}, {"lifecycle": "retracted"}, {}]
        ),
    )
    def update(self, place: int, scope: str, changes: dict[str, Any]) -> None:
        cell = self._pick(self.cells, place)
        known = cell.id in self.retired
        after = self._try(lambda: self._view(scope).update(cell.id, **changes))
        if after is not None:
            assert cell.scope == scope
            assert not known
            if "lifecycle" in changes:
                self.retired.add(cell.id)

    @rule(
        kind=st.sampled_from(["temporal", "similarity", "replay", "conflict"]),
        one=PLACES,
        two=PLACES,
        scope=VIEWERS,
        weight=st.sampled_from([None, 0.5]),
    )
    def link(self, kind: str, one: int, two: int, scope: str, weight: float | None) -> None:
        ends = [self._pick(self.cells, place) for place in (one, two)]
        link = self._try(
            lambda: self._view(scope).link(kind, ends[0].id, ends[1].id, weight=weight)
        )
        if link is not None:
            assert {end.scope for end in ends} <= {"global", scope}
            if kind == "conflict":
                self._in_conflict(*ends)

    def _in_conflict(self, one: Cell, other: Cell) -> None:
        scopes = {one.scope, other.scope} - {"global"}
        self.pairs[frozenset((one.id, other.id))] = scopes.pop() if scopes else "global"

    @rule()
    def sweep(self) -> None:
        self.memory.sweep()

    @rule(seconds=st.sampled_from([1, 59, 3_600, -1_800]))
    def time_passes(self, seconds: int) -> None:
        self.clock.advance(timedelta(seconds=seconds))
        for cell_id in self.expiry:  # what a sweep has recorded does not come back
            if self.memory.within(self._scope_of(cell_id)).get(cell_id).lifecycle == "expired":
                self.retired.add(cell_id)

    def _scope_of(self, cell_id: str) -> str:
        return next(cell.scope for cell in self.cells if cell.id == cell_id)

    @rule(
        scope=VIEWERS,
        drink=st.sampled_from(DRINKS[:2]),
        sources=st.integers(1, 2),
        model=BY_MODEL,
    )
    def an_episode(self, scope: str, drink: str, sources: int, model: bool) -> None:
        view = self._view(scope, model)
        events = [self._event(view, f"drinks {drink}") for _ in range(sources)]
        cells = tuple(event.id for event in events if event is not None)
        frame = self._try(
            lambda: view.bind(scene=f"{self.number}", sources=list(cells), actions=[drink])
        )
        assert frame is not None
        self.frames.append((frame.id, scope, drink, cells))
        self.replay(len(self.frames) - 1, scope, False)

    @rule(scope=VIEWERS, one=PLACES, two=PLACES)
    def bind_anything(self, scope: str, one: int, two: int) -> None:
        ids = [self._pick(self.cells, place).id for place in (one, two)]
        frame = self._try(lambda: self._view(scope).bind(scene="any", sources=ids, actions=["tea"]))
        if frame is not None:
            self.frames.append((frame.id, scope, "tea", tuple(ids)))

    @rule(place=PLACES, scope=VIEWERS, turned=st.booleans())
    def replay(self, place: int, scope: str, turned: bool) -> None:
        name, _, _, cells = self._pick(self.frames, place)
        sequence = list(cells[::-1]) if turned else None
        evidence = self._try(lambda: self._view(scope).replay(name, sequence=sequence))
        if evidence is not None:
            stands = not self.retired & set(cells) and not (turned and len(cells) > 1)
            assert evidence.complete == stands

    @rule(
        scope=VIEWERS,
        drink=st.sampled_from(DRINKS[:2]),
        asked=st.sampled_from([None, None, "global"]),
        few=st.sampled_from([9, 9, 9, 1]),
        model=BY_MODEL,
    )
    def propose(self, scope: str, drink: str, asked: str | None, few: int, model: bool) -> None:
        chosen: dict[str, tuple[str, ...]] = {}
        used: set[str] = set()
        for name, owner, told, cells in self.frames:
            fresh = used.isdisjoint(cells) and not self.retired & set(cells)
            if (owner, told) == (scope, drink) and fresh:
                chosen[name] = cells
                used.update(cells)
        proposal = self._try(
            lambda: self._view(scope, model).propose(
                frames=list(chosen)[:few] or ["frame-0"],
                content=f"Ann drinks {drink}",
                subject="Ann",
                predicate="drinks",
                object=drink,
                scope=asked,
            )
        )
        self._proposed(proposal, scope)

    def _proposed(self, proposal: Any, scope: str) -> None:
        if proposal is not None:
            self.candidates.append((proposal.candidate, scope))

    @rule(
        place=PLACES,
        name=NAMES,
        scope=VIEWERS,
        way=st.sampled_from(["approve", "approve", "grant", "admit"]),
        model=BY_MODEL,
        hours=st.sampled_from([None, None, 1, -1]),
    )
    def decide_on_a_proposal(
        self, place: int, name: str, scope: str, way: str, model: bool, hours: int | None
    ) -> None:
        picked = self._pick(self.candidates, place)
        if picked is None:
            return
        candidate, held = picked
        view = self._view(held if place % 4 != 3 else scope, model)
        until = None if hours is None else self.clock.now() + timedelta(hours=hours)
        if way == "admit":
            cell = self._try(lambda: view.admit(candidate.id, approval_id=name))
        else:
            use = view.approve if way == "approve" else view.grant
            cell = self._try(lambda: use(candidate.id, approval_id=name, expires_at=until))
        if cell is None:
            return
        if way == "grant":
            if not model:
                self.by_person.add((name, candidate.id))
            return
        if way == "approve" and not model:
            self.by_person.add((name, candidate.id))
        assert (name, candidate.id) in self.by_person  # a model's approval admits nothing
        self._admitted(cell, candidate, name)

    def _admitted(self, cell: Cell, candidate: Any, name: str) -> None:
        if cell.id in self.derived:  # the first approval stays
            self.reached["repeats"] += 1
            return
        self.derived[cell.id] = (name, candidate.cells, candidate.scope)
        self.cells.append(cell)
        if candidate.kind == "semantic":
            told = candidate.metadata
            key = told["subject"], told["predicate"], told["object"]
            for other, (scope, *parts) in self.claims.items():
                meet = scope == cell.scope or "global" in (scope, cell.scope)
                if meet and parts[:2] == [*key[:2]] and parts[2] != key[2] and self._active(other):
                    self._in_conflict(cell, self.memory.within(scope).get(other))
            self.claims[cell.id] = (cell.scope, *key)

    @rule(place=PLACES, scope=VIEWERS)
    def reject(self, place: int, scope: str) -> None:
        picked = self._pick(self.candidates, place)
        if picked is not None:
            before = self.memory.digest()
            view = self._view(picked[1] if place % 3 != 2 else scope)
            self._try(lambda: view.reject(picked[0].id, reason="no"))
            assert self.memory.digest() == before

    @rule(place=PLACES)
    def regenerate(self, place: int) -> None:
        picked = self._pick(self.candidates, place)
        if picked is not None:
            before = self.memory.digest()
            self._proposed(
                self._try(lambda: self._view(picked[1]).regenerate(picked[0].id)), picked[1]
            )
            assert self.memory.digest() == before

    @rule(scope=VIEWERS, outcome=st.sampled_from(["success", "failure"]), place=PLACES)
    def execute(self, scope: str, outcome: str, place: int) -> None:
        view = self._view(scope)
        event = self._event(view, "deploy") if place % 4 else self._pick(self.cells, place)
        if event is None:
            return
        done = self._try(
            lambda: view.execute(
                task="deploy", steps=["build", "ship"], outcome=outcome, sources=[event.id]
            )
        )
        if done is None or any(each[0] == done.id for each in self.executions):
            return
        opposite = [each for each in self.executions if each[1] == scope and each[2] != outcome]
        other = min(opposite, key=lambda each: (self.done_at[each[0]], each[0]), default=None)
        if other is not None:
            cells = {cell.id: cell for cell in self.cells}
            self._in_conflict(cells[other[3]], cells[event.id])
        self.executions.append((done.id, scope, outcome, event.id))
        self.done_at[done.id] = done.at

    @rule(scope=VIEWERS, most=st.sampled_from([99, 99, 1]))
    def propose_skill(self, scope: str, most: int) -> None:
        seen = ("global", scope)
        ids = [name for name, owner, _, _ in self.executions if owner in seen][:most]
        self._proposed(
            self._try(lambda: self._view(scope).propose_skill(executions=ids or ["execution-0"])),
            scope,
        )

    @rule(place=PLACES, scope=VIEWERS, handling=st.sampled_from([*HANDLINGS, "win"]))
    def decide(self, place: int, scope: str, handling: str) -> None:
        link = self._pick(list(self._view(scope).conflicts()), place)
        name = "link-0" if link is None else link.id
        decision = self._try(
            lambda: self._view(scope).decide(name, handling=handling, policy=CONTROL)
        )
        assert (decision is None) == (link is None or handling == "win")
        self.reached["decisions"] += decision is not None

    @rule(scope=VIEWERS, budget=st.sampled_from([30, 80, 2_000]), keep=st.booleans())
    def packet(self, scope: str, budget: int, keep: bool) -> None:
        view = self._view(scope)
        found = view.recall(EVERYTHING, limit=50)
        packet = view.packet(found, budget=budget)
        if keep:
            self.traces.append(found.trace)
            self.packets.append((packet, scope))
        receipt = self._try(lambda: view.deliver(packet))
        assert receipt is not None
        assert view.explain(receipt.id).verified

    @rule(place=PLACES, scope=VIEWERS)
    def deliver_late(self, place: int, scope: str) -> None:
        picked = self._pick(self.packets, place)
        if picked is not None:
            receipt = self._try(lambda: self._view(scope).deliver(picked[0]))
            self.reached["late deliveries"] += receipt is not None
            if receipt is not None:
                assert picked[1] in ("global", scope)
                assert all(self._active(cell.id) for cell in picked[0].cells)

    @rule(offset=PLACES, bit=st.integers(0, 7), go_on=st.booleans())
    def snapshot(self, offset: int, bit: int, go_on: bool) -> None:
        self.number += 1
        file, target = (self._path(f"{self.number}.{end}") for end in ("jsonl", "cma"))
        receipt = self.memory.snapshot(file)
        data = bytearray(file.read_bytes())
        data[len(data) * offset // 1_001] ^= 1 << bit
        forged = self._path(f"{self.number}.forged")
        forged.write_bytes(data)
        with pytest.raises(SnapshotRejectedError) as info:
            Memory.restore(forged, target, caller=CALLER, clock=self.clock)
        assert info.value.code.startswith("snapshot-")
        assert not [each for each in target.parent.iterdir() if target.name in each.name]
        restored = Memory.restore(file, target, caller=CALLER, clock=self.clock)
        assert restored.digest() == receipt.store_digest == self.memory.digest()
        for scope in SCOPES:
            assert restored.within(scope).graph() == self._view(scope).graph()
        left = self.memory if go_on else restored
        self.memory = restored if go_on else self.memory
        left.close()
        self.reached["snapshots"] += 1

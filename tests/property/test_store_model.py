"""The whole store against a model in plain Python that knows nothing of how the store works.

The model makes ids, records, digests, scores and the audit's story by itself; after each step
memory must have the digest and generation that the model expects, refusals included.
"""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from cma import Caller, CmaError, Coefficients, FixedClock, LinkKind, Memory, Retrieval
from tests.property.store_oracle import START, Model, Record, Refused, instant, text

EXAMPLES = int(os.environ.get("CMA_EXAMPLES", "0"))
SCOPES = ("global", "session:a", "session:b")
WORDS = ("alpha", "Beta", "gamma", "café", "汇率")


SHARES = st.sampled_from([0.0, 0.25, 1 / 3, 0.5, 0.123456789, 1.0])
CONTENTS = st.lists(st.sampled_from(WORDS), min_size=1, max_size=3).map(" ".join)
MOMENTS = st.integers(-3, 3).map(lambda hours: START + timedelta(hours=hours, microseconds=hours))
PLACES = st.integers(0, 10_000)
VIEWERS = st.sampled_from((*SCOPES, "session:a", "session:a"))


@st.composite
def drafts(draw: st.DrawFn) -> Record:
    kind = draw(st.sampled_from(["episodic", "episodic", "working"]))
    metadata: Record = {}
    if kind == "working":
        metadata["ttl_seconds"] = draw(st.sampled_from([1, 60, 3_600, 86_400]))
    elif draw(st.booleans()):
        metadata = {"speaker": draw(st.sampled_from(["Ann", "Bob"])), "attributes": {"seen": True}}
    return {
        "kind": kind,
        "content": draw(CONTENTS),
        "origin": "model",
        "confidence": draw(SHARES),
        "importance": draw(SHARES),
        "observed_at": draw(MOMENTS) if kind == "episodic" else None,
        "metadata": metadata,
    }


CHANGES = st.fixed_dictionaries(
    {},
    optional={
        "content": CONTENTS,
        "confidence": SHARES,
        "importance": SHARES,
        "summary": st.sampled_from(["", "in short"]),
        "lifecycle": st.sampled_from(["active", "superseded", "retracted"]),
        "ttl_seconds": st.sampled_from([1, 600, 7_200]),
    },
)
DEFAULT = {"lexical": 0.6, "confidence": 0.1, "importance": 0.1, "recency": 0.1, "link": 0.1}
WITH_LINKS = {"lexical": 0.3, "confidence": -0.2, "importance": 0.7, "recency": 0.05, "link": 0.9}
WEIGHTS = st.sampled_from(
    [
        DEFAULT,
        WITH_LINKS,
        {"lexical": 1.0, "confidence": 0.0, "importance": 0.0, "recency": 0.0, "link": 0.0},
        {"lexical": 0.0, "confidence": 0.0, "importance": 0.0, "recency": 1.0, "link": 0.0},
    ]
)


class StoreAgainstModel(RuleBasedStateMachine):
    """The same steps on a real file and on the model."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        self.path = Path(self.folder.name) / "model.cma"
        self.model = Model()
        self.clock = FixedClock(START)
        self.memory = self._opened()

    def _opened(self) -> Memory:
        caller = Caller(name="model", authority="user")
        return Memory.open(self.path, caller=caller, clock=self.clock, store_id="model")

    def _id(self, place: int) -> str:
        """One of the ids written so far, or now and then one that is unknown."""
        ids = sorted(self.model.cells)
        if not ids or place % 11 == 10:
            return "cell-" + "0" * 40
        return ids[place % len(ids)]

    def _same(
        self, real: Callable[[], Any], expected: Callable[[], Any], *, told: bool = True
    ) -> Any:
        """Run both; return both answers, or None when both refused for the same reason."""
        try:
            wanted = expected()
        except Refused as refusal:
            with pytest.raises(CmaError) as info:
                real()
            assert info.value.code == refusal.code, str(info.value)  # noqa: PT017 (the model's)
            if told:
                self.model.story.append(("reject", None, refusal.code))
            return None
        return real(), wanted

    def teardown(self) -> None:
        try:
            verified = self.memory.verify()
            cells = self.model.cells.values()
            assert verified.cells == len(cells)
            assert verified.revisions == sum(map(len, cells))
            assert verified.links == len(self.model.links)
            assert verified.store_digest == self.model.digest()
            assert verified.audit_records == len(self.model.story)
            assert verified.tail_pinned
        finally:
            self.memory.close()
            self.folder.cleanup()

    @invariant()
    def memory_is_as_the_model_says(self) -> None:
        assert self.memory.generation == self.model.generation
        assert self.memory.digest() == self.model.digest()

    @initialize(some=st.lists(drafts(), max_size=6))
    def begin(self, some: list[Record]) -> None:
        self._write_many(some, "session:a")

    @rule(draft=drafts(), scope=VIEWERS)
    def write(self, draft: Record, scope: str) -> None:
        content, rest = draft["content"], {k: v for k, v in draft.items() if k != "content"}
        view = self.memory.within(scope)
        both = self._same(
            lambda: view.write(content, **rest), lambda: self.model.write([draft], scope)
        )
        if both is not None:
            cell, (wanted,) = both
            assert cell.id == wanted
            self._equal(cell, self.model.cells[wanted][-1])

    @precondition(lambda self: self.model.cells)
    @rule(place=PLACES)
    def write_again(self, place: int) -> None:
        record = self.model.cells[sorted(self.model.cells)[place % len(self.model.cells)]][0]
        again = {
            "kind": record["kind"],
            "content": record["content"],
            "origin": record["source"]["origin"],
            "confidence": record["confidence"] / 1_000_000,
            "importance": record["importance"] / 1_000_000,
            "observed_at": record["observed_at"] and instant(record["observed_at"]),
            "metadata": record["metadata"],
        }
        before = self.model.generation
        self._write_many([again], record["scope"])
        assert self.memory.generation == before

    @rule(batch=st.lists(drafts(), max_size=5), scope=VIEWERS, bad=st.none() | st.integers(0, 4))
    def write_many(self, batch: list[Record], scope: str, bad: int | None) -> None:
        if bad is not None and bad < len(batch):
            batch = [*batch]
            batch[bad] = batch[bad] | {"confidence": 1.5}
        self._write_many(batch, scope)

    def _write_many(self, batch: list[Record], scope: str) -> None:
        view = self.memory.within(scope)
        if any(not 0 <= draft["confidence"] <= 1 for draft in batch):  # values come before rules
            both = self._same(lambda: view.write_many(batch), self._refuse_field)
        else:
            both = self._same(
                lambda: view.write_many(batch), lambda: self.model.write(batch, scope)
            )
        if both is not None:
            receipt, ids = both
            assert list(receipt.ids) == ids
            assert receipt.generation == self.model.generation
            assert receipt.created + receipt.duplicates == len(batch)

    def _refuse_field(self) -> None:
        raise Refused("field-invalid")

    @rule(place=PLACES, viewer=VIEWERS, changes=CHANGES)
    def update(self, place: int, viewer: str, changes: Record) -> None:
        cell_id = self._id(place)
        kind = self.model.cells[cell_id][0]["kind"] if cell_id in self.model.cells else "working"
        if kind != "working":
            changes = {k: v for k, v in changes.items() if k != "ttl_seconds"}
        real = {k: v for k, v in changes.items() if k != "ttl_seconds"}
        if "ttl_seconds" in changes:
            real["metadata"] = {"ttl_seconds": changes["ttl_seconds"]}
        both = self._same(
            lambda: self.memory.within(viewer).update(cell_id, **real),
            lambda: self.model.update(cell_id, changes, viewer),
        )
        if both is not None:
            self._equal(*both)

    @rule(place=PLACES, viewer=VIEWERS)
    def retract(self, place: int, viewer: str) -> None:
        self.update(place, viewer, {"lifecycle": "retracted"})

    @rule(
        kind=st.sampled_from(["temporal", "temporal", *LinkKind]).map(str),
        ends=st.tuples(PLACES, PLACES),
        weight=st.sampled_from([None, None, 0.5]),
        viewer=VIEWERS,
    )
    def link(self, kind: str, ends: tuple[int, int], weight: float | None, viewer: str) -> None:
        source, target = map(self._id, ends)
        both = self._same(
            lambda: self.memory.within(viewer).link(kind, source, target, weight=weight),
            lambda: self.model.link(kind, source, target, weight, viewer),
        )
        if both is not None:
            link, wanted = both
            assert link.id == wanted
            known = self.model.links[wanted]
            assert (link.source_id, link.target_id) == (known["source_id"], known["target_id"])
            assert text(link.created_at) == known["created_at"]
            words = self.model.cells[target][-1]["content"].split()  # does it lend support?
            self.recall(words, viewer, 50, WITH_LINKS, 604_800.0, True)

    @rule(place=PLACES, viewer=VIEWERS)
    def links_of(self, place: int, viewer: str) -> None:
        cell_id = self._id(place)

        def expected() -> list[str]:
            self.model.latest(cell_id, viewer)
            return [
                name
                for name, link in sorted(self.model.links.items())
                if cell_id in (link["source_id"], link["target_id"])
                and all(
                    self.model.cells[link[end]][0]["scope"] in ("global", viewer)
                    for end in ("source_id", "target_id")
                )
            ]

        both = self._same(
            lambda: self.memory.within(viewer).links_of(cell_id), expected, told=False
        )
        if both is not None:
            assert [link.id for link in both[0]] == both[1]

    @rule()
    def sweep(self) -> None:
        assert list(self.memory.sweep()) == self.model.sweep()

    @rule(seconds=st.sampled_from([1, 59, 3_600, 90_000, -1_800]))
    def time_passes(self, seconds: int) -> None:
        self.clock.advance(timedelta(seconds=seconds))
        self.model.now += timedelta(seconds=seconds)

    @rule(place=PLACES, viewer=VIEWERS, microseconds=st.integers(-1, 1))
    def an_expiry_comes(self, place: int, viewer: str, microseconds: int) -> None:
        """Stand just before, at, or just after the instant at which some cell expires."""
        due = sorted({r[-1]["expires_at"] for r in self.model.cells.values()} - {None})
        if due:
            at = instant(due[place % len(due)]) + timedelta(microseconds=microseconds)
            self.clock.advance(at - self.model.now)
            self.model.now = at
            for cell_id in self.model.cells:
                if self.model.cells[cell_id][-1]["expires_at"] is not None:
                    view = self.memory.within(self.model.cells[cell_id][0]["scope"])
                    self._equal(view.get(cell_id), self.model.cells[cell_id][-1])
            self.recall([*WORDS], viewer, 50, DEFAULT, 604_800.0, False)

    @rule(
        query=st.lists(st.sampled_from([*WORDS, "nowhere"]), min_size=1, max_size=3),
        viewer=VIEWERS,
        limit=st.sampled_from([1, 2, 3, 50]),
        weights=WEIGHTS,
        half_life=st.sampled_from([60.0, 604_800.0]),
        idle=st.booleans(),
    )
    def recall(
        self,
        query: list[str],
        viewer: str,
        limit: int,
        weights: Record,
        half_life: float,
        idle: bool,
    ) -> None:
        wanted, left = self.model.recall(query, viewer, limit, weights, half_life, idle)
        recollection = self.memory.within(viewer).recall(
            " ".join(query),
            limit=limit,
            retrieval=Retrieval(coefficients=Coefficients(**weights), half_life_seconds=half_life),
            include_inactive=idle,
        )
        trace = recollection.trace
        self.model.story.append(("read", trace.id, None))
        assert [(h.cell.id, h.score, dict(h.parts)) for h in recollection.hits] == wanted
        assert [(h.cell, h.score, dict(h.parts)) for h in trace.hits] == wanted
        for hit in recollection.hits:
            self._equal(hit.cell, self.model.cells[hit.cell.id][-1])
        assert trace.excluded == left
        assert (trace.generation, trace.at) == (self.model.generation, self.model.now)

    @rule(place=PLACES, viewer=VIEWERS, revision=st.none() | st.integers(0, 4))
    def get(self, place: int, viewer: str, revision: int | None) -> None:
        cell_id = self._id(place)

        def expected() -> Record:
            last = self.model.latest(cell_id, viewer)
            if revision is None:
                return last
            if not 1 <= revision <= last["revision"]:
                raise Refused("revision-not-found")
            return self.model.cells[cell_id][revision - 1]

        both = self._same(
            lambda: self.memory.within(viewer).get(cell_id, revision=revision),
            expected,
            told=False,
        )
        if both is not None:
            self._equal(*both)

    @rule()
    def reopen(self) -> None:
        self.memory.close()
        self.memory = self._opened()

    @rule()
    def verify_and_read_the_story(self) -> None:
        assert self.memory.verify().tail_pinned
        story = [
            (row[1], row[2], json.loads(row[4])["reason"]) for row in self.memory.store.audit_rows()
        ]
        assert story == self.model.story

    def _equal(self, cell: Any, record: Record) -> None:
        assert cell.id == record["id"]
        assert cell.revision == record["revision"]
        assert cell.scope == record["scope"]
        assert cell.kind == record["kind"]
        assert cell.content == record["content"]
        assert cell.summary == record["summary"]
        assert cell.lifecycle == record["lifecycle"]
        assert cell.confidence == record["confidence"] / 1_000_000
        assert cell.importance == record["importance"] / 1_000_000
        assert text(cell.observed_at) == record["observed_at"]
        assert text(cell.created_at) == record["created_at"]
        assert text(cell.expires_at) == record["expires_at"]
        assert cell.source.origin == record["source"]["origin"]
        assert cell.metadata.model_dump() == record["metadata"]
        assert cell.is_active(self.model.now) == self.model.active(record)


TestStoreAgainstModel = StoreAgainstModel.TestCase
TestStoreAgainstModel.settings = settings(
    max_examples=EXAMPLES or 25,
    stateful_step_count=30,
    derandomize=not EXAMPLES,  # the same steps every time, unless more are asked for
    database=None,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)

"""Rows of cells, links and recall (Orion)."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from cma import Memory, Reason, Retrieval
from cma.orion.cells import MAX_CONTENT_LENGTH, EpisodicMetadata
from tests.faults.injection import draft, hold, remember
from tests.faults.rejections.row import Row, read, row, shell
from tests.faults.rejections.world import NOWHERE, World

NAIVE = datetime(2026, 3, 1, 12)  # noqa: DTZ001 (that is the fault)
BIG = "x" * (MAX_CONTENT_LENGTH + 1)
UNKNOWN = f"cell-{NOWHERE}"
CLAIM = {"subject": "Ann", "predicate": "drinks", "object": "tea"}
SEMANTIC = draft(
    "Ann drinks tea",
    kind="semantic",
    approval_id="mine",
    derived_from=["cell-x"],
    metadata=CLAIM,
)


def both(reason: Reason, fields: dict[str, Any], before: Any = None) -> list[Row]:
    """A bad draft, written alone and as the second of a batch."""
    return [
        row(reason, "write", lambda w: w.ann.write(**fields), before),
        row(reason, "write_many", lambda w: w.ann.write_many([draft("good"), fields]), before),
    ]


def linked(reason: Reason, *ends: str, kind: str = "temporal", **parts: Any) -> list[Row]:
    """A bad link, added alone and as the second of a batch."""

    def of(w: World) -> dict[str, Any]:
        names = [getattr(w.ids, each, each) for each in ends]
        return {"kind": kind, "source_id": names[0], "target_id": names[1], **parts}

    def good(w: World) -> dict[str, Any]:
        return {"kind": "similarity", "source_id": w.ids.one, "target_id": w.ids.two}

    return [
        row(reason, "link", lambda w: w.ann.link(**of(w))),
        row(reason, "link_many", lambda w: w.ann.link_many([good(w), of(w)])),
    ]


class Timeless:
    """A clock that tells no instant."""

    def now(self) -> datetime:
        return NAIVE


def _timeless(w: World) -> Memory:
    w.memory.store.clock = Timeless()
    return w.ann


def packed(view: Memory, w: World) -> Any:
    return view.packet(w.ids.trace, budget=9)


TTL = {"observed_at": None, "metadata": {"ttl_seconds": 5}}
R = Reason
ROWS = [
    *both(R.FIELD_INVALID, draft("text", confidence=1.5)),
    row(R.FIELD_INVALID, "write_many of no batch", lambda w: w.ann.write_many(5)),
    row(R.FIELD_INVALID, "link_many of no batch", lambda w: w.ann.link_many(None)),
    *linked(R.FIELD_INVALID, "one", "two", weight=2.0),
    row(R.FIELD_INVALID, "update", lambda w: w.ann.update(w.ids.one, scope="global")),
    row(R.FIELD_INVALID, "update lifecycle", lambda w: w.ann.update(w.ids.one, lifecycle="gone")),
    row(R.FIELD_INVALID, "update id", lambda w: w.ann.update(5, confidence=0.5)),
    read(R.FIELD_INVALID, "get", lambda w: w.ann.get(5)),
    read(R.FIELD_INVALID, "get revision", lambda w: w.ann.get(w.ids.one, revision="x")),
    read(R.FIELD_INVALID, "recall", lambda w: w.ann.recall(5)),
    read(R.FIELD_INVALID, "retrieval", lambda w: w.ann.recall("x", retrieval={"lexical": "?"})),
    read(R.FIELD_INVALID, "within", lambda w: w.memory.within("ann")),
    read(R.FIELD_INVALID, "acting_as", lambda w: w.memory.acting_as({"name": ""})),
    read(R.FIELD_INVALID, "open", lambda w: Memory.open(w.path, store_id="a b")),
    read(R.FIELD_INVALID, "open no path", lambda _: Memory.open(5)),
    shell(R.FIELD_INVALID, "recall {path} tea --scope ann"),
    shell(R.FIELD_INVALID, "recall {path} tea --lexical magic"),
    *both(R.KIND_UNKNOWN, draft("text", kind="vague")),
    *linked(R.KIND_UNKNOWN, "one", "two", kind="friend"),
    read(R.KIND_UNKNOWN, "links_of", lambda w: w.ann.links_of(w.ids.one, kind="friend")),
    *both(R.TIME_NAIVE, draft("text", observed_at=NAIVE)),
    read(R.TIME_NAIVE, "write under such a clock", lambda w: remember(_timeless(w), "text")),
    read(R.TIME_NAIVE, "recall under such a clock", lambda w: _timeless(w).recall("tea")),
    read(
        R.TIME_NAIVE,
        "packet under such a clock",
        lambda w: _timeless(w).packet(w.ids.trace, budget=9),
    ),
    *both(R.CONTENT_EMPTY, draft("\u200b ")),
    *both(R.CONTENT_TOO_LARGE, draft(BIG)),
    row(R.CONTENT_TOO_LARGE, "update", lambda w: w.ann.update(w.ids.held, content=BIG)),
    read(R.CONTENT_TOO_LARGE, "recall", lambda w: w.ann.recall("x " * 100_000)),
    *both(R.METADATA_MISMATCH, draft("text", observed_at=None)),
    row(
        R.METADATA_MISMATCH,
        "update",
        lambda w: w.ann.update(w.ids.held, metadata=EpisodicMetadata()),
    ),
    *both(R.FIELD_INVALID, draft("text", metadata={"attributes": {"share": 0.5}})),
    read(R.CELL_NOT_FOUND, "get", lambda w: w.ann.get(UNKNOWN)),
    read(R.CELL_NOT_FOUND, "get another's", lambda w: w.ann.get(w.ids.bobs)),
    read(R.CELL_NOT_FOUND, "links_of", lambda w: w.ann.links_of(UNKNOWN)),
    row(R.CELL_NOT_FOUND, "update", lambda w: w.ann.update(UNKNOWN, confidence=0.5)),
    row(R.CELL_NOT_FOUND, "update another's", lambda w: w.ann.update(w.ids.bobs, confidence=0.5)),
    read(R.REVISION_NOT_FOUND, "get", lambda w: w.ann.get(w.ids.one, revision=9)),
    row(
        R.APPROVAL_REQUIRED,
        "write",
        lambda w: w.ann.write("Ann drinks tea", kind="semantic", origin="me", metadata=CLAIM),
    ),
    row(R.APPROVAL_REQUIRED, "write_many", lambda w: w.ann.write_many([draft("good"), SEMANTIC])),
    row(R.WITNESSED_CONTENT, "update", lambda w: w.ann.update(w.ids.one, content="another")),
    row(
        R.CELL_INACTIVE,
        "update",
        lambda w: w.ann.update(w.ids.held, summary="gone"),
        lambda w: w.later(seconds=60),
    ),
    row(
        R.CELL_INACTIVE,
        "write",
        lambda w: hold(w.ann, "the kettle is on"),
        lambda w: w.later(seconds=60),
    ),
    row(
        R.CELL_INACTIVE,
        "write_many",
        lambda w: w.ann.write_many(
            [
                draft("good"),
                draft("hearsay", observed_at="2026-03-01T12:03:00Z"),
            ]
        ),
    ),
    row(R.NOTHING_TO_UPDATE, "update", lambda w: w.ann.update(w.ids.one)),
    row(R.NOTHING_TO_UPDATE, "update alike", lambda w: w.ann.update(w.ids.one, confidence=1.0)),
    row(R.GLOBAL_FROM_SESSION, "update", lambda w: w.ann.update(w.ids.shared, confidence=0.5)),
    row(R.WORKING_GLOBAL, "write", lambda w: hold(w.memory, "for all")),
    row(
        R.WORKING_GLOBAL,
        "write_many",
        lambda w: w.memory.write_many(
            [
                draft("good"),
                draft("x", kind="working", **TTL),
            ]
        ),
    ),
    row(
        R.EXPIRY_PAST,
        "update",
        lambda w: w.ann.update(w.ids.held, metadata={"ttl_seconds": 30}),
        lambda w: w.later(seconds=30),
    ),
    *linked(R.LINK_ENDPOINT_MISSING, "one", UNKNOWN),
    *linked(R.LINK_TO_ITSELF, "one", "one"),
    *linked(R.LINK_ACROSS_SESSIONS, "one", "bobs"),
    *linked(R.LINK_DIFFERS, "one", "two", kind="task", weight=0.25),
    *linked(R.LINK_BACKWARD_IN_TIME, "two", "one"),
    read(R.QUERY_EMPTY, "recall", lambda w: w.ann.recall(" ?! ")),
    read(
        R.QUERY_EMPTY,
        "recall of stop words",
        lambda w: w.ann.recall("the", retrieval=Retrieval(analyser="english")),
    ),
    shell(R.QUERY_EMPTY, "recall {path} ?"),
    *(
        read(R.LIMIT_INVALID, f"recall {limit!r}", lambda w, k=limit: w.ann.recall("tea", limit=k))
        for limit in (0, -1, None, True, 1.0)
    ),
    shell(R.LIMIT_INVALID, "recall {path} tea --limit 0"),
    read(R.TRACE_NOT_FOUND, "explain", lambda w: w.ann.explain(f"trace-{NOWHERE}")),
    read(R.TRACE_NOT_FOUND, "explain another's", lambda w: w.bob.explain(w.ids.trace.id)),
    shell(R.TRACE_NOT_FOUND, f"explain {{path}} trace-{NOWHERE}"),
]

"""Episode frames: what happened in one episode, bound to the cells that witnessed it."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any

import apsw
from pydantic import Field

from cma.orion.cells import Note
from cma.orion.governed import Filed, Shelf, find_record, record_id, records_of_kind
from cma.orion.scopes import visible_scopes
from cma.orion.store import Store
from cma.trifid.signatures import signature_of
from cma.trifid.sources import Source
from cma.values.clock import utc_text
from cma.values.errors import NotFoundError, Reason
from cma.values.validation import Identifier, UtcTime, Value, checked_id

FRAME = "frame"
MAX_SOURCES = 1_000
Names = Annotated[tuple[Identifier, ...], Field(max_length=MAX_SOURCES)]


class FrameDraft(Value):
    """A proposed frame. start and end: when the episode lasted; its sources' by default."""

    scene: Identifier
    sources: Annotated[tuple[Identifier, ...], Field(min_length=1, max_length=MAX_SOURCES)]
    entities: Names = ()
    goals: Names = ()
    actions: Names = ()
    outcome: Note = ""
    cues: Names = ()
    start: UtcTime | None = None
    end: UtcTime | None = None


class EpisodeFrame(Value):
    """A bound episode (paper: Trifid). It organises evidence and is no fact.

    erased: what it said was erased with one of its sources; sources and times are left.
    """

    id: str
    scene: str
    sources: tuple[Source, ...]
    entities: tuple[str, ...]
    goals: tuple[str, ...]
    actions: tuple[str, ...]
    outcome: str
    cues: tuple[str, ...]
    start: datetime
    end: datetime
    scope: str
    signature: str
    at: datetime
    erased: bool = False

    @property
    def cells(self) -> tuple[str, ...]:
        """The source cells' ids, in observed order."""
        return tuple(source.cell for source in self.sources)


def frame_identity(
    draft: FrameDraft, sources: tuple[Source, ...], scope: str, start: datetime, end: datetime
) -> dict[str, Any]:
    """Return what makes the frame's id: everything that was bound, and nothing of the binding."""
    return {
        "actions": list(draft.actions),
        "cues": list(draft.cues),
        "end": utc_text(end),
        "entities": list(draft.entities),
        "goals": list(draft.goals),
        "outcome": draft.outcome,
        "scene": draft.scene,
        "scope": scope,
        "sources": [[source.cell, source.digest] for source in sources],
        "start": utc_text(start),
    }


def frame_of(filed: Filed) -> EpisodeFrame:
    """Return the frame that a filed record holds."""
    told = filed.identity
    return EpisodeFrame(
        id=filed.id if filed.erased else record_id(FRAME, told),
        scene=told["scene"],
        sources=tuple(Source(cell=cell, digest=seen) for cell, seen in told["sources"]),
        entities=tuple(told["entities"]),
        goals=tuple(told["goals"]),
        actions=tuple(told["actions"]),
        outcome=told["outcome"],
        cues=tuple(told["cues"]),
        start=datetime.fromisoformat(told["start"]),
        end=datetime.fromisoformat(told["end"]),
        scope=told["scope"],
        signature=filed.subject or ""
        if filed.erased
        else signature_of(
            entities=told["entities"],
            goals=told["goals"],
            actions=told["actions"],
            outcome=told["outcome"],
        ),
        at=filed.at,
        erased=filed.erased,
    )


def read_frame(connection: apsw.Connection, frame_id: str, *, viewer: str) -> EpisodeFrame:
    """Return a frame that the viewer sees. Raises NotFoundError (`frame-not-found`)."""
    checked_id(frame_id, field="frame_id")
    filed = find_record(connection, Shelf.GOVERNED, FRAME, frame_id, viewer=viewer)
    if filed is None:
        raise NotFoundError(
            Reason.FRAME_NOT_FOUND,
            f"no such frame in the scope {viewer}",
            field="frame_id",
            value=frame_id,
            remedy="bind it first, or check the id and the scope",
        )
    return frame_of(filed)


def all_frames(store: Store, *, viewer: str) -> tuple[EpisodeFrame, ...]:
    """Return every frame that the viewer sees, in the order of binding."""
    scopes = visible_scopes(viewer)
    filed = records_of_kind(store.connection, Shelf.GOVERNED, FRAME, scopes=scopes)
    return tuple(frame_of(each) for each in filed)

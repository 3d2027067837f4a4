"""Binding: an episode is put into a frame, quickly, and nothing becomes a fact by it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from cma.orion.audit import Operation
from cma.orion.cells import Caller, Cell
from cma.orion.governed import Shelf, file_record
from cma.orion.store import Store
from cma.trifid.frames import FRAME, EpisodeFrame, FrameDraft, frame_identity, frame_of
from cma.trifid.signatures import signature_of
from cma.trifid.sources import Source, source_cells, witness_digest
from cma.values.errors import Reason, TransitionRejectedError
from cma.values.validation import validated


def bind_frame(
    store: Store, fields: Mapping[str, Any], *, viewer: str, caller: Caller
) -> EpisodeFrame:
    """Bind source cells into an episode frame of the viewer's scope (paper: Trifid).

    Sources are episodic cells that the viewer sees, in observed order; the interval covers them.
    The same frame again is left as it is and recorded as a duplicate. No cell is made or changed.

    Raises TransitionRejectedError: `source-missing`, `source-kind`, `source-inactive`,
    `sources-disordered`, `interval-too-narrow`; InvalidValueError for a bad field.
    """
    with store.transition(caller.name) as transition:
        draft = validated(lambda: FrameDraft.model_validate(dict(fields)))
        cells = source_cells(transition.connection, draft.sources, viewer)
        first, last = _time(cells[0]), _time(cells[-1])
        start, end = draft.start or first, draft.end or last
        if start > first or end < last:
            late = start > first
            raise TransitionRejectedError(
                Reason.INTERVAL_TOO_NARROW,
                "the interval does not cover the sources",
                field="start" if late else "end",
                value=(start if late else end).isoformat(),
                remedy=f"begin at or before {first.isoformat()} and end at or after "
                f"{last.isoformat()}, or leave both out",
            )
        sources = tuple(Source(cell=cell.id, digest=witness_digest(cell)) for cell in cells)
        filed, _ = file_record(
            transition,
            Shelf.GOVERNED,
            FRAME,
            scope=viewer,
            identity=frame_identity(draft, sources, viewer, start, end),
            subject=signature_of(
                entities=draft.entities,
                goals=draft.goals,
                actions=draft.actions,
                outcome=draft.outcome,
            ),
            refs=draft.sources,
            operation=Operation.BIND,
        )
    return frame_of(filed)


def _time(cell: Cell) -> Any:
    return cell.observed_at or cell.created_at

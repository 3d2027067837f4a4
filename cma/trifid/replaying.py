"""Replay: an episode is gone through again, source by source, and held against its frame.

A replay is complete when every source is there, active, as it was witnessed, and in the frame's
order. It tells what it saw either way; it is evidence about evidence and changes none.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import apsw

from cma.orion.audit import Operation
from cma.orion.cells import Caller
from cma.orion.governed import Filed, Shelf, file_record, records_about
from cma.orion.linking import put_link
from cma.orion.links import LinkDraft, LinkKind, link_of_draft
from cma.orion.store import Store
from cma.orion.transition import Transition
from cma.trifid.frames import EpisodeFrame, read_frame
from cma.trifid.sources import visible_cell, witness_digest
from cma.values.errors import InvalidValueError, Reason
from cma.values.identity import canonical, digest
from cma.values.validation import Value, checked_id

REPLAY = "replay"
REPLAY_DOMAIN = "cma:replay-evidence:1"
PRESENT, MISSING, ALTERED = "present", "missing", "altered"
INACTIVE, OUT_OF_ORDER, FOREIGN = "inactive", "out_of_order", "foreign"
ERASED = "erased"


class ReplayStep(Value):
    """One source in a replay.

    expected and seen: digests of what was witnessed, at binding and now (none where it is gone).
    state: present, missing, altered, erased, inactive, out_of_order, or foreign (in no frame's
    place).
    """

    cell: str
    expected: str | None
    seen: str | None
    state: str


class ReplayEvidence(Value):
    """What a replay saw (paper: replay evidence). Equal replays have equal digests."""

    frame_id: str
    complete: bool
    steps: tuple[ReplayStep, ...]
    digest: str

    @property
    def wanting(self) -> tuple[ReplayStep, ...]:
        """The steps that keep it from being complete."""
        return tuple(step for step in self.steps if step.state != PRESENT)


def replay_frame(
    store: Store,
    frame_id: str,
    *,
    sequence: Sequence[str] | None,
    viewer: str,
    caller: Caller,
) -> ReplayEvidence:
    """Replay a frame, record what was seen, and return it; an incomplete one is no error.

    sequence: the cells in the order in which they were gone through (the frame's by default).
    A complete replay joins consecutive sources by replay links.
    """
    with store.transition(caller.name) as transition:
        frame = read_frame(transition.connection, frame_id, viewer=viewer)
        evidence = replayed(transition.connection, frame, _checked(sequence))
        file_record(
            transition,
            Shelf.ATTENDANT,
            REPLAY,
            scope=frame.scope,
            identity=replay_identity(evidence),
            subject=frame.id,
            refs=(frame.id,),
            operation=Operation.REPLAY,
            reason=None if evidence.complete else "incomplete",
        )
        if evidence.complete:
            _link_sources(transition, frame)
    return evidence


def replayed(
    connection: apsw.Connection, frame: EpisodeFrame, sequence: Sequence[str] | None = None
) -> ReplayEvidence:
    """Return what a replay sees at present; nothing is recorded.

    The frame's own scope says what is visible: its sources are of it, or global.
    """
    known = set(frame.cells)
    order = [cell for cell in sequence or () if cell in known]
    steps = []
    for place, source in enumerate(frame.sources):
        cell = visible_cell(connection, source.cell, frame.scope)
        seen = None if cell is None else witness_digest(cell)
        if cell is None or (sequence is not None and source.cell not in order):
            state = MISSING
        elif cell.lifecycle.value == ERASED:
            seen, state = None, ERASED
        elif seen != source.digest:
            state = ALTERED
        elif cell.lifecycle != "active":
            state = INACTIVE
        elif sequence is not None and order.index(source.cell) != place:
            state = OUT_OF_ORDER
        else:
            state = PRESENT
        steps.append(ReplayStep(cell=source.cell, expected=source.digest, seen=seen, state=state))
    remaining = list(frame.cells)
    for cell_id in sequence or ():
        if cell_id in remaining:
            remaining.remove(cell_id)
        else:
            steps.append(ReplayStep(cell=cell_id, expected=None, seen=None, state=FOREIGN))
    complete = all(step.state == PRESENT for step in steps)
    return _sealed(frame.id, complete, tuple(steps))


def complete_replay(frame: EpisodeFrame) -> ReplayEvidence:
    """Return what a replay sees when every source stands as it was bound."""
    steps = (
        ReplayStep(cell=each.cell, expected=each.digest, seen=each.digest, state=PRESENT)
        for each in frame.sources
    )
    return _sealed(frame.id, True, tuple(steps))


def recorded_replays(connection: apsw.Connection, frame_id: str) -> list[ReplayEvidence]:
    """Return the different replays of a frame that were recorded, oldest first."""
    return [
        evidence_of(filed) for filed in records_about(connection, Shelf.ATTENDANT, REPLAY, frame_id)
    ]


def evidence_of(filed: Filed) -> ReplayEvidence:
    """Return the evidence that a filed record holds; its digest is made anew."""
    told = filed.identity
    steps = tuple(
        ReplayStep(cell=cell, expected=expected, seen=seen, state=state)
        for cell, expected, seen, state in told["steps"]
    )
    return _sealed(told["frame"], told["complete"], steps)


def _sealed(frame_id: str, complete: bool, steps: tuple[ReplayStep, ...]) -> ReplayEvidence:
    evidence = ReplayEvidence(frame_id=frame_id, complete=complete, steps=steps, digest="")
    sealed = digest(REPLAY_DOMAIN, canonical(replay_identity(evidence)))
    return evidence.model_copy(update={"digest": sealed})


def replay_identity(evidence: ReplayEvidence) -> dict[str, Any]:
    """Return what makes the id of a replay's record."""
    return {
        "complete": evidence.complete,
        "frame": evidence.frame_id,
        "steps": [[step.cell, step.expected, step.seen, step.state] for step in evidence.steps],
    }


def _link_sources(transition: Transition, frame: EpisodeFrame) -> None:
    for source, target in pairwise(frame.cells):
        draft = LinkDraft(kind=LinkKind.REPLAY, source_id=source, target_id=target)
        put_link(transition, link_of_draft(draft, transition.at), or_any=True)


def _checked(sequence: object) -> list[str] | None:
    if sequence is None:
        return None
    if isinstance(sequence, str) or not isinstance(sequence, Sequence):
        raise InvalidValueError(
            Reason.FIELD_INVALID,
            "not a sequence of cell ids",
            field="sequence",
            value=sequence,
            remedy="give a list of ids in the order of the replay, or leave it out",
        )
    return [checked_id(cell, field=f"sequence[{place}]") for place, cell in enumerate(sequence)]

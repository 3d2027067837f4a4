"""When frames are enough for a candidate: independent, of one signature, each replayed completely.

Replaying one frame many times is still one frame, two frames of one source are still one witness,
and a recalled memory that was written back has seen nothing new.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

import apsw

from cma.orion.cells import Authority, Cell
from cma.trifid.frames import EpisodeFrame
from cma.trifid.replaying import ReplayEvidence, recorded_replays, replayed
from cma.trifid.signatures import normalised
from cma.trifid.sources import visible_cell
from cma.values.errors import Reason, TransitionRejectedError


def check_admissible(
    connection: apsw.Connection, frames: Sequence[EpisodeFrame], *, minimum: int
) -> tuple[ReplayEvidence, ...]:
    """Return the replay evidence of frames that may carry a candidate.

    minimum: how many independent frames the policy asks for.

    Raises TransitionRejectedError: `frames-too-few`, `signatures-mixed`, `evidence-shared`,
    `replay-incomplete` (never replayed, or not as it was), `evidence-not-new`.
    """
    distinct = {frame.id: frame for frame in frames}
    if len(distinct) < minimum:
        raise TransitionRejectedError(
            Reason.FRAMES_TOO_FEW,
            f"{len(distinct)} different frames, the policy asks for {minimum}",
            field="frames",
            remedy="bind further episodes; replaying one frame again does not make it two",
            subjects=tuple(distinct),
        )
    signatures = {frame.signature for frame in distinct.values()}
    if len(signatures) > 1:
        raise TransitionRejectedError(
            Reason.SIGNATURES_MIXED,
            f"the frames have {len(signatures)} signatures",
            field="frames",
            remedy="propose from frames with the same entities, goals, actions and outcome",
            subjects=tuple(distinct),
        )
    _check_independent(list(distinct.values()))
    evidence = tuple(_complete(connection, frame) for frame in distinct.values())
    _check_new(connection, list(distinct.values()))
    return evidence


def _check_independent(frames: Sequence[EpisodeFrame]) -> None:
    bound: dict[str, str] = {}
    for frame in frames:
        for cell in frame.cells:
            other = bound.setdefault(cell, frame.id)
            if other != frame.id:
                raise TransitionRejectedError(
                    Reason.EVIDENCE_SHARED,
                    "one source stands in two of the frames and would be counted twice",
                    field="frames",
                    value=cell,
                    remedy="propose from frames that share no source",
                    subjects=(other, frame.id),
                )


def _complete(connection: apsw.Connection, frame: EpisodeFrame) -> ReplayEvidence:
    now = replayed(connection, frame)
    if not now.complete:
        step = now.wanting[0]
        raise TransitionRejectedError(
            Reason.REPLAY_INCOMPLETE,
            f"a source of the frame is {step.state}",
            field="frames",
            value=step.cell,
            remedy="bind the episode anew from evidence that stands",
            subjects=(frame.id, step.cell),
        )
    if not any(each.digest == now.digest for each in recorded_replays(connection, frame.id)):
        raise TransitionRejectedError(
            Reason.REPLAY_INCOMPLETE,
            "the frame has no complete replay on record",
            field="frames",
            value=frame.id,
            remedy="replay it first",
            subjects=(frame.id,),
        )
    return now


def _check_new(connection: apsw.Connection, frames: Sequence[EpisodeFrame]) -> None:
    """Each frame needs a source of its own that repeats no memory.

    Which frame comes first must not matter: their order is that of their ids.
    """
    seen: dict[str, list[Cell]] = {}
    for frame in frames:
        cells = [visible_cell(connection, cell, frame.scope) for cell in frame.cells]
        seen[frame.id] = [cell for cell in cells if cell is not None]
    tellers: dict[str, set[str]] = defaultdict(set)
    for name, told in seen.items():
        for cell in told:
            tellers[normalised(cell.content)].add(name)
    for name, told in seen.items():
        if all(_repeats(cell, tellers[normalised(cell.content)] - {name}) for cell in told):
            raise TransitionRejectedError(
                Reason.EVIDENCE_NOT_NEW,
                "the frame only repeats what memory held: it was recalled and written back",
                field="frames",
                value=name,
                remedy="propose from what was observed independently",
                subjects=(name,),
            )


def _repeats(cell: Cell, others: set[str]) -> bool:
    """Tell whether a cell is a memory written back. others: frames that tell the same.

    Its provenance says so (it was derived), or it was written by a model in the words of a source
    of another frame.
    """
    if cell.derived_from:
        return True
    return cell.source.authority is Authority.MODEL and bool(others)

"""Rows of erasure: what may not be erased, and what may not rest on what was."""

from __future__ import annotations

from cma import Reason
from tests.faults.injection import draft
from tests.faults.rejections.memory_rows import UNKNOWN
from tests.faults.rejections.row import row, shell
from tests.faults.rejections.world import World, claim

WHY = "person-request"
R = Reason


def erased(w: World) -> None:
    """Erase a cup that two frames, a proposal and a fact rest on."""
    w.ann.erase(w.ids.cups[0], reason=WHY)


def fact_erased(w: World) -> None:
    """Erase the fact itself; its evidence stands."""
    w.ann.erase(w.ids.cell, reason=WHY)


def of_cup(w: World) -> list[dict[str, object]]:
    return [draft("good"), draft("a note", derived_from=[w.ids.cups[0]])]


ROWS = [
    row(R.FIELD_INVALID, "erase", lambda w: w.ann.erase(5, reason=WHY)),
    row(R.FIELD_INVALID, "erase for no reason", lambda w: w.ann.erase(w.ids.one, reason="")),
    row(R.FIELD_INVALID, "erase, a long note", lambda w: w.ann.erase(w.ids.one, reason="x" * 65)),
    row(R.ERASURE_QUOTES, "erase", lambda w: w.ann.erase(w.ids.one, reason="the event")),
    row(R.CELL_NOT_FOUND, "erase", lambda w: w.ann.erase(UNKNOWN, reason=WHY)),
    row(R.CELL_NOT_FOUND, "erase another's", lambda w: w.ann.erase(w.ids.bobs, reason=WHY)),
    row(R.GLOBAL_FROM_SESSION, "erase", lambda w: w.ann.erase(w.ids.shared, reason=WHY)),
    row(R.POLICY_UNAUTHORISED, "erase", lambda w: w.model.erase(w.ids.one, reason=WHY)),
    row(R.CELL_ERASED, "erase", lambda w: w.ann.erase(w.ids.cups[0], reason=WHY), erased),
    shell(
        R.CELL_ERASED,
        "erase {path} {shared} -r person-request",
        lambda w: w.memory.erase(w.ids.shared, reason=WHY),
        records=1,
    ),
    row(R.CELL_INACTIVE, "update of an erased cell", lambda w: w.ann.update(
        w.ids.cups[0], confidence=0.5
    ), erased),
    row(R.SOURCE_ERASED, "write_many", lambda w: w.ann.write_many(of_cup(w)), erased),
    row(R.SOURCE_INACTIVE, "bind of an erased cell", lambda w: w.ann.bind(
        scene="again", sources=[w.ids.cups[0]]
    ), erased),
    row(R.LINK_ENDPOINT_MISSING, "link to an erased cell", lambda w: w.ann.link(
        "task", w.ids.cups[0], w.ids.one
    ), erased),
    row(R.REPLAY_INCOMPLETE, "propose from an erased frame", lambda w: claim(
        w.ann, w.ids.frames[:2]
    ), erased),
    row(R.RECORD_ERASED, "propose what was erased", lambda w: claim(
        w.ann, w.ids.frames[:2]
    ), fact_erased),
    row(R.RECORD_ERASED, "approve", lambda w: w.ann.approve(
        w.ids.approved, approval_id="CR-2"
    ), fact_erased),
    row(R.PACKET_STALE, "deliver what was erased", lambda w: w.ann.deliver(w.ids.packet), erased),
    row(R.STATE_DISAGREES, "erase in a damaged store", lambda w: w.ann.erase(
        w.ids.one, reason=WHY
    ), lambda w: w.drop(w.ids.two), records=0, damaged=True),
]  # fmt: skip

"""What is left of a filed record when what it says is erased: ids, times, digests and numbers.

Every kind stands in one of the two tables, so that a new kind cannot be forgotten.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from cma.eagle.decisions import DECISION
from cma.eagle.executions import EXECUTION
from cma.lagoon.admission import REPEAT
from cma.lagoon.approvals import APPROVAL
from cma.lagoon.candidates import CANDIDATE
from cma.lagoon.claims import ADMISSION
from cma.lagoon.standing import REJECTION
from cma.orion.erased import MARK, blank_metadata
from cma.orion.governed import Filed
from cma.rosette.delivery import RECEIPT
from cma.rosette.packets import PACKET
from cma.trifid.frames import FRAME
from cma.trifid.replaying import REPLAY

Parts = dict[str, Any]
WITHOUT_TEXT = frozenset({REPLAY, APPROVAL, ADMISSION, REPEAT, DECISION})
"""Kinds that hold ids, digests, times, and the names under which an organisation knows its
approvals, policies and callers. None of it is what a cell said."""


def _frame(told: Parts) -> Parts:
    lists: Parts = {name: [] for name in ("actions", "cues", "entities", "goals")}
    return {**told, **lists, "outcome": "", "scene": ""}


def _execution(told: Parts) -> Parts:
    return {**told, "steps": [], "task": ""}


def _candidate(told: Parts) -> Parts:
    metadata = blank_metadata(told["metadata"])
    return {**told, "content": "", "metadata": metadata, "summary": ""}


def _packet(told: Parts) -> Parts:
    return {**told, "query": "", "text_sha256": ""}


def _receipt(told: Parts) -> Parts:
    model = told.get("model")
    return {**told, "model": {**model, "answer": ""}} if model else told


_LEFT: dict[str, Callable[[Parts], Parts]] = {
    FRAME: _frame,
    EXECUTION: _execution,
    CANDIDATE: _candidate,
    PACKET: _packet,
    RECEIPT: _receipt,
    REJECTION: lambda told: told,
}
WITH_TEXT = frozenset(_LEFT)


def blank(filed: Filed) -> Filed:
    """Return what is left of a record, the same record where nothing of it is text.

    The mark that says so, if it bears one already, stays.
    """
    if filed.kind not in _LEFT:
        return filed
    details = dict(filed.details)
    if filed.kind == REJECTION:
        details["reason"] = ""
    return replace(filed, identity=_LEFT[filed.kind](filed.identity), details=details)


def is_blank(filed: Filed) -> bool:
    """Tell whether a record that bears the mark holds no text, and is of a kind that can."""
    marked = isinstance(filed.details.get(MARK), str)
    return marked and filed.kind in WITH_TEXT and filed == blank(filed)

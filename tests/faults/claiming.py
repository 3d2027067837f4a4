"""Short ways to an approved claim, for the fault tests."""

from __future__ import annotations

from typing import Any

from cma import Cell, Memory
from cma.lagoon.standing import Proposal
from tests.faults.injection import remember


def frames(view: Memory, action: str, *, first: int = 0, count: int = 2) -> list[str]:
    """Bind and replay episodes of one signature, one new event each."""
    found = []
    for number in range(first, first + count):
        event = remember(view, f"Ann {action}, time {number}", minutes=number)
        frame = view.bind(scene=f"scene {number}", sources=[event.id], actions=[action])
        assert view.replay(frame.id).complete
        found.append(frame.id)
    return found


def proposed(view: Memory, told: str, episodes: list[str], **parts: Any) -> Proposal:
    """Propose a claim of three words."""
    subject, predicate, thing = told.split(" ")
    fields = {"content": told, "subject": subject, "predicate": predicate, "object": thing}
    return view.propose(frames=episodes, **{**fields, **parts})


def claimed(view: Memory, told: str, *, first: int, **parts: Any) -> Cell:
    """Have a claim approved from two new episodes."""
    proposal = proposed(view, told, frames(view, told, first=first), **parts)
    return view.approve(proposal.id, approval_id=f"CR-{first}")


def pairs(view: Memory) -> set[frozenset[str]]:
    return {frozenset((link.source_id, link.target_id)) for link in view.conflicts()}

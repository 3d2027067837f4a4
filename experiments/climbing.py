"""One conversation climbs the version ladder: the lists that each rung offers, and what fits.

The store grows as the rungs do. Orion's recall is asked before any frame or claim is there; frames
are no cells, so Trifid spreads the same hits; Lagoon's claims are cells, so all is asked again.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from cma import CmaError, Memory, Reason, Retrieval
from cma.orion.cells import Cell
from cma.orion.traces import RecallTrace, TraceHit
from cma.rosette.tokens import PLAIN, TokenCounter
from experiments.claiming import claim, mentions, policy_of
from experiments.data.conversations import Conversation
from experiments.failures import ExperimentError
from experiments.ingest import ingested
from experiments.progress import Advance
from experiments.rungs import (
    Packing,
    Served,
    best_sources,
    neighbours,
    packed,
    packet_packing,
    spread,
    text_packing,
)
from experiments.settings import LadderSettings

PASSES = 3
"""How often each question advances: recalled before claims, after them, and packed."""
RUNGS = ("orion", "trifid", "lagoon", "rosette")
PACKINGS = (
    ("orion", "text"),
    ("trifid", "text"),
    ("lagoon", "text"),
    ("rosette", "packet"),
    ("orion", "packet"),
    ("trifid", "packet"),
)
"""What is measured: the ladder, and below it the lower rungs' lists in Rosette's packing."""


@dataclass(frozen=True, slots=True)
class Climbed:
    """What one conversation gave."""

    served: Mapping[tuple[str, str, int], Mapping[str, Served]]
    """By rung, packing and budget, then question."""
    lists: Mapping[str, Mapping[str, Sequence[str]]]
    """The whole list of each rung below Rosette, by question."""
    turn_of_cell: Mapping[str, str]
    counts: Mapping[str, int]
    """Cells, frames, proposals and claims; frames apart by the rung that binds them."""
    seconds: Mapping[str, float]


@dataclass
class _Notes:
    lists: dict[str, dict[str, Sequence[str]]] = field(default_factory=dict)
    traces: dict[str, RecallTrace] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)


def climb(
    conversation: Conversation,
    corpus: str,
    asked: LadderSettings,
    how: Retrieval,
    stores: Path,
    advance: Advance,
) -> Climbed:
    """Put a conversation into a store and take every question up the ladder."""
    notes = _Notes()
    with ingested(conversation, corpus, stores, policy_of(asked)) as held:
        memory = held.memory
        cell_of_turn = {turn: cell for cell, turn in held.turn_of_cell.items()}
        with _timed(notes, "orion"):
            notes.lists["orion"] = _recalled(memory, conversation, asked, how, notes, advance)
        with _timed(notes, "trifid"):
            frames = bind_sessions(memory, conversation, cell_of_turn, asked.window)
            beside = neighbours(frames, asked.neighbours)
            notes.lists["trifid"] = {
                question: spread(hits, beside)[: asked.hits]
                for question, hits in notes.lists["orion"].items()
            }
        with _timed(notes, "lagoon"):
            claimed = claim(memory, mentions(conversation, asked), cell_of_turn)
            order = {cell: place for place, cell in enumerate(held.turn_of_cell)}
            sources = {
                cell.id: sorted(cell.derived_from, key=order.__getitem__) for cell in claimed.cells
            }
            again = _recalled(memory, conversation, asked, how, notes, advance)
            notes.lists["lagoon"] = {
                question: spread(hits, beside | best_sources(sources, hits, asked.sources))[
                    : asked.hits
                ]
                for question, hits in again.items()
            }
        with _timed(notes, "rosette"):
            cells = [memory.get(cell) for cell in held.turn_of_cell] + list(claimed.cells)
            served = _fitted(notes, asked, cells)
            _packets(memory, notes, asked, cells, served, advance)
    counts = {
        "cells": len(cells) - len(claimed.cells),
        "frames": len(frames),
        "claim_frames": claimed.frames,
        "proposals": claimed.proposals,
        "claims": len(claimed.cells),
    }
    return Climbed(served, notes.lists, held.turn_of_cell, counts, notes.seconds)


def bind_sessions(
    memory: Memory, conversation: Conversation, cell_of_turn: Mapping[str, str], window: int
) -> list[tuple[str, ...]]:
    """Bind each session, in observed order, into frames of at most `window` turns."""
    frames = []
    for session in conversation.sessions():
        for start in range(0, len(session), window):
            turns = session[start : start + window]
            frame = memory.bind(
                scene=f"session {turns[0].session}, from {turns[0].id}",
                sources=[cell_of_turn[turn.id] for turn in turns],
                entities=sorted({turn.speaker for turn in turns}),
                actions=["talk"],
            )
            frames.append(frame.cells)
    return frames


def line_counter() -> TokenCounter:
    """Return the plain counter, which reads no line twice: it may, as no token spans two lines."""
    known: dict[str, int] = {}

    def count(text: str) -> int:
        total = 0
        for line in text.split("\n"):
            if line not in known:
                known[line] = PLAIN.count(line)
            total += known[line]
        return total

    return TokenCounter(PLAIN.name, count)


def _recalled(
    memory: Memory,
    conversation: Conversation,
    asked: LadderSettings,
    how: Retrieval,
    notes: _Notes,
    advance: Advance,
) -> dict[str, Sequence[str]]:
    """Ask every question once."""
    found: dict[str, Sequence[str]] = {}
    for question in conversation.questions:
        name = f"{conversation.id} {question.id}"
        advance(1)
        try:
            recollection = memory.recall(question.text, limit=asked.hits, retrieval=how)
        except CmaError as error:
            if error.reason is not Reason.QUERY_EMPTY:
                raise
            found[name] = ()  # nothing but stop words: nothing is found
            continue
        notes.traces[name] = recollection.trace
        found[name] = [hit.cell.id for hit in recollection.hits]
    return found


def _fitted(
    notes: _Notes, asked: LadderSettings, cells: Sequence[Cell]
) -> dict[tuple[str, str, int], dict[str, Served]]:
    packings: dict[str, Packing] = {
        "text": text_packing(cells),
        "packet": packet_packing(cells),
    }
    return {
        (rung, name, budget): {
            question: packed(offered, packings[name], budget)
            for question, offered in notes.lists["lagoon" if rung == "rosette" else rung].items()
        }
        for rung, name in PACKINGS
        for budget in asked.budgets
    }


def _packets(
    memory: Memory,
    notes: _Notes,
    asked: LadderSettings,
    cells: Sequence[Cell],
    served: dict[tuple[str, str, int], dict[str, Served]],
    advance: Advance,
) -> None:
    """Build Rosette's packets and serve what they hold; the sum of records must agree with them.

    A packet is offered the list up to the last cell that the sum lets in: the builder renders its
    whole text anew for each group, and what it would be asked beyond is known to fit no more.
    """
    counter = line_counter()
    revisions = {cell.id: cell.revision for cell in cells}
    for question, offered in notes.lists["lagoon"].items():
        for budget in asked.budgets if offered else ():
            summed = served["rosette", "packet", budget][question]
            last = offered.index(summed.cells[-1]) + 1 if summed.cells else 0
            trace = notes.traces[question].model_copy(
                update={
                    "hits": tuple(
                        TraceHit(cell, revisions[cell], 0.0, {}) for cell in offered[:last]
                    )
                }
            )
            packet = memory.packet(trace, budget=budget, counter=counter)
            real = Served(tuple(cell.id for cell in packet.cells), packet.used)
            if real != summed:
                raise ExperimentError(
                    f"the packet of {question} at {budget} tokens is not the sum of its records"
                )
            served["rosette", "packet", budget][question] = real
        advance(1)


@contextmanager
def _timed(notes: _Notes, rung: str) -> Iterator[None]:
    started = time.perf_counter()
    yield
    notes.seconds[rung] = time.perf_counter() - started

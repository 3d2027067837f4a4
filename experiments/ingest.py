"""Puts a conversation into a store: an episodic cell a turn, temporal links within a session."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from itertools import pairwise
from pathlib import Path

from cma import Caller, CellDraft, FixedClock, LinkDraft, Memory
from cma.lagoon.policy import Policy
from cma.orion.cells import Authority
from experiments.data.conversations import Conversation

ASKED_AFTER = timedelta(hours=1)
"""Questions are asked so long after the last turn: recency needs a present that stands still."""


@dataclass(frozen=True, slots=True)
class Ingested:
    """An open memory that holds one conversation, seen from its session."""

    memory: Memory
    turn_of_cell: Mapping[str, str]
    text_of_cell: Mapping[str, str]


@contextmanager
def ingested(
    conversation: Conversation, corpus: str, folder: Path, policy: Policy | None = None
) -> Iterator[Ingested]:
    """Write a conversation into a new store `<folder>/<conversation>.cma` and yield it open."""
    last = max(turn.observed_at for turn in conversation.turns)
    with Memory.open(
        folder / f"{conversation.id}.cma",
        caller=Caller(name="harness", authority=Authority.DOCUMENT),
        clock=FixedClock(last + ASKED_AFTER),
        policy=policy,
    ) as store:
        memory = store.within(f"session:{conversation.id}")
        receipt = memory.write_many(
            CellDraft.model_validate(
                {
                    "kind": "episodic",
                    "content": turn.text,
                    "origin": f"{corpus} {conversation.id} {turn.id}",
                    "observed_at": turn.observed_at,
                    "metadata": {
                        **({"speaker": turn.speaker} if turn.speaker else {}),
                        "session": str(turn.session),
                        "turn": turn.id,
                    },
                }
            )
            for turn in conversation.turns
        )
        cells = dict(zip((turn.id for turn in conversation.turns), receipt.ids, strict=True))
        if len(set(receipt.ids)) != len(conversation.turns):
            raise ValueError(f"{conversation.id}: two turns became one cell")
        links = [
            LinkDraft.model_validate(
                {
                    "kind": "temporal",
                    "source_id": cells[before.id],
                    "target_id": cells[after.id],
                }
            )
            for session in conversation.sessions()
            for before, after in pairwise(session)
        ]
        if links:
            memory.link_many(links)
        yield Ingested(
            memory,
            {cell: turn for turn, cell in cells.items()},
            {cells[turn.id]: turn.text for turn in conversation.turns},
        )

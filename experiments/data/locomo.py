"""LoCoMo: long conversations between two people, over many sessions, with annotated questions.

Session times carry no zone and are taken as UTC. Only the session's start is published, so each
turn is placed one second after the one before: their order is data, the seconds are not.
"""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from experiments.data.conversations import (
    Category,
    Conversation,
    EvidenceProblem,
    Question,
    Turn,
)
from experiments.data.evidence import read_all
from experiments.failures import DataError

CATEGORY_NAMES: dict[int, Category] = {
    1: "multi_hop",
    2: "temporal",
    3: "open_domain",
    4: "single_hop",
    5: "adversarial",
}
TURN_SPACING = timedelta(seconds=1)
_SESSION = re.compile(r"session_(\d+)")
_TIME_FORMAT = "%I:%M %p on %d %B, %Y"


def session_time(text: str) -> datetime:
    """Return "1:56 pm on 8 May, 2023" as an instant in UTC."""
    try:
        return datetime.strptime(text.strip(), _TIME_FORMAT).replace(tzinfo=UTC)
    except ValueError as error:
        raise DataError(f"session time {text!r} is not like '1:56 pm on 8 May, 2023'") from error


def read_locomo(path: Path) -> tuple[tuple[Conversation, ...], tuple[EvidenceProblem, ...]]:
    """Read every conversation of a LoCoMo file, with all oddities of its evidence."""
    try:
        samples = json.loads(path.read_bytes())
        conversations: list[Conversation] = []
        problems: list[EvidenceProblem] = []
        for sample in samples:
            conversation, odd = read_conversation(sample)
            conversations.append(conversation)
            problems.extend(odd)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise DataError(
            f"{path.name} is not a LoCoMo file ({type(error).__name__}: {error}); "
            "take data/locomo10.json of the repository snap-research/locomo"
        ) from error
    return tuple(conversations), tuple(problems)


def read_conversation(sample: dict[str, Any]) -> tuple[Conversation, list[EvidenceProblem]]:
    """Read one conversation; question ids are `qa0`, `qa1`, ... in published order."""
    name = str(sample["sample_id"])
    turns = _turns(sample["conversation"])
    for turn in turns:
        turn.text.encode()  # a lone surrogate is no text: ValueError
    known = {turn.id for turn in turns}
    if len(known) != len(turns):
        raise DataError(f"conversation {name} uses one turn id twice")
    questions: list[Question] = []
    problems: list[EvidenceProblem] = []
    for number, entry in enumerate(sample["qa"]):
        evidence, odd = read_all(name, f"qa{number}", entry.get("evidence") or (), known)
        problems.extend(odd)
        questions.append(
            Question(
                id=f"qa{number}",
                text=str(entry["question"]),
                category=CATEGORY_NAMES[entry["category"]],
                evidence=evidence,
                corrected=evidence,
            )
        )
    return Conversation(name, turns, tuple(questions)), problems


def _turns(conversation: dict[str, Any]) -> tuple[Turn, ...]:
    numbers = sorted(
        int(match[1]) for key in conversation if (match := _SESSION.fullmatch(key)) is not None
    )
    turns: list[Turn] = []
    for number in numbers:
        starts = session_time(conversation[f"session_{number}_date_time"])
        turns.extend(
            Turn(
                id=str(said["dia_id"]),
                session=number,
                speaker=str(said["speaker"]),
                words=str(said.get("text") or ""),
                caption=str(said.get("blip_caption") or ""),
                observed_at=starts + place * TURN_SPACING,
            )
            for place, said in enumerate(conversation[f"session_{number}"])
        )
    return tuple(turns)

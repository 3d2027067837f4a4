"""Corrected labels: an independent audit's list of LoCoMo questions with wrong evidence.

An entry names its question by position (`locomo_<conversation>_qa<question>`). The question's text
is compared before anything is changed, so that an audit of another version corrects nothing by
accident.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from experiments.data.conversations import Conversation, LabelCorrection
from experiments.data.evidence import read_evidence
from experiments.failures import DataError

_QUESTION = re.compile(r"locomo_(\d+)_qa(\d+)")


def read_corrections(path: Path) -> list[dict[str, Any]]:
    """Read the audit's entries."""
    try:
        entries = json.loads(path.read_bytes())
    except ValueError as error:
        raise DataError(f"{path.name} is not JSON: {error}") from error
    if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
        raise DataError(f"{path.name} is not a list of audit entries")
    return entries


def apply_corrections(
    conversations: Sequence[Conversation], entries: Sequence[dict[str, Any]]
) -> tuple[tuple[Conversation, ...], tuple[LabelCorrection, ...]]:
    """Return the conversations with corrected evidence, and what each entry about evidence did.

    Entries that leave the evidence as it is (a wrong answer with a right citation) are not listed.
    """
    turns = [{turn.id for turn in conversation.turns} for conversation in conversations]
    questions = [list(conversation.questions) for conversation in conversations]
    listed: list[LabelCorrection] = []
    for entry in entries:
        identifier = str(entry.get("question_id"))
        match = _QUESTION.fullmatch(identifier)
        place = (int(match[1]), int(match[2])) if match else (len(conversations), 0)
        kind = str(entry.get("error_type"))
        if place[0] >= len(conversations) or place[1] >= len(questions[place[0]]):
            listed.append(LabelCorrection("", identifier, kind, (), (), False, "names no question"))
            continue
        conversation, question = conversations[place[0]].id, questions[place[0]][place[1]]
        corrected, unreadable = _evidence(entry.get("correct_evidence") or (), turns[place[0]])
        applied, why = True, "applied"
        if question.text != entry.get("question"):
            applied, why = False, "the question's text differs"
        elif unreadable:
            applied, why = False, f"names no turn: {' '.join(unreadable)}"
        elif set(corrected) == set(question.evidence):
            continue
        elif not corrected:
            why = "applied: no turn answers it, so it leaves the denominator"
        listed.append(
            LabelCorrection(
                conversation, question.id, kind, question.evidence, corrected, applied, why
            )
        )
        if applied:
            questions[place[0]][place[1]] = replace(question, corrected=corrected)
    return (
        tuple(
            replace(conversation, questions=tuple(asked))
            for conversation, asked in zip(conversations, questions, strict=True)
        ),
        tuple(listed),
    )


def _evidence(published: Sequence[str], turns: set[str]) -> tuple[tuple[str, ...], list[str]]:
    resolved: dict[str, None] = {}
    unreadable: list[str] = []
    for raw in published:
        found = read_evidence(raw, turns).turns
        resolved.update(dict.fromkeys(found))
        if not found:
            unreadable.append(raw)
    return tuple(resolved), unreadable

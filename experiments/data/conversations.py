"""Frozen values that every loader yields: conversations, turns, questions and a corpus of them.

A collection of documents is one conversation whose turns nobody said: each document is a turn
without a speaker and in a session of its own, so that nothing links it to the next.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal

Category = Literal["multi_hop", "temporal", "open_domain", "single_hop", "adversarial"]
CATEGORIES: tuple[Category, ...] = (
    "multi_hop",
    "temporal",
    "open_domain",
    "single_hop",
    "adversarial",
)

ProblemKind = Literal["malformed", "multiple", "padded", "unresolvable", "empty"]


@dataclass(frozen=True, slots=True)
class Turn:
    """One thing said by one speaker at one moment, or a document, which has no speaker."""

    id: str
    session: int
    speaker: str
    """Empty for a document."""
    words: str
    caption: str
    observed_at: datetime

    @property
    def text(self) -> str:
        """Speaker, words and the caption of a shared picture: what is stored and searched."""
        said = " ".join(self.words.split())
        if self.caption:
            said = f"{said} [{self.caption}]".strip()
        return f"{self.speaker}: {said}" if self.speaker else said


@dataclass(frozen=True, slots=True)
class Question:
    """One question with the turns that answer it, as published and as corrected by an audit."""

    id: str
    text: str
    category: Category | None
    """None where the data set sorts its questions into no categories."""
    evidence: tuple[str, ...]
    """Turn ids that exist, without repeats; empty when nothing published could be resolved."""
    corrected: tuple[str, ...]
    """The same after the audit; equal to `evidence` where it objects to nothing."""
    grades: tuple[int, ...] = ()
    """How relevant each of `evidence` is, from 1 on; empty where all are alike."""


@dataclass(frozen=True, slots=True)
class Conversation:
    """Turns in the order in which they were said, and the questions asked about them."""

    id: str
    turns: tuple[Turn, ...]
    questions: tuple[Question, ...]

    def sessions(self) -> Iterator[tuple[Turn, ...]]:
        """Yield the turns of each session, in order."""
        current: list[Turn] = []
        for turn in self.turns:
            if current and turn.session != current[-1].session:
                yield tuple(current)
                current = []
            current.append(turn)
        if current:
            yield tuple(current)


@dataclass(frozen=True, slots=True)
class EvidenceProblem:
    """One published evidence string that is not just the id of one turn, and what became of it."""

    conversation: str
    question: str
    raw: str
    kind: ProblemKind
    resolution: str


@dataclass(frozen=True, slots=True)
class LabelCorrection:
    """One entry of the audit that changes evidence, and whether it was applied."""

    conversation: str
    question: str
    error_type: str
    published: tuple[str, ...]
    corrected: tuple[str, ...]
    applied: bool
    why: str


@dataclass(frozen=True, slots=True)
class DataRecord:
    """Which bytes an experiment saw: enough to tell two versions of a data set apart."""

    name: str
    sha256: str
    licence: str
    origin: Literal["config", "CMA_DATA_DIR", "cache", "generated"]


@dataclass(frozen=True, slots=True)
class Corpus:
    """All that one data set brings to an experiment."""

    name: str
    conversations: tuple[Conversation, ...]
    records: tuple[DataRecord, ...]
    problems: tuple[EvidenceProblem, ...] = ()
    corrections: tuple[LabelCorrection, ...] = ()
    corrected_labels: bool = False
    notes: tuple[str, ...] = field(default=())
    documents: bool = False
    """Whether this is a collection of documents and no conversation."""

    @property
    def turn_count(self) -> int:
        """Turns of all conversations."""
        return sum(len(conversation.turns) for conversation in self.conversations)

    @property
    def question_count(self) -> int:
        """Questions of all conversations, answerable or not."""
        return sum(len(conversation.questions) for conversation in self.conversations)

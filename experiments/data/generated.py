"""Conversations made from a seed, with evidence labels: the corpus that is always there.

Two people talk over several sessions. Facts are told in single turns, other turns are small talk or
mention a fact's value without telling it. Questions come in LoCoMo's five categories: about one
fact, about several, about its time, an inference, and a fact asked of the wrong person. Facts and
wording are far simpler than people's: figures on it check the machinery and say little about
recall.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import numpy as np

from experiments import ranges
from experiments.data.conversations import (
    CATEGORIES,
    Category,
    Conversation,
    Corpus,
    DataRecord,
    Question,
    Turn,
)
from experiments.data.phrases import CAPTIONS, COMPANIONS, NAMES, SMALL_TALK, TOPICS
from experiments.failures import UsageError
from experiments.settings import GeneratedSettings

FIRST_SESSION = datetime(2025, 1, 6, 18, 30, tzinfo=UTC)
ECHO_SHARE = 0.3
CAPTION_SHARE = 0.08
SIZE_LIMIT = 1_000_000


@dataclass(frozen=True, slots=True)
class Fact:
    """One thing that one of the two told, and the turn in which it was told."""

    topic: int
    value: str
    speaker: int
    turn: int


def generate(settings: GeneratedSettings) -> Corpus:
    """Make the corpus; the same settings make the same corpus on every machine."""
    _check(settings)
    conversations = tuple(
        _conversation(number, settings) for number in range(settings.conversations)
    )
    record = DataRecord("generated", digest(conversations), "Apache-2.0", "generated")
    return Corpus(
        "generated",
        conversations,
        (record,),
        notes=("The conversations are generated: figures on them check the machinery only.",),
    )


def digest(conversations: tuple[Conversation, ...]) -> str:
    """Return the SHA-256 over every turn and label."""
    content = [
        [
            conversation.id,
            [[turn.id, turn.observed_at.isoformat(), turn.text] for turn in conversation.turns],
            [
                [asked.id, asked.text, asked.category, list(asked.evidence)]
                for asked in conversation.questions
            ],
        ]
        for conversation in conversations
    ]
    return hashlib.sha256(json.dumps(content, ensure_ascii=False).encode()).hexdigest()


def _check(settings: GeneratedSettings) -> None:
    for name in ("conversations", "sessions", "turns", "questions"):
        ranges.whole(f"data.generated.{name}", getattr(settings, name), 1, SIZE_LIMIT)
    ranges.whole("data.generated.seed", settings.seed, 0, ranges.SEED_LIMIT)
    if settings.turns < 4 * settings.sessions:
        raise UsageError(
            f"data.generated.turns={settings.turns} is too few for "
            f"{settings.sessions} sessions; give at least four turns a session"
        )


def _conversation(number: int, settings: GeneratedSettings) -> Conversation:
    rng = np.random.default_rng([settings.seed, number])
    names = NAMES[number % len(NAMES)]
    facts = _facts(rng, settings.turns)
    told = {fact.turn: fact for fact in facts}
    turns: list[Turn] = []
    starts = FIRST_SESSION + timedelta(days=int(rng.integers(0, 30)))
    for session, places in enumerate(
        np.array_split(np.arange(settings.turns), settings.sessions), start=1
    ):
        for place, index in enumerate(places.tolist()):
            speaker = index % 2
            words = (
                _told(rng, told[index])
                if index in told
                else _small_talk(rng, facts, names[1 - speaker])
            )
            captioned = rng.random() < CAPTION_SHARE
            turns.append(
                Turn(
                    id=f"D{session}:{place + 1}",
                    session=session,
                    speaker=names[speaker],
                    words=words,
                    caption=str(rng.choice(CAPTIONS)) if captioned else "",
                    observed_at=starts + timedelta(seconds=place),
                )
            )
        starts += timedelta(days=int(rng.integers(3, 21)), minutes=int(rng.integers(0, 300)))
    ids = [turn.id for turn in turns]
    return Conversation(
        f"gen-{number + 1}", tuple(turns), _questions(rng, facts, names, ids, settings.questions)
    )


def _facts(rng: np.random.Generator, turns: int) -> list[Fact]:
    """Choose what each of the two will tell, and in which of their own turns."""
    known = [(topic, value) for topic, kind in enumerate(TOPICS) for value in kind.values]
    facts: list[Fact] = []
    for speaker in (0, 1):
        own = np.arange(speaker, turns, 2)
        count = min(len(known) * 2 // 3, max(1, len(own) // 4))
        chosen = rng.choice(len(known), size=count, replace=False)
        places = rng.choice(own, size=count, replace=False)
        facts.extend(
            Fact(known[which][0], known[which][1], speaker, place)
            for which, place in zip(chosen.tolist(), places.tolist(), strict=True)
        )
    return facts


def _told(rng: np.random.Generator, fact: Fact) -> str:
    return str(rng.choice(TOPICS[fact.topic].tell)).format(v=fact.value, w=rng.choice(COMPANIONS))


def _small_talk(rng: np.random.Generator, facts: list[Fact], other: str) -> str:
    if rng.random() < ECHO_SHARE:
        fact = facts[int(rng.integers(len(facts)))]
        return str(rng.choice(TOPICS[fact.topic].echo)).format(v=fact.value)
    return str(rng.choice(SMALL_TALK)).format(o=other)


def _questions(
    rng: np.random.Generator,
    facts: list[Fact],
    names: tuple[str, str],
    ids: list[str],
    count: int,
) -> tuple[Question, ...]:
    asked: dict[str, Question] = {}
    for attempt in range(count * 20):
        if len(asked) == count:
            break
        category = CATEGORIES[attempt % len(CATEGORIES)]
        fact = facts[int(rng.integers(len(facts)))]
        text, answering = _ASK[category](rng, fact, facts, names)
        if text in asked or not answering:
            continue
        evidence = tuple(ids[place] for place in sorted(each.turn for each in answering))
        asked[text] = Question(f"qa{len(asked)}", text, category, evidence, evidence)
    return tuple(asked.values())


_Asked = tuple[str, list[Fact]]


def _one(rng: np.random.Generator, fact: Fact, _: list[Fact], names: tuple[str, str]) -> _Asked:
    text = str(rng.choice(TOPICS[fact.topic].ask))
    return text.format(s=names[fact.speaker], v=fact.value), [fact]


def _several(
    _: np.random.Generator, fact: Fact, facts: list[Fact], names: tuple[str, str]
) -> _Asked:
    same = [each for each in facts if (each.topic, each.speaker) == (fact.topic, fact.speaker)]
    text = TOPICS[fact.topic].which_all.format(s=names[fact.speaker])
    return text, same if len(same) > 1 else []


def _when(_: np.random.Generator, fact: Fact, __: list[Fact], names: tuple[str, str]) -> _Asked:
    return TOPICS[fact.topic].when.format(s=names[fact.speaker], v=fact.value), [fact]


def _infer(_: np.random.Generator, fact: Fact, __: list[Fact], names: tuple[str, str]) -> _Asked:
    return TOPICS[fact.topic].infer.format(s=names[fact.speaker], v=fact.value), [fact]


def _wrong_person(
    rng: np.random.Generator, fact: Fact, facts: list[Fact], names: tuple[str, str]
) -> _Asked:
    other = 1 - fact.speaker
    if any(
        (each.topic, each.value, each.speaker) == (fact.topic, fact.value, other) for each in facts
    ):
        return "", []
    asked = str(rng.choice(TOPICS[fact.topic].ask))
    return asked.format(s=names[other], v=fact.value), [fact]


_ASK: dict[
    Category,
    Callable[[np.random.Generator, Fact, list[Fact], tuple[str, str]], _Asked],
] = {
    "single_hop": _one,
    "multi_hop": _several,
    "temporal": _when,
    "open_domain": _infer,
    "adversarial": _wrong_person,
}

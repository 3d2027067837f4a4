"""Generated key-value facts, and the small vocabulary in which they and their questions are said.

A fact is a row of `FACTS`; samples are arrays of row numbers, so that a batch costs no loop.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np
from numpy.typing import NDArray

NAMES = (
    "ann", "bob", "cara", "dan", "eve", "finn", "gina", "hugo", "ida", "jon", "kim", "leo",
    "mia", "ned", "olga", "paul",
)  # fmt: skip
ATTRIBUTES = ("drinks", "visits", "feeds", "carries")
VALUES = (
    "tea", "milk", "cider", "juice", "oslo", "lima", "kyoto", "cairo", "cat", "goat", "owl",
    "carp", "saw", "spade", "lens", "rope",
)  # fmt: skip
WORDS = ("<pad>", ".", "?", *ATTRIBUTES, *NAMES, *VALUES)
HELD_OUT = 0.2

Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Fact:
    """What somebody does with what: `ann drinks tea .`"""

    name: str
    attribute: str
    value: str

    @property
    def text(self) -> str:
        """The fact as a sentence."""
        return f"{self.name} {self.attribute} {self.value} ."

    @property
    def question(self) -> str:
        """What is asked, up to where the value stands."""
        return f"? {self.name} {self.attribute}"


class WordTokenizer:
    """One id a word of the small vocabulary."""

    name = "words"

    def __init__(self) -> None:
        """Number the words; 0 is padding."""
        self._ids = {word: place for place, word in enumerate(WORDS)}

    def encode(self, text: str) -> list[int]:
        """Return the ids of words that stand apart. Raises KeyError for one that is not there."""
        return [self._ids[word] for word in text.split()]

    def decode(self, ids: Sequence[int]) -> str:
        """Return the words, apart."""
        return " ".join(WORDS[one] for one in ids)


TOKENIZER = WordTokenizer()
FACTS = tuple(Fact(*parts) for parts in product(NAMES, ATTRIBUTES, VALUES))
"""Every fact, in a fixed order: those of one name and attribute, a key, stand together."""
KEYS = len(NAMES) * len(ATTRIBUTES)
SENTENCES: Ints = np.array([TOKENIZER.encode(fact.text) for fact in FACTS])
QUESTIONS: Ints = np.array([TOKENIZER.encode(fact.question) for fact in FACTS])
ANSWERS: Ints = np.array([TOKENIZER.encode(fact.value)[0] for fact in FACTS])


@dataclass(frozen=True, slots=True)
class Sample:
    """Questions, each among facts of other keys. asked: rows of FACTS; shown: questions x facts."""

    asked: Ints
    shown: Ints

    def prompts(self, *, with_text: bool) -> Ints:
        """Return token ids of the questions, after the shown facts as text or without them."""
        questions = QUESTIONS[self.asked]
        if not with_text:
            return questions
        told = SENTENCES[self.shown].reshape(len(self.asked), -1)
        return np.concatenate([told, questions], axis=1)

    def lesson(self) -> Ints:
        """Return token ids of the questions with their answers, without any text before."""
        return _asked(self.asked)

    def lessons(self, generator: np.random.Generator) -> Ints:
        """Return token ids of the shown facts, then a question and answer about each of them."""
        told = SENTENCES[self.shown].reshape(len(self.asked), -1)
        order = generator.permuted(self.shown, axis=1)
        return np.concatenate([told, *(_asked(column) for column in order.T)], axis=1)

    @property
    def answers(self) -> Ints:
        """Token ids of the right answers."""
        return ANSWERS[self.asked]


def _asked(facts: Ints) -> Ints:
    return np.concatenate([QUESTIONS[facts], ANSWERS[facts][:, None]], axis=1)


def split(generator: np.random.Generator) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Return which facts train and which are held out, keys x values.

    Every key has both, so each word is seen in training and no held-out fact is.
    """
    held = np.zeros((KEYS, len(VALUES)), dtype=bool)
    count = max(1, round(HELD_OUT * len(VALUES)))
    for row in held:
        row[generator.choice(len(VALUES), size=count, replace=False)] = True
    return ~held, held


def sample(
    pool: NDArray[np.bool_], count: int, shown: int, generator: np.random.Generator
) -> Sample:
    """Return so many questions about facts of a pool, each among so many facts, in random order."""
    keys = generator.random((count, KEYS)).argsort(axis=1)[:, :shown]
    values = (generator.random((count, shown, len(VALUES))) * pool[keys]).argmax(axis=2)
    facts = keys * len(VALUES) + values
    place = generator.integers(shown, size=count)
    return Sample(asked=facts[np.arange(count), place], shown=facts)

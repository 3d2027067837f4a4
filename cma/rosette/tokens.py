"""Counting tokens: a plain default, and any tokenizer that encodes text."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import regex

from cma.values.errors import InvalidValueError, Reason
from cma.values.identity import MAX_INTEGER
from cma.values.validation import checked_id

# A run may begin with a mark or a connector, so what kind a piece is must not be told by a letter.
_PIECES = regex.compile(r"(\w+)|[^\w\s]")
BYTES_A_TOKEN = 4


@dataclass(frozen=True, slots=True)
class TokenCounter:
    """A named way to count: the name stands in the packet, so that a count can be repeated.

    additive: a text counts as much as its parts when it is split after a line break. A packet of
    many groups is then counted in one pass over its text.
    """

    name: str
    count: Callable[[str], int]
    additive: bool = False


def checked_counter(counter: object) -> TokenCounter:
    """Return a counter with a name and a way to count, or raise InvalidValueError."""
    if not isinstance(counter, TokenCounter) or not callable(counter.count):
        raise InvalidValueError(
            Reason.FIELD_INVALID,
            "not a token counter",
            field="counter",
            value=counter,
            remedy="give a TokenCounter, such as PLAIN or of_tokenizer(name, tokenizer)",
        )
    checked_id(counter.name, field="counter.name")
    return counter


def checked_count(tokens: object) -> int:
    """Return what a counter counted, or raise InvalidValueError for what is no count."""
    whole = isinstance(tokens, int) and not isinstance(tokens, bool)
    if not whole or not 0 <= tokens <= MAX_INTEGER:  # type: ignore[operator]
        raise InvalidValueError(
            Reason.FIELD_INVALID,
            "a count of tokens is a whole number from 0",
            field="counter",
            value=tokens,
            remedy="mend the counter: it decides what fits the budget",
        )
    return int(tokens)  # type: ignore[call-overload,no-any-return]


def plain_count(text: str) -> int:
    """Return an estimate: a run of letters and digits counts one token per four bytes begun, any
    other visible character one.
    """
    return sum(
        -(-len(word.encode()) // BYTES_A_TOKEN) if word else 1 for word in _PIECES.findall(text)
    )


PLAIN = TokenCounter("plain", plain_count, additive=True)


def of_tokenizer(name: str, tokenizer: Any) -> TokenCounter:
    """Return the counter of a model's tokenizer: anything whose `encode` gives a sequence."""
    return TokenCounter(name, lambda text: len(tokenizer.encode(text)))

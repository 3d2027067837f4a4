"""Counting tokens: a plain default, and any tokenizer that encodes text."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import regex

# A run may begin with a mark or a connector, so what kind a piece is must not be told by a letter.
_PIECES = regex.compile(r"(\w+)|[^\w\s]")
BYTES_A_TOKEN = 4


@dataclass(frozen=True, slots=True)
class TokenCounter:
    """A named way to count: the name stands in the packet, so that a count can be repeated."""

    name: str
    count: Callable[[str], int]


def plain_count(text: str) -> int:
    """Return an estimate: a run of letters and digits counts one token per four bytes begun, any
    other visible character one.
    """
    return sum(
        -(-len(word.encode()) // BYTES_A_TOKEN) if word else 1 for word in _PIECES.findall(text)
    )


PLAIN = TokenCounter("plain", plain_count)


def of_tokenizer(name: str, tokenizer: Any) -> TokenCounter:
    """Return the counter of a model's tokenizer: anything whose `encode` gives a sequence."""
    return TokenCounter(name, lambda text: len(tokenizer.encode(text)))

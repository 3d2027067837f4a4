"""Cells and questions of words from a Zipf-like vocabulary: the same for the same seed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import numpy as np
from numpy.typing import NDArray

from experiments.settings import ScaleSettings

START = datetime(2026, 1, 1, tzinfo=UTC)
SPACING = timedelta(seconds=1)
COMMONEST = 100
"""Words that the `rare` questions do without."""
Codes = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Texts:
    """Cells and questions, as codes of words."""

    cells: Codes
    """Cells by terms; smaller stores hold the first of them."""
    questions: Mapping[str, Codes]
    """By mix: `zipf` as the cells are, `rare` without the commonest words."""
    words: tuple[str, ...]

    def told(self, codes: Codes) -> list[str]:
        """Return the codes as texts."""
        words = self.words
        return [" ".join([words[code] for code in row]) for row in codes.tolist()]


def texts(asked: ScaleSettings, seed: int) -> Texts:
    """Draw all cells and questions; each word's share is one over its rank."""
    rng = np.random.default_rng(seed)
    shares = 1.0 / np.arange(1, asked.vocabulary + 1)
    rare = np.where(np.arange(asked.vocabulary) < COMMONEST, 0.0, shares)
    size = (asked.queries, asked.query_terms)
    drawn = {
        "zipf": rng.choice(asked.vocabulary, size=size, p=shares / shares.sum()),
        "rare": rng.choice(asked.vocabulary, size=size, p=rare / rare.sum()),
    }
    cells = rng.choice(
        asked.vocabulary, size=(max(asked.cells), asked.terms), p=shares / shares.sum()
    )
    return Texts(cells, drawn, tuple(f"w{code}" for code in range(asked.vocabulary)))

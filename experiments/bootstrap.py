"""Percentile bootstrap over questions.

Resampling n questions with replacement is the same as counting how often each is drawn; the counts
are multinomial. One matrix of counts (resamples by questions) serves every scorer, so that all are
judged on the same resamples and their differences are paired. Questions of one conversation are
treated as independent: intervals speak of other questions about conversations like these, and not
of other conversations.
"""

from __future__ import annotations

import zlib
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Interval:
    """A mean over questions and the bounds of its percentile interval."""

    mean: float
    low: float
    high: float


class Bootstrap:
    """The resamples of one set of questions, drawn once."""

    def __init__(self, questions: int, *, resamples: int, confidence: float, seed: int, name: str):
        """Draw the counts; `name` tells sets of questions apart, so that each has its own draw."""
        rng = np.random.default_rng([seed, zlib.crc32(name.encode())])
        shares = np.full(questions, 1.0 / questions)
        self._counts = rng.multinomial(questions, shares, size=resamples).astype(np.float64)
        self._bounds = [50.0 * (1.0 - confidence), 50.0 * (1.0 + confidence)]

    def intervals(self, values: Floats) -> list[Interval]:
        """Return the mean and interval of each column of `values` (questions by columns)."""
        resampled = self._counts @ values / len(values)
        low, high = np.percentile(resampled, self._bounds, axis=0)
        return [
            Interval(float(mean), float(least), float(most))
            for mean, least, most in zip(values.mean(axis=0), low, high, strict=True)
        ]

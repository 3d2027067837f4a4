"""What is asked of an index, and by whom."""

from __future__ import annotations

import math
from typing import NamedTuple

from cma.orion.scoring import LEXICAL, Weights

__all__ = ["Query"]


class Query(NamedTuple):
    """What is asked of an index, and by whom."""

    terms: tuple[str, ...]
    viewer: frozenset[int]
    at_us: int
    limit: int
    lexical: str
    weights: Weights
    half_life_seconds: float
    include_inactive: bool
    exclusion_limit: int
    threads: int = 1

    def checked(self) -> Query:
        """This query. Raises ValueError if it has no answer."""
        if not self.terms:
            raise ValueError("query_terms: empty; ask with at least one term")
        if self.limit < 1 or self.exclusion_limit < 0:
            raise ValueError(
                f"limit: {self.limit}, exclusion_limit: {self.exclusion_limit}; "
                "must be at least 1 and at least 0"
            )
        if self.threads < 1:
            raise ValueError(f"threads: {self.threads}; must be at least 1")
        if self.lexical not in LEXICAL:
            raise ValueError(
                f"lexical: {self.lexical!r} is unknown; use one of {', '.join(LEXICAL)}"
            )
        if not math.isfinite(sum(map(abs, self.weights))):  # so that every score is finite, too
            raise ValueError(f"weights: {self.weights} must be finite, and their sum")
        if not (self.half_life_seconds > 0 and math.isfinite(self.half_life_seconds)):
            raise ValueError(f"half_life_seconds: {self.half_life_seconds} must be above zero")
        return self

"""Benchmarks measure ratios within one run and write them where the report finds them.

Run with `make bench`. Nothing here asserts a wall-clock time; the ratios are the result.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any

import numpy as np
import pytest

ROOT = Path(__file__).resolve().parents[2]
OUT = ROOT / "runs" / "bench" / "orion.json"
VOCABULARY = 50_000
TERMS_A_CELL = 12
TERMS_A_QUERY = 8

Figures = dict[str, dict[str, Any]]


@pytest.fixture(scope="session")
def figures() -> Iterator[Figures]:
    """Collect headline figures; keep those of earlier runs that this one did not measure."""
    measured: Figures = {}
    yield measured
    OUT.parent.mkdir(parents=True, exist_ok=True)
    earlier = json.loads(OUT.read_text())["figures"] if OUT.exists() else {}
    OUT.write_text(json.dumps({"figures": {**earlier, **measured}}, indent=2, sort_keys=True))


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Print the ratios that are on record, those of earlier runs too."""
    if not OUT.exists():
        return
    terminalreporter.section(f"ratios, kept in {OUT.relative_to(ROOT)}")
    for key, figure in json.loads(OUT.read_text())["figures"].items():
        low, high = figure.get("interval") or (None, None)
        between = "" if low is None else f" [{low:.3f}, {high:.3f}]"
        terminalreporter.line(f"{key}: {figure['value']:.3f}{between} {figure['unit']}")


class Zipf:
    """Documents and queries of terms drawn from a Zipf-like vocabulary, seeded."""

    def __init__(self, seed: int) -> None:
        self.generator = np.random.default_rng(seed)
        weights = 1.0 / np.arange(1, VOCABULARY + 1)
        self.shares = weights / weights.sum()

    def texts(self, count: int, terms: int) -> list[str]:
        """Return `count` texts of `terms` words each."""
        drawn = self.generator.choice(VOCABULARY, size=(count, terms), p=self.shares)
        return [" ".join(f"w{term}" for term in row) for row in drawn.tolist()]


def timed(action: Callable[[], object]) -> float:
    """Return the seconds that one call took."""
    start = perf_counter()
    action()
    return perf_counter() - start


def paired(one: list[float], other: list[float]) -> tuple[float, list[float]]:
    """Return the ratio of the medians of two interleaved series, and the quartiles of the pairs."""
    ratios = np.asarray(one) / np.asarray(other)
    low, high = np.quantile(ratios, [0.25, 0.75]).tolist()
    return median(one) / median(other), [low, high]

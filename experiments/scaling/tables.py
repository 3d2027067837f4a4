"""What was measured, as tables and figures: times and memory are facts of this machine."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from experiments.result import Figure
from experiments.scaling.measuring import Measured, milliseconds

MILLION = 1_000_000
MIXES = ("zipf", "rare")
INDEX, RECALL = "cma index", "cma recall"
QUANTILES = {"median_ms": 0.5, "p95_ms": 0.95, "p99_ms": 0.99}


def latency(found: Sequence[Measured]) -> pd.DataFrame:
    """One line for each size, mix and way of asking."""
    lines: list[dict[str, Any]] = [
        {"cells": size.cells, "mix": mix, "engine": way}
        | {name: milliseconds(seconds, share) for name, share in QUANTILES.items()}
        | {"n": len(seconds)}
        for size in found
        for (mix, way), seconds in size.latency.items()
    ]
    return pd.DataFrame(lines)


def costs(found: Sequence[Measured]) -> pd.DataFrame:
    """One line for each size and engine: build, load, append, memory and disk."""
    lines: list[dict[str, Any]] = []
    for size in found:
        for name, seconds in size.build.items():
            appended = size.append.get(name)
            lines.append(
                {
                    "cells": size.cells,
                    "engine": name,
                    "build_s": seconds,
                    "load_s": size.load[name].seconds,
                    "append_ms": milliseconds(appended, 0.5) if appended else None,
                    "memory_mb": size.load[name].megabytes,
                    "disk_mb": size.disk[name],
                }
            )
    return pd.DataFrame(lines)


def checks(found: Sequence[Measured]) -> pd.DataFrame:
    """One line for each size: questions held against brute force, and how many were equal."""
    return pd.DataFrame(
        [{"cells": each.cells, "questions": each.checked, "equal": each.equal} for each in found]
    )


def measured(found: Sequence[Measured]) -> dict[str, Figure]:
    """Return ratios to the best peer of each mix at each size, and what an append takes.

    The value is of the bare index search, the control of the audited recall.
    """
    figures: dict[str, Figure] = {}
    for size in found:
        prefix = "recall_1m" if size.cells == MILLION else f"scale.{size.cells}"
        for mix in MIXES:
            medians = {way: np.median(times) for (of, way), times in size.latency.items()
                       if of == mix}  # fmt: skip
            peers = [median for way, median in medians.items() if way not in (INDEX, RECALL)]
            if peers and INDEX in medians:
                best = min(peers)
                figures[f"{prefix}.{mix}.ratio_to_best_peer"] = Figure(
                    float(medians[INDEX] / best),
                    "ratio of median seconds",
                    len(size.latency[mix, INDEX]),
                    control=float(medians[RECALL] / best),
                )
        appended = size.append.get("cma")
        if appended:
            figures[f"{prefix}.append_ms"] = Figure(
                milliseconds(appended, 0.5), "ms", len(appended)
            )
    return figures


NOTES = (
    (
        "One process, one thread, every question put to each engine, in blocks that alternate; "
        "analysis of the question is part of the time. cma index: the search alone, with its exact "
        "counts; cma recall: the public method, which reads the cells and records a trace."
    ),
    (
        "CMA ranks by the paper's score (overlap, confidence, importance, recency), the peers by "
        "BM25: they answer the same question by other rules."
    ),
    (
        "Build: CMA writes durable, audited cells; its index is made when the store is opened. "
        "Load: a new process until its first answer. Append: one durable text until a question "
        "was answered with it; bm25s would build anew."
    ),
    "An engine that took longer than the patience of the settings answered fewer questions (n).",
)

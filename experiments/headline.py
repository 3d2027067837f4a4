"""The lines that the terminal shows of a retrieval or sweep, read from the result that it wrote."""

from __future__ import annotations

import csv
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from cma.orion.scoring import EVERY_PART, LEXICAL

FOLDS = "folds.csv"


def headline(place: Path) -> str | None:
    """Return recall@10 of a retrieval beside its peer's, or what a sweep chose; None of others."""
    result = json.loads((place / "result.json").read_bytes())
    figures = result["figures"]
    if result["experiment"] == "coefficient_sweep":
        return _swept(figures, place)
    ours: list[str] = []
    peers: list[tuple[float, str]] = []
    data = ""
    for key, figure in sorted(figures.items()):
        data, _, row = key.partition(".recall10.")
        parts = row.rsplit(".", 2)
        if len(parts) < 3:
            continue
        scorer, analyser, engine = parts
        if engine == "bm25s":
            peers.append((figure["value"], f"best bm25s ({analyser}) {_shown(figure)}"))
        elif scorer not in LEXICAL:
            ours.append(f"{scorer} {analyser} {_shown(figure)}")
    said = [*ours, *([max(peers)[1]] if peers else [])]
    return f"recall@10 on {data}: {'; '.join(said)}" if said else None


def _swept(figures: Mapping[str, Any], place: Path) -> str | None:
    """Return the held-out recall@10, and the coefficients chosen on all questions."""
    with (place / FOLDS).open(encoding="utf-8", newline="") as file:
        chosen = [row for row in csv.DictReader(file) if row["fold"] == "all"]
    told = [
        f"recall@10 on {key.partition('.')[0]}: tuned, held out {_shown(figure)}; "
        f"best bm25s {figure['control']:.3f}"
        for key, figure in figures.items()
        if key.endswith(".recall10.tuned") and "control" in figure
    ]
    for row in chosen:
        parts = ", ".join(f"{name}={float(row[name]):g}" for name in EVERY_PART if float(row[name]))
        told.append(f"chosen on all questions by {row['objective']}: {parts} ({place / FOLDS})")
    return "\n".join(told) or None


def _shown(figure: Mapping[str, Any]) -> str:
    low, high = figure["interval"]
    return f"{figure['value']:.3f} [{low:.3f}, {high:.3f}]"

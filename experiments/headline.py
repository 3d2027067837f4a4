"""The one line that the terminal shows of a retrieval run, read from the result that it wrote."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from cma.orion.scoring import LEXICAL


def headline(place: Path) -> str | None:
    """Return recall@10 of the hand-set score and of the peer's best row; None where it has none."""
    figures = json.loads((place / "result.json").read_bytes())["figures"]
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


def _shown(figure: Mapping[str, Any]) -> str:
    low, high = figure["interval"]
    return f"{figure['value']:.3f} [{low:.3f}, {high:.3f}]"

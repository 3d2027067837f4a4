"""Small run directories in the shared format, for the tests of reports and reproductions."""

from __future__ import annotations

import csv
import hashlib
import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

ORION = [f"O{number:02d}" for number in range(1, 41)]
CATEGORIES = {"all": 60, "multi_hop": 20, "temporal": 40}
METRICS = ("recall@1", "recall@5", "recall@10", "recall@20", "ndcg@10", "mrr")
ROWS = (
    ("overlap", "unicode", "cma", 0.40),
    ("bm25", "unicode", "cma", 0.50),
    ("bm25", "unicode", "bm25s", 0.50),
    ("overlap", "english", "cma", 0.45),
    ("bm25", "english", "bm25s", 0.55),
    ("hand_set", "english", "cma", 0.47),
)


def write_run(
    root: Path,
    experiment: str,
    *,
    run_id: str = "0123456789abcdef",
    figures: Mapping[str, Any] | None = None,
    tables: Mapping[str, Iterable[Mapping[str, Any]]] | None = None,
    status: str = "ok",
    finished: str = "2026-07-01T10:00:00+00:00",
    notes: Iterable[str] = (),
    data_set: str = "",
    data: Iterable[Mapping[str, str]] = (),
    source_digest: str = "ab" * 32,
    error: Mapping[str, str] | None = None,
    machine: Mapping[str, Any] | None = None,
) -> Path:
    """Write one run directory and return it."""
    folder = root / experiment / run_id
    folder.mkdir(parents=True)
    for name, rows in (tables or {}).items():
        lines = list(rows)
        with (folder / name).open("w", encoding="utf-8", newline="") as file:
            writer = csv.DictWriter(file, list(lines[0]), lineterminator="\n")
            writer.writeheader()
            writer.writerows(lines)
    settings = {"data": {"name": data_set}} if data_set else {}
    config = f"experiment: {experiment}\n" + (f"data:\n  name: {data_set}\n" if data_set else "")
    (folder / "config.yaml").write_text(config)
    result = {
        "format": "cma.result/1",
        "experiment": experiment,
        "run_id": run_id,
        "config_hash": digest_of({"experiment": experiment} | settings),
        "source_digest": source_digest,
        "seed": 7,
        "status": status,
        "error": error,
        "data": list(data),
        "figures": dict(figures or {}),
        "tables": sorted(tables or {}),
        "notes": list(notes),
    }
    (folder / "result.json").write_text(json.dumps(result))
    described = {"finished_at": finished, "seconds": 1.5, "device": "cpu", "python": "3.11.2"}
    (folder / "machine.json").write_text(json.dumps(described | dict(machine or {})))
    return folder


def digest_of(content: Any) -> str:
    """Return the SHA-256 by which runs and settings are told apart."""
    text = json.dumps(content, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(text.encode()).hexdigest()


def write_tally(root: Path, *, failed: Iterable[str] = (), **options: Any) -> Path:
    """Write a tally whose Orion contracts passed, but for `failed`, and Trifid's have no test."""
    bad = set(failed)
    rows = [
        {
            "version": "orion",
            "contract": name,
            "title": f"Rule {name} of 100% & more_or_less",
            "outcome": "failed" if name in bad else "passed",
        }
        for name in ORION
    ]
    rows += [
        {"version": "trifid", "contract": f"T{n:02d}", "title": "Rule", "outcome": "missing"}
        for n in range(1, 21)
    ]
    passed = 40 - len(bad)
    options.setdefault("figures", {"contracts.orion": figure(passed, "contracts passed", 40)})
    counts = [{"version": "orion", "passed": passed, "total": 40, "expected": 40}]
    tables = {"contracts.csv": rows, "tally.csv": counts}
    return write_run(root, "contract_tally", tables=tables, **options)


def write_retrieval(root: Path, *, data_set: str = "locomo", **options: Any) -> Path:
    """Write a retrieval run with every table."""
    recall, gaps = [], []
    for labels in ("published", "corrected"):
        for scorer, analyser, engine, level in ROWS:
            row = {"data": data_set, "labels": labels, "scorer": scorer, "analyser": analyser}
            row["engine"] = engine
            for category, n in CATEGORIES.items():
                for place, metric in enumerate(METRICS):
                    value = level + 0.03 * place - 0.05
                    numbers = {"value": value, "low": value - 0.04, "high": value + 0.04}
                    recall.append(
                        row
                        | {"category": category, "metric": metric}
                        | numbers
                        | {"n": n, "numerator": value * n}
                    )
                if engine == "cma":
                    gap = level - 0.55
                    gaps.append(
                        row
                        | {"against": "bm25/english/bm25s", "category": category}
                        | {"metric": "recall@10", "value": gap, "low": gap - 0.03}
                        | {"high": gap + 0.03, "n": n}
                    )
    problems = [
        {"conversation": "conv-1", "question": "q_1", "raw": "D8:6; D9:17|<x>", "kind": "multiple",
         "resolution": "D8:6 & D9:17"}
    ]  # fmt: skip
    options.setdefault(
        "figures",
        {
            f"{data_set}.recall10.overlap": figure(0.41, "share", 60, (0.37, 0.45)),
            f"{data_set}.recall10.bm25": figure(0.56, "share", 60, (0.52, 0.60)),
        },
    )
    tables = {"recall.csv": recall, "differences.csv": gaps, "evidence_problems.csv": problems}
    source = {"name": "locomo10.json", "sha256": "ef" * 32, "licence": "CC BY-NC 4.0"}
    return write_run(
        root, "retrieval", data_set=data_set, tables=tables,
        data=[source | {"origin": "config"}], **options,
    )  # fmt: skip


def figure(
    value: object,
    unit: str = "count",
    n: object = None,
    interval: tuple[float, float] | None = None,
) -> dict[str, Any]:
    """Return one figure as a result file holds it."""
    entry: dict[str, Any] = {"value": value, "unit": unit, "n": value if n is None else n}
    if interval is not None:
        entry["interval"] = list(interval)
    return entry

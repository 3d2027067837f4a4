"""The section of `concurrency`: what was wrong after many writers, and how long they waited."""

from __future__ import annotations

from reports.tables import ZERO_BOUND, Table, table
from reproductions.results import Run


def build(run: Run, anchor: str) -> tuple[str, tuple[Table, ...]]:
    """Return the finding, the table of what was wrong, and that of answers and times."""
    rows = run.needed("concurrency.csv", "a concurrency run")
    operations = {row["writers"]: int(row["operations"]) for row in rows}
    total = sum(operations.values())
    wrong = sum(int(row["cases"]) for row in rows)
    told = " and ".join(f"{count:,} by {writers}" for writers, count in operations.items())
    finding = f"{total:,} operations ({told}): {wrong:,} cases of anything wrong"
    if not wrong:
        finding += f" (95% bound on the share: {ZERO_BOUND / total:.2%})"
    found = table(
        f"{anchor}-wrong", "What the checker found", rows,
        {"writers": "Writers", "kind": "Kind", "meaning": "What it means",
         "operations": "Operations", "cases": "Cases"},
    )  # fmt: skip
    answers = table(
        f"{anchor}-answers", "Answers and waits", run.table("concurrency_answers.csv") or [],
        {"writers": "Writers", "operation": "Operation", "acknowledged": "Acknowledged",
         "refused": "Refused", "median_ms": "Median, ms", "p99_ms": "99th percentile, ms",
         "codes": "Refusals by code"},
        folded=True,
    )  # fmt: skip
    return f"{finding}.", (found, answers)

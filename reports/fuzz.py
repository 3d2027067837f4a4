"""The section of `fuzz`: how many hostile inputs each reader took, and what came out of them."""

from __future__ import annotations

from reports.tables import ZERO_BOUND, Table, table
from reproductions.results import Run


def build(run: Run, anchor: str) -> tuple[str, tuple[Table, ...]]:
    """Return the finding and the table by reader."""
    rows = run.needed("fuzz.csv", "a fuzz run")
    total = sum(int(row["inputs"]) for row in rows)
    untyped = sum(int(row["untyped"]) for row in rows)
    finding = f"{total:,} hostile inputs: {untyped:,} came back with an error that nobody promised"
    if not untyped:
        finding += f" (95% bound on the share: {ZERO_BOUND / total:.2%})"
    times = {row["reader"]: row["slowest_ms"] for row in run.table("fuzz_times.csv") or []}
    shown = [{**row, "slowest_ms": times.get(row["reader"], "")} for row in rows]
    readers = table(
        f"{anchor}-readers", "What readers made of hostile input", shown,
        {"reader": "Reader", "reads": "Reads", "inputs": "Inputs", "accepted": "Accepted",
         "refused": "Refused", "codes": "Reason codes", "untyped": "Untyped",
         "slowest_ms": "Slowest, ms"},
    )  # fmt: skip
    return f"{finding}.", (readers,)

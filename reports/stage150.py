"""The section of `stage150`: the gates with their checks, and the tree's files by kind."""

from __future__ import annotations

from reports.tables import Table, table
from reproductions.inputs import CorruptInputError
from reproductions.results import Run

SHOWN = 24
"""Digits of a digest that a table shows."""


def build(run: Run, anchor: str) -> tuple[str, tuple[Table, ...]]:
    """Return the finding and the tables."""
    checks, files = run.table("gates.csv"), run.table("files.csv")
    if not checks or not files:
        raise CorruptInputError(
            f"{run.folder}: a Stage150 run without gates.csv or files.csv; "
            "run: python -m experiments experiment=stage150 resume=false"
        )
    gates: dict[str, dict[str, object]] = {}
    for row in checks:
        gate = gates.setdefault(
            row["gate"],
            {"gate": row["gate"].replace("_", " "), "title": row["title"],
             "passed": "yes" if row["passed"] == "True" else "NO", "held": 0, "checks": 0},
        )  # fmt: skip
        gate["held"] = _count(gate["held"]) + (row["held"] == "True")
        gate["checks"] = _count(gate["checks"]) + 1
    kinds: dict[str, dict[str, object]] = {}
    for row in files:
        kind = kinds.setdefault(row["kind"], {"kind": row["kind"], "files": 0, "bytes": 0})
        kind["files"] = _count(kind["files"]) + 1
        kind["bytes"] = _count(kind["bytes"]) + int(row["bytes"])
    shown = [
        {**row, "gate": row["gate"].replace("_", " "), "required": row["required"][:SHOWN],
         "observed": row["observed"][:SHOWN], "held": "yes" if row["held"] == "True" else "NO"}
        for row in checks
    ]  # fmt: skip
    tables = (
        table(
            f"{anchor}-gates", "Release gates", list(gates.values()),
            {"gate": "Gate", "title": "What it asks", "held": "Checks held", "checks": "Checks",
             "passed": "Passed"},
            caption="Each gate is computed from the files of the tree alone, and once more by "
            "python -m reproductions verify TREE.",
        ),
        table(
            f"{anchor}-kinds", "Files by kind", list(kinds.values()),
            {"kind": "Kind", "files": "Files", "bytes": "Bytes"},
            caption="Without the manifest, which lists all others, and the machine's own file.",
        ),
        table(
            f"{anchor}-checks", "Every check", shown,
            {"gate": "Gate", "check": "What was checked", "required": "Required",
             "observed": "Observed", "held": "Held"},
            folded=True,
        ),
        table(
            f"{anchor}-files", "Every file", files,
            {"path": "File", "kind": "Kind", "bytes": "Bytes", "sha256": "SHA-256"},
            folded=True,
        ),
    )  # fmt: skip
    return _finding(run, list(gates.values())), tables


def _finding(run: Run, gates: list[dict[str, object]]) -> str:
    """Return one sentence of measured values; raises KeyError where a figure is not there."""
    files, disclosed = (
        run.result.figures[f"stage150.{key}"].number for key in ("files", "disclosures")
    )
    failed = [str(gate["gate"]) for gate in gates if gate["passed"] != "yes"]
    text = (
        f"{len(gates) - len(failed)} of {len(gates)} release gates passed over a tree of "
        f"{files} files, in which a scan found {disclosed} disclosures."
    )
    return text + (f" FAILED: {', '.join(failed)}." if failed else "")


def _count(value: object) -> int:
    return value if isinstance(value, int) else 0

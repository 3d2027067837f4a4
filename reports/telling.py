"""The section of `explain`: one delivery told backwards, as steps within steps.

It needs no script: the page nests the steps as lists that open and close by themselves.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from reports.tables import Table, table
from reproductions.results import Run

FOLDED = 12
"""Steps within a step beyond which the page shows them folded."""
MARKS = {"True": True, "False": False}
DEEPEST = 8

Number = tuple[int, ...]
Rows = Sequence[Mapping[str, str]]


@dataclass(frozen=True)
class Step:
    """One step with those that it holds. records: the numbers of its audit records, as text."""

    number: str
    kind: str
    id: str
    told: str
    verified: bool
    records: str
    steps: tuple[Step, ...]

    @property
    def folded(self) -> bool:
        """Whether what it holds is too long to be shown unasked."""
        return len(self.steps) > FOLDED


def build(run: Run, anchor: str) -> tuple[str, tuple[Table, ...], tuple[Step, ...]]:
    """Return the finding, the table of all steps, and the steps within steps."""
    rows = run.needed("steps.csv", "a telling")
    steps = nested(rows)
    columns = {
        "step": "Step",
        "kind": "What",
        "id": "Id",
        "told": "What it says",
        "verified": "Verified",
        "audit_seq": "Audit records",
    }
    every = table(f"{anchor}-steps", "Every step", rows, columns, folded=True)
    return _finding(rows), (every,), steps


def nested(rows: Rows) -> tuple[Step, ...]:
    """Return the steps as a tree; each must come after the one that it lies within."""
    numbers = [tuple(int(part) for part in row["step"].split("/")) for row in rows]
    known: set[Number] = {()}
    for number in numbers:
        if number in known or number[:-1] not in known or len(number) > DEEPEST:
            raise ValueError(f"step {'/'.join(map(str, number))} has no place")
        known.add(number)
    within: dict[Number, list[Step]] = {number: [] for number in known}
    # From the last step to the first, so that what a step holds is there before it.
    for number, row in sorted(zip(numbers, rows, strict=True), key=lambda each: each[0])[::-1]:
        if row["verified"] not in MARKS:
            raise ValueError(f"verified is {row['verified']!r}")
        step = Step(
            number="/".join(map(str, number)),
            kind=row["kind"],
            id=row["id"],
            told=row["told"],
            verified=MARKS[row["verified"]],
            records=row["audit_seq"],
            steps=tuple(reversed(within[number])),
        )
        within[number[:-1]].append(step)
    return tuple(reversed(within[()]))


def _finding(rows: Rows) -> str:
    verified = sum(row["verified"] == "True" for row in rows)
    records = {seq for row in rows for seq in row["audit_seq"].split()}
    return (
        f"One delivery told backwards in {len(rows)} steps over {len(records)} audit records; "
        f"{verified} of {len(rows)} steps are verified against the audit chain."
    )

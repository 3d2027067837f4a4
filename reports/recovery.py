"""The section of `recovery`: how many damaged copies of a snapshot were refused, and why."""

from __future__ import annotations

from collections import Counter

from reports.tables import Table, table
from reproductions.inputs import CorruptInputError
from reproductions.results import Run

ACCEPTED = "accepted"
MEANINGS = {
    ACCEPTED: "restored although it was damaged",
    "snapshot-envelope": "the first line, which names what follows, is not whole",
    "snapshot-hash": "the records are not those that the envelope names",
    "snapshot-newer": "the envelope names a format that this release does not know",
}


def build(run: Run, anchor: str) -> tuple[str, tuple[Table, ...]]:
    """Return the finding and the table of answers."""
    rows = run.table("snapshot_damage.csv")
    if not rows:
        raise CorruptInputError(
            f"{run.folder}: a recovery without snapshot_damage.csv; "
            "run: python -m experiments experiment=recovery resume=false"
        )
    totals: Counter[str] = Counter()
    refused: Counter[str] = Counter()
    for row in rows:
        totals[row["damage"]] += int(row["copies"])
        refused[row["damage"]] += int(row["copies"]) * (row["answer"] != ACCEPTED)
    shown = [
        {**row, "copies": f"{int(row['copies']):,}", "meaning": MEANINGS.get(row["answer"], "")}
        for row in rows
    ]
    answers = table(
        f"{anchor}-damage", "How damaged copies were answered", shown,
        {"damage": "Damage", "answer": "Reason code", "meaning": "What it says",
         "copies": "Copies"},
    )  # fmt: skip
    told = "; ".join(
        f"{refused[damage]:,} of {total:,} copies with {WORDS.get(damage, damage)} were refused"
        for damage, total in totals.items()
    )
    return f"{told}, and none of those left a store behind.", (answers,)


WORDS = {"bit flipped": "one bit flipped", "cut short": "the end cut off"}

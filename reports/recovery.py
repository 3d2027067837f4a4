"""The section of `recovery`: what crashes and damage took, beside what they take from controls."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from reports.tables import ZERO_BOUND, Table, table
from reproductions.inputs import CorruptInputError
from reproductions.results import Figure, Run

ACCEPTED = "accepted"
MEANINGS = {
    ACCEPTED: "restored although it was damaged",
    "snapshot-envelope": "the first line, which names what follows, is not whole",
    "snapshot-hash": "the records are not those that the envelope names",
    "snapshot-newer": "the envelope names a format that this release does not know",
}


class Line(NamedTuple):
    """One line of the summary: which figure counts the tries, which the cases."""

    fault: str
    wrong: str
    tries: str
    cases: str = ""
    """Counts what went wrong."""
    sound: str = ""
    """Counts what went right, where that is the figure."""
    control: str = ""
    control_tries: str = ""


LINES = (
    Line("snapshot, one bit flipped", "accepted", "snapshot.flips",
         sound="snapshot.flips_refused"),
    Line("snapshot, end cut off", "accepted", "snapshot.truncations",
         sound="snapshot.truncations_refused"),
    Line("kill -9", "acknowledged and lost", "kill9.cycles", "kill9.acknowledged_lost",
         control="synchronous=OFF: kill -9 cannot show a missing sync",
         control_tries="kill9.control_lost"),
    Line("kill -9", "torn", "kill9.cycles", "kill9.torn", control="synchronous=OFF"),
    Line("power cut", "acknowledged and lost", "power.points", "power.acknowledged_lost",
         control="synchronous=NORMAL", control_tries="power.control_lost"),
    Line("power cut", "torn", "power.points", "power.torn"),
    Line("disk call failed", "partly published", "iofault.sites", "iofault.partial"),
    Line("disk call failed", "a lock left", "iofault.sites", "iofault.stranded_locks"),
    Line("disk call failed", "does not go on", "iofault.sites", "iofault.stuck"),
    Line("disk call failed", "an error of no kind of ours", "iofault.sites", "iofault.untyped"),
    Line("disk call failed", "a lie of the disk unnoticed", "iofault.sites",
         "iofault.lies_unnoticed"),
    Line("bit flipped that changes a live store", "unnoticed", "live_flips.changing",
         sound="live_flips.detected", control="SQLite's own check"),
)  # fmt: skip
DETAILS: Mapping[str, tuple[str, Mapping[str, str]]] = {
    "snapshot_damage": (
        "How damaged snapshots were answered",
        {"damage": "Damage", "answer": "Reason code", "meaning": "What it says",
         "copies": "Copies"},
    ),
    "kills": (
        "What killed writers left",
        {"synchronous": "Synchronous", "killed": "Killed", "verdict": "Store", "cycles": "Cycles"},
    ),
    "power_cuts": (
        "What a power cut left, by what the disk still wrote",
        {"synchronous": "Synchronous", "log": "Log", "survives": "Of the unsynced survives",
         "verdict": "Store", "cuts": "Cuts"},
    ),
    "io_faults": (
        "What failing calls to the disk led to",
        {"fault": "Fault", "log": "Log", "answer": "Answer", "sites": "Calls failed"},
    ),
    "live_flips": (
        "What flipped bits of a live store did",
        {"file": "File", "effect": "The flip", "answer": "Reason code",
         "flips": "Flips"},
    ),
}  # fmt: skip
"""Tables of the run, the headings of their columns; what is not named is summed over."""


def build(run: Run, anchor: str) -> tuple[str, tuple[Table, ...]]:
    """Return the finding, the summary, and a table for each kind of fault."""
    figures = run.result.figures
    lines = [line for line in LINES if line.tries in figures]
    if not lines:
        raise CorruptInputError(
            f"{run.folder}: a recovery without figures; "
            "run: python -m experiments experiment=recovery resume=false"
        )
    rows = [_row(line, figures) for line in lines]
    summary = table(
        f"{anchor}-summary", "What crashes and damage took", rows,
        {"fault": "Fault", "wrong": "What would be wrong", "tries": "Tries", "cases": "Cases",
         "bound": "95% bound", "control": "Control", "control_cases": "Cases in the control"},
        caption="The bound holds for what is drawn at random; calls and syncs are gone through "
        "one by one.",
    )  # fmt: skip
    details = [
        table(f"{anchor}-{name.replace('_', '-')}", title, rows, columns, folded=True)
        for name, (title, columns) in DETAILS.items()
        if (rows := _summed(run.table(f"{name}.csv") or [], columns))
    ]
    return _finding(lines, figures), (summary, *details)


def _finding(lines: Iterable[Line], figures: Mapping[str, Figure]) -> str:
    tries: dict[str, int] = {}
    wrong: defaultdict[str, int] = defaultdict(int)
    for line in lines:
        tries[line.fault] = _count(figures, line.tries)
        wrong[line.fault] += _cases(line, figures)
    told = "; ".join(
        f"{fault}: {tries[fault]:,} tried, {wrong[fault]:,} went wrong" for fault in tries
    )
    return f"{told[0].upper()}{told[1:]}."


def _row(line: Line, figures: Mapping[str, Figure]) -> dict[str, object]:
    tries, cases = _count(figures, line.tries), _cases(line, figures)
    control = _control(line, figures)
    bound = f"{100 * ZERO_BOUND / tries:.2g}%" if tries and not cases else ""
    return {
        "fault": line.fault,
        "wrong": line.wrong,
        "tries": f"{tries:,}",
        "cases": f"{cases:,}",
        "bound": bound,
        "control": line.control if control else "",
        "control_cases": control,
    }


def _cases(line: Line, figures: Mapping[str, Figure]) -> int:
    if line.cases:
        return _count(figures, line.cases)
    return _count(figures, line.tries) - _count(figures, line.sound)


def _control(line: Line, figures: Mapping[str, Figure]) -> str:
    figure = figures[line.cases or line.sound]
    if figure.control is None:
        return ""
    cases = int(figure.control)
    if line.sound:
        return f"{_count(figures, line.tries) - cases:,} of {_count(figures, line.tries):,}"
    if line.control_tries in figures:
        return f"{cases:,} of {int(figures[line.control_tries].n):,}"
    return f"{cases:,}"


def _count(figures: Mapping[str, Figure], key: str) -> int:
    number = figures[key].number if key in figures else None
    if number is None:
        raise CorruptInputError(f"a recovery without the figure {key}")
    return int(number)


def _summed(
    rows: Iterable[Mapping[str, str]], columns: Mapping[str, str]
) -> list[dict[str, object]]:
    """Return the rows added up over the columns that are not shown."""
    *kinds, unit = columns
    totals: defaultdict[tuple[str, ...], int] = defaultdict(int)
    for row in rows:
        totals[tuple(row[kind] for kind in kinds if kind != "meaning")] += int(row[unit])
    named = [kind for kind in kinds if kind != "meaning"]
    return [
        {
            **dict(zip(named, key, strict=True)),
            unit: f"{count:,}",
            "meaning": MEANINGS.get(key[-1], ""),
        }
        for key, count in totals.items()
    ]

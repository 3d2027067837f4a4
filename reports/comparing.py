"""What changed between two runs: settings, versions, figures with their intervals, tables.

Rules kept here:

* only what differs is listed; nothing listed means that the runs say the same;
* figures of the machine and the moment (seconds, ratios of time) are listed and do not count: no
  two runs have the same;
* intervals are said to overlap or to lie apart, and nothing more is read into that.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from reports.tables import Table, shown, table
from reproductions.inputs import finite
from reproductions.results import Figure, Run

HEADS = {"part": "Part", "name": "Name", "one": "A", "other": "B", "change": "B minus A",
         "intervals": "Intervals"}  # fmt: skip
MOMENT = "of the moment"
OVERLAP, APART = "overlap", "apart"


@dataclass(frozen=True)
class Difference:
    """One thing that two runs say otherwise; an empty side does not have it."""

    part: str
    name: str
    one: str
    other: str
    change: str = ""
    intervals: str = ""

    @property
    def counts(self) -> bool:
        """Whether it makes the runs differ: what belongs to the moment does not."""
        return self.part != MOMENT


def differences(one: Run, other: Run) -> list[Difference]:
    """Return all that differs, settings first."""
    return [
        *_plain("run", _told(one), _told(other)),
        *_plain("settings", _flat(one.config), _flat(other.config)),
        *_plain("versions", _versions(one), _versions(other)),
        *_figures("figures", one.result.figures, other.result.figures),
        *_plain("rows of tables", _rows(one), _rows(other)),
        *_plain("contents of tables", one.result.table_digests, other.result.table_digests),
        *_notes(one.result.notes, other.result.notes),
        *_figures(MOMENT, one.machine.figures, other.machine.figures),
    ]


def difference_table(found: list[Difference], one: Run, other: Run) -> Table:
    """Return the differences as a table."""
    names = [f"{run.result.experiment} {run.result.run_id}" for run in (one, other)]
    rows = [{key: getattr(each, key) for key in HEADS} for each in found]
    return table(
        "comparison",
        "What changed between two runs",
        rows,
        HEADS,
        caption=f"A: {names[0]}. B: {names[1]}. Listed is what differs. Intervals that lie apart "
        "are a difference; ones that overlap are none that these runs can show. What is of the "
        "moment differs between any two runs.",
    )


def _told(run: Run) -> dict[str, str]:
    result = run.result
    error = "" if result.error is None else f"{result.error.type}: {result.error.message}"
    data = {f"data {each.name}": each.sha256 for each in result.data}
    told = {"experiment": result.experiment, "status": result.status, "error": error, **data}
    return {name: value for name, value in told.items() if value}


def _versions(run: Run) -> dict[str, str]:
    machine = run.machine
    told = {
        "sources": run.result.source_digest,
        "git revision": machine.git_revision or "",
        "python": machine.python,
        "platform": machine.platform,
        "device": machine.device,
        **machine.packages,
    }
    return {name: value for name, value in told.items() if value}


def _rows(run: Run) -> dict[str, str]:
    tables = ((name, run.table(name)) for name in run.result.tables)
    return {name: f"{len(rows):,}" for name, rows in tables if rows is not None}


def _notes(one: Sequence[str], other: Sequence[str]) -> Iterator[Difference]:
    yield from (Difference("notes", "", note, "") for note in one if note not in other)
    yield from (Difference("notes", "", "", note) for note in other if note not in one)


def _flat(config: Mapping[str, Any], prefix: str = "") -> dict[str, str]:
    found: dict[str, str] = {}
    for key, value in config.items():
        if isinstance(value, Mapping):
            found |= _flat(value, f"{prefix}{key}.")
        else:
            found[f"{prefix}{key}"] = "null" if value is None else str(value)
    return found


def _plain(part: str, one: Mapping[str, str], other: Mapping[str, str]) -> Iterator[Difference]:
    for name in dict.fromkeys([*one, *other]):
        told = one.get(name, ""), other.get(name, "")
        if told[0] != told[1]:
            yield Difference(part, name, *told)


def _figures(
    part: str, one: Mapping[str, Figure], other: Mapping[str, Figure]
) -> Iterator[Difference]:
    for name in dict.fromkeys([*one, *other]):
        before, after = one.get(name), other.get(name)
        if before == after:
            continue
        yield Difference(
            part,
            name,
            _figure(before),
            _figure(after),
            _change(before, after),
            _intervals(before, after),
        )


def _figure(figure: Figure | None) -> str:
    if figure is None:
        return ""
    interval = _interval(figure)
    told = shown(figure.value)
    if interval:
        told += f" [{interval[0]:.4f}, {interval[1]:.4f}]"
    told += f" {figure.unit}" if figure.unit else ""
    return told + (f", n={figure.n}" if figure.n is not None else "")


def _change(before: Figure | None, after: Figure | None) -> str:
    numbers = [figure.number for figure in (before, after) if figure is not None]
    if len(numbers) != 2 or numbers[0] is None or numbers[1] is None:
        return ""
    return f"{numbers[1] - numbers[0]:+.4g}"


def _intervals(before: Figure | None, after: Figure | None) -> str:
    ends = [_interval(figure) for figure in (before, after) if figure is not None]
    if len(ends) != 2 or ends[0] is None or ends[1] is None:
        return ""
    (low, high), (other_low, other_high) = ends[0], ends[1]
    return OVERLAP if low <= other_high and other_low <= high else APART


def _interval(figure: Figure) -> tuple[float, float] | None:
    ends = [finite(each) for each in figure.interval or ()]
    if len(ends) != 2 or ends[0] is None or ends[1] is None:
        return None
    return float(ends[0]), float(ends[1])

"""What crashes and damage can take from a store, beside controls that must lose something.

Five parts: damaged snapshots, processes killed, power cut, disks that refuse, and bits that flip
in a live store. The work that is interrupted is one script that writes in every way the library
knows (`experiments.crashing.script`); what is left is held against a clean run of it, state by
state, so whole or absent is exact and needs no rule of its own for each kind of record.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import apsw
import pandas as pd

from experiments import ranges
from experiments.crashing import faults, parts, script
from experiments.crashing.failing import Answer
from experiments.crashing.flips import ACCEPTED, Effect
from experiments.crashing.judging import Verdict
from experiments.crashing.scratch import scratch
from experiments.result import Figure, Result
from experiments.settings import RecoverySettings, Settings

PARTS: Mapping[str, Callable[[Path, RecoverySettings, int], pd.DataFrame]] = {
    "snapshots": parts.damaged_snapshots,
    "kills": parts.kills,
    "power": parts.power_cuts,
    "io": parts.io_faults,
    "flips": parts.live_flips,
}
TABLES = {
    "snapshots": "snapshot_damage",
    "kills": "kills",
    "power": "power_cuts",
    "io": "io_faults",
    "flips": "live_flips",
}
MOST = 1_000_000
LOST = (Verdict.LOST.value, Verdict.REFUSED.value)
"""A store that is refused as a whole keeps what was acknowledged out of reach: that is lost too."""
TORN = (Verdict.TORN.value, Verdict.STUCK.value, Verdict.UNERASED.value)


def check(settings: Settings) -> None:
    """Refuse sizes out of range and names that are none."""
    asked = settings.recovery
    ranges.whole("seed", settings.seed, 0, ranges.SEED_LIMIT)
    ranges.whole("recovery.kills", asked.kills, 1, MOST)
    ranges.whole("recovery.control_kills", asked.control_kills, 1, MOST)
    ranges.whole("recovery.between", asked.between, 0, MOST)
    ranges.whole("recovery.flips", asked.flips, 1, MOST)
    ranges.names("recovery.parts", asked.parts, PARTS)
    ranges.names("recovery.faults", asked.faults, faults.FAULTS)
    ranges.names("recovery.logs", asked.logs, faults.LOGS)


def run(settings: Settings, folder: Path) -> Result:  # noqa: ARG001
    """Break things in every way that the settings name, and count what became of them."""
    tables = {}
    for part in dict.fromkeys(settings.recovery.parts):
        with scratch() as place:
            tables[part] = PARTS[part](place, settings.recovery, settings.seed)
    return result_of(tables, settings.seed)


def result_of(tables: Mapping[str, pd.DataFrame], seed: int) -> Result:
    """Return the figures that the tables hold; a part that was not run has none."""
    figures: dict[str, Figure] = {}
    for part, table in tables.items():
        figures |= FIGURES[part](table)
    return Result(
        figures=figures,
        tables={TABLES[part]: table for part, table in tables.items()},
        notes=(
            f"SQLite {apsw.sqlite_lib_version()} through apsw {apsw.apsw_version()}, seed {seed}.",
        ),
    )


def _snapshots(table: pd.DataFrame) -> dict[str, Figure]:
    figures = {}
    for key, damage in (("flips", "bit flipped"), ("truncations", "cut short")):
        part = table[table["damage"] == damage]
        count = int(part["copies"].sum())
        refused = int(part[part["answer"] != ACCEPTED]["copies"].sum())
        figures[f"snapshot.{key}"] = Figure(count, "count", count)
        figures[f"snapshot.{key}_refused"] = Figure(refused, "count", count)
    return figures


def _kills(table: pd.DataFrame) -> dict[str, Figure]:
    ours = table[table["synchronous"] == script.FULL]
    control = table[table["synchronous"] == parts.CONTROL_KILLS]
    count, controls = int(ours["cycles"].sum()), int(control["cycles"].sum())
    lost = _sum(control, "verdict", LOST, "cycles")
    return {
        "kill9.cycles": Figure(count, "count", count),
        "kill9.acknowledged_lost": Figure(
            _sum(ours, "verdict", LOST, "cycles"),
            "count",
            count,
            control=lost,
        ),
        "kill9.torn": Figure(
            _sum(ours, "verdict", TORN, "cycles"),
            "count",
            count,
            control=_sum(control, "verdict", TORN, "cycles"),
        ),
        "kill9.control_lost": Figure(lost, "count", controls),
    }


def _power(table: pd.DataFrame) -> dict[str, Figure]:
    ours = table[table["synchronous"] == script.FULL]
    control = table[table["synchronous"] == parts.CONTROL_CUTS]
    count, controls = int(ours["cuts"].sum()), int(control["cuts"].sum())
    lost = _sum(control, "verdict", LOST, "cuts")
    return {
        "power.points": Figure(count, "count", count),
        "power.acknowledged_lost": Figure(
            _sum(ours, "verdict", LOST, "cuts"), "count", count, control=lost
        ),
        "power.torn": Figure(_sum(ours, "verdict", TORN, "cuts"), "count", count),
        "power.control_lost": Figure(lost, "count", controls),
    }


def _io(table: pd.DataFrame) -> dict[str, Figure]:
    count = int(table["sites"].sum())
    counted = {
        "partial": Answer.PARTIAL,
        "stranded_locks": Answer.LOCKED,
        "stuck": Answer.STUCK,
        "untyped": Answer.UNTYPED,
        "lies_unnoticed": Answer.SILENT,
    }
    return {"iofault.sites": Figure(count, "count", count)} | {
        f"iofault.{key}": Figure(_sum(table, "answer", (answer.value,), "sites"), "count", count)
        for key, answer in counted.items()
    }


def _flips(table: pd.DataFrame) -> dict[str, Figure]:
    changing = table[table["effect"] == Effect.CHANGES.value]
    count = int(changing["flips"].sum())
    total = int(table["flips"].sum())
    return {
        "live_flips.tried": Figure(total, "count", total),
        "live_flips.changing": Figure(count, "count", total),
        "live_flips.detected": Figure(
            int(changing[changing["answer"] != ACCEPTED]["flips"].sum()),
            "count",
            count,
            control=int(changing[changing["sqlite_notices"]]["flips"].sum()),
        ),
    }


FIGURES: Mapping[str, Callable[[pd.DataFrame], dict[str, Figure]]] = {
    "snapshots": _snapshots,
    "kills": _kills,
    "power": _power,
    "io": _io,
    "flips": _flips,
}


def _sum(table: pd.DataFrame, column: str, values: tuple[str, ...], unit: str) -> int:
    return int(table[table[column].isin(values)][unit].sum())

"""The five parts of `recovery`: each breaks one thing and returns what it counted as a table.

A table is tidy and deterministic: a row is a kind of fault and an answer, with how many there
were. What is a matter of the moment (how much a killed writer had got done) stands apart.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pandas as pd

from experiments.crashing import cuts, failing, flips, killing, script, snapshots
from experiments.failures import ExperimentError
from experiments.progress import progress
from experiments.settings import RecoverySettings

CONTROL_KILLS, CONTROL_CUTS = "OFF", "NORMAL"
ENOUGH = 20
"""Kills among which one must have come after an acknowledgement, or nothing was tried."""


def damaged_snapshots(place: Path, _: RecoverySettings, __: int) -> pd.DataFrame:
    """Flip every bit of a snapshot, cut it to every length, restore each copy."""
    return pd.DataFrame(
        [
            {"damage": damage, "answer": answer, "copies": copies}
            for damage, tally in snapshots.tallies(place).items()
            for answer, copies in sorted(tally.items())
        ]
    )


def kills(place: Path, settings: RecoverySettings, seed: int) -> pd.DataFrame:
    """Kill writers, those of the control with a store that never syncs."""
    reference = script.reference(_folder(place, "clean"))
    rows: list[dict[str, Any]] = []
    with killing.nursery(place / "nursery") as process:
        for synchronous, count in (
            (script.FULL, settings.kills),
            (CONTROL_KILLS, settings.control_kills),
        ):
            with progress(f"kill -9, synchronous={synchronous}", count, "cycles") as advance:
                tally = killing.cycles(
                    process,
                    reference,
                    place / synchronous,
                    count=count,
                    seed=f"{seed} {synchronous}",
                    synchronous=synchronous,
                    advance=advance,
                )
            if count >= ENOUGH and not tally.acknowledged:
                raise ExperimentError("no writer lived to acknowledge anything")
            rows += _rows(tally.verdicts, ("killed", "verdict"), "cycles", synchronous=synchronous)
    return pd.DataFrame(rows)


def power_cuts(place: Path, settings: RecoverySettings, seed: int) -> pd.DataFrame:
    """Cut the power at every sync, in the control of a store that syncs at checkpoints alone."""
    reference = script.reference(_folder(place, "clean"))
    rows: list[dict[str, Any]] = []
    runs = [(script.FULL, log) for log in cuts.LOGS] + [(CONTROL_CUTS, cuts.LOGS[0])]
    for synchronous, log in runs:
        recording = cuts.record(_folder(place, f"{synchronous}-{log}"), log, synchronous)
        total = sum(1 for _ in cuts.cuts(recording, settings.between))
        with progress(f"power cuts, {synchronous}, {log} log", total, "cuts") as advance:
            tally = cuts.judge(
                recording,
                reference,
                _folder(place, f"{synchronous}-{log}-images"),
                every=settings.between,
                seed=str(seed),
                advance=advance,
            )
        named = ("survives", "at_sync", "verdict")
        rows += _rows(tally.verdicts, named, "cuts", synchronous=synchronous, log=log)
    return pd.DataFrame(rows)


def io_faults(place: Path, settings: RecoverySettings, _: int) -> pd.DataFrame:
    """Fail every call of every step, by every kind of fault that the settings name."""
    reference, stood = failing.stood_before(_folder(place, "clean"))
    paths = failing.paths(reference)
    ways = [failing.Way(fault, log) for fault in settings.faults for log in settings.logs]
    rows: list[dict[str, Any]] = []
    with progress("failing calls", len(ways) * len(paths), "steps") as advance:
        for way in ways:
            for path in paths:
                folder = _folder(place, f"{way.fault}-{way.log}-{path.replace(' ', '-')}")
                tried = failing.tries(folder, reference, stood, path, way)
                counts = Counter((path, each.answer) for each in tried)
                rows += _rows(counts, ("path", "answer"), "sites", fault=way.fault, log=way.log)
                advance(1)
    return pd.DataFrame(rows)


def live_flips(place: Path, settings: RecoverySettings, seed: int) -> pd.DataFrame:
    """Flip bits of the files of a live store."""
    files = flips.victim(_folder(place, "clean"))
    chosen = list(flips.flips(files, dict.fromkeys(files, settings.flips), str(seed)))
    with progress("flipped bits of a live store", len(chosen), "flips") as advance:
        counts = flips.tally(_folder(place, "flipped"), files, iter(chosen), advance)
    return pd.DataFrame(_rows(counts, ("file", "effect", "answer", "sqlite_notices"), "flips"))


def _folder(place: Path, name: str) -> Path:
    folder = place / name
    folder.mkdir(parents=True)
    return folder


def _rows(
    counts: Counter[Any], names: Iterable[str], unit: str, **fixed: str
) -> list[dict[str, Any]]:
    """Return a row for each key of a counter, sorted by key."""
    return [
        fixed | dict(zip(names, map(_plain, key), strict=True)) | {unit: count}
        for key, count in sorted(counts.items())
    ]


def _plain(value: Any) -> Any:
    return value.value if hasattr(value, "value") else value

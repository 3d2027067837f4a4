"""What a damaged snapshot can get past: every bit of a small one flipped, every length cut to.

The snapshot holds a record of every type. Each damaged copy is given to the public `Memory.restore`
as a file; it counts as refused only if that raises a snapshot reason and leaves nothing behind.
"""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

import pandas as pd

from cma import FixedClock, Memory
from cma.values.errors import SnapshotRejectedError
from experiments import ranges
from experiments.failures import ExperimentError
from experiments.graph_fixture import CALLER, START
from experiments.progress import progress
from experiments.result import Figure, Result
from experiments.settings import Settings

BITS = 8
TARGET = "restored.cma"
ACCEPTED = "accepted"
STEP = 2_000


@dataclass(frozen=True, slots=True)
class Damage:
    """One damaged copy: what was done to it, and where (byte offset or length left)."""

    kind: str
    at: int
    data: bytes


def check(settings: Settings) -> None:
    """Refuse a seed that is none; nothing else can be set."""
    ranges.whole("seed", settings.seed, 0, ranges.SEED_LIMIT)


def run(settings: Settings, folder: Path) -> Result:  # noqa: ARG001
    """Write the snapshot, damage it in every way, and count what was refused and how."""
    with tempfile.TemporaryDirectory() as temporary:
        place = Path(temporary)
        snapshot = small_snapshot(place)
        tallies = {
            "bit flipped": _tally(snapshot, _flips(snapshot), BITS * len(snapshot), place),
            "cut short": _tally(snapshot, _truncations(snapshot), len(snapshot), place),
        }
    return result_of(len(snapshot), tallies)


def small_snapshot(place: Path) -> bytes:
    """Return a snapshot with a record of every type: two events, a frame, its replay, a recall."""
    with Memory.open(
        place / "whole.cma", caller=CALLER, clock=FixedClock(START), store_id="fixture"
    ) as memory:
        cells = [
            memory.write(
                text,
                kind="episodic",
                origin="fixture",
                observed_at=START + timedelta(minutes=minute),
            ).id
            for minute, text in enumerate(("Ann drinks tea", "Ann drinks mate"))
        ]
        memory.link("conflict", cells[0], cells[1])
        memory.replay(memory.bind(scene="kitchen", sources=cells).id)
        memory.recall("who drinks tea")
        memory.snapshot(place / "whole.cma.jsonl")
    snapshot = (place / "whole.cma.jsonl").read_bytes()
    if _answer(place / "whole.cma.jsonl", place) != ACCEPTED:
        raise ExperimentError("the snapshot is refused as it is, so nothing can be learnt from it")
    return snapshot


def result_of(size: int, tallies: dict[str, Counter[str]]) -> Result:
    """Return figures and the table of reasons."""
    rows = [
        {"damage": damage, "answer": answer, "copies": copies}
        for damage, tally in tallies.items()
        for answer, copies in sorted(tally.items())
    ]
    figures = {}
    for key, damage in (("flips", "bit flipped"), ("truncations", "cut short")):
        tally = tallies[damage]
        count = sum(tally.values())
        figures[f"snapshot.{key}"] = Figure(count, "count", count)
        figures[f"snapshot.{key}_refused"] = Figure(count - tally[ACCEPTED], "count", count)
    return Result(
        figures=figures,
        tables={"snapshot_damage": pd.DataFrame(rows)},
        notes=(f"The snapshot has {size:,} bytes.",),
    )


def _flips(snapshot: bytes) -> Iterator[Damage]:
    for offset in range(len(snapshot)):
        for bit in range(BITS):
            changed = bytearray(snapshot)
            changed[offset] ^= 1 << bit
            yield Damage("bit flipped", offset, bytes(changed))


def _truncations(snapshot: bytes) -> Iterator[Damage]:
    for length in range(len(snapshot)):
        yield Damage("cut short", length, snapshot[:length])


def _tally(snapshot: bytes, damages: Iterator[Damage], total: int, place: Path) -> Counter[str]:
    """Count the answers to damaged copies by reason code; `accepted` is the one to fear."""
    answers: Counter[str] = Counter()
    file = place / "damaged.cma.jsonl"
    done = 0
    with progress("damaged snapshots", total, "copies") as advance:
        for done, damage in enumerate(damages, 1):
            file.write_bytes(damage.data)
            answers[_answer(file, place)] += 1
            if done % STEP == 0:
                advance(STEP)
        advance(done % STEP)
    if done != total or file.read_bytes() == snapshot:
        raise ExperimentError("not every damage was tried")
    return answers


def _answer(file: Path, place: Path) -> str:
    before = sorted(each.name for each in place.iterdir())
    try:
        Memory.restore(file, place / TARGET, caller=CALLER, clock=FixedClock(START)).close()
    except SnapshotRejectedError as error:
        if sorted(each.name for each in place.iterdir()) != before:
            raise ExperimentError("a refused snapshot left something behind") from error
        return error.reason.value
    _remove(place)
    return ACCEPTED


def _remove(place: Path) -> None:
    for left in place.glob(f"{TARGET}*"):
        left.unlink()

"""Damaged snapshots: every bit of a small one flipped, every length cut to.

The snapshot holds a record of every type. Each damaged copy is given to the public `Memory.restore`
as a file; it counts as refused only if that raises a snapshot reason and leaves nothing behind.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

from cma import FixedClock, Memory
from cma.values.errors import SnapshotRejectedError
from experiments.failures import ExperimentError
from experiments.graph_fixture import CALLER, START
from experiments.progress import progress

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


def tallies(place: Path) -> dict[str, Counter[str]]:
    """Write the snapshot, damage it in every way; return the answers by damage."""
    snapshot = small_snapshot(place)
    return {
        "bit flipped": tally(snapshot, flips(snapshot), BITS * len(snapshot), place),
        "cut short": tally(snapshot, truncations(snapshot), len(snapshot), place),
    }


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
    if answer(place / "whole.cma.jsonl", place) != ACCEPTED:
        raise ExperimentError("the snapshot is refused as it is, so nothing can be learnt from it")
    return snapshot


def flips(snapshot: bytes) -> Iterator[Damage]:
    """Yield a copy for each bit, that bit flipped."""
    for offset in range(len(snapshot)):
        for bit in range(BITS):
            changed = bytearray(snapshot)
            changed[offset] ^= 1 << bit
            yield Damage("bit flipped", offset, bytes(changed))


def truncations(snapshot: bytes) -> Iterator[Damage]:
    """Yield a copy of each length short of the whole."""
    for length in range(len(snapshot)):
        yield Damage("cut short", length, snapshot[:length])


def tally(snapshot: bytes, damages: Iterator[Damage], total: int, place: Path) -> Counter[str]:
    """Count the answers to damaged copies by reason code; `accepted` is the one to fear."""
    answers: Counter[str] = Counter()
    file = place / "damaged.cma.jsonl"
    done = 0
    with progress("damaged snapshots", total, "copies") as advance:
        for done, damage in enumerate(damages, 1):
            file.write_bytes(damage.data)
            answers[answer(file, place)] += 1
            if done % STEP == 0:
                advance(STEP)
        advance(done % STEP)
    if done != total or file.read_bytes() == snapshot:
        raise ExperimentError("not every damage was tried")
    return answers


def answer(file: Path, place: Path) -> str:
    """Restore a copy; return the reason code of its refusal, or that it was accepted."""
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

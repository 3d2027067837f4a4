"""Power cuts: the script is recorded once, call by call, and then cut at any point of the record.

A cut is made right before and right after every sync, and at every so many of the calls between.
At each, the disk may hold six things (`platter.Survives`). What it then holds is laid out as plain
files and judged. Two recordings: with the log left to grow, and folded into the file all the time.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from cma import Memory
from experiments.crashing import script
from experiments.crashing.calls import Call, Fate
from experiments.crashing.judging import Verdict, left
from experiments.crashing.platter import Platter, Survives
from experiments.crashing.script import Reference
from experiments.crashing.watching import watched

FOLD_PAGES = 4
"""Pages of log after which the folded recording folds it into the file."""
LOGS = ("growing", "folded")
CHANGING = {"create", "write", "truncate", "sync", "delete", "rename", "link"}


@dataclass(frozen=True, slots=True)
class Recording:
    """Every changing call of a run of the script; `done[k]` calls were made when step k ended."""

    calls: tuple[Call, ...]
    done: tuple[int, ...]

    def acknowledged(self, position: int) -> int:
        """Return how many steps were confirmed before so many calls were made."""
        return sum(made <= position for made in self.done)


class Cut(NamedTuple):
    """A point at which power is cut, and what survives."""

    position: int
    """Calls made before."""
    at_sync: bool
    survives: Survives


def record(folder: Path, log: str, synchronous: str = script.FULL) -> Recording:
    """Run the script in an empty folder and record its calls; controls sync otherwise."""
    calls: list[Call] = []
    done: list[int] = []

    def observe(call: Call) -> Fate:
        if call.kind in CHANGING:
            calls.append(call)
        return Fate.PASS

    def prepare(memory: Memory) -> None:
        if log == "folded":
            memory.store.connection.pragma("wal_autocheckpoint", FOLD_PAGES)
        script.sync_by(memory, synchronous)

    with watched(folder, observe):
        script.play(folder, {}, prepare=prepare, done=lambda *_: done.append(len(calls)))
    return Recording(tuple(calls), tuple(done))


def cuts(recording: Recording, every: int) -> Iterator[Cut]:
    """Yield the cuts: around every sync, and at each `every`-th call between (0: none)."""
    for position in range(len(recording.calls) + 1):
        around = recording.calls[max(0, position - 1) : position + 1]
        at_sync = any(call.kind == "sync" for call in around)
        if at_sync or (every and position % every == 0):
            for survives in Survives:
                yield Cut(position, at_sync, survives)


class Tally(NamedTuple):
    """Verdicts by kind of cut, and how many different images were judged."""

    verdicts: Counter[tuple[str, bool, Verdict]]
    images: int


def judge(
    recording: Recording,
    reference: Reference,
    place: Path,
    *,
    every: int,
    seed: str,
    advance: Callable[[int], None],
) -> Tally:
    """Cut the recording everywhere and count the verdicts; equal images are judged once."""
    verdicts: Counter[tuple[str, bool, Verdict]] = Counter()
    judged: dict[tuple[str, int], Verdict] = {}
    platter, taken = Platter(), 0
    for cut in cuts(recording, every):
        while taken < cut.position:
            platter.take(recording.calls[taken])
            taken += 1
        image = platter.image(cut.survives, f"{seed} {cut.position} {cut.survives}")
        acknowledged = recording.acknowledged(cut.position)
        key = _digest(image), acknowledged
        if key not in judged:
            judged[key] = verdict_of(image, reference, acknowledged, place / str(len(judged)))
        verdicts[cut.survives.value, cut.at_sync, judged[key]] += 1
        advance(1)
    return Tally(verdicts, len(judged))


def verdict_of(
    image: dict[str, bytes], reference: Reference, acknowledged: int, folder: Path
) -> Verdict:
    """Lay an image out as plain files, judge it, and remove it."""
    folder.mkdir()
    for name, content in image.items():
        (folder / name).write_bytes(content)
    begun = min(acknowledged + 1, len(reference.steps))
    verdict = left(folder, reference, acknowledged, begun).verdict
    for file in folder.iterdir():
        file.unlink()
    folder.rmdir()
    return verdict


def _digest(image: dict[str, bytes]) -> str:
    sealed = hashlib.sha256()
    for name, content in image.items():
        sealed.update(f"{len(name)} {name} {len(content)} ".encode() + content)
    return sealed.hexdigest()

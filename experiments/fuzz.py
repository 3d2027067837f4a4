"""Seeded fuzzing of every reader: only the errors that it promises may come out of one.

Children make inputs from a grammar and by changing good ones, and give them to the readers of
snapshots, records, settings, data sets, claims, results, the command line and the library. What
comes out otherwise is kept as a small input under `crashes/` in the run directory, with the command
that shows it again.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path

import pandas as pd

from experiments import ranges
from experiments.failures import ExperimentError
from experiments.fuzzing.child import AT_WORK, TELL_EVERY
from experiments.fuzzing.hunting import Fault, Tally, tally_of
from experiments.fuzzing.targets import TARGETS
from experiments.progress import Advance, progress
from experiments.result import Figure, Result
from experiments.settings import Settings

MOST_INPUTS = 100_000_000
MOST_WORKERS = 256
CRASHES = "crashes"
TOLD = "told"
READS = {
    "canonical": "canonical records",
    "snapshot": "snapshots, changed ones hashed anew",
    "library": "calls of the public library",
    "command line": "words after `cma`",
    "overrides": "overrides of an experiment",
    "locomo": "LoCoMo conversations",
    "cranfield": "Cranfield collections",
    "beir": "folders as BEIR has them",
    "claims": "lists of claims",
    "results": "run directories",
}


def check(settings: Settings) -> None:
    """Refuse numbers out of range."""
    ranges.whole("seed", settings.seed, 0, ranges.SEED_LIMIT)
    ranges.whole("fuzz.inputs", settings.fuzz.inputs, 1, MOST_INPUTS)
    ranges.whole("fuzz.workers", settings.fuzz.workers, 1, MOST_WORKERS)
    ranges.whole("fuzz.memory_mib", settings.fuzz.memory_mib, 256, 1 << 20)


def run(settings: Settings, folder: Path) -> Result:
    """Hunt with several children, keep what was found, and count the answers."""
    wanted = settings.fuzz
    with (
        tempfile.TemporaryDirectory() as temporary,
        progress("hostile inputs", wanted.inputs, "inputs") as advance,
    ):
        places = [Path(temporary) / str(number) for number in range(wanted.workers)]
        with ExitStack() as stack:
            processes = []
            for number, place in enumerate(places):
                place.mkdir()
                asked = (place, settings.seed, number, wanted.inputs, wanted.workers)
                process = stack.enter_context(_child((*asked, wanted.memory_mib), place))
                stack.callback(process.kill)
                processes.append(process)
            with ThreadPoolExecutor(len(processes)) as threads:
                said = list(threads.map(lambda each: _watched(each, advance), processes))
        found = [
            _told(place, process.returncode, words)
            for place, process, words in zip(places, processes, said, strict=True)
        ]
    tallies = [tally for tally, _ in found]
    keep(folder, [fault for tally in tallies for fault in tally.faults])
    return result_of(tallies, [peak for _, peak in found])


def keep(folder: Path, faults: Sequence[Fault]) -> None:
    """Write each fault's input, small as it is, and how to read it again."""
    for number, fault in enumerate(faults, 1):
        place = folder / CRASHES
        place.mkdir(exist_ok=True)
        name = f"{fault.target.replace(' ', '-')}-{number}"
        (place / f"{name}.bin").write_bytes(fault.data)
        told = (
            f"{fault.error} at {fault.place}: {fault.message}\n"
            f"python -m experiments.fuzzing.replay {fault.target!r} {name}.bin\n"
        )
        (place / f"{name}.txt").write_text(told, encoding="utf-8")


def result_of(tallies: Sequence[Tally], peaks: Sequence[dict[str, float]]) -> Result:
    """Return figures, the table by reader, and a note for every kind of fault."""
    rows, times = [], []
    for target in TARGETS:
        count, accepted, untyped = (
            sum(getattr(tally, name)[target.name] for tally in tallies)
            for name in ("inputs", "accepted", "untyped")
        )
        codes = {code for tally in tallies for name, code in tally.refused if name == target.name}
        rows.append(
            {
                "reader": target.name,
                "reads": READS[target.name],
                "inputs": count,
                "accepted": accepted,
                "refused": count - accepted - untyped,
                "codes": len(codes),
                "untyped": untyped,
            }
        )
        slowest = max((tally.slowest.get(target.name, 0.0) for tally in tallies), default=0.0)
        times.append({"reader": target.name, "slowest_ms": 1000 * slowest})
    total = sum(row["inputs"] for row in rows)
    faults = [fault for tally in tallies for fault in tally.faults]
    return Result(
        figures={
            "fuzz.inputs": Figure(total, "inputs", total),
            "fuzz.untyped": Figure(sum(row["untyped"] for row in rows), "inputs", total),
        },
        tables={"fuzz": pd.DataFrame(rows)},
        notes=tuple(
            f"FAILED: {fault.target}, input {fault.index}: {fault.error} at {fault.place}."
            for fault in faults
        ),
        measured={
            "fuzz.peak_mib": Figure(max(peak["peak_mib"] for peak in peaks), "MiB", total),
            "fuzz.grown_mib": Figure(max(peak["grown_mib"] for peak in peaks), "MiB", total),
        },
        measured_tables={"fuzz_times": pd.DataFrame(times)},
    )


def _child(asked: tuple[object, ...], place: Path) -> subprocess.Popen[bytes]:
    with (place / TOLD).open("wb") as told:
        return subprocess.Popen(
            [sys.executable, "-m", "experiments.fuzzing.child", *map(str, asked)],
            stdout=told,
            stderr=subprocess.PIPE,
        )


def _watched(process: subprocess.Popen[bytes], advance: Advance) -> str:
    """Wait for a child, and tell its progress; return what else it said."""
    words = b""
    if process.stderr is not None:
        while piece := process.stderr.read(1):
            if piece == b".":
                advance(TELL_EVERY)
            words += piece
    process.wait()
    return words.decode(errors="replace").strip(".\n")[-400:]


def _told(place: Path, status: int, words: str) -> tuple[Tally, dict[str, float]]:
    """Return what a child told. One that died is an error: it names the input that was at work."""
    lines = (place / TOLD).read_text().splitlines()
    if status != 0 or not lines:
        index = int.from_bytes((place / AT_WORK).read_bytes()[:8], "big")
        raise ExperimentError(f"input {index} ended the child with status {status}: {words}")
    told = json.loads(lines[-1])
    return tally_of(told), {name: told[name] for name in ("peak_mib", "grown_mib")}

"""Opening what was built, in a process of its own: seconds, and memory held once it answered.

`python -m experiments.scaling.loading ENGINE FOLDER QUESTION` prints both as JSON. The engine opens
and answers over a few texts first, so that imports and compilers are not counted.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter

from cma.orion import pruning
from experiments.failures import ExperimentError
from experiments.runs import ROOT
from experiments.scaling.engines import ENGINES, opened

FEW = [f"w{number} w{number + 1}" for number in range(64)]
STATUS = Path("/proc/self/status")
SINGLE = {f"{library}_NUM_THREADS": "1" for library in ("OMP", "OPENBLAS", "MKL", "NUMBA", "RAYON")}
"""One thread for every library that would take more."""


@dataclass(frozen=True, slots=True)
class Loaded:
    """Seconds until the first answer, and megabytes held by then (None: unknown here)."""

    seconds: float
    megabytes: float | None


def loaded(engine: str, folder: Path, question: str) -> Loaded:
    """Open an engine in a new process."""
    done = subprocess.run(
        [sys.executable, "-m", "experiments.scaling.loading", engine, str(folder), question],
        cwd=ROOT,
        env={**os.environ, **SINGLE},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        raise ExperimentError(f"{engine} could not be opened: {done.stderr.strip()[-300:]}")
    return Loaded(**json.loads(done.stdout))


def main(arguments: Sequence[str]) -> int:
    """Open once over a few texts, once for good, and print what the latter took."""
    engine, folder, question = arguments
    with tempfile.TemporaryDirectory() as temporary:
        ENGINES[engine].build(Path(temporary), FEW)
        usual, pruning.LARGE = pruning.LARGE, 0  # what is compiled is compiled here
        with opened(engine, Path(temporary)) as small:
            for ask in small.asks.values():
                ask(FEW[0])
        pruning.LARGE = usual
    before = _resident()
    started = perf_counter()
    with opened(engine, Path(folder)) as whole:
        for ask in whole.asks.values():
            ask(question)
        seconds = perf_counter() - started
        after = _resident()
    held = None if before is None or after is None else (after - before) / 1e6
    sys.stdout.write(json.dumps({"seconds": seconds, "megabytes": held}))
    return 0


def _resident() -> int | None:
    """Return the bytes that this process holds in memory, files mapped included."""
    if not STATUS.exists():
        return None
    [line] = [each for each in STATUS.read_text().splitlines() if each.startswith("VmRSS")]
    return int(line.split()[1]) * 1024


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

"""A large snapshot, written and restored by processes of their own whose peak memory is taken."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from cma import Caller, Memory
from tests.benchmarks.conftest import ROOT, TERMS_A_CELL, Figures, Zipf
from tests.benchmarks.test_writing import drafts

CELLS = 100_000
BATCH = 10_000
SHARE_OF_FILE = 3
FLOOR_BYTES = 300_000_000
STEP = """
import resource, sys
from pathlib import Path
from cma import Caller, Memory
step, folder = sys.argv[1:]
caller = Caller(name="bench", authority="document")
if step == "write":
    with Memory.open(folder + "/a.cma", caller=caller) as memory:
        memory.snapshot(folder + "/a.cma.jsonl")
else:
    Memory.restore(folder + "/a.cma.jsonl", folder + "/b.cma", caller=caller).close()
status = Path("/proc/self/status")
if status.exists():  # getrusage would count what the parent held when it forked
    [line] = [line for line in status.read_text().splitlines() if line.startswith("VmHWM")]
    print(int(line.split()[1]) * 1024)
else:
    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
"""


def peak_bytes(step: str, folder: Path) -> int:
    child = subprocess.run(
        [sys.executable, "-c", STEP, step, str(folder)],
        capture_output=True,
        text=True,
        check=True,
        cwd=ROOT,
    )
    return int(child.stdout)


def test_snapshot_memory(tmp_path: Path, figures: Figures) -> None:
    texts = Zipf(7).texts(CELLS, TERMS_A_CELL)
    with Memory.open(
        tmp_path / "a.cma", caller=Caller(name="bench", authority="document")
    ) as memory:
        for first in range(0, CELLS, BATCH):
            memory.write_many(drafts(texts[first : first + BATCH], first))
        digest = memory.digest()
    peaks = {step: peak_bytes(step, tmp_path) for step in ("write", "restore")}
    size = (tmp_path / "a.cma.jsonl").stat().st_size
    with Memory.open(tmp_path / "b.cma") as restored:
        assert restored.digest() == digest
    allowed = max(SHARE_OF_FILE * size, FLOOR_BYTES)
    for step, peak in peaks.items():
        figures[f"snapshot_100k.{step}_peak"] = {
            "value": round(peak / 1e6, 1),
            "unit": "MB",
            "n": CELLS,
            "control": round(size / 1e6, 1),
        }
        assert peak < allowed, (step, peak, size)

"""One child of a hunt: `python -m experiments.fuzzing.child FOLDER SEED FIRST COUNT STRIDE MIB`.

It takes every STRIDE-th input from FIRST on, within a cap on its memory, and prints one line of
JSON at the end. The number of the input at work stands in a file that outlives the process.
"""

from __future__ import annotations

import json
import mmap
import os
import resource
import sys
from collections.abc import Callable
from pathlib import Path

from experiments.fuzzing.hunting import hunt
from experiments.fuzzing.targets import TARGETS

AT_WORK = "at-work"
TELL_EVERY = 100
STATUS = Path("/proc/self/status")
_MIB = 1 << 20


def main(arguments: list[str]) -> None:
    """Hunt as the arguments say."""
    folder = Path(arguments[0])
    seed, first, count, stride, cap = map(int, arguments[1:])
    os.chdir(folder)
    if STATUS.exists():  # elsewhere there is no cap, and the peak is that of the whole process
        _, hard = resource.getrlimit(resource.RLIMIT_AS)
        resource.setrlimit(resource.RLIMIT_AS, (_mib("VmSize") * _MIB + cap * _MIB, hard))
    before = peak_mib()
    with (folder / AT_WORK).open("w+b") as file:
        file.truncate(8)
        with mmap.mmap(file.fileno(), 8) as place:
            tally = hunt(TARGETS, seed, range(first, count, stride), folder, _beginning(place))
    after = peak_mib()
    told = tally.as_dict() | {"peak_mib": after, "grown_mib": after - before}
    sys.stdout.write(json.dumps(told) + "\n")


def _beginning(place: mmap.mmap) -> Callable[[int], None]:
    told = 0

    def begins(index: int) -> None:
        nonlocal told
        place[:8] = index.to_bytes(8, "big")
        told += 1
        if told % TELL_EVERY == 0:
            sys.stderr.write(".")
            sys.stderr.flush()

    return begins


def peak_mib() -> float:
    """Return the most memory that this process has had at once."""
    if STATUS.exists():
        return _mib("VmHWM")
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / _MIB  # bytes, on macOS


def _mib(name: str) -> int:
    [line] = [each for each in STATUS.read_text().splitlines() if each.startswith(f"{name}:")]
    return int(line.split()[1]) // 1024


if __name__ == "__main__":
    main(sys.argv[1:])

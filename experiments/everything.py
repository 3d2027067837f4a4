"""`python -m experiments.everything`: every experiment of `configs/reproduce.yaml`, each in turn.

What is finished is found in this process, so that a second run costs seconds; what is not runs in a
process of its own. One that fails is named at the end and does not keep the others from running.
Exit status: 0 where all is done or without data, else the greatest of the experiments' own.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from time import perf_counter

import yaml

from experiments import runs
from experiments.failures import ExperimentError, MissingDataError
from experiments.overrides import composed
from experiments.running import Outcome, announce, known

LIST = runs.ROOT / "configs" / "reproduce.yaml"
SECONDS = Path("bench") / "reproduce.json"
"""Below the runs' folder: how long all of it took, where nothing had been done before."""


def requests(path: Path = LIST) -> list[list[str]]:
    """Return the overrides of each request of the list."""
    return [str(line).split() for line in yaml.safe_load(path.read_text(encoding="utf-8"))]


def finished(overrides: Sequence[str]) -> Path | None:
    """Return the place of a request's finished run, None where it has to run.

    Raises ExperimentError for a wrong request.
    """
    try:
        asked = known(composed(overrides))
    except MissingDataError:
        return None
    return asked.place if asked.settings.resume and asked.is_finished() else None


def main(arguments: Sequence[str] | None = None) -> int:
    """Run what is not finished, and return the exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m experiments.everything", description=(__doc__ or "").partition("\n\n")[2]
    )
    parser.add_argument(
        "overrides", nargs="*", help="key=value for every experiment, such as paths.runs=FOLDER"
    )
    more = parser.parse_args(arguments).overrides
    started, reused = perf_counter(), 0
    failed: list[str] = []
    status = 0
    root = Path(composed(["experiment=explain", *more]).paths.runs).expanduser()
    for asked in requests():
        overrides = [*asked, *more]
        try:
            place = finished(overrides)
            if place is not None:
                reused += 1
                announce(Outcome(place, reused=True))
                continue
        except ExperimentError:
            pass  # its own process says what is wrong
        code = _process(overrides)
        if code == 130:
            return 130
        if code:
            failed.append(" ".join(asked))
            status = max(status, code, 1)
    for request in failed:
        sys.stderr.write(f"failed: {request}\n")
    if not reused and not failed:
        _keep(root / SECONDS, perf_counter() - started, len(requests()))
    return status


def _process(overrides: Sequence[str]) -> int:
    """Run one request in a process of its own, and return its exit status."""
    command = [sys.executable, "-m", "experiments", *overrides]
    return subprocess.run(command, check=False).returncode


def _keep(place: Path, seconds: float, count: int) -> None:
    figure = {"value": round(seconds, 1), "unit": "s", "n": count, "run": "make reproduce"}
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text(json.dumps({"figures": {"reproduce.seconds": figure}}, indent=2) + "\n")


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.stderr.write("interrupted; what is finished stays\n")
        sys.exit(130)

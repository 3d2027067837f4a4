"""`python -m experiments`: a thin Hydra app over `experiments.running.run`."""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Sequence
from pathlib import Path

import hydra
from hydra._internal.utils import get_args_parser
from hydra.core.hydra_config import HydraConfig
from omegaconf import DictConfig

from experiments import grid, overrides
from experiments.failures import ExperimentError, UsageError
from experiments.running import announce, run
from experiments.runs import check_writable
from experiments.teaching import help_text

OTHER_CONFIG_FLAGS = ("config_path", "config_name", "config_dir", "experimental_rerun")
OTHER_MODE_FLAGS = ("hydra_help", "shell_completion", "info", "version")

_failures: list[ExperimentError] = []


@hydra.main(version_base="1.3", config_path="pkg://configs", config_name="config")
def app(config: DictConfig) -> None:
    """Run one job; several of them under --multirun, each with its own run directory."""
    given = list(HydraConfig.get().overrides.task)
    try:
        announce(run(overrides.typed(config), given))
    except ExperimentError as error:
        # Other jobs go on: in a multirun, the grid names each one that is not done.
        _failures.append(error)
        _say(f"error: {error}")


def main(arguments: Sequence[str] | None = None) -> int:
    """Check the request, run it, and return the exit status."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    logging.basicConfig(level=logging.WARNING, format="%(levelname)s: %(message)s")
    if any(each in ("-h", "--help") for each in given):
        sys.stdout.write(help_text())
        return 0
    parsed = get_args_parser().parse_args(given)
    flags = vars(parsed)
    if not any(flags.get(name) for name in (*OTHER_CONFIG_FLAGS, *OTHER_MODE_FLAGS)):
        wrong = overrides.problems(parsed.overrides)
        if not wrong and not parsed.multirun:
            several = overrides.listed(parsed.overrides)
            wrong = [
                f"{each} gives several values; a grid of them is run with -m" for each in several
            ]
        if wrong:
            for problem in wrong:
                _say(f"error: {problem}")
            _say("nothing was run; python -m experiments --help shows examples")
            return UsageError.exit_status
        try:
            check_writable(Path(overrides.value_of("paths.runs", parsed.overrides)).expanduser())
        except UsageError as error:
            _say(f"error: {error}")
            return error.exit_status
    sys.argv = [sys.argv[0], *given]
    status = 0
    try:
        app()
    except SystemExit as stop:
        status = stop.code if isinstance(stop.code, int) else 1
    except KeyboardInterrupt:
        _say("interrupted; nothing of this run was written")
        return 130
    except Exception as error:  # a launcher's own, from a job in another process
        if not parsed.multirun:
            raise
        status = 1
        _say(f"error: {type(error).__name__}: {error}")
    if parsed.multirun:
        return max(status, _joined(parsed.overrides))
    return max((error.exit_status for error in _failures), default=status)


def _joined(given: Sequence[str]) -> int:
    """Show and write the grid of a multirun; return 1 where a cell is not done."""
    root = Path(overrides.value_of("paths.runs", given)).expanduser()
    found = grid.collect(given)
    for line in found.told():
        _say(line)
    sys.stdout.write(f"grid: {found.write(root)}\n")
    return 0 if found.complete else 1


def _say(text: str) -> None:
    sys.stderr.write(text + os.linesep)
    sys.stderr.flush()


if __name__ == "__main__":
    sys.exit(main())

"""Progress of work: a bar on a terminal, elsewhere a line at the start, then now and again."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

SILENT_SECONDS = 2.0
LINE_EVERY_SECONDS = 10.0
Advance = Callable[[int], None]


def begins(what: str) -> None:
    """Say on standard error that a step begins; some are silent for minutes."""
    _tell(f"{what}: starts")


@contextmanager
def progress(title: str, total: int, unit: str) -> Iterator[Advance]:
    """Show how far `total` units of work have come; call what is yielded with each step's size."""
    console = Console(stderr=True)
    if console.is_terminal:
        with Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn(unit),
            TimeElapsedColumn(),
            TimeRemainingColumn(),
            console=console,
        ) as bar:
            task = bar.add_task(title, total=total)
            yield lambda step: bar.advance(task, step)
    else:
        lines = _Lines(title, total, unit)
        yield lines.advance
        lines.finish()


class _Lines:
    """Progress for logs: a line at the start, then one each few seconds, and one after those."""

    def __init__(self, title: str, total: int, unit: str) -> None:
        self._title, self._total, self._unit = title, total, unit
        self._done = 0
        self._started = time.monotonic()
        self._next = self._started + SILENT_SECONDS
        self._spoke = False
        _tell(f"{title}: starts, {total:,} {unit}")

    def advance(self, step: int) -> None:
        self._done += step
        now = time.monotonic()
        if now >= self._next and self._done < self._total:
            self._next = now + LINE_EVERY_SECONDS
            taken = now - self._started
            left = taken / max(self._done, 1) * (self._total - self._done)
            self._say(f"{taken:.0f} s, about {left:.0f} s left")

    def finish(self) -> None:
        if self._spoke:
            self._say(f"{time.monotonic() - self._started:.0f} s")

    def _say(self, how_long: str) -> None:
        self._spoke = True
        share = self._done / self._total if self._total else 1.0
        _tell(
            f"{self._title}: {self._done:,} of {self._total:,} {self._unit} ({share:.0%}), "
            f"{how_long}"
        )


def _tell(line: str) -> None:
    sys.stderr.write(line + "\n")
    sys.stderr.flush()

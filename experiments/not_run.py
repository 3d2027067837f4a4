"""Notes of runs that were not made for want of data, so that the page can say so.

A note is `<runs>/<experiment>/<data>.not-run.json`. A run on that data takes it away.
"""

from __future__ import annotations

from pathlib import Path

from experiments.runs import write_json


def note(root: Path, experiment: str, data: str, title: str) -> None:
    """Leave a note that an experiment found no such data. title: what the data is called."""
    folder = root / experiment
    folder.mkdir(parents=True, exist_ok=True)
    write_json(
        _place(root, experiment, data), {"experiment": experiment, "data": data, "title": title}
    )


def clear(root: Path, experiment: str, data: str) -> None:
    """Take the note away, if there is one."""
    _place(root, experiment, data).unlink(missing_ok=True)


def _place(root: Path, experiment: str, data: str) -> Path:
    return root / experiment / f"{data}.not-run.json"

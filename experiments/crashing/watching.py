"""Watching a folder: SQLite's calls and Python's, shown to one observer."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from experiments.crashing.calls import Observer, Watch
from experiments.crashing.python_calls import python_watched
from experiments.crashing.sqlite_calls import sqlite_watched


@contextmanager
def watched(folder: Path, observer: Observer) -> Iterator[None]:
    """Show the observer every call in the folder until the block ends.

    Only connections that are opened within the block are seen. One block at a time: the default
    file system of SQLite and functions of `os` are replaced for the whole process.
    """
    watch = Watch(folder, observer)
    with sqlite_watched(watch), python_watched(watch):
        yield

"""A target: something that reads what others wrote, and what it may answer."""

from __future__ import annotations

import random
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path

Read = Callable[[bytes], None]
"""Takes one input. Returning means that it was accepted."""


@dataclass(frozen=True, slots=True)
class Target:
    """One reader under fuzzing.

    share: how many inputs in a thousand go to it. make: an input from chances alone. opened: the
    reader, given a folder of its own. refusals: the errors that it promises for a bad input.
    """

    name: str
    share: int
    make: Callable[[random.Random], bytes]
    opened: Callable[[Path], AbstractContextManager[Read]]
    refusals: tuple[type[Exception], ...]


class BrokenPromiseError(Exception):
    """A reader answered with a promised error, or none, and yet did what it must not do."""

"""How a command ends when nobody reads on: `... | head -3` is no failure and gets no traceback."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable

PIPE_CLOSED = 141
"""What a shell reports of a program that a closed pipe ended: 128 and the number of SIGPIPE."""


def ended(command: Callable[[], int]) -> int:
    """Run a command and return its exit status, `PIPE_CLOSED` where its output was cut off."""
    try:
        try:
            return command()
        finally:
            sys.stdout.flush()
    except BrokenPipeError:
        # What is still buffered goes nowhere, so that Python does not complain when it ends.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return PIPE_CLOSED

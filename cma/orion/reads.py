"""Records of reads, committed in groups: an audit that a query can afford.

A durable commit costs far more than a recall, so read records wait here and are committed with
the next transition, at a delivery, on closing, at 256 records or after 100 ms, whichever comes
first. Their order is kept. What a crash can lose is the reads of that window, which reached
nobody yet as a delivery; never a change of memory.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from datetime import datetime
from typing import NamedTuple

GROUP_SIZE = 256
WINDOW_SECONDS = 0.1
MAX_WAITING = 4 * GROUP_SIZE


class Read(NamedTuple):
    """One recall that is to be recorded: its trace as canonical bytes."""

    trace_id: str
    trace: bytes
    trace_digest: str
    actor: str
    at: datetime


class ReadQueue:
    """Reads that wait to be recorded, and the thread that records them in groups."""

    def __init__(self, flush: Callable[[], None]) -> None:
        """`flush` takes what waits and commits it; it puts back what it could not commit."""
        self._flush = flush
        self._waiting: list[Read] = []
        # Held by itself: an interrupt can come before a condition, no built-in, lets go of it.
        self._held = threading.RLock()
        self._changed = threading.Condition(self._held)
        self._closing = False
        self._thread: threading.Thread | None = None

    def put(self, read: Read) -> None:
        """Queue a read. When too many wait, the caller commits them itself."""
        with self._held:
            self._waiting.append(read)
            count = len(self._waiting)
            if self._thread is None:
                thread = threading.Thread(target=self._run, name="cma-reads", daemon=True)
                thread.start()
                self._thread = thread  # only now: one that never started cannot be joined
            if count in (1, GROUP_SIZE):
                self._changed.notify()
        if count >= MAX_WAITING:
            self._flush()

    def is_empty(self) -> bool:
        """Tell whether nothing waits."""
        return not self._waiting

    def take(self, into: list[Read]) -> None:
        """Move what waits, oldest first, to an empty list: by it an interrupt leaves them known."""
        with self._held:
            into[:], self._waiting = self._waiting, []  # no call in it: no interrupt either

    def put_back(self, reads: list[Read]) -> None:
        """Move reads that could not be committed to the front of the queue."""
        with self._held:
            self._waiting[:0], reads[:] = reads[:], []

    def close(self) -> None:
        """Stop the thread; what still waits is left to a last flush by the owner."""
        with self._held:
            self._closing = True
            self._changed.notify()
        if self._thread is not None and self._thread is not threading.current_thread():
            self._thread.join()

    def _run(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._waiting or self._closing)
                if not self._closing:
                    self._changed.wait_for(
                        lambda: len(self._waiting) >= GROUP_SIZE or self._closing, WINDOW_SECONDS
                    )
                if self._closing:
                    return
            try:
                self._flush()
            except Exception:
                with self._changed:
                    self._changed.wait_for(lambda: self._closing, WINDOW_SECONDS)

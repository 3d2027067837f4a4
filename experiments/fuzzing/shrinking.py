"""Making an input smaller while it still shows the same fault."""

from __future__ import annotations

from collections.abc import Callable

TRIES = 300


def shrunk(data: bytes, same: Callable[[bytes], bool], tries: int = TRIES) -> bytes:
    """Return the smallest input found by taking pieces away, large ones first.

    same: whether a smaller input shows the fault still; asked at most `tries` times.
    """
    piece = len(data) // 2
    while piece and tries:
        place = 0
        while place < len(data) and tries:
            smaller = data[:place] + data[place + piece :]
            tries -= 1
            if same(smaller):
                data = smaller
            else:
                place += piece
        piece //= 2
    return data

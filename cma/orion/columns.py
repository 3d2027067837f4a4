"""A column that grows: an array with spare room, so that appending is amortised."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

__all__ = ["Column"]


class Column:
    """An array of `width` values a row (a plain one for width 0) that can be appended to."""

    __slots__ = ("_room", "_used", "_width")

    def __init__(self, dtype: DTypeLike, width: int = 0) -> None:
        """Make an empty column."""
        self._width = width
        self._used = 0
        self._room: NDArray[Any] = np.empty(self._shape(16), dtype)

    @classmethod
    def over(cls, room: NDArray[Any], used: int) -> Column:
        """Return a column whose first `used` rows are those of an array, the others its room."""
        column = cls(room.dtype, room.shape[1] if room.ndim > 1 else 0)
        column._room, column._used = room, used
        return column

    def __len__(self) -> int:
        """Rows in use."""
        return self._used

    @property
    def values(self) -> NDArray[Any]:
        """The rows in use; a view that is good until the next append, and writable."""
        return self._room[: self._used]

    def extend(self, values: Any, count: int) -> None:
        """Append `count` rows of `values` (one value stands for all)."""
        end = self._used + count
        if end > len(self._room):
            wider = np.empty(self._shape(max(end, 2 * len(self._room))), self._room.dtype)
            wider[: self._used] = self._room[: self._used]
            self._room = wider
        self._room[self._used : end] = values
        self._used = end

    def _shape(self, rows: int) -> tuple[int, ...]:
        return (rows, self._width) if self._width else (rows,)

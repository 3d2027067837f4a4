"""Compiled loops of `pruning`; importing this module needs numba.

Cells that hold a term that few hold are met in the postings; a term that many hold is a row of
bits, one a cell. `masks` says for each cell which of the query's terms it holds, as far as is
known; it is all zero between searches.
"""

from __future__ import annotations

from typing import Any

import numba
import numpy as np

from cma.orion.kernel_ranking import rank

__all__ = ["count_allowed", "cut", "gather", "rank", "set_bits", "word_bounds"]

_ONE = np.uint64(1)
_ALL = np.uint64(0xFFFFFFFFFFFFFFFF)
_CUT = np.uint64(11)  # the other 53 bits are exact as a float


@numba.njit(nogil=True, cache=True)
def cut(cells: Any, starts: Any, stops: Any, edge: int) -> Any:
    """Return where in each list the cells from `edge` on begin."""
    places = np.empty_like(starts)
    for each in range(len(starts)):
        low, high = starts[each], stops[each]
        while low < high:
            middle = (low + high) >> 1
            if cells[middle] < edge:
                low = middle + 1
            else:
                high = middle
        places[each] = low
    return places


@numba.njit(nogil=True, cache=True)
def set_bits(table: Any, slots: Any, cells: Any, starts: Any, stops: Any, first_cell: int) -> None:
    """Set the bit of each posting from `first_cell` on, each list in its row of the table."""
    begins = cut(cells, starts, stops, first_cell)
    for each in range(len(slots)):
        row = table[slots[each]]
        for place in range(begins[each], stops[each]):
            cell = np.uint64(cells[place])
            row[cell >> np.uint64(6)] |= _ONE << (cell & np.uint64(63))


@numba.njit(nogil=True, cache=True)
def word_bounds(
    confidence: Any,
    importance: Any,
    observed: Any,
    prefixes: Any,
    first: int,
    bounds: Any,
    latest: Any,
) -> None:
    """Write what no cell of each 64 surpasses, from word `first` on.

    The greatest confidence and importance go to `bounds`, and the least prefix of an id, its last
    eleven bits cut off; the latest observation to `latest`.
    """
    for word in range(first, len(latest)):
        sure = weighty = 0.0
        newest, least = np.iinfo(np.int64).min, _ALL
        for place in range(word << 6, min((word + 1) << 6, len(observed))):
            sure = max(sure, confidence[place])
            weighty = max(weighty, importance[place])
            newest = max(newest, observed[place])
            least = min(least, prefixes[place])
        bounds[word, 0], bounds[word, 1] = sure, weighty
        bounds[word, 3] = np.float64(least >> _CUT)
        latest[word] = newest


@numba.njit(nogil=True, cache=True)
def count_allowed(cells: Any, starts: Any, stops: Any, allowed: Any, out: Any) -> None:
    """Add to `out` how many postings of each list are of allowed cells."""
    for each in range(len(starts)):
        for place in range(starts[each], stops[each]):
            cell = np.uint64(cells[place])
            if (allowed[cell >> np.uint64(6)] >> (cell & np.uint64(63))) & _ONE:
                out[each] += 1


@numba.njit(nogil=True, cache=True)
def gather(
    cells: Any, starts: Any, stops: Any, bits: Any, allowed: Any, masks: Any, met: Any, again: Any,
    known: int, repeated: int, ends: Any,
) -> tuple[int, int]:  # fmt: skip
    """Mark each list's bit on its allowed cells.

    Cells met for the first time go to `met`, after `known` others; those met for the second time
    to `again`, after `repeated` others. Returns how many there are of both; where those of each
    list end in `met` goes to `ends`.
    """
    limited = len(allowed) > 0
    for each in range(len(starts)):
        bit = bits[each]
        for place in range(starts[each], stops[each]):
            cell = cells[place]
            if limited:
                at = np.uint64(cell)
                if not (allowed[at >> np.uint64(6)] >> (at & np.uint64(63))) & _ONE:
                    continue
            mask = masks[cell]
            wide = np.uint64(mask)
            if wide == 0:
                met[known] = cell
                known += 1
            elif wide & (wide - _ONE) == 0:  # one bit so far
                again[repeated] = cell
                repeated += 1
            masks[cell] = mask | bit
        ends[each] = known
    return known, repeated

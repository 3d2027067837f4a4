"""Compiled loops of `pruning`; importing this module needs numba.

Cells that hold a term that few hold are met in the postings; a term that many hold is a row of
bits, one a cell. `masks` says for each cell which of the query's terms it holds, as far as is
known; it is all zero between searches.
"""

from __future__ import annotations

from typing import Any

import numba
import numpy as np

__all__ = ["count_allowed", "gather", "rank", "set_bits", "word_maxima"]

_QUANTA = 63  # of the weights of common terms, so that six bits hold their sum
_SLICES = 6
_ALL = np.uint64(0xFFFFFFFFFFFFFFFF)
_ONE = np.uint64(1)


@numba.njit(nogil=True, cache=True)
def set_bits(table: Any, slots: Any, cells: Any, starts: Any, stops: Any, first_cell: int) -> None:
    """Set the bit of each posting from `first_cell` on, each list in its row of the table."""
    for each in range(len(slots)):
        row = table[slots[each]]
        low, high = starts[each], stops[each]
        while low < high:
            middle = (low + high) >> 1
            if cells[middle] < first_cell:
                low = middle + 1
            else:
                high = middle
        for place in range(low, stops[each]):
            cell = np.uint64(cells[place])
            row[cell >> np.uint64(6)] |= _ONE << (cell & np.uint64(63))


@numba.njit(nogil=True, cache=True)
def word_maxima(values: Any, first: int, out: Any) -> None:
    """Write the greatest of each 64 values to `out`, from word `first` on."""
    for word in range(first, len(out)):
        most = -np.inf
        for place in range(word << 6, min((word + 1) << 6, len(values))):
            most = max(most, values[place])
        out[word] = most


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
    cells: Any, starts: Any, stops: Any, bits: Any, allowed: Any, masks: Any, met: Any, count: int
) -> int:
    """Mark each list's bit on its allowed cells; cells met for the first time go to `met`."""
    limited = len(allowed) > 0
    for each in range(len(starts)):
        bit = bits[each]
        for place in range(starts[each], stops[each]):
            cell = cells[place]
            if limited:
                at = np.uint64(cell)
                if not (allowed[at >> np.uint64(6)] >> (at & np.uint64(63))) & _ONE:
                    continue
            known = masks[cell]
            if known == 0:
                met[count] = cell
                count += 1
            masks[cell] = known | bit
    return count


@numba.njit(nogil=True, cache=True)
def _lexical(mask: Any, weights: Any, whole: float) -> float:
    """Sum the weights of the terms that are held, in the order of the terms."""
    total = 0.0
    for term in range(len(weights)):
        if (np.uint64(mask) >> np.uint64(term)) & _ONE:
            total += weights[term]
    return total / whole


@numba.njit(nogil=True, cache=True)
def _push(heap: Any, held: int, value: float) -> int:
    """Keep the greatest values in a heap whose first is the least of them."""
    size = len(heap)
    if held < size:
        at = held
        while at > 0 and heap[(at - 1) >> 1] > value:
            heap[at] = heap[(at - 1) >> 1]
            at = (at - 1) >> 1
        heap[at] = value
        return held + 1
    at = 0
    while True:
        child = 2 * at + 1
        if child >= size:
            break
        if child + 1 < size and heap[child + 1] < heap[child]:
            child += 1
        if heap[child] >= value:
            break
        heap[at] = heap[child]
        at = child
    heap[at] = value
    return held


@numba.njit(nogil=True, cache=True)
def _population(word: Any) -> Any:
    word = word - ((word >> np.uint64(1)) & np.uint64(0x5555555555555555))
    word = (word & np.uint64(0x3333333333333333)) + (
        (word >> np.uint64(2)) & np.uint64(0x3333333333333333)
    )
    word = (word + (word >> np.uint64(4))) & np.uint64(0x0F0F0F0F0F0F0F0F)
    return np.int64((word * np.uint64(0x0101010101010101)) >> np.uint64(56))


@numba.njit(nogil=True, cache=True)
def _at_least(table: Any, slots: Any, quanta: Any, word: int, least: int) -> Any:
    """Return the cells of a word whose common terms may weigh `least` quanta: added bit by bit."""
    s0 = s1 = s2 = s3 = s4 = s5 = np.uint64(0)
    for each in range(len(slots)):
        bits = table[slots[each], word]
        q = quanta[each]
        carry = bits if q & 1 else np.uint64(0)
        s0, carry = s0 ^ carry, s0 & carry
        add = bits if q & 2 else np.uint64(0)
        s1, carry = s1 ^ add ^ carry, (s1 & add) | (carry & (s1 ^ add))
        add = bits if q & 4 else np.uint64(0)
        s2, carry = s2 ^ add ^ carry, (s2 & add) | (carry & (s2 ^ add))
        add = bits if q & 8 else np.uint64(0)
        s3, carry = s3 ^ add ^ carry, (s3 & add) | (carry & (s3 ^ add))
        add = bits if q & 16 else np.uint64(0)
        s4, carry = s4 ^ add ^ carry, (s4 & add) | (carry & (s4 ^ add))
        add = bits if q & 32 else np.uint64(0)
        s5 = s5 ^ add ^ carry
    above, equal = np.uint64(0), _ALL
    for place in range(_SLICES - 1, -1, -1):
        if place == 5:
            part = s5
        elif place == 4:
            part = s4
        elif place == 3:
            part = s3
        elif place == 2:
            part = s2
        elif place == 1:
            part = s1
        else:
            part = s0
        if (least >> place) & 1:
            equal &= part
        else:
            above |= equal & part
            equal &= ~part
    return above | equal


@numba.njit(nogil=True, cache=True)
def _level(sums: Any, counts: Any, wanted: int) -> float:
    """Return the lexical part that at least `wanted` of the counted cells have, or the least."""
    level = np.inf
    reached = 0
    while reached < wanted:
        following, more = -np.inf, 0
        for mask in range(len(counts)):
            if counts[mask] and sums[mask] < level:
                if sums[mask] > following:
                    following, more = sums[mask], counts[mask]
                elif sums[mask] == following:
                    more += counts[mask]
        if more == 0:
            break
        level = following
        reached += more
    return level


@numba.njit(nogil=True, cache=True)
def _hope(
    sums: Any, counts: Any, level: float, lexical_weight: float, bound: float, floor: float
) -> Any:
    """Tell whether a cell below the level could still reach the floor."""
    for mask in range(len(counts)):
        if counts[mask] and sums[mask] < level and lexical_weight * sums[mask] + bound >= floor:
            return True
    return False


@numba.njit(nogil=True, cache=True)
def _with_common(mask: Any, cell: Any, table: Any, slots: Any, common_bits: Any) -> Any:
    at = np.uint64(cell)
    word, bit = at >> np.uint64(6), _ONE << (at & np.uint64(63))
    for each in range(len(slots)):
        if table[slots[each], word] & bit:
            mask |= common_bits[each]
    return mask


@numba.njit(nogil=True, cache=True)
def rank(
    masks: Any,
    met: Any,
    count: int,
    picked: Any,
    rough: Any,
    lexicals: Any,
    unions: Any,
    table: Any,
    slots: Any,
    common_bits: Any,
    weights: Any,
    whole: float,
    lexical_weight: float,
    static: Any,
    static_words: Any,
    decay: Any,
    decay_words: Any,
    recency_weight: float,
    shift: float,
    prior_bound: float,
    allowed: Any,
    wanted: int,
    margin: float,
) -> Any:
    """Return the cells that may be among the `wanted` best, their lexical parts, and how many
    allowed cells hold any term. Cells met are in `met` and `masks`; the latter is zero again after.

    A cell met in no posting can hold only common terms; words of 64 such cells are looked into
    only where the common terms and the greatest prior of the word could reach the best so far.

    The last value returned is how many places `picked` and its fellows need; where they have fewer,
    nothing else that is returned counts.
    """
    common, few = len(slots), len(weights) <= 8
    sums, counts = np.zeros(256), np.zeros(256, np.int64)
    if few:
        for mask in range(1 << len(weights)):
            sums[mask] = _lexical(mask, weights, whole)
    every_common = np.uint64(0)
    for each in range(common):
        every_common |= np.uint64(common_bits[each])
    total = 0
    known = np.empty(count, masks.dtype)
    for place in range(count):
        cell = met[place]
        mask = masks[cell]
        if common:
            mask = _with_common(mask, cell, table, slots, common_bits)
        else:
            masks[cell] = 0
        known[place] = mask
        total += (np.uint64(mask) & every_common) == 0
        if few:
            counts[np.int64(mask)] += 1
    heap = np.empty(wanted)
    held, found = 0, 0
    floor = -np.inf  # what the `wanted`-th best so far has, less the margin
    # The cells with the greatest lexical parts come first: they raise the floor for the rest.
    level = _level(sums, counts, wanted) if few else -np.inf
    for turn in range(2):
        if few and turn == 1 and not _hope(sums, counts, level, lexical_weight, prior_bound, floor):
            break
        for place in range(count - 1, -1, -1):  # later cells tend to have the greater priors
            mask = known[place]
            lexical = sums[np.int64(mask)] if few else _lexical(mask, weights, whole)
            score = lexical_weight * lexical
            if score + prior_bound < floor or (lexical >= level) == (turn == 1):
                continue
            cell = met[place]
            word = cell >> 6
            bound = static_words[word] + recency_weight * min(1.0, decay_words[word] * shift)
            if score + bound < floor:
                continue
            score += static[cell] + recency_weight * min(1.0, decay[cell] * shift)
            if score < floor:
                continue
            if found < len(picked):
                picked[found], rough[found], lexicals[found] = cell, score, lexical
            found += 1
            if held < wanted or score > heap[0]:
                held = _push(heap, held, score)
                if held == wanted:
                    floor = heap[0] - margin
        if level == -np.inf:
            break
    if common:
        total += _unite(unions, table, slots, allowed)
        own = np.empty(common)
        for each in range(common):
            term = 0
            while (np.uint64(common_bits[each]) >> np.uint64(term)) & _ONE == 0:
                term += 1
            own[each] = weights[term]
        unit = own.max() if own.max() == own.min() else own.sum() / (_QUANTA - common)
        quanta = np.empty(common, np.int64)
        for each in range(common):
            quanta[each] = max(1, int(np.ceil(own[each] / unit - 1e-9)))
        most = quanta.sum()
        worth = whole / lexical_weight / unit  # quanta of one unit of score
        last = len(unions) - 1
        if (floor - prior_bound) * worth - 1e-6 > most:
            last = -1
        for word in range(last, -1, -1):
            if unions[word] == 0:
                continue
            cells = unions[word]
            if floor > -np.inf:
                bound = static_words[word] + recency_weight * min(1.0, decay_words[word] * shift)
                need = (floor - bound) * worth - 1e-6
                if need > most:
                    continue
                if need > 1.0:
                    cells &= _at_least(table, slots, quanta, word, int(np.ceil(need)))
            while cells:
                low = cells & (~cells + _ONE)
                cells ^= low
                cell = (word << 6) + _population(low - _ONE)
                if masks[cell]:
                    continue
                mask = _with_common(masks[cell], cell, table, slots, common_bits)
                lexical = sums[np.int64(mask)] if few else _lexical(mask, weights, whole)
                score = lexical_weight * lexical
                score += static[cell] + recency_weight * min(1.0, decay[cell] * shift)
                if score < floor:
                    continue
                if found < len(picked):
                    picked[found], rough[found], lexicals[found] = cell, score, lexical
                found += 1
                if held < wanted or score > heap[0]:
                    held = _push(heap, held, score)
                    if held == wanted:
                        floor = heap[0] - margin
    needed, found = found, min(found, len(picked))
    kept = 0
    for place in range(found):
        kept += rough[place] >= floor
    ordinals, parts = np.empty(kept, np.int64), np.empty(kept)
    kept = 0
    for place in range(found):
        if rough[place] >= floor:
            cell = picked[place]
            ordinals[kept] = cell
            parts[kept] = lexicals[place]
            kept += 1
    if common:
        for place in range(count):
            masks[met[place]] = 0
    return ordinals, parts, total, needed


@numba.njit(nogil=True, cache=True)
def _unite(unions: Any, table: Any, slots: Any, allowed: Any) -> Any:
    """Write the cells that hold any common term and are allowed; return how many there are."""
    size = len(unions)
    unions[:] = table[slots[0], :size]
    for each in range(1, len(slots)):
        row = table[slots[each]]
        for word in range(size):
            unions[word] |= row[word]
    if len(allowed):
        for word in range(size):
            unions[word] &= allowed[word]
    total = 0
    for word in range(size):
        total += _population(unions[word])
    return total

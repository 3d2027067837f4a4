"""The compiled loop that ranks: which cells are the best, by exact score and then by id.

Scores are worked out as `scoring.total` does, operation for operation, so they are its very
numbers; only a recency that lies next to a boundary of `scoring.settle` is in doubt, and such a
cell is kept. What no cell of a word of 64 can surpass (`bounds`) tells which words to pass over,
without a look at their cells.

All that `rank` calls stands in this file: the compiler keeps what it made for as long as the text
of the file of the function that is called stays as it is, and the types of what it is given. It
knows fields by their place, so `FIELDS` says them again: when they move, this text must change.
"""

from __future__ import annotations

from typing import Any

import numba
import numpy as np

from cma.orion.kernel_inputs import Best

__all__ = ["FIELDS", "rank"]

FIELDS = (
    "weights whole masks met again ends rare_bits known repeated",
    "table slots bits unions",
    "lexical confidence importance recency at_us half_life_us shift reach slack",
    "confidence importance observed prefixes bounds",
    "picked scores lexicals",
    "scores prefixes held",
)
"""Of `Held`, `Common`, `How`, `Columns`, `Room` and `Best`."""

_QUANTA = 63  # of the weights of common terms, so that six bits hold their sum
_SLICES = 6
_GRAIN = float(1 << 30)  # of a settled recency
_ALL = np.uint64(0xFFFFFFFFFFFFFFFF)
_ONE = np.uint64(1)
_BATCH = 128
_CUT = np.uint64(11)  # bits of a prefix that `bounds` leaves out


@numba.njit(nogil=True, cache=True)
def _several(mask: Any) -> Any:
    """Tell whether more than one bit of a mask is set."""
    wide = np.uint64(mask)
    return wide & (wide - _ONE) != 0


@numba.njit(nogil=True, cache=True)
def _lexical(mask: Any, weights: Any, whole: float) -> float:
    """Sum the weights of the terms that are held, in the order of the terms."""
    total = 0.0
    for term in range(len(weights)):
        if (np.uint64(mask) >> np.uint64(term)) & _ONE:
            total += weights[term]
    return total / whole


@numba.njit(nogil=True, cache=True)
def _worse(score: float, prefix: Any, other: float, other_prefix: Any) -> bool:
    return score < other or (score == other and prefix > other_prefix)


@numba.njit(nogil=True, cache=True)
def _push(heap: Any, prefixes: Any, held: int, score: float, prefix: Any) -> int:
    """Keep the best pairs of score and prefix in a heap whose first is the worst of them."""
    size = len(heap)
    if held < size:
        at = held
        while at > 0:
            above = (at - 1) >> 1
            if not _worse(score, prefix, heap[above], prefixes[above]):
                break
            heap[at], prefixes[at] = heap[above], prefixes[above]
            at = above
        heap[at], prefixes[at] = score, prefix
        return held + 1
    at = 0
    while True:
        child = 2 * at + 1
        if child >= size:
            break
        if child + 1 < size and _worse(
            heap[child + 1], prefixes[child + 1], heap[child], prefixes[child]
        ):
            child += 1
        if not _worse(heap[child], prefixes[child], score, prefix):
            break
        heap[at], prefixes[at] = heap[child], prefixes[child]
        at = child
    heap[at], prefixes[at] = score, prefix
    return held


@numba.njit(nogil=True, cache=True)
def _floor(best: Any) -> Any:
    """Return the score below which no cell can be among the best."""
    return best.scores[0] if best.held[0] == len(best.scores) else -np.inf


@numba.njit(nogil=True, cache=True)
def _most(
    base: float, word: int, bounds: Any, confidence: float, importance: float, recency: float,
    shift: float,
) -> Any:  # fmt: skip
    """Return the most that a cell of the word can score with this lexical part."""
    score = base + confidence * bounds[word, 0]
    score = score + importance * bounds[word, 1]
    if recency > 0.0:
        recent = np.floor(bounds[word, 2] * shift * _GRAIN + 0.501) / _GRAIN
        score = score + recency * min(1.0, recent)
    return score


@numba.njit(nogil=True, cache=True)
def _consider(
    batch: Any, lexicals: Any, size: int, passed: Any, how: Any, columns: Any, room: Any, best: Any
) -> None:
    """Pick those of a batch of cells that may be among the best so far.

    passed: the masks, where cells that hold several rare terms are passed over, or nothing.
    """
    bounds, prefixes, heap, heads = columns.bounds, columns.prefixes, best.scores, best.prefixes
    held, found, wanted = best.held[0], best.held[1], len(heap)
    floor, head = (heap[0], np.float64(heads[0] >> _CUT)) if held == wanted else (-np.inf, 0.0)
    # Three short loops: memory is waited for in parallel where nothing depends on what comes.
    left, places, tops = 0, np.empty(size, np.int64), np.empty(size)
    for place in range(size):
        word = batch[place] >> 6
        most = _most(
            how.lexical * lexicals[place], word, bounds, how.confidence, how.importance,
            how.recency, how.shift,
        )  # fmt: skip
        places[left], tops[left] = place, most
        left += (most > floor) | ((most == floor) & (bounds[word, 3] <= head))
    firsts = np.empty(left, np.uint64)
    for each in range(left):
        firsts[each] = prefixes[batch[places[each]]]
    for each in range(left):
        place, prefix = places[each], firsts[each]
        if held == wanted and _worse(tops[each], prefix, heap[0], heads[0]):
            continue
        cell, lexical = batch[place], lexicals[place]
        base = how.lexical * lexical
        score = base + how.confidence * columns.confidence[cell]
        score = score + how.importance * columns.importance[cell]
        in_doubt = False
        if how.recency > 0.0:
            age = max(how.at_us - columns.observed[cell], 0)
            value = np.exp2(-(np.float64(age) / how.half_life_us)) * _GRAIN
            settled = np.rint(value)
            in_doubt = abs(abs(value - settled) - 0.5) < 1e-5
            if in_doubt:
                settled = np.floor(value) + 1.0
            score = score + how.recency * (settled / _GRAIN)
        if held == wanted and (
            score < heap[0] or (not in_doubt and score == heap[0] and prefix > heads[0])
        ):
            continue
        if len(passed) and _several(passed[cell]):
            continue
        if found < len(room.picked):
            room.picked[found], room.lexicals[found] = cell, lexical
            room.scores[found] = np.inf if in_doubt else score
        found += 1
        if not in_doubt:
            held = _push(heap, heads, held, score, prefix)
    best.held[0], best.held[1] = held, found


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
    held: Any, common: Any, how: Any, columns: Any, room: Any, allowed: Any, wanted: int,
    first: int, last: int,
) -> Any:  # fmt: skip
    """Return the cells that may be among the `wanted` best, their lexical parts, and how many
    allowed cells hold any term. `held.masks` is zero again after.

    A cell met in no posting can hold only common terms; words of 64 such cells are looked into
    only where the common terms and the bounds of the word could reach the best so far. Only words
    from `first` to before `last` count, and cells met are in them.

    The last value returned is how many places the room needs; where it has fewer, nothing else
    that is returned counts.
    """
    masks, met, known, weights = held.masks, held.met, held.known, held.weights
    sums = np.zeros(256)
    if len(weights) <= 8:
        for mask in range(1 << len(weights)):
            sums[mask] = _lexical(mask, weights, held.whole)
    best = Best(np.empty(wanted), np.empty(wanted, np.uint64), np.zeros(2, np.int64))
    total = known
    if len(common.slots):
        total = _unite(common.unions, common.table, common.slots, allowed, first, last)
        for place in range(known):
            cell = np.uint64(met[place])
            bit = common.unions[cell >> np.uint64(6)] >> (cell & np.uint64(63))
            total += np.int64((bit & _ONE) ^ _ONE)
    # Cells with several of the rare terms come first: they raise the floor for the rest.
    again = held.again[: held.repeated]
    _look_through(again, held, common, how, columns, room, best, sums)
    alone = how.lexical * _most_alone(weights, common.bits) / held.whole + how.reach
    if alone >= _floor(best):
        if len(common.slots):
            once = _once(met[:known], masks)
            _look_through(once, held, common, how, columns, room, best, sums)
        else:
            _look_through_lists(held, how, columns, room, best)
    if len(common.slots):
        _look_into_words(held, common, how, columns, room, best, sums, first, last)
    for place in range(known):
        masks[met[place]] = 0
    needed, found = best.held[1], min(best.held[1], len(room.picked))
    floor, last = _floor(best), best.prefixes[0]
    kept = 0
    for place in range(found):
        score, cell = room.scores[place], room.picked[place]
        if score > floor or (score == floor and columns.prefixes[cell] <= last):
            room.picked[kept], room.lexicals[kept] = cell, room.lexicals[place]
            kept += 1
    return room.picked[:kept].astype(np.int64), room.lexicals[:kept].copy(), total, needed


@numba.njit(nogil=True, cache=True)
def _most_alone(weights: Any, common_bits: Any) -> Any:
    """Return what one rare term and all common ones weigh, at most."""
    every, rare = 0.0, 0.0
    for term in range(len(weights)):
        of_many = False
        for each in range(len(common_bits)):
            of_many = of_many or np.uint64(common_bits[each]) == _ONE << np.uint64(term)
        if of_many:
            every += weights[term]
        else:
            rare = max(rare, weights[term])
    return every + rare


@numba.njit(nogil=True, cache=True)
def _look_through(
    cells: Any, held: Any, common: Any, how: Any, columns: Any, room: Any, best: Any,
    sums: Any,
) -> None:  # fmt: skip
    """Consider cells that hold a rare term, those with the greatest lexical parts first."""
    masks, weights, whole, few = held.masks, held.weights, held.whole, len(held.weights) <= 8
    table, slots, bits = common.table, common.slots, common.bits
    counts = np.zeros(256, np.int64)
    known = np.empty(len(cells), masks.dtype)
    for place in range(len(cells)):
        cell = cells[place]
        mask = masks[cell]
        if len(slots):
            mask = _with_common(mask, cell, table, slots, bits)
        known[place] = mask
        if few:
            counts[np.int64(mask)] += 1
    level = _level(sums, counts, len(best.scores)) if few else -np.inf
    batch, lexicals, nobody = np.empty(_BATCH, np.int64), np.empty(_BATCH), masks[:0]
    for turn in range(2):
        waiting = 0
        floor = _floor(best)
        if few and turn == 1 and not _hope(sums, counts, level, how.lexical, how.reach, floor):
            break
        for place in range(len(cells) - 1, -1, -1):  # later ones tend to have the greater priors
            mask = known[place]
            lexical = sums[np.int64(mask)] if few else _lexical(mask, weights, whole)
            if (lexical >= level) == (turn == 1) or how.lexical * lexical + how.reach < floor:
                continue
            batch[waiting], lexicals[waiting] = cells[place], lexical
            waiting += 1
            if waiting == _BATCH:
                _consider(batch, lexicals, waiting, nobody, how, columns, room, best)
                floor = _floor(best)
                waiting = 0
        _consider(batch, lexicals, waiting, nobody, how, columns, room, best)
        if level == -np.inf:
            break


@numba.njit(nogil=True, cache=True)
def _once(met: Any, masks: Any) -> Any:
    """Return the cells that hold one rare term."""
    cells = np.empty_like(met)
    found = 0
    for place in range(len(met)):
        cells[found] = met[place]
        found += not _several(masks[met[place]])
    return cells[:found]


@numba.njit(nogil=True, cache=True)
def _look_through_lists(held: Any, how: Any, columns: Any, room: Any, best: Any) -> None:
    """Consider the cells that hold one rare term and no other, the weightiest term first."""
    met, masks, ends, bits = held.met, held.masks, held.ends, held.rare_bits
    lists = np.zeros(len(ends))
    for each in range(len(ends)):
        lists[each] = _lexical(bits[each % len(bits)], held.weights, held.whole)
    batch, lexicals = np.empty(_BATCH, np.int64), np.empty(_BATCH)
    for _ in range(len(ends)):
        each = int(lists.argmax())
        lexical, lists[each] = lists[each], -1.0
        lexicals[:] = lexical
        place, first = ends[each], ends[each - 1] if each else 0
        while place > first:  # later cells tend to have the greater priors
            if how.lexical * lexical + how.reach < _floor(best):
                return
            waiting = 0
            while place > first and waiting < _BATCH:
                place -= 1
                batch[waiting] = met[place]
                waiting += 1
            _consider(batch, lexicals, waiting, masks, how, columns, room, best)


@numba.njit(nogil=True, cache=True)
def _look_into_words(
    held: Any,
    common: Any,
    how: Any,
    columns: Any,
    room: Any,
    best: Any,
    sums: Any,
    first: int,
    last: int,
) -> None:
    """Consider the cells that hold common terms alone, word by word."""
    masks, weights, whole, few = held.masks, held.weights, held.whole, len(held.weights) <= 8
    table, slots, bits = common.table, common.slots, common.bits
    own = np.empty(len(slots))
    for each in range(len(slots)):
        term = 0
        while (np.uint64(bits[each]) >> np.uint64(term)) & _ONE == 0:
            term += 1
        own[each] = weights[term]
    unit = own.max() if own.max() == own.min() else own.sum() / (_QUANTA - len(slots))
    quanta = np.empty(len(slots), np.int64)
    for each in range(len(slots)):
        quanta[each] = max(1, int(np.ceil(own[each] / unit - 1e-9)))
    most = quanta.sum()
    worth = whole / how.lexical / unit  # quanta of one unit of score
    floor = _floor(best)
    if (floor - how.reach) * worth - 1e-6 > most:
        return
    bounds, waiting = columns.bounds, 0
    batch, lexicals, nobody = np.empty(_BATCH, np.int64), np.empty(_BATCH), masks[:0]
    for word in range(last - 1, first - 1, -1):
        cells = common.unions[word]
        if cells == 0:
            continue
        if floor > -np.inf:
            prior = _most(0.0, word, bounds, how.confidence, how.importance, how.recency, how.shift)
            need = (floor - how.slack - prior) * worth - 1e-6
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
            mask = _with_common(masks[cell], cell, table, slots, bits)
            batch[waiting] = cell
            lexicals[waiting] = sums[np.int64(mask)] if few else _lexical(mask, weights, whole)
            waiting += 1
        if waiting >= _BATCH - 64:
            _consider(batch, lexicals, waiting, nobody, how, columns, room, best)
            floor = _floor(best)
            waiting = 0
    _consider(batch, lexicals, waiting, nobody, how, columns, room, best)


@numba.njit(nogil=True, cache=True)
def _unite(unions: Any, table: Any, slots: Any, allowed: Any, first: int, last: int) -> Any:
    """Write the cells that hold any common term and are allowed; return how many there are."""
    unions[first:last] = table[slots[0], first:last]
    for each in range(1, len(slots)):
        row = table[slots[each]]
        for word in range(first, last):
            unions[word] |= row[word]
    if len(allowed):
        for word in range(first, last):
            unions[word] &= allowed[word]
    total = 0
    for word in range(first, last):
        total += _population(unions[word])
    return total

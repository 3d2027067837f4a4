"""Postings: for each term the cells that hold it, appended in runs that merge like an LSM tree.

New cells gather in flat lists. The next search sorts them into a run: terms in order, and for
each term its cells in order with a shape, a small number for the pair (times the term stands in
the cell, terms of the cell). A run is merged into the one before it once that is less than
`_RATIO` times as long, so there are few runs and each posting is moved a logarithmic number of
times, however small the batches.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from itertools import chain
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cma.orion.columns import Column
from cma.orion.index_file import Image
from cma.orion.scoring import Collection

__all__ = ["Postings", "Run"]

_RATIO = 4
_CHUNK = 1 << 16
_SHIFT = 32
_MASK = (1 << _SHIFT) - 1
Integers = NDArray[np.int64]
Ordinals = NDArray[np.int32]
_NOTHING = np.empty(0, np.int64)
_CELLS = 2**31
_NARROW = 2**16


class Run(NamedTuple):
    """One run: terms in order, and for each its cells in order with their shapes."""

    terms: Integers
    starts: Integers
    cells: Ordinals
    shapes: NDArray[Any]
    end: int
    """One more than the last ordinal that this run or one before it holds."""

    def ranges(self, codes: Integers) -> tuple[Integers, Integers]:
        """Where in `cells` each term's begin and end; nowhere for a term that is not here."""
        if not len(self.terms):
            nowhere = np.zeros(len(codes), np.int64)
            return nowhere, nowhere
        places = self.terms.searchsorted(codes)
        here = self.terms.take(places, mode="clip") == codes
        starts = self.starts[places]
        return starts, self.starts[places + here]


class Postings:
    """The postings of one index; cells are ordinals, terms are text."""

    def __init__(self) -> None:
        """Make empty postings."""
        self._codes: defaultdict[str, int] = defaultdict()
        self._codes.default_factory = self._codes.__len__
        self._runs: list[Run] = []
        self._new_codes: list[int] = []
        self._new_lengths: list[int] = []
        self._sealed = 0
        self.purges = 0
        self._shapes = Column(np.int64)
        self._shape_order = _NOTHING
        self._distinct = Column(np.int32)

    @property
    def runs(self) -> Sequence[Run]:
        """The runs, earlier cells first."""
        return self._runs

    @property
    def sealed(self) -> int:
        """How many cells are searchable."""
        return self._sealed

    def codes(self, terms: Sequence[str]) -> Integers:
        """The code of each term, -1 for an unknown one."""
        return np.array([self._codes.get(term, -1) for term in terms], np.int64)

    @property
    def distinct(self) -> Integers:
        """How many distinct terms each cell has (after `seal`)."""
        return self._distinct.values

    @property
    def frequencies(self) -> NDArray[np.float64]:
        """By shape: how often the term stands in the cell."""
        return (self._shapes.values >> _SHIFT).astype(np.float64)

    @property
    def lengths(self) -> NDArray[np.float64]:
        """By shape: how many terms the cell has."""
        return (self._shapes.values & _MASK).astype(np.float64)

    def collection(self, size: int, words: int) -> Collection:
        """What the lexical functions may know of `size` cells that hold `words` terms in all."""
        return Collection(
            size=size,
            mean_length=words / max(1, size),
            frequencies=self.frequencies,
            lengths=self.lengths,
            distinct=self.distinct,
        )

    def extend(self, texts: Sequence[Sequence[str]]) -> None:
        """Append cells, each given as its terms, under the next ordinals."""
        self._new_codes.extend(map(self._codes.__getitem__, chain.from_iterable(texts)))
        self._new_lengths.extend(map(len, texts))
        if len(self._new_lengths) >= _CHUNK:  # so that little waits as Python numbers
            self.seal()

    def seal(self) -> None:
        """Make what was appended searchable."""
        if not self._new_lengths:
            return
        lengths = np.array(self._new_lengths, np.int64)
        count = len(lengths)
        cells = np.repeat(np.arange(count, dtype=np.int64), lengths)
        keys = np.array(self._new_codes, np.int64) << _SHIFT | cells
        keys.sort()
        first = np.flatnonzero(np.concatenate(([True], keys[1:] != keys[:-1])))[: len(keys)]
        times = np.diff(first, append=len(keys))
        keys = keys[first]
        cells = keys & _MASK
        shapes = self._shape_codes(times << _SHIFT | lengths[cells])
        self._distinct.extend(np.bincount(cells, minlength=count), count)
        if self._sealed + count > _CELLS:
            raise ValueError(f"an index holds at most {_CELLS:,} revisions")
        self._sealed += count
        places = (cells + (self._sealed - count)).astype(np.int32)
        self._runs.append(_run(keys >> _SHIFT, places, shapes, self._sealed))
        self._new_codes.clear()
        self._new_lengths.clear()
        runs = self._runs
        while len(runs) > 1 and len(runs[-2].cells) < _RATIO * len(runs[-1].cells):
            later, earlier = runs.pop(), runs.pop()
            runs.append(_merged([earlier, later], None))

    def purge(self, live: NDArray[np.bool_]) -> None:
        """Drop the postings of cells that are not live, into one run."""
        self.seal()
        self._runs = [_merged(self._runs, live)] if self._runs else []
        self.purges += 1

    def saved(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        """Return all postings as facts and arrays, joined into one run."""
        self.seal()
        if len(self._runs) != 1:
            self._runs = [_merged(self._runs, None)] if self._runs else [_EMPTY]
        [run] = self._runs
        facts = {"terms": list(self._codes), "sealed": self._sealed, "purges": self.purges}
        return facts, {
            "run_terms": run.terms,
            "run_starts": run.starts,
            "run_cells": run.cells,
            "run_shapes": run.shapes,
            "shapes": self._shapes.values,
            "distinct": self._distinct.values,
        }

    @classmethod
    def loaded(cls, image: Image) -> Postings:
        """Return the postings that were saved."""
        postings, facts = cls(), image.facts["postings"]
        postings._codes.update(zip(facts["terms"], range(len(facts["terms"])), strict=True))
        postings._sealed, postings.purges = int(facts["sealed"]), int(facts["purges"])
        postings._shapes = image.column("shapes")
        postings._distinct = image.column("distinct")
        postings._shape_order = np.argsort(postings._shapes.values)
        cells = image.numbers("run_cells", 0, postings._sealed)
        run = Run(
            terms=image.numbers("run_terms", 0, len(postings._codes)),
            starts=image.numbers("run_starts", 0, len(cells) + 1),
            cells=cells,
            shapes=image.numbers("run_shapes", 0, max(1, len(postings._shapes))),
            end=postings._sealed,
        )
        lengths = (len(run.terms) + 1, len(cells), postings._sealed)
        if (
            lengths != (len(run.starts), len(run.shapes), len(postings._distinct))
            or (np.diff(run.terms) <= 0).any()
            or (np.diff(run.starts) < 0).any()
        ):
            raise ValueError("postings: of different lengths, or not in order")
        postings._runs = [run]
        return postings

    def find(self, terms: Sequence[str]) -> list[tuple[NDArray[Any], NDArray[Any]]]:
        """The cells and shapes of each term, in order of the cells; none for an unknown term."""
        codes = self.codes(terms)
        found: list[list[tuple[NDArray[Any], NDArray[Any]]]] = [[] for _ in terms]
        for run in self._runs:
            places = run.terms.searchsorted(codes).tolist()
            for at, (place, code) in enumerate(zip(places, codes.tolist(), strict=True)):
                if place < len(run.terms) and run.terms[place] == code:
                    part = slice(run.starts[place], run.starts[place + 1])
                    found[at].append((run.cells[part], run.shapes[part]))
        return [_joined(parts) for parts in found]

    def _shape_codes(self, pairs: Integers) -> NDArray[Any]:
        known = self._shapes.values[self._shape_order]
        distinct = np.unique(pairs)
        new = distinct[~np.isin(distinct, known, assume_unique=True)]
        if len(new):
            self._shapes.extend(new, len(new))
            self._shape_order = np.argsort(self._shapes.values)
            known = self._shapes.values[self._shape_order]
        width = np.uint16 if len(known) <= _NARROW else np.int32
        return self._shape_order[known.searchsorted(pairs)].astype(width)


_EMPTY = Run(_NOTHING, np.zeros(1, np.int64), _NOTHING.astype(np.int32), _NOTHING, 0)


def _joined(
    parts: list[tuple[NDArray[Any], NDArray[Any]]],
) -> tuple[NDArray[Any], NDArray[Any]]:
    if len(parts) == 1:
        return parts[0]
    if not parts:
        return _NOTHING, _NOTHING
    return np.concatenate([cells for cells, _ in parts]), np.concatenate([s for _, s in parts])


def _run(codes: Integers, cells: Ordinals, shapes: NDArray[Any], end: int) -> Run:
    first = np.flatnonzero(np.concatenate(([True], codes[1:] != codes[:-1])))[: len(codes)]
    return Run(codes[first], np.append(first, len(codes)), cells, shapes, end)


def _merged(runs: list[Run], live: NDArray[np.bool_] | None) -> Run:
    codes = np.concatenate([np.repeat(run.terms, np.diff(run.starts)) for run in runs])
    cells = np.concatenate([run.cells for run in runs])
    shapes = np.concatenate([run.shapes for run in runs])
    # Runs follow each other in their cells, so a stable sort by term keeps cells in order.
    order = codes.argsort(kind="stable")
    if live is not None:
        order = order[live[cells[order]]]
    return _run(codes[order], cells[order], shapes[order], runs[-1].end)

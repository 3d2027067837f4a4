"""Neighbours: which cells are one temporal link away.

Most cells have a link before and one after, so the neighbours stand in a few dense columns, -1
where there is none; what a cell has beyond `_WIDTH` goes to a list of pairs. Both ways are
appendable, and the best value among neighbours is a gather for each column. A column is made when
a link needs it: an index without links holds none.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from cma.orion.columns import Column
from cma.orion.index_file import Image
from cma.orion.scoring import Cells, Floats

__all__ = ["Neighbours"]

_WIDTH = 4
Integers = NDArray[np.int64]


class Neighbours:
    """Undirected links between ordinals."""

    def __init__(self) -> None:
        """Make cells without links."""
        self._size = 0
        self._columns: list[Column] = []  # as many as are used: most indexes need few
        self._beyond = Column(np.int64, 2)
        self.used = 0  # columns that hold a link

    @property
    def crowded(self) -> bool:
        """Whether some cell has more neighbours than there are columns."""
        return len(self._beyond) > 0

    def extend(self, count: int) -> None:
        """Append cells without links."""
        self._size += count
        for column in self._columns:
            column.extend(-1, count)

    def connect(self, first: Integers, second: Integers) -> None:
        """Link pairs of cells; a link that is there already, or to itself, adds nothing."""
        keys = np.concatenate([first << 32 | second, second << 32 | first])
        keys = np.unique(keys[keys >> 32 != keys & 0xFFFFFFFF])
        ends = np.stack([keys >> 32, keys & 0xFFFFFFFF], axis=1)
        for place in range(_WIDTH):
            if not len(ends):
                return
            if place == len(self._columns):
                self._columns.append(Column(np.int64))
                self._columns[place].extend(-1, self._size)
            values = self._columns[place].values
            ends = ends[values[ends[:, 0]] != ends[:, 1]]
            _, chosen = np.unique(ends[:, 0], return_index=True)
            chosen = chosen[values[ends[chosen, 0]] < 0]
            if len(chosen):
                values[ends[chosen, 0]] = ends[chosen, 1]
                self.used = max(self.used, place + 1)
                ends = np.delete(ends, chosen, axis=0)
        known = self._beyond.values
        there = np.isin(ends[:, 0] << 32 | ends[:, 1], known[:, 0] << 32 | known[:, 1])
        if not there.all():
            self._beyond.extend(ends[~there], int(np.count_nonzero(~there)))

    def saved(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        """Return all links as facts and arrays."""
        columns = {f"near_{place}": each.values for place, each in enumerate(self._columns)}
        facts = {"size": self._size, "used": self.used, "columns": len(self._columns)}
        return facts, columns | {"beyond": self._beyond.values}

    @classmethod
    def loaded(cls, image: Image) -> Neighbours:
        """Return the links that were saved."""
        neighbours, facts = cls(), image.facts["neighbours"]
        neighbours._size, neighbours.used = int(facts["size"]), int(facts["used"])
        for place in range(int(facts["columns"])):
            name = f"near_{place}"
            if len(image.numbers(name, -1, neighbours._size)) != neighbours._size:
                raise ValueError("neighbours: of different lengths")
            neighbours._columns.append(image.column(name))
        image.numbers("beyond", 0, neighbours._size)
        neighbours._beyond = image.column("beyond")
        if not 0 <= neighbours.used <= len(neighbours._columns):
            raise ValueError("neighbours: more columns in use than there are")
        return neighbours

    def move(self, old: int, new: int) -> None:
        """Give the links of one cell to another that has none."""
        for column in self._columns:
            values = column.values
            neighbour = int(values[old])
            values[old], values[new] = -1, neighbour
            if neighbour >= 0:
                for back in self._columns:
                    if back.values[neighbour] == old:
                        back.values[neighbour] = new
        beyond = self._beyond.values
        beyond[beyond == old] = new
        # A neighbour that is crowded may hold this cell in a column, and the reverse.
        for neighbour in beyond[beyond[:, 0] == new, 1].tolist():
            for back in self._columns:
                if back.values[neighbour] == old:
                    back.values[neighbour] = new

    def around(self, cells: Integers) -> Integers:
        """The cells and their neighbours, once each, in order; only where not `crowded`."""
        near = [column.values[cells] for column in self._columns[: self.used]]
        near = [part[part >= 0] for part in near]
        return np.unique(np.concatenate([cells, *near]))

    def pairs(self) -> tuple[Integers, Integers]:
        """Every cell that has a neighbour, and that neighbour; each link stands here both ways."""
        near = [column.values for column in self._columns[: self.used]]
        cells = [np.flatnonzero(column >= 0) for column in near]
        beyond = self._beyond.values
        return (
            np.concatenate([*cells, beyond[:, 0]]),
            np.concatenate(
                [*(column[own] for column, own in zip(near, cells, strict=True)), beyond[:, 1]]
            ),
        )

    def best(self, values: Floats, cells: Cells) -> Floats:
        """The greatest of the neighbours' `values` for each of `cells`, 0 without neighbours.

        `values` has one place more than there are cells, and it is 0: -1 reads that.
        """
        if self.crowded:
            result = np.zeros(len(values) - 1)
            np.maximum.at(result, self._beyond.values[:, 0], values[self._beyond.values[:, 1]])
            result = result[cells]
        else:
            places = range(len(values) - 1)
            result = np.zeros(len(places[cells] if isinstance(cells, slice) else cells))
        for column in self._columns[: self.used]:
            np.maximum(result, values[column.values[cells]], out=result)
        return result

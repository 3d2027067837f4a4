"""The index: cells of every scope under one analyser, ranked exactly and in memory.

It holds the live revision of each cell as columns (`entries`), the terms as `postings` and the
temporal links as `neighbours`; `searching` ranks. The answer is that of scoring every cell.

- What a viewer cannot see has no influence: the number of cells, their mean length and how many
  hold a term are counted over the live cells of the viewer's scopes, active or not.
- Nothing depends on the order in which cells were added: not order, scores, nor `digest`.
- One lock is held through each call, so a search sees a whole batch of another thread or none.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cma.orion.cell_ids import packed
from cma.orion.entries import NEVER, Entries, Entry
from cma.orion.index_file import Image
from cma.orion.neighbours import Neighbours
from cma.orion.postings import Postings
from cma.orion.query import Query
from cma.orion.ranking import Ranking
from cma.orion.scoring import Weights
from cma.orion.searching import Searcher
from cma.orion.surroundings import Surroundings, rank

__all__ = ["NEVER", "Entry", "Index", "Ranking", "Weights"]

_PURGE_SHARE = 8
_DEFAULT_WEIGHTS = Weights()


class Index:
    """Cells of every scope under one analyser."""

    def __init__(self) -> None:
        """Make an empty index."""
        self._lock = threading.RLock()
        self._entries = Entries()
        self._postings = Postings()
        self._neighbours = Neighbours()
        self._searcher = Searcher(self._entries, self._postings, self._neighbours)

    def saved(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        """Return the whole index as facts and arrays; `loaded` makes the same of them."""
        with self._lock:
            entries, columns = self._entries.saved()
            postings, runs = self._postings.saved()
            neighbours, near = self._neighbours.saved()
            facts = {"entries": entries, "postings": postings, "neighbours": neighbours}
            return facts, columns | runs | near

    @classmethod
    def loaded(cls, image: Image, codes: Sequence[int]) -> Index:
        """Return the index that was saved. codes: what each scope's code is now.

        Raises KeyError, ValueError or TypeError for an image of something else.
        """
        index = cls()
        index._entries = Entries.loaded(image, codes)
        index._postings = Postings.loaded(image)
        index._neighbours = Neighbours.loaded(image)
        if not len(index._entries) == index._postings.sealed == image.facts["neighbours"]["size"]:
            raise ValueError("index: its parts are of different lengths")
        index._searcher = Searcher(index._entries, index._postings, index._neighbours)
        return index

    def __len__(self) -> int:
        """How many cells have a live revision here."""
        return self._entries.cells

    def __contains__(self, cell_id: object) -> bool:
        """Whether a cell is here."""
        return self._entries.ids.latest(cell_id) >= 0

    @property
    def digest(self) -> str:
        """64 hex digits that name the set of live entries, in whatever order they came.

        The sum modulo 2^256 of a SHA-256 for each entry over id, revision, confidence,
        importance, times, `inactive` and terms. Scope codes are the owner's and are left out.
        """
        return self._entries.digest

    def ordinal(self, cell_id: str) -> int:
        """The ordinal of a cell's live revision. Raises KeyError for an unknown cell."""
        row = self._entries.ids.latest(cell_id)
        if row < 0:
            raise KeyError(cell_id)
        return row

    def add_many(self, entries: Sequence[Entry]) -> range:
        """Append cells that are not here yet and return their ordinals, dense and in order.

        Raises ValueError before anything is changed.
        """
        with self._lock:
            if not entries:
                return range(len(self._entries), len(self._entries))
            ids = [entry.id for entry in entries]
            if len(set(ids)) < len(ids) or (self._rows(ids) >= 0).any():
                raise ValueError("id: a cell is given twice or is here already; use replace")
            return self._append(entries)

    def replace(self, entry: Entry) -> int:
        """Put a cell's new revision in place of the one here and return its ordinal.

        That is always the next new one; the old one is never served again. Links stay with the
        cell. Raises ValueError for an unknown cell.
        """
        with self._lock:
            old = self._entries.ids.latest(entry.id)
            if old < 0:
                raise ValueError(f"id: {entry.id!r} is not in the index; use add_many")
            new = self._append([entry])[0]
            self._entries.retire(old)
            self._neighbours.move(old, new)
            return new

    def add_links(self, pairs: Iterable[tuple[str, str]]) -> None:
        """Link pairs of cells for support, which goes both ways.

        Raises ValueError for a cell that is not here, before anything is changed.
        """
        with self._lock:
            ends = [name for pair in pairs for name in pair]
            if ends:
                rows = self._rows(ends)
                if (rows < 0).any():
                    missing = ends[int((rows < 0).argmax())]
                    raise ValueError(f"link: cell {missing!r} is not in the index")
                self._neighbours.connect(rows[::2], rows[1::2])

    def search(
        self,
        query_terms: Sequence[str],
        *,
        viewer: Sequence[int],
        at_us: int,
        limit: int,
        lexical: str = "overlap",
        weights: Weights = _DEFAULT_WEIGHTS,
        half_life_seconds: float = 604800.0,
        include_inactive: bool = False,
        exclusion_limit: int = 50,
        surroundings: Surroundings | None = None,
        threads: int = 1,
    ) -> Ranking:
        """Rank the cells of the viewer's scopes; see `Ranking`.

        A cell is a candidate if it shares a term with the query, or has support while the link
        weight is above zero. It is active if `at_us` is before its expiry and lifecycle has not
        taken it out; others are neither served nor lend support, unless `include_inactive`.

        surroundings: what the parts of `scoring.CONTEXT_PARTS` look at; needed where one of them
        has a weight. threads: how many share the work where the index is large enough to be pruned;
        the answer is the same.

        Raises ValueError for no terms, a limit or number of threads below 1, an unknown lexical
        part, a weight that is not finite and a half-life that is not above zero.
        """
        query = Query(
            terms=tuple(query_terms),
            viewer=frozenset(viewer),
            at_us=at_us,
            limit=limit,
            lexical=lexical,
            weights=weights,
            half_life_seconds=half_life_seconds,
            include_inactive=include_inactive,
            exclusion_limit=exclusion_limit,
            threads=threads,
        ).checked()
        with self._lock:
            self.settle()
            if not weights.of_context:
                return self._searcher.search(query)
            if surroundings is None or len(surroundings.context) != len(self._entries):
                raise ValueError("surroundings: needed, and in step, where a part of them counts")
            surroundings.context.bigrams.seal()
            return rank(self._entries, self._postings, self._neighbours, surroundings, query)

    def settle(self) -> None:
        """Put what was added in order, and purge what was replaced; `search` does so, too.

        One that was interrupted leaves an index of no use.
        """
        with self._lock:
            self._postings.seal()
            if self._entries.retired * _PURGE_SHARE > len(self._entries):
                self._postings.purge(self._entries.live)
                self._entries.retired = 0

    def _rows(self, ids: Sequence[str]) -> NDArray[np.int64]:
        return self._entries.ids.latest_of(ids, packed(ids))

    def _append(self, entries: Sequence[Entry]) -> range:
        added = self._entries.append(entries)
        self._postings.extend([entry.terms for entry in entries])
        self._neighbours.extend(len(entries))
        return added

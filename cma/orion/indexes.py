"""Indexes kept in step with a store: one for each analyser, built when it is first asked for.

An index is a view that can be thrown away: it is filled from the store's rows, follows them by
their ordinal (revisions are only ever added), and its digest is part of every trace.
"""

from __future__ import annotations

import threading
from array import array
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from itertools import islice
from pathlib import Path

import apsw

from cma.orion.analysis import analyse_many
from cma.orion.context import Context, Told, asked
from cma.orion.index import NEVER, Entry, Index
from cma.orion.index_keeping import Mark, find_kept, write_kept
from cma.orion.records import DAMAGES, Record, damaged_record, record_of
from cma.orion.salting import SALT
from cma.orion.scopes import visible_scopes
from cma.orion.scoring import Weights
from cma.orion.store import Store
from cma.orion.surroundings import Surroundings
from cma.orion.traces import Coefficients
from cma.values.clock import microseconds
from cma.values.errors import CmaError, InvalidValueError, Reason
from cma.values.validation import share

CHUNK = 1_000
MOST_THREADS = 256


class Indexes:
    """The indexes of one open store, shared by all its scopes and threads."""

    def __init__(self, threads: int = 1) -> None:
        """Begin with none. threads: how many share the work of one search, from 1 to 256.

        Raises InvalidValueError: `field-invalid`.
        """
        if type(threads) is not int or not 1 <= threads <= MOST_THREADS:
            raise InvalidValueError(
                Reason.FIELD_INVALID,
                f"must be a whole number from 1 to {MOST_THREADS}",
                field="threads",
                value=threads,
                remedy="leave it out for one thread",
            )
        self.threads = threads
        self._lock = threading.RLock()
        self._followed: dict[str, _Followed] = {}
        self._codes: dict[str, int] = {}

    def held(self) -> threading.RLock:
        """Return the lock under which no index moves, for several steps that belong together."""
        return self._lock

    def in_step(self, store: Store, analyser: str) -> tuple[Index, int, Sequence[int]]:
        """Return an analyser's index in step with the store, the generation that it shows, and
        the row of each of its ordinals.
        """
        with self._lock:
            followed = self._followed.get(analyser)
            if followed is None:
                followed = self._followed[analyser] = _Followed(analyser)
            generation = store.head()[2]
            if generation != followed.generation:
                try:
                    with store.reading() as connection:
                        generation = store.head()[2]
                        if followed.generation < 0:
                            self._load_kept(connection, store, followed)
                        if followed.holds_erased(connection):  # begin anew: its terms must go
                            followed = self._followed[analyser] = _Followed(analyser)
                        followed.cells(connection, self._code)
                        followed.links(connection)
                    followed.index.settle()  # here, where an interrupt lets go of the index
                    followed.generation = generation
                except BaseException as error:
                    # Half followed is of no use, whatever stopped it: begin anew next time.
                    del self._followed[analyser]
                    if isinstance(error, DAMAGES) and not isinstance(error, CmaError):
                        raise damaged_record() from error
                    raise
            return followed.index, generation, followed.rows

    def surroundings(
        self, store: Store, analyser: str, query: str, terms: Sequence[str]
    ) -> Surroundings:
        """Return what stands around the cells of an analyser's index, and what is asked of it.

        In step with that index, which must have been brought in step with the store.
        """
        with self._lock:
            followed = self._followed[analyser]
            if followed.context is None:
                try:
                    with store.reading() as connection:
                        followed.surround(connection, self._code)
                except DAMAGES as error:
                    if isinstance(error, CmaError):
                        raise
                    raise damaged_record() from error
            assert followed.context is not None  # noqa: S101
            try:
                followed.context.bigrams.seal()
            except BaseException:
                followed.context = None  # half sealed is of no use
                raise
            return Surroundings(followed.context, asked(query, terms))

    def codes(self, viewer: str) -> tuple[int, ...]:
        """Return the codes of the scopes that a viewer sees."""
        with self._lock:
            return tuple(self._code(scope) for scope in visible_scopes(viewer))

    def keep(self, store: Store, analyser: str) -> Path:
        """Write an analyser's index beside the store, for the next process to map; see
        `index_keeping`.
        """
        with self._lock, store.reading():
            self.in_step(store, analyser)
            followed = self._followed[analyser]
            seq, head, generation = store.head()
            mark = Mark(store.store_id, seq, head, generation, *followed.last)
            scopes = list(self._codes)
            saved = followed.index.saved()
            return write_kept(store.path, analyser, mark, scopes, followed.rows, saved)

    def _load_kept(self, connection: apsw.Connection, store: Store, followed: _Followed) -> None:
        found = find_kept(connection, store.path, store.store_id, followed.analyser, self._code)
        if found is not None:
            followed.index, mark, followed.rows = found
            followed.last = (mark.last_cell, mark.last_link)

    def forget(self) -> None:
        """Let every index go, with all terms; each is built anew when it is asked for."""
        with self._lock:
            self._followed.clear()

    @staticmethod
    def weights(coefficients: Coefficients) -> Weights:
        """Return coefficients in the form that the index takes."""
        return Weights(*(getattr(coefficients, name) for name in Weights._fields))

    def _code(self, scope: str) -> int:
        return self._codes.setdefault(scope, len(self._codes))


class _Followed:
    """One index and how far it has followed the store."""

    def __init__(self, analyser: str) -> None:
        self.analyser = analyser
        self.index = Index()
        self.context: Context | None = None
        self.rows = array("q")
        self.generation = -1
        self._last_cell = 0
        self._last_link = 0

    @property
    def last(self) -> tuple[int, int]:
        """The last row of cells and of links that was followed."""
        return self._last_cell, self._last_link

    @last.setter
    def last(self, rows: tuple[int, int]) -> None:
        self._last_cell, self._last_link = rows

    def holds_erased(self, connection: apsw.Connection) -> bool:
        """Tell whether a cell that was followed has been erased: its rows are new ones then."""
        rows = connection.execute(
            "SELECT id FROM cells WHERE lifecycle = 'erased' AND ordinal > ?", (self._last_cell,)
        )
        return any(name in self.index for (name,) in rows)

    def cells(self, connection: apsw.Connection, code: Callable[[str], int]) -> None:
        """Follow the cells that were added; an erased one has nothing to be found by."""
        rows = connection.execute(
            "SELECT ordinal, record FROM cells"
            " WHERE ordinal > ? AND lifecycle <> 'erased' ORDER BY ordinal",
            (self._last_cell,),
        )
        while chunk := list(islice(rows, CHUNK)):
            records = [record_of(data) for _, data in chunk]
            analysed = analyse_many(self.analyser, [record["content"] for record in records])
            if self.context is not None:
                self.context.extend(_told(records, analysed, code))
            new: list[Entry] = []
            new_rows: list[int] = []
            for (row, _), record, terms in zip(chunk, records, analysed, strict=True):
                entry = _entry(record, terms, code(record["scope"]))
                if entry.revision == 1:
                    new.append(entry)
                    new_rows.append(row)
                    continue
                self._add(new, new_rows)
                new, new_rows = [], []
                self.index.replace(entry)  # always under the next new ordinal
                self.rows.append(row)
            self._add(new, new_rows)
            self._last_cell = chunk[-1][0]

    def surround(self, connection: apsw.Connection, code: Callable[[str], int]) -> None:
        """Build the context of all cells that were followed so far."""
        rows = connection.execute(
            "SELECT record FROM cells WHERE ordinal <= ? AND lifecycle <> 'erased'"
            " ORDER BY ordinal",
            (self._last_cell,),
        )
        context = Context(self.analyser)
        while chunk := list(islice(rows, CHUNK)):
            records = [record_of(data) for (data,) in chunk]
            analysed = analyse_many(self.analyser, [record["content"] for record in records])
            context.extend(_told(records, analysed, code))
        self.context = context

    def _add(self, entries: list[Entry], rows: list[int]) -> None:
        self.index.add_many(entries)
        self.rows.extend(rows)

    def links(self, connection: apsw.Connection) -> None:
        rows = connection.execute(
            "SELECT ordinal, source_id, target_id FROM links"
            " WHERE ordinal > ? AND kind = 'temporal' ORDER BY ordinal",
            (self._last_link,),
        ).fetchall()
        if rows:
            erased = {
                name
                for (name,) in connection.execute("SELECT id FROM cells WHERE lifecycle = 'erased'")
            }
            self.index.add_links(
                (source, target)
                for _, source, target in rows
                if erased.isdisjoint((source, target))
            )
            self._last_link = rows[-1][0]


def _entry(record: Record, terms: list[str], scope: int) -> Entry:
    expires = record["expires_at"]
    return Entry(
        id=record["id"],
        revision=record["revision"],
        scope=scope,
        confidence=share(record["confidence"]),
        importance=share(record["importance"]),
        observed_us=_microseconds(record["observed_at"] or record["created_at"]),
        terms=terms,
        expires_us=NEVER if expires is None else _microseconds(expires),
        inactive=record["lifecycle"] != "active",
        salt=str(record["metadata"]["attributes"].get(SALT, "")),
    )


def _told(
    records: Sequence[Record], analysed: Sequence[list[str]], code: Callable[[str], int]
) -> Iterator[Told]:
    """Yield what a context needs of each record."""
    for record, terms in zip(records, analysed, strict=True):
        metadata = record["metadata"]
        yield Told(
            scope=code(record["scope"]),
            content=record["content"],
            speaker=metadata.get("speaker") or "",
            session=metadata.get("session") or "",
            observed_us=_microseconds(record["observed_at"] or record["created_at"]),
            terms=terms,
        )


def _microseconds(at: str) -> int:
    return microseconds(datetime.fromisoformat(at))

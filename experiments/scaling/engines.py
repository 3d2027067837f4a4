"""CMA and its peers under one protocol: build, close, open, ask, append.

Each engine gets the same texts and answers with its ten best. Questions come as text, so analysis
is part of the time. A peer whose package does not import is left out, and the notes say so.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any, Protocol

import apsw

from cma import Caller, CellDraft, Memory
from cma.orion.analysis import ANALYSERS
from cma.orion.cells import Authority
from cma.orion.recall import LISTED_EXCLUSIONS
from cma.values.clock import microseconds
from experiments.scaling.texts import SPACING, START

LIMIT = 10
BATCH = 10_000
ANALYSER = "unicode"


class Engine(Protocol):
    """An engine that holds texts in a folder."""

    asks: dict[str, Callable[[str], object]]
    """The ways to put a question, by the name of their row."""

    def append(self, text: str, place: int) -> None:
        """Add one text and return when a question can find it."""

    def close(self) -> None:
        """Let go of everything."""


class Cma:
    """A store of CMA: its audited recall, and the bare search of its index."""

    def __init__(self, folder: Path) -> None:
        """Open the store and bring its index in step."""
        self.memory = Memory.open(
            folder / "scale.cma", caller=Caller(name="harness", authority=Authority.DOCUMENT)
        )
        self._indexes = self.memory._indexes
        self._indexes.in_step(self.memory.store, ANALYSER)
        self._weights = self._indexes.weights(self.memory.retrieval.coefficients)
        self.asks = {"cma recall": self._recall, "cma index": self._search}

    @staticmethod
    def build(folder: Path, texts: Sequence[str]) -> None:
        """Write every text as an episodic cell, a second apart, in batches."""
        with Memory.open(
            folder / "scale.cma", caller=Caller(name="harness", authority=Authority.DOCUMENT)
        ) as memory:
            for first in range(0, len(texts), BATCH):
                memory.write_many(
                    draft(text, place)
                    for place, text in enumerate(texts[first : first + BATCH], first)
                )

    def append(self, text: str, place: int) -> None:
        """Write one cell and bring the index in step."""
        fields = draft(text, place)
        self.memory.write_many([fields])
        self._indexes.in_step(self.memory.store, ANALYSER)

    def close(self) -> None:
        """Close the store."""
        self.memory.close()

    def found_at(self, question: str, at: datetime) -> list[tuple[str, float]]:
        """Return ids and scores of the index search at one moment."""
        ranking = self._ranked(question, at)
        return list(zip(ranking.ids, ranking.scores.tolist(), strict=True))

    def ids(self) -> list[str]:
        """Return the id of each text, in order."""
        index, _, _ = self._indexes.in_step(self.memory.store, ANALYSER)
        return list(index._entries.ids)

    def _recall(self, question: str) -> object:
        return self.memory.recall(question, limit=LIMIT)

    def _search(self, question: str) -> object:
        return self._ranked(question, self.memory.store.clock.now())

    def _ranked(self, question: str, at: datetime) -> Any:
        retrieval = self.memory.retrieval
        index, _, _ = self._indexes.in_step(self.memory.store, ANALYSER)
        return index.search(
            ANALYSERS[ANALYSER](question),
            viewer=self._indexes.codes(self.memory.scope),
            at_us=microseconds(at),
            limit=LIMIT,
            lexical=retrieval.lexical,
            weights=self._weights,
            half_life_seconds=retrieval.half_life_seconds,
            exclusion_limit=LISTED_EXCLUSIONS,
        )


def draft(text: str, place: int) -> CellDraft:
    """Return a text as the draft of an episodic cell."""
    return CellDraft.model_validate(
        {
            "kind": "episodic",
            "content": text,
            "origin": f"text {place}",
            "observed_at": START + place * SPACING,
        }
    )


class Bm25s:
    """The bm25s library; it appends nothing."""

    def __init__(self, folder: Path) -> None:
        """Load the saved index."""
        import bm25s

        backend = bm25s_backend()
        self._index = bm25s.BM25.load(
            folder / "bm25s", show_progress=False, verbosity=0, backend=backend
        )
        self._threads = 1 if backend == "numba" else 0  # 0: in this one, without a pool
        self.asks = {f"bm25s ({backend})": self._ask}

    @staticmethod
    def build(folder: Path, texts: Sequence[str]) -> None:
        """Index every text and save the index."""
        import bm25s

        analyse = ANALYSERS[ANALYSER]
        index = bm25s.BM25(method="lucene", k1=1.5, b=0.75)
        index.index([analyse(text) for text in texts], show_progress=False)
        index.save(folder / "bm25s", show_progress=False)

    def append(self, text: str, place: int) -> None:
        """It cannot: the whole index would be built anew."""
        raise NotImplementedError

    def close(self) -> None:
        """There is nothing to close."""

    def _ask(self, question: str) -> object:
        return self._index.retrieve(
            [ANALYSERS[ANALYSER](question)], k=LIMIT, show_progress=False, n_threads=self._threads
        )


class Tantivy:
    """The tantivy library, its index on disk."""

    def __init__(self, folder: Path) -> None:
        """Open the index."""
        import tantivy

        self._index = tantivy.Index.open(str(folder / "tantivy"))
        self._index.reload()
        self._writer: Any = None
        self.asks = {"tantivy": self._ask}

    @staticmethod
    def build(folder: Path, texts: Sequence[str]) -> None:
        """Index every text with one thread and commit."""
        import tantivy

        schema = tantivy.SchemaBuilder()
        schema.add_text_field("text", stored=False)
        place = folder / "tantivy"
        place.mkdir()
        index = tantivy.Index(schema.build(), path=str(place))
        writer = index.writer(num_threads=1)
        for text in texts:
            writer.add_document(tantivy.Document(text=text))
        writer.commit()
        writer.wait_merging_threads()

    def append(self, text: str, place: int) -> None:  # noqa: ARG002
        """Add, commit and reload."""
        import tantivy

        if self._writer is None:
            self._writer = self._index.writer(num_threads=1)
        self._writer.add_document(tantivy.Document(text=text))
        self._writer.commit()
        self._index.reload()

    def close(self) -> None:
        """Let the writer finish."""
        if self._writer is not None:
            self._writer.wait_merging_threads()

    def _ask(self, question: str) -> object:
        searcher = self._index.searcher()
        return searcher.search(self._index.parse_query(question, ["text"]), LIMIT, count=False)


class Fts5:
    """SQLite's full-text index, in a file."""

    def __init__(self, folder: Path) -> None:
        """Open the file."""
        self._connection = apsw.Connection(str(folder / "fts5.db"))
        self._connection.execute("PRAGMA journal_mode=WAL")
        self.asks = {"SQLite FTS5": self._ask}

    @staticmethod
    def build(folder: Path, texts: Sequence[str]) -> None:
        """Insert every text in one transaction."""
        connection = apsw.Connection(str(folder / "fts5.db"))
        connection.execute("CREATE VIRTUAL TABLE cells USING fts5(text, content='')")
        with connection:
            connection.executemany(
                "INSERT INTO cells(rowid, text) VALUES (?, ?)", enumerate(texts, 1)
            )
        connection.execute("INSERT INTO cells(cells) VALUES ('optimize')")
        connection.close()

    def append(self, text: str, place: int) -> None:
        """Insert in a transaction of its own."""
        self._connection.execute("INSERT INTO cells(rowid, text) VALUES (?, ?)", (place + 1, text))

    def close(self) -> None:
        """Close the file."""
        self._connection.close()

    def _ask(self, question: str) -> object:
        words = " OR ".join(ANALYSERS[ANALYSER](question))
        return self._connection.execute(
            "SELECT rowid, rank FROM cells WHERE cells MATCH ? ORDER BY rank LIMIT ?",
            (words, LIMIT),
        ).fetchall()


ENGINES: dict[str, Any] = {"cma": Cma, "bm25s": Bm25s, "tantivy": Tantivy, "fts5": Fts5}
PACKAGES = {"bm25s": "bm25s", "tantivy": "tantivy"}


def there(name: str) -> bool:
    """Tell whether an engine can be measured here."""
    if name == "fts5":
        return bool(apsw.Connection(":memory:").pragma("compile_options") is not None) and _fts5()
    return name not in PACKAGES or importlib.util.find_spec(PACKAGES[name]) is not None


def bm25s_backend() -> str:
    """Return the quicker backend of bm25s that can run here."""
    return "numba" if importlib.util.find_spec("numba") is not None else "numpy"


@contextmanager
def opened(name: str, folder: Path) -> Iterator[Engine]:
    """Open an engine on what was built in a folder."""
    engine: Engine = ENGINES[name](folder)
    try:
        yield engine
    finally:
        engine.close()


def _fts5() -> bool:
    try:
        apsw.Connection(":memory:").execute("CREATE VIRTUAL TABLE t USING fts5(x)")
    except apsw.SQLError:
        return False
    return True

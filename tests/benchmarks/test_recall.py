"""Recall at 100,000 cells: the audited recall against the bare index search, and bm25s beside."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import bm25s
import pytest

from cma import Caller, CellDraft, Memory
from cma.orion.analysis import ANALYSERS
from cma.orion.recall import LISTED_EXCLUSIONS
from cma.values.clock import microseconds
from tests.benchmarks.conftest import TERMS_A_CELL, TERMS_A_QUERY, Figures, Zipf, paired, timed

CELLS = 100_000
QUERIES = 300
LIMIT = 10
START = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.fixture(scope="module")
def corpus() -> tuple[list[str], list[str]]:
    zipf = Zipf(7)
    return zipf.texts(CELLS, TERMS_A_CELL), zipf.texts(QUERIES, TERMS_A_QUERY)


@pytest.fixture(scope="module")
def memory(
    corpus: tuple[list[str], list[str]], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Memory]:
    path: Path = tmp_path_factory.mktemp("bench") / "bench.cma"
    with Memory.open(path, caller=Caller(name="bench", authority="document")) as opened:
        opened.write_many(
            CellDraft(
                kind="episodic",
                content=text,
                origin=f"text {place}",
                observed_at=START + timedelta(seconds=place),
            )
            for place, text in enumerate(corpus[0])
        )
        opened.recall(corpus[1][0], limit=LIMIT)
        yield opened


def test_recall_beside_bm25s(
    benchmark: Any, memory: Memory, corpus: tuple[list[str], list[str]], figures: Figures
) -> None:
    texts, queries = corpus
    analyse = ANALYSERS["unicode"]
    peer = bm25s.BM25(method="lucene", k1=1.5, b=0.75)
    peer.index([analyse(text) for text in texts], show_progress=False)

    def ask_peer(query: str) -> object:
        return peer.retrieve([analyse(query)], k=LIMIT, show_progress=False, n_threads=0)

    ours, theirs = [], []
    ask_peer(queries[0])
    for query in queries:
        ours.append(timed(lambda query=query: memory.recall(query, limit=LIMIT)))
        theirs.append(timed(lambda query=query: ask_peer(query)))
    ratio, quartiles = paired(ours, theirs)
    figures["recall_100k.ratio_to_bm25s"] = {
        "value": ratio,
        "unit": "ratio of median seconds",
        "n": QUERIES,
        "interval": quartiles,
        "run": "make bench",
    }
    benchmark.extra_info["ratio_to_bm25s"] = ratio
    benchmark.pedantic(lambda: memory.recall(queries[0], limit=LIMIT), rounds=50)


def test_audited_recall_over_bare_search(
    benchmark: Any, memory: Memory, corpus: tuple[list[str], list[str]], figures: Figures
) -> None:
    queries = corpus[1]
    retrieval = memory.retrieval
    analyse = ANALYSERS[retrieval.analyser]
    indexes = memory._indexes
    index, _, _ = indexes.in_step(memory.store, retrieval.analyser)
    codes = indexes.codes(memory.scope)
    weights = indexes.weights(retrieval.coefficients)

    def search(query: str) -> object:
        return index.search(
            analyse(query),
            viewer=codes,
            at_us=microseconds(memory.store.clock.now()),
            limit=LIMIT,
            lexical=retrieval.lexical,
            weights=weights,
            half_life_seconds=retrieval.half_life_seconds,
            exclusion_limit=LISTED_EXCLUSIONS,
        )

    audited, bare = [], []
    # In turn, on different queries: the second to search for the same words finds them warm.
    for query, other in zip(queries, reversed(queries), strict=True):
        audited.append(timed(lambda query=query: memory.recall(query, limit=LIMIT)))
        bare.append(timed(lambda other=other: search(other)))
    ratio, quartiles = paired(audited, bare)
    # The group commits run beside the recalls; the total holds them whole.
    total = timed(lambda: [memory.recall(query, limit=LIMIT) for query in queries])
    total += timed(memory.store.flush_reads)
    through = total / timed(lambda: [search(query) for query in queries])
    figures["recall_100k.audited_over_index"] = {
        "value": ratio,
        "unit": "ratio of median seconds",
        "n": QUERIES,
        "interval": quartiles,
        "control": through,
        "run": "make bench",
    }
    benchmark.extra_info.update(audited_over_index=ratio, with_commits=through)
    benchmark.pedantic(lambda: search(queries[0]), rounds=50)

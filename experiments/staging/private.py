"""What the fixtures keep to a session: the contents of cells that no published file may hold."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

from cma import Memory
from cma.orion.records import record_of
from experiments import graph_fixture
from experiments.failure_matrix import INJECTIONS
from experiments.injections.bench import opened
from experiments.settings import DeltaSettings

LONGEST = 10_000
"""Characters of the longest text that is looked for; a larger one was made to be large."""


def private_texts(delta: DeltaSettings) -> tuple[str, ...]:
    """Return the contents of session cells of every fixture that the tree's results rest on.

    The fixtures are built again, so that a new one is covered without being listed here; of the
    diagnostic, whose fixture needs a model's library, the claim and the other memory are.
    """
    texts = {f"{delta.subject} {delta.predicate} {delta.object}", delta.other}
    with tempfile.TemporaryDirectory() as temporary:
        place = Path(temporary)
        with graph_fixture.fixture(place / "graph.cma") as memory:
            texts.update(_of_sessions(memory))
        for injection in INJECTIONS:
            with opened(place / injection.case) as bench:
                injection.inject(bench)
                texts.update(_of_sessions(bench.memory))
    return tuple(sorted(texts))


def _of_sessions(memory: Memory) -> Iterator[str]:
    for (data,) in memory.store.connection.execute("SELECT record FROM cells"):
        record = record_of(data)
        if record["scope"].startswith("session:") and len(record["content"]) <= LONGEST:
            yield record["content"]
            if record["summary"]:
                yield record["summary"]

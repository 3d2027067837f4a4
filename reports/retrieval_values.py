"""The values of a retrieval run: its long table, read and checked, and what its rows are called."""

from __future__ import annotations

from dataclasses import dataclass

from reports.tables import with_interval
from reproductions.inputs import CorruptInputError, finite
from reproductions.results import Run

HEADLINE = "recall@10"
PEER = "bm25s"
_DATA = {
    "locomo": "LoCoMo",
    "generated": "generated conversations",
    "cranfield": "Cranfield",
}
_SCORERS = {
    "overlap": "overlap", "idf_overlap": "idf overlap", "jaccard": "Jaccard", "bm25": "BM25",
}  # fmt: skip


@dataclass(frozen=True)
class Measured:
    """One value of the long table."""

    labels: str
    scorer: str
    analyser: str
    engine: str
    category: str
    metric: str
    value: float
    low: float
    high: float
    n: int

    @property
    def row(self) -> tuple[str, str, str]:
        """Which row of the comparison this belongs to."""
        return (self.scorer, self.analyser, self.engine)

    @property
    def share(self) -> str:
        """The value with its interval."""
        return with_interval(self.value, self.low, self.high)


def data_label(name: str) -> str:
    """Return a data set's name for a heading."""
    return _DATA.get(name, name)


def scorer_label(name: str) -> str:
    """Return a scorer's name for a reader."""
    return _SCORERS.get(name, name.replace("_", " "))


def measured(run: Run) -> list[Measured]:
    """Return the long table, checked; a value that is no finite number is an error."""
    rows = run.needed("recall.csv", "a retrieval run")
    found = []
    for row in rows:
        try:
            numbers = [float(row[key]) for key in ("value", "low", "high")]
            texts = [row[key] for key in ("labels", "scorer", "analyser", "engine")]
            count = int(float(row["n"]))
            place = (row["category"], row["metric"])
        except (KeyError, ValueError, TypeError, OverflowError) as error:
            raise CorruptInputError(f"{run.folder}/recall.csv: unreadable row ({error})") from error
        if any(finite(number) is None for number in numbers):
            raise CorruptInputError(f"{run.folder}/recall.csv: a value is no finite number")
        value, low, high = numbers
        found.append(
            Measured(texts[0], texts[1], texts[2], texts[3], *place, value, low, high, count)
        )
    return found


def row_label(row: tuple[str, str, str]) -> str:
    """Return a row's name without its analyser."""
    scorer, _, engine = row
    return f"{scorer_label(scorer)} ({engine})" if engine == PEER else scorer_label(scorer)

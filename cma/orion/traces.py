"""How a recall is asked for, and the trace that it leaves.

A trace is enough to tell later why one cell stood above another: the analysed terms, the
coefficients, every part of every score, what was left out and why, and the generation and index
digest that were searched. In records, scores are the shortest decimals that give the same float
back, since hashed fields hold no float.

Hits and exclusions are plain frozen dataclasses: a recall makes dozens, and they cost a fifth of
a validated model there.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Any, Literal

from pydantic import Field

from cma.orion.cells import Cell
from cma.orion.erased import MARK
from cma.orion.scoring import CONTEXT_PARTS, EVERY_PART
from cma.values.identity import canonical_of_checked, identifier
from cma.values.validation import Value, trusted

PART_NAMES = ("lexical", "confidence", "importance", "recency", "link")
TRACE_DOMAIN = "cma:recall-trace:1"
LEAST_SHOWN = 5e-7
"""A difference of less would read as zero in six decimals."""
Weight = Annotated[float, Field(ge=-1e6, le=1e6, allow_inf_nan=False)]


class Coefficients(Value):
    """The weight of each part of a score. The defaults are hand-set and sum to 1.

    Those from `two_links` on are no parts of the paper's score and weigh nothing unless they are
    set; `cma.orion.context_parts` says what each is.
    """

    lexical: Weight = 0.6
    confidence: Weight = 0.1
    importance: Weight = 0.1
    recency: Weight = 0.1
    link: Weight = 0.1
    two_links: Weight = 0.0
    reply: Weight = 0.0
    session: Weight = 0.0
    bigrams: Weight = 0.0
    speaker: Weight = 0.0
    statement: Weight = 0.0
    month: Weight = 0.0
    moment: Weight = 0.0
    feedback: Weight = 0.0

    @property
    def names(self) -> tuple[str, ...]:
        """The parts that count here: the paper's five, and what is set of the others."""
        return PART_NAMES + tuple(name for name in CONTEXT_PARTS if getattr(self, name))


class Retrieval(Value):
    """How to recall (paper: transparent lexical scoring with hand-set coefficients).

    analyser: how text becomes terms. lexical: which lexical part. half_life_seconds: the age at
    which recency has fallen to one half.
    """

    analyser: Literal["unicode", "english", "dialogue"] = "unicode"
    lexical: Literal["overlap", "idf_overlap", "jaccard", "bm25"] = "overlap"
    coefficients: Coefficients = Coefficients()
    half_life_seconds: Annotated[float, Field(gt=0, le=1e12, allow_inf_nan=False)] = 604_800.0


@dataclass(frozen=True, slots=True)
class Hit:
    """A recalled cell with its score and the parts of it, each from 0 to 1 and not yet weighted."""

    cell: Cell
    score: float
    parts: dict[str, float]


@dataclass(frozen=True, slots=True)
class TraceHit:
    """What a trace keeps of a hit: which revision, its score and the score's parts."""

    cell: str
    revision: int
    score: float
    parts: dict[str, float]


@dataclass(frozen=True, slots=True)
class Exclusion:
    """A cell that matched and was left out, and why: `inactive` or `below_limit`."""

    cell: str
    reason: str


class RecallTrace(Value):
    """The record of one recall (paper: retrieval traces)."""

    id: str
    query: str
    terms: tuple[str, ...]
    retrieval: Retrieval
    scope: str
    limit: int
    include_inactive: bool
    at: datetime
    generation: int
    index_digest: str
    hits: tuple[TraceHit, ...]
    exclusions: tuple[Exclusion, ...]
    excluded: dict[str, int]

    def why(self, above: str, below: str) -> str:
        """Say in one sentence why one recalled cell stands above another.

        Raises KeyError when one of them is not among the hits.
        """
        hits = {hit.cell: hit for hit in self.hits}
        return self.contrast(hits[above], hits[below])

    def contrast(self, first: TraceHit, second: TraceHit) -> str:
        """Say in one sentence why the first of two hits stands above the second."""
        if first.score == second.score:
            return f"equal scores ({first.score:.6f}); {first.cell} comes first by its id"
        weights = self.retrieval.coefficients
        gains = {
            name: getattr(weights, name) * (first.parts[name] - second.parts[name])
            for name in weights.names
        }
        told = ", ".join(
            f"{name} {gain:+.6f}" if abs(gain) >= LEAST_SHOWN else f"{name} {gain:+.1e}"
            for name, gain in sorted(gains.items(), key=lambda item: -abs(item[1]))
            if gain
        )
        return f"{first.score:.6f} against {second.score:.6f}: {told}"


class Recollection(Value):
    """What a recall gives back: hits, best first, and the trace that was recorded."""

    hits: tuple[Hit, ...]
    trace: RecallTrace


def trace_record(fields: dict[str, Any]) -> dict[str, Any]:
    """Return the canonical record of a trace's fields, without its id."""
    retrieval: Retrieval = fields["retrieval"]
    coefficients = retrieval.coefficients
    return {
        "at": fields["at"],
        "excluded": fields["excluded"],
        "exclusions": [[item.cell, item.reason] for item in fields["exclusions"]],
        "generation": fields["generation"],
        "hits": [
            {
                "cell": hit.cell,
                "parts": {name: repr(part) for name, part in hit.parts.items()},
                "revision": hit.revision,
                "score": repr(hit.score),
            }
            for hit in fields["hits"]
        ],
        "include_inactive": fields["include_inactive"],
        "index_digest": fields["index_digest"],
        "limit": fields["limit"],
        "query": fields["query"],
        "retrieval": {
            "analyser": retrieval.analyser,
            "coefficients": {
                name: repr(getattr(coefficients, name)) for name in coefficients.names
            },
            "half_life_seconds": repr(retrieval.half_life_seconds),
            "lexical": retrieval.lexical,
        },
        "scope": fields["scope"],
        "terms": fields["terms"],
    }


def sealed_trace(fields: dict[str, Any]) -> tuple[RecallTrace, bytes]:
    """Return a trace under the id made from its content, and its canonical bytes."""
    data = canonical_of_checked(trace_record(fields))
    return trusted(RecallTrace, {"id": identifier("trace", data), **fields}), data


def trace_of_record(record: dict[str, Any]) -> RecallTrace:
    """Return the trace of a stored record; its id is made anew from the content.

    An erased trace has no query and no terms.
    """
    told = record["retrieval"]
    erased_id = record.get(MARK)
    coefficients = {name: float(value) for name, value in told["coefficients"].items()}
    fields = {
        **{name: value for name, value in record.items() if name != MARK},
        "at": datetime.fromisoformat(record["at"]),
        "terms": tuple(record["terms"]),
        "retrieval": Retrieval(
            analyser=told["analyser"],
            lexical=told["lexical"],
            coefficients=Coefficients(**coefficients),
            half_life_seconds=float(told["half_life_seconds"]),
        ),
        "hits": tuple(
            TraceHit(
                cell=hit["cell"],
                revision=hit["revision"],
                score=float(hit["score"]),
                parts={
                    name: float(hit["parts"][name]) for name in EVERY_PART if name in hit["parts"]
                },
            )
            for hit in record["hits"]
        ),
        "exclusions": tuple(
            Exclusion(cell=cell, reason=reason) for cell, reason in record["exclusions"]
        ),
    }
    if erased_id is not None:  # its id was made of what was asked, which is gone
        return trusted(RecallTrace, {"id": erased_id, **fields})
    return sealed_trace(fields)[0]

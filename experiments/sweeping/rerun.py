"""Re-running: a setting through the audited `Memory.recall`, which must rank as the sweep did."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from time import perf_counter

from cma import CmaError, Coefficients, Memory, Reason, Retrieval
from cma.orion.traces import Recollection
from experiments.bootstrap import Floats
from experiments.engines import retrieval
from experiments.failures import ExperimentError
from experiments.sweeping.choosing import named
from experiments.sweeping.features import Features, Held, How

Rankings = dict[str, list[str]]


def recalled(
    held: Sequence[Held],
    weights_of: Callable[[str], Floats],
    how: How,
    limit: int,
    advance: Callable[[int], None] = lambda _: None,
) -> tuple[Rankings, float]:
    """Return the cells recalled for every question, and the seconds that the recalls took.

    weights_of: the coefficients for each question, by its key.
    """
    rankings: Rankings = {}
    seconds = 0.0
    for conversation, ingested in held:
        asked = [(f"{conversation.id} {each.id}", each.text) for each in conversation.questions]
        settings = [setting(weights_of(key), how) for key, _ in asked]
        started = perf_counter()
        for (key, text), own in zip(asked, settings, strict=True):
            found = answered(ingested.memory, text, limit, own)
            rankings[key] = [hit.cell.id for hit in found.hits] if found else []
        seconds += perf_counter() - started
        advance(len(asked))
    return rankings, seconds


def answered(memory: Memory, text: str, limit: int, how: Retrieval) -> Recollection | None:
    """Return a recall; None for a question of nothing but stop words, which finds nothing."""
    try:
        return memory.recall(text, limit=limit, retrieval=how)
    except CmaError as error:
        if error.reason is not Reason.QUERY_EMPTY:
            raise
        return None


def always(weights: Floats) -> Callable[[str], Floats]:
    """Return the same coefficients for every question."""
    return lambda _: weights


def setting(weights: Floats, how: How) -> Retrieval:
    """Return coefficients as the settings of a recall."""
    coefficients = Coefficients.model_validate(named(weights))
    return retrieval(how.analyser, how.lexical, coefficients, how.half_life_seconds)


def check_equal(
    features: Features, weights_of: Callable[[str], Floats], rankings: Rankings, limit: int
) -> int:
    """Raise ExperimentError unless every question was ranked as the sweep ranks it.

    Returns how many questions were compared.
    """
    for place, key in enumerate(features.questions):
        own = weights_of(key)
        if features.ranking(place, own, limit) != rankings[key]:
            raise ExperimentError(
                f"{key}: Memory.recall ranks otherwise than the sweep under {named(own)}; "
                "one of the two is wrong, so nothing of this sweep is reported"
            )
    return len(features.questions)

"""The end of every search: exact scores in order, and the ranking that tells what was left out."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import repeat
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from cma.orion.entries import Entries
from cma.orion.query import Query
from cma.orion.ranking import Ranking, best
from cma.orion.scoring import Floats, total

__all__ = ["Ordered", "ordered", "ranking_of"]

Integers = NDArray[np.int64]


class Ordered(NamedTuple):
    """Cells in order of score, then id, with their scores and parts."""

    ordinals: Integers
    scores: Floats
    parts: dict[str, Floats]


def ordered(
    entries: Entries, query: Query, ordinals: Integers, parts: Mapping[str, Floats], count: int
) -> Ordered:
    """The `count` best of these cells. parts: the exact ones, a value for each of `ordinals`."""
    scores = total(query.weights, parts)
    ids, names = entries.ids, ordinals.tolist()
    places = best(scores, entries.prefixes[ordinals], lambda place: ids[names[place]], count)
    order = np.array(places, np.int64)
    return Ordered(
        ordinals[order], scores[order], {name: values[order] for name, values in parts.items()}
    )


def ranking_of(
    entries: Entries,
    query: Query,
    served: Ordered,
    left_out: Integers,
    *,
    seen: int,
    matching: int,
    inactive: int,
) -> Ranking:
    """Tell the served cells up to the limit, and what was left out.

    left_out: the inactive ones that are listed. seen: how many cells the viewer sees; matching and
    inactive: how many matched and are active, or are not.
    """
    count = query.limit + query.exclusion_limit
    hits, rest = slice(query.limit), slice(query.limit, count)
    names = entries.ids.names(np.concatenate([served.ordinals, left_out]))
    told, idle_told = names[: len(served.ordinals)], names[len(served.ordinals) :]
    return Ranking(
        ordinals=served.ordinals[hits],
        ids=tuple(told[hits]),
        scores=served.scores[hits],
        parts={part: values[hits] for part, values in served.parts.items()},
        exclusions=(
            *zip(idle_told, repeat("inactive")),
            *zip(told[rest], repeat("below_limit")),
        ),
        excluded={
            "other_scope": entries.cells - seen,
            "inactive": inactive,
            "below_limit": matching - len(told[hits]),
        },
    )

"""Whether the judged claims of a tree agree with themselves and with its runs.

The tables that claims were judged on are not in the tree, so verdicts cannot be made anew here;
what a verdict says of numbers that are there is held against them.
"""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from reproductions.claims import Claim, load_claims
from reproductions.judge import Verdict
from reproductions.staging.catalogue import CLAIMS, run_place

PASSES = {
    "exact": Verdict.REPRODUCED,
    "by_construction": Verdict.BY_CONSTRUCTION,
    "structural": Verdict.STRUCTURE,
}


def problems_of_claims(files: Mapping[str, Any]) -> Iterator[str]:
    """Yield what disagrees: the counts, the claims of this release, a pass and its numbers."""
    content = files.get(CLAIMS)
    if content is None:
        yield f"{CLAIMS}: not there or not in its form"
        return
    counts = Counter(row["verdict"] for row in content["claims"])
    if content["verdicts"] != {str(verdict): counts[verdict] for verdict in Verdict}:
        yield f"{CLAIMS}: counts other verdicts than it lists"
    known = _claims_of_this_release()
    if [row["id"] for row in content["claims"]] != list(known):
        yield f"{CLAIMS}: lists other claims than this release"
        return
    for row in content["claims"]:
        claim = known[row["id"]]
        told = (row["statement"], row["judge"], row["paper_value"], row["unit"])
        if told != (claim.statement, claim.judge, claim.value, claim.unit):
            yield f"{claim.id}: another statement, value or judge than in this release"
        elif row["verdict"] in PASSES.values():
            if PASSES.get(claim.judge) != row["verdict"]:
                yield f"{claim.id}: {row['verdict']} is no verdict of {claim.judge}"
            elif row["measured"] is None:
                yield f"{claim.id}: {row['verdict']} without anything measured"
            elif claim.figures and row["measured"] != claim.value:
                yield f"{claim.id}: passed with {row['measured']}, where {claim.value} is claimed"
            yield from _of_run(claim.id, claim.experiment, claim.figures, row["measured"], files)


@functools.cache
def _claims_of_this_release() -> Mapping[str, Claim]:
    return {claim.id: claim for claim in load_claims().claims}


def _of_run(
    name: str, experiment: str | None, keys: list[str], measured: Any, files: Mapping[str, Any]
) -> Iterator[str]:
    """Hold a measured sum against the figures of the run, where the tree has that run."""
    run = files.get(run_place(experiment or ""))
    if run is None or not keys:
        return
    values = [run["figures"].get(key, {}).get("value") for key in keys]
    if None in values or sum(values) != measured:
        yield f"{name}: measured {measured}, and the run says otherwise"

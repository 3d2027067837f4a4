"""Retrieval runs with other settings side by side: trial runs and the points of a sweep.

One row a run, whatever run speaks for its data set, and one of the repository's settings beside
them. Shown is recall@10 over all questions, labels
as published, of the hand-set score and of its lexical part alone, by analyser.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from reports.retrieval_values import HEADLINE, PEER, data_label, measured
from reports.tables import Table, table
from reproductions.results import Run

ANCHOR = "other-settings"
TITLE = "Runs with other settings"
ASKED = (
    "What do other coefficients, sizes or seeds change? One row is one retrieval run whose "
    "overrides go beyond the settings of the repository; none of them is a headline where a run "
    "without them exists."
)
EXAMPLE = (
    "python -m experiments -m experiment=retrieval data=generated "
    "retrieval.coefficients.link=0,0.1,0.3"
)
NOTES = (
    "Compare rows of the same data, n and sources: others differ by more than their settings.",
)
PLAIN = "none"
_HAND_SET, _OVERLAP = "hand_set", "overlap"


def build(runs: Iterable[Run]) -> Table | None:
    """Return the table of the runs with other settings, None where there is none."""
    finished = [run for run in runs if _is_finished(run)]
    wanted = [run for run in finished if run.machine.other_settings]
    if not wanted:
        return None
    plain = sorted((run for run in finished if not run.machine.other_settings),
                   key=lambda run: run.moment)  # fmt: skip
    beside = {run.data_set: run for run in plain}  # the newest of each data set
    wanted += [run for name, run in beside.items() if name in {each.data_set for each in wanted}]
    rows = [_row(run) for run in wanted]
    rows.sort(
        key=lambda row: (row["data"], row["overrides"] != PLAIN, row["overrides"], row["run"])
    )
    analysers = sorted({key for row in rows for key in row if " " in key})
    heads = {"run": "Run", "data": "Data", "overrides": "Overrides", "n": "n"}
    heads |= {key: key.replace("_", " ") for key in analysers}
    return table(
        f"retrieval-{ANCHOR}",
        "Recall@10 of runs with other settings",
        rows,
        heads | {"sources": "Sources"},
        caption="hand set: the whole hand-set score (our coefficients: the paper publishes none). "
        "overlap: the paper's lexical part alone, which the coefficients do not touch. "
        f"All questions, labels as published. {PLAIN}: the settings of the repository, to compare "
        "with.",
    )


def _is_finished(run: Run) -> bool:
    result = run.result
    return result.experiment == "retrieval" and result.status == "ok"


def _row(run: Run) -> dict[str, str]:
    names = {_OVERLAP: _OVERLAP, _hand_set_name(run): _HAND_SET}
    values = measured(run)
    shown = [
        value
        for value in values
        if value.labels == values[0].labels
        and (value.category, value.metric) == ("all", HEADLINE)
        and value.engine != PEER
        and value.scorer in names
    ]
    return {
        "run": run.result.run_id,
        "data": data_label(run.data_set),
        "overrides": " ".join(run.machine.other_settings) or PLAIN,
        "n": str(max((value.n for value in values if value.category == "all"), default=0)),
        "sources": run.result.source_digest[:8],
        **{f"{names[value.scorer]} {value.analyser}": value.share for value in shown},
    }


def _hand_set_name(run: Run) -> str:
    """Return what the run calls its hand-set row: `retrieval=lexical_only` has another name."""
    retrieval = run.config.get("retrieval")
    name = retrieval.get("name") if isinstance(retrieval, Mapping) else None
    return name if isinstance(name, str) else _HAND_SET

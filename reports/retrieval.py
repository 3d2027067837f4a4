"""The section of `retrieval`: recall of every scorer beside the outside peer, with intervals.

A row is a scorer, its analyser and its engine. The tables show all of them, the best first; plots
and the finding are of the labels as published. Shares carry their interval and their denominator.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from reports.plots import Plot, Series, category_dots, recall_curves
from reports.retrieval_values import (
    HEADLINE,
    PEER,
    Measured,
    data_label,
    measured,
    row_label,
    scorer_label,
)
from reports.tables import Table, table, with_interval
from reproductions.results import Run

METRICS = ("recall@1", "recall@5", "recall@10", "recall@20", "ndcg@10", "mrr")
OVERVIEW = "Mean over n questions with its interval; best recall@10 first."
HAND_SET = (
    " hand set: the whole hand-set score of overlap, confidence, importance, recency and link "
    "support (our coefficients: the paper publishes none); the other rows are lexical alone."
)
PAPER_ROW = ("overlap", "unicode", "cma")
HAND_SET_ROW = ("hand_set", "unicode", "cma")
_HEADS = {"ndcg@10": "nDCG@10", "mrr": "MRR"}
_ROW_HEADS = {"scorer": "Scorer", "analyser": "Analyser", "engine": "Engine"}


def build(run: Run, anchor: str) -> tuple[str, tuple[Table, ...], tuple[Plot, ...]]:
    """Return the finding, the tables and the plots."""
    values = measured(run)
    name = data_label(run.data_set)
    tables: list[Table] = []
    for labels in dict.fromkeys(value.labels for value in values):
        some = [value for value in values if value.labels == labels]
        tables.append(_overview(some, labels, anchor))
    published = [value for value in values if value.labels == values[0].labels]
    if any(value.category != "all" for value in published):
        tables.append(_by_category(published, anchor))
    differences = run.table("differences.csv") or []
    if differences:
        tables.append(_differences(differences, anchor))
    tables.append(_long(run, anchor))
    tables += _labels(run, anchor)
    return finding(published, differences, name), tuple(tables), _plots(published, anchor, name)


def finding(values: Sequence[Measured], differences: Sequence[Mapping[str, str]], name: str) -> str:
    """Return in words: the lexical part alone, the hand-set score, the peer's best row."""
    headline = [v for v in values if v.category == "all" and v.metric == HEADLINE]
    ours = next((v for v in headline if v.row == PAPER_ROW), None)
    peers = [v for v in headline if v.engine == PEER]
    if ours is None:
        return ""
    found = _percent(ours.value, ours.low, ours.high)
    text = (
        f"On {name} the paper's lexical part alone (overlap, unicode analyser) finds {found} of "
        "the evidence turns among ten recalled cells"
    )
    whole = next((v for v in headline if v.row == HAND_SET_ROW), None)
    if whole is not None:
        text += "; the whole hand-set score (our coefficients: the paper publishes none) finds "
        text += _percent(whole.value, whole.low, whole.high)
    if not peers:
        return f"{text}, over {ours.n:,} questions."
    best = max(peers, key=lambda v: v.value)
    text += f"; BM25 at its best ({best.analyser} analyser) finds "
    text += f"{_percent(best.value, best.low, best.high)}, each over {ours.n:,} questions."
    gap = next(
        (
            row
            for row in differences
            if (row.get("scorer"), row.get("analyser"), row.get("engine")) == PAPER_ROW
            and row.get("category") == "all"
            and row.get("labels") == ours.labels
            and row.get("metric") == HEADLINE
        ),
        None,
    )
    if gap:
        value, low, high = (100 * float(gap[key]) for key in ("value", "low", "high"))
        text += (
            f" Paired difference of overlap to BM25: {value:+.1f} points [{low:+.1f}, {high:+.1f}]."
        )
    return text


def _percent(value: float, low: float, high: float) -> str:
    return f"{100 * value:.1f}% [{100 * low:.1f}, {100 * high:.1f}]"


def _overview(values: Sequence[Measured], labels: str, anchor: str) -> Table:
    rows = []
    for row in _ranked(values):
        cells = {v.metric: v for v in values if v.row == row and v.category == "all"}
        rows.append(
            _names(row)
            | {metric: cells[metric].share for metric in METRICS if metric in cells}
            | {"n": max((cell.n for cell in cells.values()), default=0)}
        )
    return table(
        f"{anchor}-overview-{labels}",
        f"All questions, labels as {labels}",
        rows,
        _ROW_HEADS | {metric: _HEADS.get(metric, metric) for metric in METRICS} | {"n": "n"},
        caption=OVERVIEW + (HAND_SET if any(v.scorer == "hand_set" for v in values) else ""),
    )


def _by_category(values: Sequence[Measured], anchor: str) -> Table:
    some = [value for value in values if value.metric == HEADLINE]
    heads = {key: f"{label} (n={n})" for key, label, n in _categories(some)}
    rows = [
        _names(row) | {value.category: value.share for value in some if value.row == row}
        for row in _ranked(values)
    ]
    return table(
        f"{anchor}-category",
        f"Recall@10 by question category, labels as {values[0].labels}",
        rows,
        _ROW_HEADS | heads,
        caption="Mean over the questions of a category with its 95% interval.",
    )


def _differences(rows: Sequence[Mapping[str, str]], anchor: str) -> Table:
    shown = [
        {
            **_names((row["scorer"], row["analyser"], row["engine"])),
            "labels": row["labels"],
            "category": _category(row["category"]),
            "metric": _HEADS.get(row["metric"], row["metric"]),
            "gap": with_interval(float(row["value"]), float(row["low"]), float(row["high"])),
            "against": row.get("against", ""),
            "n": row["n"],
        }
        for row in rows
    ]
    return table(
        f"{anchor}-differences",
        "Each row less the peer's best row, paired",
        shown,
        {"labels": "Labels", "category": "Category", "metric": "Metric", **_ROW_HEADS,
         "gap": "Difference", "against": "Against", "n": "Questions"},
        caption="Same questions on both sides; an interval that excludes zero is a difference.",
    )  # fmt: skip


def _long(run: Run, anchor: str) -> Table:
    rows = run.table("recall.csv") or []
    heads = {
        "labels": "Labels", **_ROW_HEADS, "category": "Category", "metric": "Metric",
        "value": "Value", "low": "Low", "high": "High", "numerator": "Sum", "n": "Questions",
    }  # fmt: skip
    return table(
        f"{anchor}-recall", "Every value", rows, heads,
        caption="Value = sum over questions / questions.", folded=True,
    )  # fmt: skip


def _labels(run: Run, anchor: str) -> list[Table]:
    """Return the tables about the labels themselves."""
    found = []
    for stem, title, caption in (
        ("evidence_problems", "Evidence labels that needed reading",
         "Malformed, multiple, padded, empty or unresolvable labels, and what became of each."),
        ("label_corrections", "Labels that the audit corrects",
         "Applied: whether the correction could be read as turns of the conversation."),
    ):  # fmt: skip
        rows = run.table(f"{stem}.csv")
        if rows:
            heads = {key: _words(key) for key in rows[0] if key is not None}
            found.append(
                table(f"{anchor}-{stem.replace('_', '-')}", title, rows, heads, caption=caption,
                      folded=True)
            )  # fmt: skip
    return found


def _plots(values: Sequence[Measured], anchor: str, name: str) -> tuple[Plot, ...]:
    analysers = list(dict.fromkeys(value.analyser for value in values))
    curves = {
        analyser: _series(
            [v for v in values if v.analyser == analyser and v.category == "all"],
            lambda v: int(v.metric.removeprefix("recall@")),
        )
        for analyser in analysers
    }
    some = [value for value in values if value.metric == HEADLINE]
    dots = {
        analyser: _series([v for v in some if v.analyser == analyser], lambda v: v.category)
        for analyser in analysers
    }
    paper = "; ".join(f"{_category(v.category)} {v.share}" for v in some if v.row == PAPER_ROW)
    categories = [(key, f"{label}\nn = {n:,}") for key, label, n in _categories(some)]
    drawn = recall_curves(
        f"{anchor}-curves", curves, f"Recall at k on {name}",
        f"Curves of recall at 1, 5, 10 and 20 cells on {name}. Recall at 10 by row: "
        f"{_spoken(v for v in some if v.category == 'all')}.",
    )  # fmt: skip
    if len(categories) < 2:
        return (drawn,)
    return (
        drawn,
        category_dots(
            f"{anchor}-categories", dots, categories, f"Recall@10 by category on {name}",
            f"Dots with 95% intervals of recall at 10 by question category on {name}. "
            f"The paper's lexical part alone (overlap), unicode analyser: {paper}.",
        ),
    )  # fmt: skip


def _series(values: Iterable[Measured], key: Callable[[Measured], object]) -> list[Series]:
    points: dict[tuple[str, str, str], dict[object, tuple[float, float, float]]] = {}
    for value in values:
        if value.metric.startswith("recall@"):
            points.setdefault(value.row, {})[key(value)] = (value.value, value.low, value.high)
    # The peer comes last, so that its hollow dashes lie above the line that they should equal.
    ordered = sorted(points, key=lambda row: row[2] == PEER)
    return [Series(row[0], row[2], row_label(row), points[row]) for row in ordered]


def _spoken(values: Iterable[Measured]) -> str:
    ordered = sorted(values, key=lambda value: -value.value)
    return "; ".join(f"{row_label(v.row)}, {v.analyser}, {v.share}" for v in ordered)


def _ranked(values: Sequence[Measured]) -> list[tuple[str, str, str]]:
    headline = [v for v in values if v.category == "all" and v.metric == HEADLINE]
    return [v.row for v in sorted(headline, key=lambda v: (-v.value, v.row))]


def _names(row: tuple[str, str, str]) -> dict[str, object]:
    return {"scorer": scorer_label(row[0]), "analyser": row[1], "engine": row[2]}


def _categories(values: Sequence[Measured]) -> list[tuple[str, str, int]]:
    counts: dict[str, int] = {}
    for value in values:
        counts.setdefault(value.category, value.n)
    return [(key, _category(key), n) for key, n in counts.items()]


def _category(key: str) -> str:
    return key.replace("_", "-")


def _words(key: str) -> str:
    return key.replace("_", " ")

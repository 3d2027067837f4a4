"""The section of `coefficient_sweep`: what the best coefficients find, where, and how flat it is.

The headline is of conversations that the choice never saw; the value on all questions, which the
choice was made by, stands beside and is called in sample.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from reports.plots import Plot
from reports.retrieval_values import data_label
from reports.sweep_plots import curves, surface
from reports.tables import Table, table, with_interval
from reproductions.results import Run

Row = Mapping[str, str]
ROWS = {
    "tuned": "tuned, held out",
    "tuned_in_sample": "tuned, in sample",
    "hand_set": "hand set",
    "idf_overlap": "idf overlap",
    "bm25": "BM25",
}
BUDGET_RECALL = "budget_recall"
METRICS = {BUDGET_RECALL: "in the packet", "recall@1": "recall@1", "recall@5": "recall@5",
           "recall@10": "recall@10", "recall@20": "recall@20", "ndcg@10": "nDCG@10",
           "mrr": "MRR"}  # fmt: skip
PEER = "bm25s"
SEARCHED = "line_search"


def build(run: Run, anchor: str) -> tuple[str, tuple[Table, ...], tuple[Plot, ...]]:
    """Return the finding, the tables and the plots."""
    compared, folds = _rows(run, "recall"), _rows(run, "folds")
    name = data_label(run.data_set)
    best = _rows(run, "sweep")
    parts = _parts(best[0])
    tables = [_compared(compared, labels, anchor) for labels in _labels(compared)]
    tables += [_folds(folds, parts, anchor)]
    ablation = run.table("ablation.csv") or []
    if ablation:
        tables.append(_ablation(ablation, anchor))
    flatness = run.table("flatness.csv") or []
    if flatness:
        tables.append(_flatness(flatness, anchor))
    tables += [_near(_rows(run, "near"), _asked(run), anchor), _best(best, parts, anchor)]
    tables.append(_differences(_rows(run, "differences"), anchor))
    plots = []
    along = run.table("one_at_a_time.csv") or []
    if along:
        plots.append(curves(along, anchor, name))
    over = run.table("surface.csv") or []
    if over:
        plots.append(surface(over, folds[-1], anchor, name))
    return finding(run, compared, folds, name), tuple(tables), tuple(plots)


def finding(run: Run, compared: Sequence[Row], folds: Sequence[Row], name: str) -> str:
    """Return in words what is found on conversations left out, beside the peer, and how fast."""
    own = [each for each in compared if each["labels"] == compared[0]["labels"]]
    metric, among = _headline(run, own)
    headline = [each for each in own if (each["category"], each["metric"]) == ("all", metric)]
    tuned = next(each for each in headline if each["scorer"] == "tuned")
    sample = next(each for each in headline if each["scorer"] == "tuned_in_sample")
    peer = max(
        (each for each in headline if each["engine"] == PEER), key=lambda each: float(each["value"])
    )
    gap = next(
        each
        for each in _rows(run, "differences")
        if (each["scorer"], each["category"], each["metric"], each["labels"])
        == ("tuned", "all", metric, tuned["labels"])
    )
    text = (
        f"On {name}, coefficients chosen on the other conversations find {_percent(tuned)} of "
        f"the evidence turns {among}; BM25 at its best ({peer['analyser']} "
        f"analyser) finds {_percent(peer)}. Paired difference: {100 * float(gap['value']):+.1f} "
        f"points [{100 * float(gap['low']):+.1f}, {100 * float(gap['high']):+.1f}], over "
        f"{int(float(tuned['n'])):,} questions. Chosen on all of them, and so flattered: "
        f"{100 * float(sample['value']):.1f}%."
    )
    if len(folds) < 3 or folds[0]["fold"].startswith("questions"):
        text = text.replace("the other conversations", "the other questions")
    measured = run.machine.figures
    seconds = next((f for key, f in measured.items() if key.endswith("sweep.seconds")), None)
    times = next((f for key, f in measured.items() if key.endswith("sweep.speedup")), None)
    if seconds is not None and times is not None and seconds.number and times.number:
        text += (
            f" {int(seconds.n or 0):,} settings took {seconds.number:.1f} s, features included: "
            f"{times.number:,.0f} times faster than recalling every question under each "
            "(recalls timed on a sample of the settings)."
        )
    return text


def _headline(run: Run, rows: Sequence[Row]) -> tuple[str, str]:
    """Return the metric that is told of, and where evidence is then looked for, in words."""
    if all(each["metric"] != BUDGET_RECALL for each in rows):
        return "recall@10", "among ten recalled cells"
    budget = _asked(run).get("budget")
    size = f"{budget:,} tokens" if isinstance(budget, int) else "the budget"
    return BUDGET_RECALL, f"in a packet of {size}"


def _compared(rows: Sequence[Row], labels: str, anchor: str) -> Table:
    own = [each for each in rows if (each["labels"], each["category"]) == (labels, "all")]
    packed = any(each["metric"] == BUDGET_RECALL for each in own)
    metric = BUDGET_RECALL if packed else "recall@10"
    heads = {key: head for key, head in METRICS.items() if packed or key != BUDGET_RECALL}
    shown: dict[tuple[str, str, str], dict[str, object]] = {}
    order: dict[tuple[str, str, str], float] = {}
    for each in own:
        key = (each["scorer"], each["analyser"], each["engine"])
        line = shown.setdefault(
            key,
            {"scorer": ROWS.get(key[0], key[0].replace("_", " ")), "analyser": key[1],
             "engine": key[2], "n": each["n"]},
        )  # fmt: skip
        line[each["metric"]] = _share(each)
        if each["metric"] == metric:
            order[key] = float(each["value"])
    return table(
        f"{anchor}-compared-{labels}",
        f"All questions, labels as {labels}",
        [shown[key] for key in sorted(shown, key=lambda key: (-order.get(key, 0.0), key))],
        {"scorer": "Scorer", "analyser": "Analyser", "engine": "Engine", **heads, "n": "n"},
        caption=f"Mean with its interval; best {METRICS[metric]} first. Held out: each "
        "conversation with coefficients chosen on the others. In sample: chosen on all questions.",
    )


def _folds(rows: Sequence[Row], parts: Sequence[str], anchor: str) -> Table:
    objective = rows[0]["objective"]
    heads = {"fold": "Left out", "n": "n"}
    heads |= {part: part for part in parts}
    heads |= {"chosen_at": "on the others", "held_out": "held out", "optimum": "in sample",
              "lexical_alone": "lexical alone"}  # fmt: skip
    if "bm25" in rows[0]:
        heads["bm25"] = "BM25"
    return table(
        f"{anchor}-folds", f"Each left out in turn: {objective}", rows, heads,
        caption="Coefficients chosen on the others, their value there, and on what was left out. "
        "The last row: chosen on all questions, its held-out value that of all rows above.",
    )  # fmt: skip


def _ablation(rows: Sequence[Row], anchor: str) -> Table:
    shown = [
        {
            "part": each["part"],
            "without": each["without"],
            "gain": with_interval(*(float(each[key]) for key in ("gain", "low", "high"))),
            "span": f"{float(each['least']):.4f} to {float(each['most']):.4f}",
            "n": each["n"],
        }
        for each in rows
    ]
    return table(
        f"{anchor}-ablation", f"What each part adds, held out: {rows[0]['objective']}", shown,
        {"part": "Part", "without": "Without it", "gain": "It adds", "span": "Coefficients chosen",
         "n": "n"},
        caption="The chosen coefficients less the same with this one at 0, on what was left out; "
        "the others are not chosen anew. An interval that includes zero: no gain is shown.",
    )  # fmt: skip


def _flatness(rows: Sequence[Row], anchor: str) -> Table:
    shown: dict[str, dict[str, object]] = {}
    heads = {"part": "Part", "coefficient": "Best"}
    for each in rows:
        points = f"{100 * float(each['within']):g}"
        line = shown.setdefault(
            each["part"], {"part": each["part"], "coefficient": each["coefficient"]}
        )
        line[points] = f"{float(each['low']):.4f} to {float(each['high']):.4f}"
        heads[points] = f"within {points} points"
    return table(
        f"{anchor}-flatness", f"How far one coefficient can go: {rows[0]['objective']}",
        list(shown.values()), heads,
        caption="The span around the optimum, exact, in which the objective stays so near its best "
        "while the other coefficients are held.",
    )  # fmt: skip


def _near(rows: Sequence[Row], asked: Mapping[str, Any], anchor: str) -> Table:
    caption = "Settings of the design, all questions"
    caption += "; line searches go on from the best." if asked.get("design") == SEARCHED else "."
    shown: list[dict[str, Any]] = [
        dict(each) | {"within": f"{100 * float(each['within']):g} points"} for each in rows
    ]
    return table(
        f"{anchor}-near", f"How many settings are near the best: {rows[0]['objective']}", shown,
        {"within": "Within", "settings": "Settings", "share": "Share of all", "n": "Settings tried",
         "best": "Best", "median": "Median", "worst": "Worst"},
        caption=caption,
    )  # fmt: skip


def _best(rows: Sequence[Row], parts: Sequence[str], anchor: str) -> Table:
    heads = {"place": "Place", "setting": "Setting"} | {part: part for part in parts}
    return table(
        f"{anchor}-best", f"The best {len(rows):,} settings of the design", rows,
        heads | {key: head for key, head in METRICS.items() if key in rows[0]},
        caption="On all questions.", folded=True,
    )  # fmt: skip


def _differences(rows: Sequence[Row], anchor: str) -> Table:
    shown = [
        {
            "labels": each["labels"],
            "category": each["category"].replace("_", "-"),
            "scorer": ROWS.get(each["scorer"], each["scorer"].replace("_", " ")),
            "analyser": each["analyser"],
            "metric": METRICS.get(each["metric"], each["metric"]),
            "gap": _share(each),
            "against": each["against"],
            "n": each["n"],
        }
        for each in rows
        if each["engine"] != PEER
    ]
    return table(
        f"{anchor}-differences", "Less the peer's best row, paired", shown,
        {"labels": "Labels", "category": "Category", "scorer": "Scorer", "analyser": "Analyser",
         "metric": "Metric", "gap": "Difference", "against": "Against", "n": "n"},
        caption="Same questions on both sides; an interval that excludes zero is a difference.",
        folded=True,
    )  # fmt: skip


def _parts(row: Row) -> list[str]:
    """Return the parts of a score, in their order: the columns between two known ones."""
    names = [key for key in row if key is not None]
    return [key for key in names[2:] if key not in METRICS]


def _asked(run: Run) -> Mapping[str, Any]:
    """Return the settings of the sweep; a run without its configuration has none."""
    found = run.config.get("sweep")
    return found if isinstance(found, Mapping) else {}


def _labels(rows: Sequence[Row]) -> list[str]:
    return list(dict.fromkeys(each["labels"] for each in rows))


def _rows(run: Run, stem: str) -> list[dict[str, str]]:
    return run.needed(f"{stem}.csv", "a sweep")


def _share(row: Row) -> str:
    return with_interval(float(row["value"]), float(row["low"]), float(row["high"]))


def _percent(row: Row) -> str:
    value, low, high = (100 * float(row[key]) for key in ("value", "low", "high"))
    return f"{value:.1f}% [{low:.1f}, {high:.1f}]"

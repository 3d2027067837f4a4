"""The tables and figures of a sweep: settings, folds, curves, ablation, surface and flatness."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from cma.orion.scoring import EVERY_PART
from experiments.bootstrap import Bootstrap, Floats, Interval
from experiments.comparison import Comparison, Judged, best_of
from experiments.data.conversations import Corpus
from experiments.engines import Row
from experiments.evaluation import METRICS
from experiments.result import Figure, Result
from experiments.settings import Settings
from experiments.sweeping.choosing import held_out, means, named, sums
from experiments.sweeping.designs import lexical_alone, rounded
from experiments.sweeping.lines import lines
from experiments.sweeping.notes import notes
from experiments.sweeping.objectives import Objective, objective
from experiments.sweeping.packets import PEER, Packets

if TYPE_CHECKING:
    from experiments.sweeping.study import Speed, Swept

BEST = 1_000
CURVE_POINTS = 41
SURFACE_POINTS = 31
NEAR = (0.005, 0.01, 0.02)
"""How far below the best value a setting still counts as near it."""
HEADLINES = ("recall@10", "ndcg@10")
Rows = list[dict[str, Any]]


def result(
    settings: Settings,
    corpus: Corpus,
    report: Comparison,
    swept: Swept,
    rankings: Mapping[Row, Mapping[str, list[str]]],
    speed: Speed | None,
    packets: Packets | None = None,
) -> Result:
    """Return everything of a sweep in the form that is written."""
    judged = [Judged(row, report.judge.values(found)) for row, found in rankings.items()]
    compared, differences = report.recall(judged), report.differences(judged)
    if packets is not None:
        compared += packets.recall(report, corpus.name, "published")
        differences += packets.differences(report, corpus.name, "published")
    if corpus.corrected_labels:
        corrected = Comparison(settings, corpus, "corrected", lambda each: each.corrected)
        again = [Judged(row, corrected.judge.values(found)) for row, found in rankings.items()]
        compared += corrected.recall(again)
        differences += corrected.differences(again)
        if packets is not None:
            compared += packets.recall(corrected, corpus.name, "corrected")
            differences += packets.differences(corrected, corpus.name, "corrected")
    peer = _peer(report, swept, judged, packets)
    curves = _one_at_a_time(swept)
    made: dict[str, Rows] = {
        "sweep": _best(settings, swept),
        "folds": _folds(corpus, swept, peer),
        "one_at_a_time": curves,
        "ablation": _ablation(report, swept),
        "surface": _surface(swept, curves),
        "flatness": _flatness(swept),
        "near": _near(swept),
        "recall": compared,
        "differences": differences,
    }
    prefix = "" if corpus.name == "locomo" else f"{corpus.name}."
    figures = _figures(corpus.name, report, judged)
    if packets is not None and peer is not None:
        tuned = packets.values(report)[judged[0].row]
        figures |= _beside(f"{corpus.name}.{swept.objective.name}", report, tuned, peer)
    figures |= {
        f"{prefix}sweep.settings": Figure(
            len(swept.weights), "coefficient settings", len(swept.features.questions)
        )
    }
    measured = {}
    if speed is not None:
        measured = {
            f"{prefix}sweep.seconds": Figure(speed.sweep, "s", speed.settings),
            f"{prefix}sweep.speedup": Figure(
                speed.recalls * speed.settings / speed.sweep, "times", speed.settings
            ),
        }
    return Result(
        figures=figures,
        tables={name: pd.DataFrame(lines) for name, lines in made.items() if lines},
        data=corpus.records,
        notes=(*corpus.notes, report.note(), *notes(settings, corpus, swept)),
        measured=measured,
    )


def _best(settings: Settings, swept: Swept) -> Rows:
    """Return the best settings of the design in order, with every other metric of them."""
    found = means(swept.features, swept.sums, None)
    order = np.argsort(-found, kind="stable")[:BEST]
    best = swept.weights[order]
    columns = {}
    others = [objective(name, settings.evaluation.limit) for name in METRICS]
    for aim in (swept.objective, *(each for each in others if each.name != swept.objective.name)):
        own = sums(swept.features, best, aim, threads=settings.sweep.threads)
        columns[aim.name] = means(swept.features, own, None)
    return [
        {"place": place + 1, "setting": int(setting)}
        | named(swept.weights[setting])
        | {name: float(values[place]) for name, values in columns.items()}
        for place, setting in enumerate(order)
    ]


def _folds(corpus: Corpus, swept: Swept, peer: Floats | None) -> Rows:
    """Return for each fold what was chosen without it, and what that is worth on it."""
    features, aim = swept.features, swept.objective
    own = {
        "held_out": held_out(features, swept.chosen, aim),
        "optimum": _values(swept, swept.optimum.weights),
        "lexical_alone": _values(swept, lexical_alone()),
        **({"bm25": peer} if peer is not None else {}),
    }
    edges = features.fold_starts.tolist()
    found: Rows = []
    for fold, choice in enumerate(swept.chosen):
        some = slice(edges[fold], edges[fold + 1])
        name = features.questions[edges[fold]].split(" ")[0]
        if len(corpus.conversations) == 1:
            name = f"questions {edges[fold] + 1} to {edges[fold + 1]}"
        found.append(
            {"fold": name, "n": edges[fold + 1] - edges[fold]}
            | named(choice.weights)
            | {"objective": aim.name, "chosen_at": choice.value}
            | {key: float(values[some].mean()) for key, values in own.items()}
        )
    everything = {key: float(values.mean()) for key, values in own.items()}
    whole = {"fold": "all", "n": len(features.questions)} | named(swept.optimum.weights)
    whole |= {"objective": aim.name, "chosen_at": swept.optimum.value}
    return [*found, whole | everything]


def _one_at_a_time(swept: Swept) -> Rows:
    """Return the objective along each coefficient, the others at the optimum."""
    found: Rows = []
    for part in swept.space.varied:
        at = swept.optimum.weights[part]
        span = np.linspace(swept.space.low, swept.space.high, CURVE_POINTS)
        values = np.unique(np.append(rounded(span), at))
        weights = np.tile(swept.optimum.weights, (len(values), 1))
        weights[:, part] = values
        for value, mean in zip(values, _means(swept, weights), strict=True):
            found.append(
                {"part": EVERY_PART[part], "coefficient": float(value), "value": float(mean)}
                | {"objective": swept.objective.name, "optimum": bool(value == at)}
            )
    return found


def _ablation(report: Comparison, swept: Swept) -> Rows:
    """Return what each part adds on held-out folds: the choice less the same without the part."""
    features, aim = swept.features, swept.objective
    whole = held_out(features, swept.chosen, aim)
    found: Rows = []
    for part in swept.space.varied:
        without = np.empty(len(whole))
        for fold, choice in enumerate(swept.chosen):
            weights = choice.weights.copy()
            weights[part] = 0.0
            some = slice(features.fold_starts[fold], features.fold_starts[fold + 1])
            without[some] = _values(swept, weights)[some]
        [gain] = _bootstrap(report).intervals((whole - without)[:, np.newaxis])
        chosen = [choice.weights[part] for choice in swept.chosen]
        found.append(
            {"part": EVERY_PART[part], "objective": aim.name, "without": float(without.mean())}
            | {"gain": gain.mean, "low": gain.low, "high": gain.high, "n": len(whole)}
            | {"least": float(min(chosen)), "most": float(max(chosen))}
        )
    return found


def _surface(swept: Swept, curves: Rows) -> Rows:
    """Return the objective over the two coefficients that move it most, the others held."""
    moved: dict[str, list[float]] = {}
    for line in curves:
        moved.setdefault(line["part"], []).append(line["value"])
    names = sorted(moved, key=lambda name: min(moved[name]) - max(moved[name]))[:2]
    if len(names) < 2:
        return []
    span = rounded(np.linspace(swept.space.low, swept.space.high, SURFACE_POINTS))
    across, up = (grid.ravel() for grid in np.meshgrid(span, span))
    weights = np.tile(swept.optimum.weights, (len(across), 1))
    weights[:, EVERY_PART.index(names[0])] = across
    weights[:, EVERY_PART.index(names[1])] = up
    return [
        {"x_part": names[0], "y_part": names[1], "x": x, "y": y, "value": float(mean)}
        for x, y, mean in zip(across.tolist(), up.tolist(), _means(swept, weights), strict=True)
    ]


def _flatness(swept: Swept) -> Rows:
    """Return how far each coefficient can go alone before the objective falls by so much."""
    if not isinstance(swept.objective, Objective):
        return []  # exact along ranks alone
    features, best = swept.features, swept.optimum
    counted = np.ones(len(features.questions), np.bool_)
    span = (swept.space.low, swept.space.high)
    found: Rows = []
    for part in swept.space.varied:
        at = float(best.weights[part])
        own = lines(features, best.weights, part, span, swept.objective, counted)
        line = next((each for each in own if each.edges[0] <= at <= each.edges[-1]), None)
        for within in NEAR:
            # Where the optimum leaves a part out, nothing needs to be on its line.
            low, high = (at, at) if line is None else line.around(at, best.value - within)
            found.append(
                {"part": EVERY_PART[part], "coefficient": at, "within": within}
                | {"low": min(low, at), "high": max(high, at), "objective": swept.objective.name}
            )
    return found


def _near(swept: Swept) -> Rows:
    """Return what share of the design is near its best setting."""
    found = means(swept.features, swept.sums, None)
    return [
        {"within": within, "settings": int((found >= found.max() - within).sum())}
        | {"share": float((found >= found.max() - within).mean()), "n": len(found)}
        | {"best": float(found.max()), "median": float(np.median(found))}
        | {"worst": float(found.min()), "objective": swept.objective.name}
        for within in NEAR
    ]


def _figures(data: str, report: Comparison, judged: list[Judged]) -> dict[str, Figure]:
    found: dict[str, Figure] = {}
    for metric in HEADLINES:
        key, place = f"{data}.{metric.replace('@', '')}", METRICS.index(metric)
        peer = best_of(judged, engine=PEER, metric=metric)
        if peer is not None:
            found |= _beside(key, report, judged[0].values[:, place], peer.values[:, place])
    return found


def _beside(key: str, report: Comparison, tuned: Floats, peer: Floats) -> dict[str, Figure]:
    own, gap = _bootstrap(report).intervals(np.column_stack([tuned, tuned - peer]))
    return {
        f"{key}.tuned": _figure(own, len(tuned), float(peer.mean())),
        f"{key}.tuned_minus_bm25": _figure(gap, len(tuned)),
    }


def _peer(
    report: Comparison, swept: Swept, judged: list[Judged], packets: Packets | None
) -> Floats | None:
    """Return the objective's values of the peer's best row."""
    if packets is not None:
        rival = packets.peer(report)
        return None if rival is None else rival[1]
    best = best_of(judged, engine=PEER, metric=swept.objective.name)
    return None if best is None else best.values[:, METRICS.index(swept.objective.name)]


def _figure(found: Interval, n: int, control: float | None = None) -> Figure:
    return Figure(found.mean, "share", n, (found.low, found.high), control)


def _bootstrap(report: Comparison) -> Bootstrap:
    return report.bootstraps["all"]


def _values(swept: Swept, weights: Floats) -> Floats:
    return swept.objective.measured(swept.features, weights[np.newaxis])[:, 0]


def _means(swept: Swept, weights: Floats) -> Floats:
    return means(swept.features, sums(swept.features, weights, swept.objective, threads=0), None)

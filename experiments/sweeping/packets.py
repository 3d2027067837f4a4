"""Packets of a sweep: what each row's hits become under the budget, judged by evidence turns.

What was chosen is built by `Memory.packet` from an audited recall and must hold what the sweep let
in; other rows' hits, a peer's too, are packed by the same sum of records.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from experiments.bootstrap import Floats
from experiments.comparison import Comparison
from experiments.engines import Row
from experiments.failures import ExperimentError
from experiments.sweeping.budget import NAME, BudgetRecall
from experiments.sweeping.choosing import named
from experiments.sweeping.features import Features, Held, How
from experiments.sweeping.rerun import Rankings, answered, setting

PEER = "bm25s"
Turns = Mapping[str, frozenset[str]]


@dataclass(frozen=True, slots=True)
class Packets:
    """The turns in each row's packets, by question."""

    turns: Mapping[Row, Turns]

    def values(self, report: Comparison) -> dict[Row, Floats]:
        """Return for each row the share of each question's evidence that its packet holds."""
        return {row: shares(report.evidence, turns) for row, turns in self.turns.items()}

    def peer(self, report: Comparison) -> tuple[Row, Floats] | None:
        """Return the peer's best row, None without one."""
        rivals = [each for each in self.values(report).items() if each[0].engine == PEER]
        return max(rivals, key=lambda each: float(each[1].mean()), default=None)

    def recall(self, report: Comparison, data: str, labels: str) -> list[dict[str, Any]]:
        """One line for each row and category."""
        return [
            line
            for row, values in self.values(report).items()
            for line in _lines(report, row, values, data, labels, {}, counted=True)
        ]

    def differences(self, report: Comparison, data: str, labels: str) -> list[dict[str, Any]]:
        """Each row less the peer's best, on the same questions and the same resamples."""
        best = self.peer(report)
        if best is None:
            return []
        against = {"against": best[0].name}
        return [
            line
            for row, values in self.values(report).items()
            if row is not best[0]
            for line in _lines(report, row, values - best[1], data, labels, against, counted=False)
        ]


def packets(
    rankings: Mapping[Row, Rankings], turn_of: Mapping[str, str], aim: BudgetRecall
) -> Packets:
    """Return what each row's rankings become; `turn_of` names the turn of each cell."""
    return Packets(
        {
            row: {
                key: frozenset(turn_of[cell] for cell in aim.served(cells).cells)
                for key, cells in found.items()
            }
            for row, found in rankings.items()
        }
    )


def shares(evidence: Mapping[str, Sequence[str]], turns: Turns) -> Floats:
    """Return the share of each question's evidence turns that is among its turns."""
    return np.array(
        [len(turns[key] & set(wanted)) / len(set(wanted)) for key, wanted in evidence.items()]
    )


def check_packets(
    features: Features,
    held: Sequence[Held],
    weights_of: Callable[[str], Floats],
    how: How,
    aim: BudgetRecall,
    advance: Callable[[int], None] = lambda _: None,
) -> Rankings:
    """Raise ExperimentError unless `Memory.packet` serves, for every question, what the sweep says.

    Compared are the packet's cells and tokens with the sum of records over the sweep's own ranking,
    and the share of evidence in it with the value that the sweep gave the setting. Returns the
    cells recalled, by question.
    """
    place_of = {key: place for place, key in enumerate(features.questions)}
    valued: dict[bytes, Floats] = {}
    rankings: Rankings = {}
    for conversation, ingested in held:
        for question in conversation.questions:
            key = f"{conversation.id} {question.id}"
            own = weights_of(key)
            found = answered(ingested.memory, question.text, aim.hits, setting(own, how))
            rankings[key] = [hit.cell.id for hit in found.hits] if found else []
            advance(1)
            if key not in place_of:
                continue
            served: tuple[tuple[str, ...], int] = ((), 0)
            if found:
                packet = ingested.memory.packet(found, budget=aim.budget)
                served = (tuple(cell.id for cell in packet.cells), packet.used)
            if own.tobytes() not in valued:
                valued[own.tobytes()] = aim.measured(features, own[np.newaxis])[:, 0]
            place = place_of[key]
            summed = aim.served(features.ranking(place, own, aim.hits))
            share = _share(features, place, served[0])
            if served != (summed.cells, summed.tokens) or share != valued[own.tobytes()][place]:
                raise ExperimentError(
                    f"{key}: Memory.packet serves otherwise than the sweep under {named(own)}; "
                    "one of the two is wrong, so nothing of this sweep is reported"
                )
    return rankings


def _share(features: Features, question: int, cells: Sequence[str]) -> float:
    wanted = features.evidence[slice(*features.evidence_starts[question : question + 2])].tolist()
    found = [place for place in wanted if place >= 0 and features.cells[place] in cells]
    return len(found) / len(wanted)


def _lines(
    report: Comparison,
    row: Row,
    values: Floats,
    data: str,
    labels: str,
    about: Mapping[str, Any],
    *,
    counted: bool,
) -> list[dict[str, Any]]:
    found = []
    for category, members in report.members.items():
        [interval] = report.bootstraps[category].intervals(values[members][:, np.newaxis])
        found.append(
            {"data": data, "labels": labels, "scorer": row.scorer, "analyser": row.analyser}
            | {"engine": row.engine, **about, "category": category, "metric": NAME}
            | {"value": interval.mean, "low": interval.low, "high": interval.high}
            | {"n": len(members)}
            | ({"numerator": float(values[members].sum())} if counted else {})
        )
    return found

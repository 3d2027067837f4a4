"""The values of a version ladder: read from a run, and told in words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from reports.tables import with_interval
from reproductions.inputs import CorruptInputError, finite
from reproductions.results import Run

NAMES = {"orion": "Orion", "trifid": "+ Trifid", "lagoon": "+ Lagoon", "rosette": "+ Rosette"}
HEADLINE = 1024
"""Tokens of the budget that is told in full; the others are told by their ends."""


@dataclass(frozen=True)
class Value:
    """One value of either long table; of `ladder.csv` where `against` is empty."""

    rung: str
    packing: str
    against: str
    against_packing: str
    budget: int
    category: str
    value: float
    low: float
    high: float
    n: int

    @property
    def share(self) -> str:
        """The value with its interval."""
        return with_interval(self.value, self.low, self.high)


def finding(values: Sequence[Value], gains: Sequence[Value], name: str) -> str:
    """Return in words what the first rung serves, what each further one adds, and at each budget.

    Each version is told at one budget; at the others the first rung stands against the last.
    """
    ladder = [each for each in ladder_of(values) if each.category == "all" and each.budget]
    budgets = sorted({each.budget for each in ladder})
    if not budgets:
        return ""
    budget = HEADLINE if HEADLINE in budgets else budgets[-1]
    at = {(each.rung, each.budget): each for each in ladder}
    if not {("orion", budget), ("rosette", budget)} <= at.keys():
        return ""
    first, last = at["orion", budget], at["rosette", budget]
    alone = f"On {name}, within {budget:,} tokens, Orion alone serves {_percent(first)}"
    told = [f"{alone} of the evidence turns"]
    told += [
        f"{NAMES[each.rung].removeprefix('+ ')} {_verb(each)} {100 * each.value:+.1f} points "
        f"[{100 * each.low:+.1f}, {100 * each.high:+.1f}]"
        for each in ladder_of(gains)
        if (each.category, each.budget) == ("all", budget)
    ]
    told.append(f"so that packets serve {_percent(last)}, over {last.n:,} questions")
    others = [
        f"{100 * at['orion', each].value:.1f}% and {100 * at['rosette', each].value:.1f}% within "
        f"{each:,}"
        for each in budgets
        if each != budget and {("orion", each), ("rosette", each)} <= at.keys()
    ]
    rest = f" Orion alone and packets at the other budgets: {'; '.join(others)}." if others else ""
    return f"{'; '.join(told)}.{rest}"


def ladder_of(values: Sequence[Value]) -> Sequence[Value]:
    """Return the values of the ladder proper: each rung as it hands over."""
    own = {"orion": "text", "trifid": "text", "lagoon": "text", "rosette": "packet"}
    return [
        each
        for each in values
        if own[each.rung] == each.packing
        and (not each.against or own[each.against] == each.against_packing)
        and (each.rung, each.against) != ("rosette", "trifid")
    ]


def _verb(gain: Value) -> str:
    if gain.low > 0:
        return "adds"
    return "costs" if gain.high < 0 else "makes no clear difference,"


def _percent(value: Value) -> str:
    return f"{100 * value.value:.1f}% [{100 * value.low:.1f}, {100 * value.high:.1f}]"


def values_of(run: Run, stem: str) -> list[Value]:
    """Return the values of one of a run's long tables; refuse what is none."""
    rows = run.needed(f"{stem}.csv", "a version ladder")
    found = []
    for row in rows:
        value, low, high = (float(row[key]) for key in ("value", "low", "high"))
        if any(finite(number) is None for number in (value, low, high)):
            raise CorruptInputError(f"{run.folder}/{stem}.csv: a value is no finite number")
        found.append(
            Value(
                rung=row["rung"],
                packing=row["packing"],
                against=row.get("against", ""),
                against_packing=row.get("against_packing", ""),
                budget=int(row["budget"]),
                category=row["category"],
                value=value,
                low=low,
                high=high,
                n=int(row["n"]),
            )
        )
    strange = {each.rung for each in found} - NAMES.keys()
    if strange:
        raise CorruptInputError(f"{run.folder}/{stem}.csv: no such version: {', '.join(strange)}")
    return found

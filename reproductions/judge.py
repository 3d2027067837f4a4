"""The one comparator: a claim and the runs that speak, to a verdict.

Rules kept here:

* there are five verdicts and no other;
* a missing run, figure or contract is "not run here", never a pass; so is a run of settings other
  than the repository's, or of sources other than those of the newest run;
* a failed contract, a failed run, a stale run, or a value that is no finite number is "failed";
* comparison is exact: there is no tolerance to widen;
* what can be seen to fail is failed, even where other evidence of the same claim is still missing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from pydantic import BaseModel, ConfigDict

from reproductions.claims import TALLY, Claim
from reproductions.inputs import finite
from reproductions.results import Choice, Figure, Run, of_experiment

EXPERIMENT_CONFIGS = Path(__file__).resolve().parents[1] / "configs" / "experiment"

Choices = Mapping[tuple[str, str], Choice]


class Verdict(StrEnum):
    """How a claim stands."""

    REPRODUCED = "reproduced"
    BY_CONSTRUCTION = "reproduced by construction"
    STRUCTURE = "structure reproduced"
    NOT_RUN = "not run here"
    FAILED = "failed"


_PASSES = {
    "exact": Verdict.REPRODUCED,
    "by_construction": Verdict.BY_CONSTRUCTION,
    "structural": Verdict.STRUCTURE,
}


class Judgement(BaseModel):
    """One row of the claim table."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    id: str
    statement: str
    section: str
    judge: str
    paper_value: bool | int | float | str | None
    unit: str = ""
    measured: int | float | str | None
    numerator: int | float | None = None
    denominator: int | float | None = None
    verdict: Verdict
    why: str
    run: str | None
    device: str | None


@dataclass
class _Evidence:
    """What was seen for one claim while its parts are looked at."""

    failed: list[str]
    missing: list[str]
    shown: list[str]
    runs: list[Run]
    numbers: list[int | float]
    counted: list[int | float]


def judge_all(claims: Sequence[Claim], choices: Choices) -> list[Judgement]:
    """Return a judgement for every claim, in order."""
    return [judge(claim, choices) for claim in claims]


def judge(claim: Claim, choices: Choices) -> Judgement:
    """Return how `claim` stands against the runs that speak."""
    seen = _Evidence([], [], [], [], [], [])
    keys = [*claim.figures, *claim.holds]
    figures = _figures(claim, keys, choices, seen)
    numbers = _usable(figures, seen)
    if claim.figures and len(numbers) == len(claim.figures):
        _compare(claim, numbers, figures, seen)
    elif any(figure.number is not None for figure in figures.values()):
        _partial(claim, figures, seen)
    for key, rule in claim.holds.items():
        if key in numbers:
            _hold(key, rule, figures[key], seen)
    passed = _contracts(claim, choices, seen) if claim.contracts else None
    verdict, why = _verdict(claim, seen)
    measured, numerator, denominator = _measured(claim, seen, passed)
    run = seen.runs[0] if seen.runs else None
    return Judgement(
        id=claim.id,
        statement=claim.statement,
        section=claim.section,
        judge=claim.judge,
        paper_value=claim.value,
        unit=claim.unit,
        measured=measured,
        numerator=numerator,
        denominator=denominator,
        verdict=verdict,
        why=why,
        run=run.result.run_id if run else None,
        device=run.machine.device if run else None,
    )


def _speaking(experiment: str, choices: Choices, seen: _Evidence) -> list[Run]:
    """Return the runs that speak for an experiment; note the reason where there is none."""
    runs = []
    found = False
    for choice in of_experiment(choices, experiment):
        found = True
        if choice.run is None and choice.failed is not None:
            seen.failed.append(f"run {choice.failed.result.run_id} of {experiment} failed")
            seen.runs.append(choice.failed)
        elif choice.stale and choice.failed is not None:
            seen.failed.append(
                f"run {choice.failed.result.run_id} of {experiment} failed after the sources "
                f"changed; repair, then: python -m experiments experiment={experiment} resume=false"
            )
            seen.runs.append(choice.failed)
        elif choice.run is not None and choice.outdated:
            seen.missing.append(
                f"run {choice.run.result.run_id} of {experiment} is of other sources than the "
                f"newest run; run: python -m experiments experiment={experiment}"
            )
        elif choice.run is not None and not choice.run.machine.as_configured:
            other = " ".join(choice.run.machine.other_settings)
            seen.missing.append(
                f"run {choice.run.result.run_id} of {experiment} has other settings ({other}); "
                f"run: python -m experiments experiment={experiment}"
            )
        elif choice.run is not None:
            runs.append(choice.run)
    if not found:
        known = (EXPERIMENT_CONFIGS / f"{experiment}.yaml").is_file()
        seen.missing.append(
            f"no run of {experiment} yet; run: python -m experiments experiment={experiment}"
            if known
            else "no experiment yet"
        )
    return runs


def _figures(
    claim: Claim, keys: Sequence[str], choices: Choices, seen: _Evidence
) -> dict[str, Figure]:
    """Return the wanted figures that some speaking run has, the newest run's first."""
    if not keys or claim.experiment is None:
        return {}
    figures: dict[str, Figure] = {}
    runs = sorted(_speaking(claim.experiment, choices, seen), key=lambda run: run.moment)
    for key in keys:
        holders = [run for run in runs if key in run.result.figures]
        if holders:
            figures[key] = holders[-1].result.figures[key]
            if holders[-1] not in seen.runs:
                seen.runs.append(holders[-1])
        elif runs:
            seen.missing.append(f"no experiment yet writes {key}")
    return figures


def _usable(figures: Mapping[str, Figure], seen: _Evidence) -> dict[str, int | float]:
    numbers: dict[str, int | float] = {}
    for key, figure in figures.items():
        number = figure.number
        if number is None:
            seen.failed.append(f"{key} is {figure.value!r}, no finite number")
        else:
            numbers[key] = number
            seen.shown.append(f"{key} = {number:g}")
    return numbers


def _compare(
    claim: Claim,
    numbers: Mapping[str, int | float],
    figures: Mapping[str, Figure],
    seen: _Evidence,
) -> None:
    """Compare the sum of the figures with the paper's number, and their denominators with `of`."""
    total = sum(numbers.values())
    seen.numbers.append(total)
    if total != claim.value:
        seen.failed.append(f"measured {total:g}, the paper says {claim.value}")
    if claim.of is None:
        return
    counts = [count for key in numbers if (count := finite(figures[key].n)) is not None]
    if len(counts) < len(numbers):
        seen.failed.append("the figure has no usable denominator")
        return
    seen.counted.append(sum(counts))
    if sum(counts) != claim.of:
        seen.failed.append(f"out of {sum(counts):g}, the paper says out of {claim.of}")


def _partial(claim: Claim, figures: Mapping[str, Figure], seen: _Evidence) -> None:
    """Fail a sum whose present parts already fall short of their own denominators."""
    for key in claim.figures:
        figure = figures.get(key)
        count = finite(figure.n) if figure else None
        if figure and figure.number is not None and count is not None and figure.number < count:
            seen.failed.append(f"{key} is {figure.number:g} of {count:g}")


def _hold(key: str, rule: str | int | float, figure: Figure, seen: _Evidence) -> None:
    number = figure.number
    assert number is not None, "only usable figures are held against a rule"  # noqa: S101
    if rule == "positive":
        held = number > 0
    elif rule == "zero":
        held = number == 0
    elif rule == "complete":
        count = finite(figure.n)
        held = count is not None and count > 0 and number == count
        if count is not None:
            seen.counted.append(count)
    else:
        held = number == rule
    seen.numbers.append(number)
    if not held:
        out_of = f" of {figure.n}" if rule == "complete" else ""
        seen.failed.append(f"{key} is {number:g}{out_of}, which is not {rule}")


def _contracts(claim: Claim, choices: Choices, seen: _Evidence) -> int | None:
    """Return how many of the claim's contracts passed, None without a tally."""
    runs = _speaking(TALLY, choices, seen)
    rows = runs[-1].table("contracts.csv") if runs else None
    if not runs:
        return None
    if runs[-1] not in seen.runs:
        seen.runs.append(runs[-1])
    if rows is None:
        seen.failed.append(f"run {runs[-1].result.run_id} lists no contracts")
        return None
    outcomes: dict[str, set[str]] = {}
    for row in rows:
        outcomes.setdefault(row.get("contract", ""), set()).add(row.get("outcome", ""))
    broken, absent = [], []
    for name in claim.contracts:
        found = outcomes.get(name, {"missing"})
        if found == {"missing"}:
            absent.append(name)
        elif found != {"passed"}:
            broken.append(name)
    if broken:
        seen.failed.append(f"contract {', '.join(broken)} did not pass")
    if absent:
        seen.missing.append(f"no test ran for contract {', '.join(absent)}")
    return len(claim.contracts) - len(broken) - len(absent)


def _verdict(claim: Claim, seen: _Evidence) -> tuple[Verdict, str]:
    if seen.failed:
        return Verdict.FAILED, _sentence(seen.failed, claim.why)
    if claim.judge == "not_comparable":
        return Verdict.NOT_RUN, claim.why
    if seen.missing:
        return Verdict.NOT_RUN, _sentence(seen.missing, claim.why)
    return _PASSES[claim.judge], claim.why


def _sentence(parts: Sequence[str], why: str) -> str:
    text = "; ".join(dict.fromkeys(parts))
    text = text[:1].upper() + text[1:]
    return f"{text}. {why}".strip() if why else text


def _measured(
    claim: Claim, seen: _Evidence, passed: int | None
) -> tuple[int | float | str | None, int | float | None, int | float | None]:
    """Return what the table shows: the measured value, and its numerator and denominator."""
    if len(seen.numbers) == 1:
        if seen.counted:
            return seen.numbers[0], seen.numbers[0], seen.counted[0]
        return seen.numbers[0], None, None
    if seen.shown:
        return "; ".join(seen.shown), None, None
    if passed is not None and claim.contracts:
        total = len(claim.contracts)
        return f"{passed} of {total} contracts passed", passed, total
    return None, None, None

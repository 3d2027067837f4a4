"""One row of the failure matrix: a fault, the required response, and what came of it.

A row passes only if every attempt answers as required and nothing else changed. That is judged
from the rows of the store file as another connection reads them, not from what the store says of
itself: authoritative and attendant records stay byte for byte, what may be added is counted, and a
refused transition leaves exactly one failure record with its reason code.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path

from cma.values.errors import CmaError, Reason
from experiments.injections.bench import Bench, Census, opened

UNEXPECTED_LENGTH = 200
AUTHORITATIVE = ("cells", "links", "governed")


class Required(StrEnum):
    """The three responses there are; a silent repair is none of them."""

    REJECT = "reject"
    PRESERVE = "preserve"
    FAIL_CLOSED = "fail_closed"


class Aspect(StrEnum):
    """What a row is judged by."""

    RESPONSE = "response"
    DIGEST = "digest"
    ARTIFACT = "artifact"


class Unmet(Exception):  # noqa: N818 - an answer that falls short of a rule, and no error of ours
    """What was observed is not what is required; the text says what was."""

    def __init__(self, otherwise: str, aspect: Aspect = Aspect.RESPONSE) -> None:
        """Keep what was observed and by what it falls short."""
        super().__init__(otherwise)
        self.aspect = aspect


@dataclass(frozen=True, slots=True)
class Attempt:
    """One thing that is tried, and the answer that it must get."""

    act: Callable[[], str]
    """Does it and returns what was observed; raises Unmet where that falls short."""
    refusal: Reason | None = None
    names: str | None = None
    """The field that the refusal must name."""
    recorded: bool = True
    """Whether a refusal leaves a failure record: transitions do, reads and restores do not."""
    adds: Mapping[str, int] = field(default_factory=dict)
    """How many records it adds, by table; nothing else may appear."""


@dataclass(frozen=True, slots=True)
class Injection:
    """A row before it is run."""

    group: str
    case: str
    injected: str
    required: Required
    inject: Callable[[Bench], Sequence[Attempt]]
    """Prepares the store and injects the fault; the attempts are made afterwards."""
    damages: bool = False
    """The fault damages the store itself, so that it cannot verify afterwards."""


@dataclass(frozen=True, slots=True)
class Row:
    """A row after it was run: what `failures.csv` holds."""

    group: str
    case: str
    injected: str
    required: str
    observed: str
    reason: str
    digest_before: str
    digest_after: str
    artifact: str
    passed: bool
    fell_short: str
    """The aspect that was not as required, empty where the row passed."""


def keep(act: Callable[[], str], **adds: int) -> Attempt:
    """Return an attempt that must be answered, and may add so many records to each table."""
    return Attempt(act, adds=adds)


def refuse(
    act: Callable[[], object], reason: Reason, *, names: str | None = None, recorded: bool = True
) -> Attempt:
    """Return an attempt that must be refused for this reason."""

    def attempt() -> str:
        act()
        return "accepted"

    return Attempt(attempt, refusal=reason, names=names, recorded=recorded)


def expect(condition: object, otherwise: str) -> None:
    """Fail the row unless a condition holds. otherwise: what is the case instead."""
    if not condition:
        raise Unmet(otherwise)


def perform(injection: Injection, folder: Path) -> Row:
    """Run a row in a new folder; whatever goes wrong in it fails the row and not the run."""
    seen: list[str] = []
    reasons: list[str] = []
    artifacts: list[str] = []
    digests = ["", ""]
    fell_short = ""
    try:
        with opened(folder) as bench:
            attempts = injection.inject(bench)
            digests = [bench.digest()] * 2
            try:
                for attempt in attempts:
                    # One by one: what was seen before a rule broke is told as well.
                    seen.append(_judged(attempt, bench, reasons, artifacts))  # noqa: PERF401
            finally:
                digests[1] = bench.digest()
            expect(attempts, "nothing was tried")
            if not injection.damages:
                bench.memory.verify()
    except Unmet as error:
        fell_short = error.aspect.value
        seen.append(f"not as required: {error}")
    except Exception as error:  # a row that breaks is a failed row, the others are still run
        fell_short = Aspect.RESPONSE.value
        text = " ".join(str(error).replace(str(folder), "").split())[:UNEXPECTED_LENGTH]
        seen.append(f"unexpected {type(error).__name__}: {text}")
    return Row(
        group=injection.group,
        case=injection.case,
        injected=injection.injected,
        required=injection.required.value,
        observed="; ".join(dict.fromkeys(seen)),
        reason=" ".join(dict.fromkeys(reasons)),
        digest_before=digests[0],
        digest_after=digests[1],
        artifact="; ".join(artifacts),
        passed=not fell_short,
        fell_short=fell_short,
    )


def _judged(attempt: Attempt, bench: Bench, reasons: list[str], artifacts: list[str]) -> str:
    """Make an attempt and return what was observed; raise Unmet where a rule is broken."""
    before, digest = bench.census(), bench.digest()
    refused: CmaError | None = None
    try:
        observed = attempt.act()
    except CmaError as error:
        refused = error
        observed = f"refused, {error.code}"
        reasons.append(error.code)
    after = bench.census()
    left = bench.failures_after(before)
    artifacts.extend(f"audit {each.seq} reject {each.reason} {each.hash}" for each in left)
    _check_answer(attempt, refused, observed)
    wanted = [refused.code] if refused is not None and attempt.recorded else []
    if [each.reason for each in left] != wanted:
        raise Unmet(
            f"{len(left)} failure records, where {len(wanted)} are required", Aspect.ARTIFACT
        )
    if refused is not None and after.transitions - before.transitions != len(left):
        raise Unmet("a refusal left other audit records beside its failure record", Aspect.ARTIFACT)
    _check_untouched(before, after, attempt.adds)
    grows = any(attempt.adds.get(table) for table in AUTHORITATIVE)
    if grows != (bench.digest() != digest) or grows != (after.generation != before.generation):
        raise Unmet("the digest or the generation does not tell what was changed", Aspect.DIGEST)
    return observed


def _check_answer(attempt: Attempt, refused: CmaError | None, observed: str) -> None:
    """Hold the answer against the one required."""
    if refused is None and attempt.refusal is not None:
        raise Unmet(f"{observed}, where {attempt.refusal.value} is required")
    if refused is None:
        return
    if refused.reason is not attempt.refusal:
        wanted = attempt.refusal.value if attempt.refusal else "an answer"
        raise Unmet(f"{observed}, where {wanted} is required: {refused.message}")
    if attempt.names is not None and refused.field != attempt.names:
        raise Unmet(f"{observed} names {refused.field}, where {attempt.names} is required")


def _check_untouched(before: Census, after: Census, adds: Mapping[str, int]) -> None:
    """Hold every record against what it was, and count what was added."""
    for table, was in before.records.items():
        now = after.records[table]
        changed = sum(now.get(key) != record for key, record in was.items())
        if changed:
            raise Unmet(f"{changed} records of {table} were changed or removed", Aspect.DIGEST)
        added, allowed = len(now) - len(was), adds.get(table, 0)
        if added != allowed:
            raise Unmet(
                f"{added} records added to {table}, where {allowed} are required", Aspect.DIGEST
            )

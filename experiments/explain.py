"""One delivered request told backwards, step by step: from its receipt to the audit records.

A small memory is built through the public interface: two claims that contradict each other, each
proposed from two replayed episodes and approved, a decision on their conflict, a recall, a packet,
a delivery. The control is the same store with one source cell rewritten behind its back: the steps
that rest on it must not count as verified then.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

import apsw
import pandas as pd

from cma import Caller, FixedClock, Memory
from experiments import ranges
from experiments.failures import ExperimentError
from experiments.result import Figure, Result
from experiments.settings import Settings
from experiments.telling import Step, told

START = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
PAUSE = timedelta(minutes=1)
AGENT = Caller(name="agent", authority="user")
REVIEWER = Caller(name="ann", authority="user")
SCOPE = "session:releases"
CLAIMS = (
    ("Oslo", ("The server starts in Oslo", "Oslo answers the first request"),
     ("The server starts in Oslo again", "Oslo answers every request")),
    ("Bergen", ("The server is moved to Bergen", "Bergen answers the first request"),
     ("The server is moved to Bergen again", "Bergen answers every request")),
)  # fmt: skip
"""For each claim: where the server runs, and the events of its two episodes."""
QUERY = "the server runs in which city"
LIMIT = 3
BUDGET = 130
"""Tokens: enough for the conflict, too few for the third hit, so that something is left out."""
REWRITTEN = ("Oslo answers every request", "Turku answers every request")
"""What a source cell says, and what the control makes of it."""
COLUMNS = ("step", "kind", "id", "told", "verified", "audit_seq")


def check(settings: Settings) -> None:
    """Refuse a seed that is none; nothing else can be set."""
    ranges.whole("seed", settings.seed, 0, ranges.SEED_LIMIT)


def run(settings: Settings, folder: Path) -> Result:  # noqa: ARG001
    """Build the memory, deliver, tell the delivery backwards, and once more from a spoiled copy."""
    with tempfile.TemporaryDirectory() as temporary:
        place = Path(temporary)
        receipt = build(place / "kept.cma")
        spoil(place / "kept.cma", place / "spoiled.cma")
        steps = told_of(place / "kept.cma", receipt)
        control = told_of(place / "spoiled.cma", receipt)
    return result_of(steps, control)


def build(path: Path) -> str:
    """Build the memory in a new file, deliver one request from it, and return the receipt's id."""
    clock = FixedClock(START)
    with Memory.open(path, caller=AGENT, clock=clock, store_id="explain") as opened:
        memory = opened.within(SCOPE)
        reviewer = memory.acting_as(REVIEWER)
        for number, (city, *episodes) in enumerate(CLAIMS, start=1):
            frames = [_episode(memory, clock, city, events) for events in episodes]
            claim = memory.propose(
                frames=frames,
                content=f"The server runs in {city}",
                subject="server",
                predicate="runs in",
                object=city,
            )
            clock.advance(PAUSE)
            reviewer.approve(claim.id, approval_id=f"CR-{number}")
        [conflict] = memory.conflicts()
        reviewer.decide(conflict.id, handling="preserve_both")
        clock.advance(PAUSE)
        found = memory.recall(QUERY, limit=LIMIT)
        packet = memory.packet(found, budget=BUDGET)
        return memory.deliver(packet, recipient="model").id


def spoil(kept: Path, spoiled: Path) -> None:
    """Copy a store and rewrite one source cell in the copy, past the library."""
    for end in ("", ".head"):
        shutil.copyfile(f"{kept}{end}", f"{spoiled}{end}")
    connection = apsw.Connection(str(spoiled))
    connection.execute(
        "UPDATE cells SET record = CAST(replace(CAST(record AS TEXT), ?, ?) AS BLOB)", REWRITTEN
    )
    changed = connection.changes()
    connection.close()
    if not changed:
        raise ExperimentError("the control could not rewrite a source cell")


def told_of(path: Path, receipt: str) -> list[Step]:
    """Open a store and return the steps of a delivery, from the receipt backwards."""
    with Memory.open(path, caller=REVIEWER, clock=FixedClock(START)) as memory:
        return told(memory.within(SCOPE), receipt)


def result_of(steps: Sequence[Step], control: Sequence[Step]) -> Result:
    """Count the steps and those that are verified, and lay out the table."""
    verified = [sum(each.verified for each in told) for told in (steps, control)]
    spoiled = [
        f"{one.kind} {'/'.join(map(str, one.number))}"
        for one, other in zip(steps, control, strict=True)
        if one.verified and not other.verified
    ]
    note = (
        f"With one source cell rewritten behind the store's back, {verified[1]} of {len(control)} "
        f"steps count as verified; not verified then: {', '.join(spoiled) or 'none'}."
    )
    rows = [
        {
            "step": "/".join(map(str, each.number)),
            "kind": each.kind,
            "id": each.id,
            "told": each.told,
            "verified": each.verified,
            "audit_seq": " ".join(map(str, each.records)),
        }
        for each in steps
    ]
    return Result(
        figures={
            "explain.steps": Figure(len(steps), "steps", len(steps)),
            "explain.verified": Figure(
                verified[0], "steps verified", len(steps), control=verified[1]
            ),
        },
        tables={"steps": pd.DataFrame(rows, columns=list(COLUMNS))},
        notes=(note,),
    )


def _episode(memory: Memory, clock: FixedClock, city: str, events: Iterable[str]) -> str:
    cells = []
    for event in events:
        clock.advance(PAUSE)
        cell = memory.write(event, kind="episodic", origin="the log", observed_at=clock.now())
        cells.append(cell.id)
    frame = memory.bind(
        scene=f"the server in {city}",
        sources=cells,
        entities=["server", city],
        actions=["runs"],
    )
    if not memory.replay(frame.id).complete:
        raise ExperimentError(f"the replay of {frame.id} is not complete")
    return frame.id

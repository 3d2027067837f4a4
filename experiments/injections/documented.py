"""The eight documented rows of the failure matrix."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import timedelta
from functools import partial

from cma.values.errors import Reason
from experiments.injections.bench import Bench, claim, episodes, remember
from experiments.injections.row import Attempt, Injection, Required, expect, keep, refuse
from experiments.injections.snapshots import (
    byte_flipped,
    cell_rewritten,
    envelope_changed,
    restored,
    taken,
)

GROUP = "documented"
TEA = ("Ann", "drinks", "tea")
TTL_SECONDS = 60


def ttl_expiration(bench: Bench) -> Sequence[Attempt]:
    """Working memory at the very instant of its expiry: not served, and still there."""
    note = bench.ann.write(
        "the kettle is on", kind="working", origin="matrix", metadata={"ttl_seconds": TTL_SECONDS}
    )
    expect(bench.ann.recall("kettle").hits, "not recalled before its expiry")
    bench.clock.advance(timedelta(seconds=TTL_SECONDS))

    def served() -> str:
        expect(not bench.ann.recall("kettle").hits, "an expired cell is recalled")
        [hit] = bench.ann.recall("kettle", include_inactive=True).hits
        expect(hit.cell.id == note.id, "another cell is recalled")
        expect(bench.ann.get(note.id).content == note.content, "the cell reads otherwise")
        return "not recalled, readable by id, nothing deleted"

    return [keep(served)]


def incomplete_replay(bench: Bench) -> Sequence[Attempt]:
    """A source whose rows another connection removed before the replay."""
    frames = episodes(bench.ann, "drinks tea", replay=False)
    gone = bench.ann.frame(frames[0]).cells[0]
    bench.ann.replay(frames[1])
    bench.remove(gone)

    def replayed() -> str:
        evidence = bench.ann.replay(frames[0])
        expect(not evidence.complete, "the replay is complete without its source")
        states = [(step.cell, step.state) for step in evidence.wanting]
        expect(states == [(gone, "missing")], f"{len(states)} steps are wanting")
        return "replay incomplete, the missing source named"

    return [
        keep(replayed, attendant=1),
        refuse(lambda: claim(bench.ann, frames, says=TEA), Reason.REPLAY_INCOMPLETE),
    ]


def missing_approval(bench: Bench) -> Sequence[Attempt]:
    """A proposal without an approval id, and with one that nobody granted."""
    proposed = claim(bench.ann, episodes(bench.ann, "drinks tea"), says=TEA)
    return [
        refuse(partial(bench.ann.admit, proposed.id, approval_id=None), Reason.APPROVAL_REQUIRED),
        refuse(partial(bench.ann.admit, proposed.id, approval_id="CR-9"), Reason.APPROVAL_REQUIRED),
    ]


def repeated_fingerprint(bench: Bench) -> Sequence[Attempt]:
    """The same claim, worded otherwise, approved once more under another approval."""
    frames = episodes(bench.ann, "drinks tea")
    cell = bench.ann.approve(claim(bench.ann, frames, says=TEA).id, approval_id="CR-1")
    again = claim(bench.ann, frames, says=("ANN", " drinks", "Tea"))

    def approved() -> str:
        expect(again.candidate.id != cell.source.origin, "it is the same proposal")
        expect(bench.ann.approve(again.id, approval_id="CR-2") == cell, "another cell was made")
        expect(bench.ann.get(cell.id).approval_id == "CR-1", "the first approval was replaced")
        return "the cell that was there, under its first approval; the repeat is on record"

    return [keep(approved, attendant=1)]


def opposite_outcomes(bench: Bench) -> Sequence[Attempt]:
    """A failure of the skill that succeeded before."""
    events = [remember(bench.ann, f"deployment {number}", number) for number in range(2)]
    execute = partial(bench.ann.execute, task="deploy", steps=["build", "ship"])
    execute(outcome="success", sources=events[:1])

    def failed() -> str:
        execute(outcome="failure", sources=events[1:])
        [link] = bench.ann.conflicts()
        expect({link.source_id, link.target_id} == set(events), "the link joins others")
        lives = {bench.ann.get(event).lifecycle.value for event in events}
        expect(lives == {"active"}, "one of the two is no longer active")
        return "both kept, one conflict link"

    return [keep(failed, governed=1, links=1)]


def tight_budget(bench: Bench) -> Sequence[Attempt]:
    """A budget one token too small for two claims that contradict each other."""
    for place, drink in enumerate(("tea", "mate")):
        frames = episodes(bench.ann, f"drinks {drink}", first=100 * place)
        proposed = claim(bench.ann, frames, says=("Ann", "favours", drink))
        bench.ann.approve(proposed.id, approval_id=f"CR-{place}")
    recalled = bench.ann.recall("Ann favours", limit=2)
    whole = bench.ann.packet(recalled, budget=10_000)
    expect([len(group.cells) for group in whole.groups] == [2], "the pair is no one group")

    def packed() -> str:
        tight = bench.ann.packet(recalled, budget=whole.used - 1)
        expect(tight.used < whole.used, "the budget is exceeded")
        expect(not tight.groups, "one side of a conflict is served without the other")
        [left_out] = tight.excluded
        expect(left_out.reason == "budget" and len(left_out.cells) == 2, "no reason is given")
        exact = bench.ann.packet(recalled, budget=whole.used)
        expect(exact.text == whole.text, "a budget that just suffices does not")
        return "the pair left out whole, with its reason (budget)"

    return [keep(packed)]


def mutated_snapshot(bench: Bench) -> Sequence[Attempt]:
    """A snapshot with a byte flipped, an envelope edited, and a cell rewritten and re-hashed."""
    proposed = claim(bench.ann, episodes(bench.ann, "drinks tea"), says=TEA)
    bench.ann.approve(proposed.id, approval_id="CR-1")
    whole = taken(bench)
    changes = {
        Reason.SNAPSHOT_HASH: byte_flipped(whole),
        Reason.SNAPSHOT_ENVELOPE: envelope_changed(whole),
        Reason.SNAPSHOT_IDENTITY: cell_rewritten(whole),
    }
    return [
        refuse(partial(restored, bench, data), reason, recorded=False)
        for reason, data in changes.items()
    ]


def missing_graph_cell(bench: Bench) -> Sequence[Attempt]:
    """A graph one of whose source cells another connection removed."""
    frames = episodes(bench.ann, "drinks tea")
    bench.ann.approve(claim(bench.ann, frames, says=TEA).id, approval_id="CR-1")
    expect(len(bench.ann.graph().nodes) == 3, "the graph is not whole before")
    bench.remove(bench.ann.frame(frames[0]).cells[0])
    uses: tuple[Callable[[], object], ...] = (
        bench.ann.graph,
        partial(bench.ann.traverse, frames[1]),
    )
    return [refuse(use, Reason.GRAPH_CELL_MISSING, recorded=False) for use in uses]


_REJECT, _PRESERVE, _CLOSED = Required.REJECT, Required.PRESERVE, Required.FAIL_CLOSED

DOCUMENTED = (
    Injection(
        GROUP, "ttl_expiration", "the clock is moved to the instant of expiry", _PRESERVE,
        ttl_expiration,
    ),
    Injection(
        GROUP, "incomplete_replay", "a source's rows are removed by another connection", _REJECT,
        incomplete_replay, damages=True,
    ),
    Injection(
        GROUP, "missing_approval", "a proposal is admitted without an approval on record", _REJECT,
        missing_approval,
    ),
    Injection(
        GROUP, "repeated_fingerprint", "the same claim, reworded, is approved again", _PRESERVE,
        repeated_fingerprint,
    ),
    Injection(
        GROUP, "opposite_outcomes", "a skill that succeeded fails", _PRESERVE, opposite_outcomes
    ),
    Injection(
        GROUP, "tight_budget", "a budget one token too small for a conflict pair", _PRESERVE,
        tight_budget,
    ),
    Injection(
        GROUP, "mutated_snapshot",
        "a byte flipped; the envelope edited; a cell rewritten and all hashes made anew", _CLOSED,
        mutated_snapshot,
    ),
    Injection(
        GROUP, "missing_graph_cell", "a cell's rows are removed by another connection", _CLOSED,
        missing_graph_cell, damages=True,
    ),
)  # fmt: skip
"""In the order of the catalogue."""

"""Five promises, held after every step of any interleaving of all that a memory can do.

Conflicts keep both sides. Derived memory keeps its sources and its approval. A working cell that is
not active is never served unless asked for. Control is never served as a fact. A snapshot that
disagrees with itself is refused whole. What the machine expects it knows from its own notes.
"""

from __future__ import annotations

import os

from hypothesis import HealthCheck, settings
from hypothesis.stateful import invariant, run_state_machine_as_test

from tests.property.memory_steps import CONTROL, EVERYTHING, HANDLINGS, SCOPES, Steps

EXAMPLES = int(os.environ.get("CMA_EXAMPLES", "0"))


class Promises(Steps):
    """The steps, with what must hold after each of them."""

    @invariant()
    def conflicts_keep_both_sides(self) -> None:
        told = {
            scope: {frozenset((each.source_id, each.target_id)) for each in view.conflicts()}
            for scope, view in ((scope, self._view(scope)) for scope in SCOPES)
        }
        for pair, scope in self.pairs.items():
            assert pair in told[scope]
            for name in pair:
                assert self._view(scope).get(name).content
        for scope, found in told.items():
            assert found == {
                pair for pair, owner in self.pairs.items() if owner in ("global", scope)
            }

    @invariant()
    def derived_memory_keeps_sources_and_approval(self) -> None:
        for name, (approval, cells, scope) in self.derived.items():
            for revision in range(1, self._view(scope).get(name).revision + 1):
                cell = self._view(scope).get(name, revision=revision)
                assert (cell.approval_id, cell.derived_from) == (approval, cells)
        for scope in SCOPES:
            hits = self._view(scope).recall(EVERYTHING, limit=500, include_inactive=True).hits
            for hit in hits:
                assert (hit.cell.kind in ("semantic", "procedural")) == (
                    hit.cell.id in self.derived
                )

    @invariant()
    def what_is_served_is_active_and_in_scope_and_no_control(self) -> None:
        for scope in SCOPES:
            view = self._view(scope)
            recollection = view.recall(EVERYTHING, limit=500)
            served = {hit.cell.id for hit in recollection.hits}
            seen = {cell.id for cell in self.cells if cell.scope in ("global", scope)}
            assert served == {name for name in seen if self._active(name)}
            packet = view.packet(recollection, budget=100_000)
            assert {cell.id for cell in packet.cells} == served
            for group in packet.groups:
                names = {each.cell.id for each in group.cells}
                for pair in self.pairs:
                    if pair <= served:
                        assert pair <= names or not pair & names
            for trace in self.traces[-1:]:  # an old recall serves what is active now
                assert {cell.id for cell in view.packet(trace, budget=100_000).cells} <= served
            control = view.recall(f"{CONTROL} decision {' '.join(HANDLINGS)}").hits
            assert control == ()
            assert not any(word in packet.text for word in (CONTROL, "decision-", *HANDLINGS))


SETTINGS = settings(
    max_examples=EXAMPLES or 6,
    stateful_step_count=30,
    derandomize=not EXAMPLES,  # the same steps every time, unless more are asked for
    database=None,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)
MUST_REACH = {
    "claims", "derived", "conflicts", "packets", "decisions", "snapshots", "late deliveries",
    "repeats", "policy-unauthorised", "approval-expired", "proposal-decided",
}  # fmt: skip


def test_the_promises_hold_whatever_is_done() -> None:
    Promises.reached.clear()
    run_state_machine_as_test(Promises, settings=SETTINGS)
    missed = {name for name in MUST_REACH if not Promises.reached[name]}
    assert not missed, "the steps no longer lead there: the test would show nothing"

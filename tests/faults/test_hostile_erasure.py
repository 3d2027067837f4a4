"""Erasure against whatever keeps an index at the same moment, or was stopped while it did."""

from __future__ import annotations

from pathlib import Path

import pytest

from cma import Caller, FixedClock, Memory, Reason
from cma.doctor.examining import examine
from cma.doctor.findings import Code
from cma.orion import cleaning, index_keeping
from tests.faults.injection import CALLER, START, refused, remember
from tests.faults.marked import WHY, found_in

WORD = ("quagmark",)


def test_an_index_that_is_kept_during_the_erasure_goes_with_it(
    ann: Memory, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A process that read before the erasure puts its index into place while the file is built."""
    cell = remember(ann, "a quagmark of hers")
    with Memory.open(path, caller=CALLER, clock=FixedClock(START)) as other:
        reading = other.store.reading()
        reading.__enter__().execute("SELECT count(*) FROM cells").fetchone()
        rebuild = cleaning._rebuild

        def while_it_is_kept(connection: object) -> None:
            rebuild(connection)  # type: ignore[arg-type]
            assert b"quagmark" in other.keep_index().read_bytes()
            reading.__exit__(None, None, None)

        monkeypatch.setattr(cleaning, "_rebuild", while_it_is_kept)
        assert ann.erase(cell.id, reason=WHY).cleaned
    assert found_in(path.parent, WORD) == set()


def test_the_draft_of_an_index_that_was_begun_goes_with_the_erasure(
    ann: Memory, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cell = remember(ann, "a quagmark of hers")
    place = ann.keep_index()
    draft = place.rename(path.with_name(f".{place.name}.0123abcd"))  # as a kill leaves it
    bystander = path.with_name(f".{place.name}.0123abcd.txt")
    bystander.touch()
    found = examine(path, clock=FixedClock(START)).findings
    assert (Code.LEFTOVER_DRAFT, draft.name) in {(each.code, each.place) for each in found}
    assert index_keeping.drafts_of_kept(path) == [draft]
    assert ann.erase(cell.id, reason=WHY).cleaned
    assert found_in(path.parent, WORD) == set()
    assert bystander.exists()


def test_no_skill_is_proposed_from_an_erased_execution(ann: Memory) -> None:
    told = {"task": "make tea", "steps": ["boil"], "outcome": "success"}
    cells = [remember(ann, f"tea was made, {number}", minutes=number) for number in range(3)]
    runs = [ann.execute(sources=[each.id], **told).id for each in cells]
    ann.erase(cells[0].id, reason=WHY)
    for chosen in (runs[:1], runs, runs[::-1]):
        with refused(ann, Reason.EVIDENCE_INCOMPLETE, "executions"):
            ann.propose_skill(executions=chosen)
    assert ann.propose_skill(executions=runs[1:]).candidate.executions == tuple(sorted(runs[1:]))


def test_a_refused_erasure_leaves_the_kept_index(ann: Memory) -> None:
    cell = remember(ann, "a quagmark of hers")
    place = ann.keep_index()
    with refused(ann, Reason.POLICY_UNAUTHORISED):
        ann.acting_as(Caller(name="planner", authority="model")).erase(cell.id, reason=WHY)
    assert place.exists()
    ann.erase(cell.id, reason=WHY)
    assert not place.exists()

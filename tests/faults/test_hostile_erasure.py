"""Erasure against whatever keeps an index at the same moment, or was stopped while it did."""

from __future__ import annotations

from pathlib import Path

import pytest

from cma import FixedClock, Memory
from cma.doctor.examining import examine
from cma.doctor.findings import Code
from cma.orion import cleaning, index_keeping
from tests.faults.injection import CALLER, START, remember
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

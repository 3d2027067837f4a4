"""An interrupt (Ctrl-C) at any line of a recall: the next recall finds what is there, all of it."""

from __future__ import annotations

import sys
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

import cma
from cma import TUNED, CellDraft, Memory, Retrieval
from cma.orion import pruning
from cma.values.clock import FixedClock

START = datetime(2026, 7, 1, tzinfo=UTC)
WATCHED = tuple(
    str(Path(cma.__file__).parent / "orion" / f"{name}.py")
    for name in (
        "bitmaps", "context", "entries", "index", "indexes", "neighbours", "ordering", "postings",
        "pruning", "ranking", "recall", "resolving", "searching", "surroundings", "word_bounds",
    )
)  # fmt: skip
POINTS = 60


def interrupted_at(line: int, do: Callable[[], object]) -> int:
    """Do it, interrupted when so many lines of the watched files have run; return how many ran."""
    ran = 0

    def local(_: FrameType, event: str, __: Any) -> Any:
        nonlocal ran
        if event == "line":
            ran += 1
            if ran == line:
                raise KeyboardInterrupt
        return local

    def watch(frame: FrameType, _: str, __: Any) -> Any:
        return local if frame.f_code.co_filename in WATCHED else None

    before = sys.gettrace()
    sys.settrace(watch)
    try:
        do()
    finally:
        sys.settrace(before)
    return ran


def draft(number: int) -> CellDraft:
    return CellDraft(
        kind="episodic",
        content=f"tea and mate {number}",
        origin="o",
        observed_at=START + timedelta(minutes=number),
    )


@pytest.mark.parametrize("retrieval", [Retrieval(), TUNED], ids=["paper", "tuned"])
@pytest.mark.parametrize("large", [0, 10**6], ids=["pruned", "whole"])
def test_a_recall_after_an_interrupted_one_finds_every_cell(
    retrieval: Retrieval, large: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not large:
        pytest.importorskip("numba")
    monkeypatch.setattr(pruning, "LARGE", large)
    with Memory.open(
        tmp_path / "m.cma", clock=FixedClock(START + timedelta(days=1)), retrieval=retrieval
    ) as memory:
        written = [*memory.write_many(draft(each) for each in range(40)).ids]
        memory.recall("tea mate")
        written += memory.write_many([draft(40)]).ids
        ran = interrupted_at(-1, lambda: memory.recall("tea mate", limit=10_000))
        assert ran > POINTS
        interrupts = 0
        for turn in range(POINTS):
            number = len(written)
            written += memory.write_many([draft(number)]).ids
            memory.update(written[turn], importance=turn / 1_000)
            try:
                interrupted_at(1 + ran * turn // POINTS, lambda: memory.recall("tea mate"))
            except KeyboardInterrupt:
                interrupts += 1
            found = memory.recall("tea mate", limit=10_000)
            assert sorted(hit.cell.id for hit in found.hits) == sorted(written)
        assert interrupts > POINTS // 2
    with Memory.open(tmp_path / "m.cma", clock=FixedClock(START + timedelta(days=1))) as memory:
        again = memory.recall("tea mate", limit=10_000, retrieval=retrieval)
        assert [hit.cell.id for hit in again.hits] == [hit.cell.id for hit in found.hits]
        assert [hit.score for hit in again.hits] == [hit.score for hit in found.hits]

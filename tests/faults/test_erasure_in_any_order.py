"""Every cell of a busy store is erased, in any order: it verifies after each, and holds no word."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest

from cma import Memory
from cma.orion.cells import Cell
from tests.faults.injection import CALLER
from tests.faults.marked import WHY
from tests.faults.rejections.world import opened, prepare


def _cells(memory: Memory) -> list[Cell]:
    rows = memory.store.connection.execute("SELECT DISTINCT id, scope FROM cells ORDER BY id")
    return [memory.within(scope).get(name) for name, scope in rows.fetchall()]


def _left(folder: Path, texts: set[str]) -> list[str]:
    data = b"".join(place.read_bytes() for place in folder.iterdir())
    return sorted(text for text in texts if text.encode() in data)


@pytest.mark.parametrize("seed", range(3))
def test_a_store_is_erased_cell_by_cell(tmp_path: Path, seed: int) -> None:
    folder = tmp_path / "opened"
    folder.mkdir()
    world = opened(tmp_path / "prepared.cma", folder, prepare(tmp_path / "prepared.cma"))
    memory, cells = world.memory, _cells(world.memory)
    texts = {cell.content for cell in cells} | {"nobody said so", "who drinks tea", "kitchen 1"}
    assert _left(folder, texts) == sorted(texts)
    Random(seed).shuffle(cells)
    for cell in cells:
        before = memory.digest()
        assert memory.within(cell.scope).erase(cell.id, reason=WHY).cleaned
        assert memory.digest() != before
        memory.verify()
        assert world.ann.explain(world.ids.receipt).verified
        if cell is cells[len(cells) // 2]:
            world.ann.recall("tea", include_inactive=True)
    assert {cell.lifecycle.value for cell in _cells(memory)} == {"erased"}
    assert world.ann.recall("who likes mate", include_inactive=True).hits == ()
    assert _left(folder, texts) == []
    memory.snapshot(folder / "s.cma.jsonl")
    with Memory.restore(folder / "s.cma.jsonl", folder / "restored", caller=CALLER) as restored:
        assert restored.verify().store_digest == memory.digest()
    memory.close()
    assert _left(folder, texts) == []

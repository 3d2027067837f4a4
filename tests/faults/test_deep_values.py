"""Values nested so deep that Python cannot show them: refused by reason wherever they come in."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from cma import CmaError, Memory, Reason
from tests.faults.injection import remember

LEVELS = 5_000


def deep() -> Any:
    value: Any = []
    for _ in range(LEVELS):
        value = [value]
    return {"": value}


USES: dict[str, Callable[[Memory, str], Any]] = {
    "link": lambda memory, cell: memory.link(deep(), cell, cell),
    "link_many": lambda memory, cell: memory.link_many([{"kind": deep()}, {"kind": deep()}]),
    "links_of": lambda memory, cell: memory.links_of(cell, kind=deep()),
    "write": lambda memory, cell: memory.write("x", kind=deep(), origin="o"),
    "metadata": lambda memory, cell: memory.update(cell, metadata=deep()),
    "get": lambda memory, cell: memory.get(deep()),
    "execute": lambda memory, cell: memory.execute(
        task="t", steps=["a"], outcome=deep(), sources=[cell]
    ),
    "acting_as": lambda memory, cell: memory.acting_as({"name": "a", "authority": deep()}),
    "recall": lambda memory, cell: memory.recall("event", retrieval={"lexical": deep()}),
    "within": lambda memory, cell: memory.within(deep()),
}


@pytest.mark.parametrize("use", USES.values(), ids=USES)
def test_a_value_nested_too_deep_is_refused(memory: Memory, use: Callable[..., Any]) -> None:
    cell = remember(memory, "event")
    before = memory.digest()
    with pytest.raises(CmaError) as info:
        use(memory, cell.id)
    assert info.value.reason in (
        Reason.FIELD_INVALID, Reason.KIND_UNKNOWN, Reason.METADATA_MISMATCH
    )  # fmt: skip
    assert str(info.value)
    assert memory.digest() == before

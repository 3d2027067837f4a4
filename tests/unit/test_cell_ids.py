"""Packed ids: the same as a list and a dictionary, whichever way an id is found."""

from __future__ import annotations

import random

import numpy as np
import pytest

from cma.orion import cell_ids
from cma.orion.cell_ids import CellIds, packed


def name(number: int) -> str:
    # Four share each prefix, so that the rest must tell them apart.
    return f"cell-{number // 4:016x}{number % 4:024x}"


@pytest.mark.parametrize("recent", [0, 3, 1000])
def test_ids_and_their_latest_rows_are_those_of_a_list(
    recent: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cell_ids, "_RECENT", recent)
    chance = random.Random(recent)
    ids, rows, latest = CellIds(), [], {}
    for _ in range(60):
        batch = [name(chance.randrange(80)) for _ in range(chance.randrange(1, 6))]
        latest |= {each: len(rows) + place for place, each in enumerate(batch)}
        rows += batch
        ids.extend(batch, packed(batch))
        asked = [name(number) for number in range(90)]
        found = ids.latest_of(asked, packed(asked)).tolist()
        assert found == [latest.get(each, -1) for each in asked]
        assert [ids.latest(each) for each in asked] == found
    assert list(ids) == rows
    assert ids[len(rows) - 1] == rows[-1]
    assert ids.names(np.array([3, 0, 3])) == [rows[3], rows[0], rows[3]]
    assert [f"{prefix:016x}" for prefix in ids.prefixes.tolist()] == [each[5:21] for each in rows]


@pytest.mark.parametrize("wrong", ["", "cell-", "cell-" + "g" * 40, "link-" + "0" * 40, None, 7])
def test_what_is_no_id_is_not_here(wrong: object, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cell_ids, "_RECENT", 0)
    ids = CellIds()
    ids.extend([name(1)], packed([name(1)]))
    assert ids.latest(wrong) == -1


@pytest.mark.parametrize("wrong", ["cell-" + "A" * 40, "cell-" + "0" * 39, "cell- " + "0" * 39])
def test_only_cell_ids_are_packed(wrong: str) -> None:
    with pytest.raises(ValueError, match="id:"):
        packed([wrong])

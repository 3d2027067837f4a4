"""A disk that refuses a call in the middle of an erasure: not erased, or erased and finished later.

Every fifth call is refused in turn, once or from then on, until a run meets no refusal. Whatever
the caller was told, a store that opens again is sound, and holds all of the cell or no byte of it.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import apsw
import pytest

from cma import CmaError, FixedClock, Memory, Retrieval
from cma.orion.cleaning import is_owed
from cma.orion.indexes import Indexes
from cma.orion.store import Store
from tests.faults.injection import CALLER, START, Fault, FaultyDisk, remember

SAID = "quagmire is what it says"
STEP = 5


@pytest.fixture(params=[False, True], ids=["once", "from then on"])
def disk(request: pytest.FixtureRequest) -> Iterator[tuple[str, Fault]]:
    fault = Fault(sticky=request.param, code=apsw.SQLITE_IOERR)
    name = f"erasing-{os.getpid()}"
    vfs = FaultyDisk(name, fault)
    yield name, fault
    fault.disarm()
    vfs.unregister()


def _opened(path: Path, disk: str) -> Memory:
    store = Store.open(path, clock=FixedClock(START), store_id="one", vfs=disk)
    return Memory(store, caller=CALLER, retrieval=Retrieval(), scope="session:a", indexes=Indexes())


def test_an_erasure_is_not_begun_or_is_finished(tmp_path: Path, disk: tuple[str, Fault]) -> None:
    name, fault = disk
    outcomes = set()
    for number in range(1, 400, STEP):
        path = tmp_path / f"{number}.cma"
        view = _opened(path, name)
        cell = remember(view, SAID)
        other = remember(view, "another remark", minutes=1)
        view.link("task", cell.id, other.id, evidence="quagmire too")
        told = "refused"
        fault.arm(number)
        with suppress(CmaError):
            told = "cleaned" if view.erase(cell.id, reason="person-request").cleaned else "owed"
        met = fault.failed
        fault.disarm()
        with suppress(CmaError, apsw.Error):
            view.close()
        with Memory.open(path, caller=CALLER, clock=FixedClock(START)) as again:
            again.verify()
            left = again.within("session:a").get(cell.id)
            if left.lifecycle != "erased":
                assert (told, left.content) == ("refused", SAID)
            else:
                assert not is_owed(again.store.connection)
                files = [each for each in tmp_path.iterdir() if each.name.startswith(path.name)]
                assert not [each.name for each in files if b"quagmire" in each.read_bytes()]
        outcomes.add((told, left.lifecycle.value))
        if not met:
            break
    else:
        pytest.fail("the disk never stopped refusing")
    assert {("refused", "active"), ("owed", "erased"), ("cleaned", "erased")} <= outcomes

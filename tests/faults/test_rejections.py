"""A refused transition leaves memory as it was: every reason code, at every entry point.

A row of the table names a reason, an entry point and how to provoke the refusal there. The refusal
is typed, names field and remedy, and leaves digest and generation as they were; a refused
transition leaves exactly one `reject` record, a refused read or file none.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace

import apsw
import pytest

from cma import CmaError, Reason
from cma.memory import Memory
from tests.faults.injection import ROOT, files_of
from tests.faults.rejections import erasure_rows, governed_rows, memory_rows, store_rows
from tests.faults.rejections.row import Row, attempt
from tests.faults.rejections.world import Seen, World, opened, prepare, seen


def _source(*folders: str) -> str:
    return "".join(
        place.read_text() for folder in folders for place in sorted((ROOT / folder).rglob("*.py"))
    )


ROWS = [*memory_rows.ROWS, *governed_rows.ROWS, *store_rows.ROWS, *erasure_rows.ROWS]
# Sun looks into models and holds no store: its codes are raised beside memory, never in it.
# test_what_has_no_row_is_raised_by_sun_alone keeps this list honest.
SUN = {reason for reason in Reason if f"Reason.{reason.name}" in _source("cma/sun")}
NEVER = SUN - {row.reason for row in ROWS}
# Raised on the way to a model alone, which these tests do without; where each is shown instead.
NEEDS_A_MODEL = {"PACKET_EMPTY": "tests/unit/test_deliver_to_model.py"}
# Every way that changes memory or hands something out; each is refused somewhere in the table.
ENTRY_POINTS = {
    "acting_as", "admit", "approve", "approve_many", "bind", "decide", "deliver", "erase",
    "execute", "explain", "frame", "get", "grant", "graph", "keep_index", "link", "link_many",
    "links_of", "open", "packet", "proposal", "proposals", "propose", "propose_skill", "recall",
    "regenerate", "reject", "reject_many", "replay", "restore", "snapshot", "sweep", "traverse",
    "update", "verify", "within", "write", "write_many",
}  # fmt: skip
# Without an input that could be wrong, and refused only with the store itself.
PLAIN = {"close", "conflicts", "decisions", "digest", "failures", "frames", "generation"}


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, SimpleNamespace]:
    path = tmp_path_factory.mktemp("prepared") / "prepared.cma"
    return path, prepare(path)


@pytest.fixture
def world(prepared: tuple[Path, SimpleNamespace], tmp_path: Path) -> Iterator[World]:
    found = opened(prepared[0], tmp_path, prepared[1])
    yield found
    with suppress(CmaError):  # some rows leave a file that takes no more records
        found.memory.close()


def test_each_reason_has_a_row() -> None:
    """A new code comes with a row, or with a reason why nothing raises it."""
    elsewhere = {reason for reason in Reason if reason.name in NEEDS_A_MODEL}
    assert set(Reason) == {row.reason for row in ROWS} | NEVER | elsewhere
    for reason in elsewhere:
        assert f"Reason.{reason.name}" in (ROOT / NEEDS_A_MODEL[reason.name]).read_text()


def test_what_has_no_row_is_raised_by_sun_alone() -> None:
    packages = {place.name for place in (ROOT / "cma").iterdir() if place.is_dir()}
    others = _source(*(f"cma/{name}" for name in packages - {"sun"})) + "".join(
        place.read_text() for place in (ROOT / "cma").glob("*.py")
    )
    assert not {each.name for each in NEVER if re.search(rf"Reason\.{each.name}\b", others)}


def test_each_entry_point_has_a_row() -> None:
    public = {name for name in vars(Memory) if not name.startswith("_")}
    assert public == ENTRY_POINTS | PLAIN
    told = {row.way.split(" ")[0] for row in ROWS}
    assert told >= ENTRY_POINTS
    assert {row.way for row in ROWS if row.way.startswith("cma ")} >= {
        f"cma {name}" for name in ("explain", "recall", "restore", "snapshot", "verify")
    } | {f"cma proposals {name}" for name in ("approve", "list", "reject", "show")}


def look(path: Path) -> Seen | dict[str, bytes]:
    """See what a file holds; its bytes where it cannot be read as a store."""
    try:
        return seen(path)
    except apsw.Error:
        return files_of(path)


def names(world: World) -> set[str]:
    return {
        place.name for place in world.folder.iterdir() if not place.name.endswith(("-wal", "-shm"))
    }


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row.reason}/{row.way}")
def test_a_refusal_leaves_memory_as_it_was(row: Row, world: World) -> None:
    if row.before is not None:
        row.before(world)
    before, files = look(world.path), names(world)
    told = attempt(row, world)
    after = look(world.path)
    assert told.code == row.reason, told
    assert told.message
    assert told.field, told
    assert told.remedy, told
    assert names(world) == files
    if isinstance(before, Seen) and isinstance(after, Seen):
        assert (after.digest, after.generation) == (before.digest, before.generation)
        assert after.audit[: len(before.audit)] == before.audit
        added = [each for each in after.audit[len(before.audit) :] if each[0] != "read"]
        assert added == [("reject", row.reason.value)] * row.records
    else:
        assert after == before
    if not row.damaged:
        world.memory.close()
        with Memory.open(world.path) as again:
            assert again.verify().tail_pinned

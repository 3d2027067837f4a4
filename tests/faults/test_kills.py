"""SIGKILL: what was acknowledged is there, what was not is there whole or not at all."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from cma import CmaError, Memory
from tests.faults.injection import child, copied

CYCLES = int(os.environ.get("CMA_KILL_CYCLES", "20"))


@pytest.mark.parametrize(
    ("point", "in_flight"),
    [
        ("before-commit", False),
        ("after-commit", True),
        ("torn-anchor", True),
        ("before-anchor-sync", True),
    ],
)
def test_killed_at_a_named_point_the_store_is_whole(
    path: Path, tmp_path: Path, point: str, in_flight: bool
) -> None:
    process = child("killed", path, point)
    out, _ = process.communicate("go\n", timeout=60)
    assert process.returncode == -signal.SIGKILL
    acknowledged = out.split()[1:]
    assert len(acknowledged) == 3
    with Memory.open(copied(path, tmp_path / "copy")) as memory:
        verified = memory.verify()
        assert verified.cells == 3 + in_flight
        assert verified.tail_pinned
        for cell_id in acknowledged:
            assert memory.get(cell_id).content.startswith("acknowledged")
        assert len(memory.recall("in flight").hits) == in_flight
    with Memory.open(path) as memory:  # and with the files where they were, it goes on
        memory.write("after", kind="episodic", origin="test", observed_at="2026-03-01T12:00:00Z")
        assert memory.verify().cells == 4 + in_flight


@pytest.fixture
def nursery() -> Iterator[subprocess.Popen[str]]:
    """A process that forks writers, so that each need not start an interpreter."""
    process = child("nursery")
    yield process
    process.communicate(timeout=30)


def test_killed_at_any_moment_nothing_acknowledged_is_lost(
    nursery: subprocess.Popen[str], tmp_path: Path
) -> None:
    chosen = random.Random(11)
    assert nursery.stdin is not None
    assert nursery.stdout is not None
    total = 0
    for cycle in range(CYCLES):
        path = tmp_path / f"cycle-{cycle % 4}.cma"  # a store is killed several times over
        nursery.stdin.write(f"{path}\n")
        nursery.stdin.flush()
        pid, acknowledged = 0, []
        while not pid or not acknowledged:
            kind, *names = nursery.stdout.readline().split()
            if kind == "pid":
                pid = int(names[0])
            else:
                acknowledged.append((kind, *names))
        time.sleep(chosen.random() * 0.03)
        os.kill(pid, signal.SIGKILL)
        for line in nursery.stdout:
            if line.strip() == "ended":
                break
            kind, *names = line.split()
            acknowledged.append((kind, *names))
        total += len(acknowledged)
        _is_whole(path, acknowledged)
    assert total >= CYCLES


def _is_whole(path: Path, acknowledged: list[tuple[str, ...]]) -> None:
    with Memory.open(path) as memory:
        view = memory.within("session:a")
        assert memory.verify().tail_pinned
        for kind, *names in acknowledged:
            if kind == "cell":
                assert view.get(names[0]).id == names[0]
            elif kind == "revision":
                assert view.get(names[0], revision=2).confidence == 0.5
            else:
                assert names[0] in [link.id for link in view.links_of(names[1])]


def test_a_store_killed_while_it_began_can_begin_again(path: Path) -> None:
    """The file appears under its name only when it and its anchor are whole."""
    import cma.orion.opening as opening

    def die(*_: object) -> None:
        raise KeyboardInterrupt

    for name in ("migrate", "write_anchor"):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(opening, name, die)
            with pytest.raises(KeyboardInterrupt):
                Memory.open(path)
        assert not path.exists()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(opening.os, "replace", die)
        with pytest.raises(KeyboardInterrupt):
            Memory.open(path)
    assert not path.exists()
    with Memory.open(path) as memory:
        assert memory.verify().audit_records == 1
    assert sorted(entry.name for entry in path.parent.iterdir()) == [path.name, f"{path.name}.head"]
    assert issubclass(CmaError, Exception)

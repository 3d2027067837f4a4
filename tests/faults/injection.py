"""Ways to break a store on purpose, and to see that nothing else changed."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import apsw
import pytest

from cma import Caller, Cell, CmaError, Memory, Reason

START = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
CALLER = Caller(name="tester", authority="user")
ROOT = Path(__file__).resolve().parents[2]
CHILDREN = Path(__file__).with_name("children.py")


def remember(view: Memory, content: str, *, minutes: float = 0, **fields: Any) -> Cell:
    """Write an episodic cell that was observed some minutes after the start."""
    fields.setdefault("observed_at", START + timedelta(minutes=minutes))
    fields.setdefault("origin", "test")
    return view.write(content, kind="episodic", **fields)


def hold(view: Memory, content: str, *, ttl: int = 60, **fields: Any) -> Cell:
    """Write a working cell that lives for `ttl` seconds."""
    fields.setdefault("origin", "test")
    return view.write(content, kind="working", metadata={"ttl_seconds": ttl}, **fields)


def draft(content: str, **fields: Any) -> dict[str, Any]:
    """Return an episodic draft as a mapping."""
    return {
        "kind": "episodic",
        "content": content,
        "origin": "test",
        "observed_at": "2026-03-01T12:00:00Z",
        **fields,
    }


@contextmanager
def refused(memory: Memory, reason: Reason, field: str | None = None) -> Iterator[list[CmaError]]:
    """Expect a typed refusal that leaves authoritative memory as it was."""
    before = memory.digest(), memory.generation
    caught: list[CmaError] = []
    with pytest.raises(CmaError) as info:
        yield caught
    caught.append(info.value)
    assert info.value.reason is reason, str(info.value)
    assert info.value.code == reason.value
    if field is not None:
        assert info.value.field == field
    assert (memory.digest(), memory.generation) == before


def files_of(path: Path) -> dict[str, bytes]:
    """Return the bytes of store, log and anchor; an empty log says as much as none."""
    names = (path.name, f"{path.name}-wal", f"{path.name}-journal", f"{path.name}.head")
    found = {}
    for name in names:
        place = path.with_name(name)
        if place.is_file() and (place.stat().st_size or name == path.name):
            found[name] = place.read_bytes()
    return found


def refuses_to_open(path: Path, *reasons: Reason) -> CmaError:
    """Expect that the store is refused for one of these reasons, and that its files stay."""
    before = files_of(path)
    with pytest.raises(CmaError) as info:
        Memory.open(path).close()
    assert info.value.reason in reasons, str(info.value)
    assert files_of(path) == before
    return info.value


def copied(path: Path, folder: Path) -> Path:
    """Copy the files of a store, open or not, into a new folder; the copy is as after a crash."""
    folder.mkdir()
    for name in (path.name, f"{path.name}-wal", f"{path.name}.head"):
        if path.with_name(name).exists():
            shutil.copyfile(path.with_name(name), folder / name)
    return folder / path.name


def tamper(path: Path, *statements: tuple[Any, ...]) -> None:
    """Run statements on a store's file as a stranger would, past the triggers of the audit."""
    connection = apsw.Connection(str(path))
    connection.execute("DROP TRIGGER IF EXISTS audit_is_never_changed")
    connection.execute("DROP TRIGGER IF EXISTS audit_is_never_deleted")
    with connection:
        for sql, *values in statements:
            connection.execute(sql, values)
    connection.close()


def audit(memory: Memory, column: int = 1) -> list[Any]:
    """Return one column of the audit rows, by default the operation."""
    memory.store.flush_reads()
    return [row[column] for row in memory.store.audit_rows()]


def child(*arguments: object, **environment: str) -> subprocess.Popen[str]:
    """Start a process that does one of the jobs in children.py."""
    return subprocess.Popen(
        [sys.executable, "-W", "ignore::DeprecationWarning", str(CHILDREN), *map(str, arguments)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT), **environment},
    )


def answer(process: subprocess.Popen[str]) -> str:
    """Let a child begin, wait for its end, and return what it printed."""
    out, _ = process.communicate("go\n", timeout=60)
    assert process.returncode == 0, out
    return out


class Fault:
    """Fails the Nth counted call of a disk, once or from then on."""

    def __init__(self, *, sticky: bool, code: int) -> None:
        self.sticky = sticky
        self.code = code
        self.fail_at = 0
        self.count = 0
        self.failed = 0

    def arm(self, fail_at: int) -> None:
        """Count from now on and fail call number `fail_at`."""
        self.fail_at, self.count, self.failed = fail_at, 0, 0

    def disarm(self) -> None:
        """Let every call pass."""
        self.fail_at = 0

    def hit(self) -> None:
        """Count one call; fail it when its turn has come."""
        if not self.fail_at:
            return
        self.count += 1
        if self.count == self.fail_at or (self.sticky and self.count > self.fail_at):
            self.failed += 1
            raise apsw.exception_for(self.code)


class FaultyDisk(apsw.VFS):
    """A file system whose writes, syncs and truncations can fail."""

    def __init__(self, name: str, fault: Fault) -> None:
        self.fault = fault
        super().__init__(name, "")

    def xOpen(self, name: Any, flags: list[int]) -> FaultyFile:  # noqa: N802
        """Open a file that shares the disk's fault."""
        return FaultyFile(self.fault, name, flags)


class FaultyFile(apsw.VFSFile):
    """A file on such a disk."""

    def __init__(self, fault: Fault, name: Any, flags: list[int]) -> None:
        self.fault = fault
        super().__init__("", name, flags)

    def xWrite(self, data: bytes, offset: int) -> None:  # noqa: N802
        """Write unless the fault's turn has come."""
        self.fault.hit()
        super().xWrite(data, offset)

    def xSync(self, flags: int) -> None:  # noqa: N802
        """Sync unless the fault's turn has come."""
        self.fault.hit()
        super().xSync(flags)

    def xTruncate(self, size: int) -> None:  # noqa: N802
        """Truncate unless the fault's turn has come."""
        self.fault.hit()
        super().xTruncate(size)

"""The bench of a row: a small store on a clock that stands still, and ways to break into it."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import apsw

from cma import Caller, FixedClock, Memory
from cma.lagoon.standing import Proposal
from cma.orion.audit import AuditRecord
from experiments.failures import ExperimentError
from experiments.runs import ROOT

START = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
CALLER = Caller(name="ann", authority="user")
STORE_ID = "failure-matrix"
PATIENCE_SECONDS = 120.0
_TABLES = {
    "cells": "SELECT id, revision, record FROM cells",
    "links": "SELECT id, 1, record FROM links",
    "governed": "SELECT id, 1, record FROM governed",
    "attendant": "SELECT id, 1, record FROM attendant",
}
_TRANSITIONS = "SELECT count(*), max(seq) FROM audit WHERE operation <> 'read'"


@dataclass(frozen=True, slots=True)
class Census:
    """The rows of a store file as a stranger's connection reads them."""

    records: Mapping[str, Mapping[tuple[str, int], bytes]]
    transitions: int
    """Audit records that tell of no read."""
    last: int
    """Number of the last of them."""
    generation: int


@dataclass(frozen=True, slots=True)
class Bench:
    """One store, two sessions that use it, and the folder in which it lies."""

    folder: Path
    clock: FixedClock
    memory: Memory

    @property
    def path(self) -> Path:
        """The store's file."""
        return self.folder / "store.cma"

    @property
    def ann(self) -> Memory:
        """The store seen from one session."""
        return self.memory.within("session:ann")

    @property
    def bob(self) -> Memory:
        """The store seen from another session."""
        return self.memory.within("session:bob")

    def digest(self) -> str:
        """Return the digest of authoritative memory."""
        return self.memory.digest()

    def census(self) -> Census:
        """Return what another connection reads, once the reads that wait are on record."""
        self.memory.store.flush_reads()
        with closing(apsw.Connection(str(self.path))) as connection:
            records = {
                table: {(name, revision): data for name, revision, data in connection.execute(sql)}
                for table, sql in _TABLES.items()
            }
            [(transitions, last)] = connection.execute(_TRANSITIONS)
        return Census(records, transitions, last or 0, self.memory.generation)

    def failures_after(self, census: Census) -> tuple[AuditRecord, ...]:
        """Return the failure records that were left since a census."""
        return tuple(each for each in self.memory.failures() if each.seq > census.last)

    def remove(self, cell_id: str) -> None:
        """Remove the rows of a cell through another connection, past the store.

        By the same library: a second copy of SQLite in one process would drop the store's locks.
        """
        with closing(apsw.Connection(str(self.path))) as connection:
            connection.execute("DELETE FROM cells WHERE id = ?", (cell_id,))
            gone = connection.changes()
        if gone == 0:
            raise ExperimentError("no row was removed, so nothing was injected")

    def files(self) -> dict[str, int]:
        """Return the files of the folder and their sizes; the store's own log may grow and go."""
        return {
            each.name: each.stat().st_size
            for each in self.folder.iterdir()
            if not each.name.startswith("store.cma")
        }


@contextmanager
def opened(folder: Path) -> Iterator[Bench]:
    """Begin a store in a new folder and give the bench around it."""
    folder.mkdir(parents=True)
    clock = FixedClock(START)
    with Memory.open(folder / "store.cma", caller=CALLER, clock=clock, store_id=STORE_ID) as memory:
        yield Bench(folder, clock, memory)


def remember(view: Memory, text: str, minutes: int = 0) -> str:
    """Write an event that was observed so many minutes after the start; return its id."""
    at = START + timedelta(minutes=minutes)
    return view.write(text, kind="episodic", origin="matrix", observed_at=at).id


def episodes(view: Memory, action: str, *, first: int = 0, replay: bool = True) -> list[str]:
    """Bind two episodes of one signature, two events each; return the ids of the frames."""
    frames = []
    for number in range(first, first + 20, 10):
        sources = [remember(view, f"Ann {action}, {n}", n) for n in (number, number + 1)]
        frame = view.bind(
            scene=f"{action} {number}", sources=sources, entities=["Ann"], actions=[action]
        )
        frames.append(frame.id)
        if replay and not view.replay(frame.id).complete:
            raise ExperimentError("a replay of untouched sources is not complete")
    return frames


def claim(
    view: Memory, frames: list[str], *, says: tuple[str, str, str], scope: str | None = None
) -> Proposal:
    """Propose a claim of subject, predicate and object from these frames."""
    subject, predicate, thing = says
    return view.propose(
        frames=frames,
        content=f"{subject} {predicate} {thing}",
        subject=subject,
        predicate=predicate,
        object=thing,
        scope=scope,
    )


def child(*arguments: object, **environment: str) -> subprocess.Popen[str]:
    """Start a process that does one of the jobs in `child.py` once it reads a line."""
    return subprocess.Popen(
        [sys.executable, "-m", "experiments.injections.child", *map(str, arguments)],
        cwd=ROOT,
        env={**os.environ, **environment},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def answer(process: subprocess.Popen[str]) -> str:
    """Wait for the end of a child and return what it printed."""
    try:
        out, problem = process.communicate(timeout=PATIENCE_SECONDS)
    except subprocess.TimeoutExpired as error:
        process.kill()
        process.communicate()
        raise ExperimentError("a child process did not end in time") from error
    if process.returncode != 0:
        tail = problem.strip().splitlines()[-1:] or ["no reason given"]
        raise ExperimentError(f"a child process failed: {tail[0]}")
    return out

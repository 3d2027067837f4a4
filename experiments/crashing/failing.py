"""Disks that refuse, cut short or drop the Nth call, for every N until a step runs to its end.

Each step of the script is a path: opened where the clean run stood before it, run with one call
failing, judged, and run again with the next call. What is asked of a refusal: the step raises one
of our errors or was done whole; the store stands before or after it; nobody is kept out by a lock;
the same handle and a reopened store both go on. What is asked of a disk that lies (`dropped`) is
less: the store is whole, or it says that it is not.

apsw raises what a failing call raised even where SQLite goes on without it (a folding of the log
that fails after the commit), so some steps are refused here that a real disk would let pass.
"""

from __future__ import annotations

import fcntl
import itertools
import os
import shutil
from collections.abc import Iterator, Mapping
from contextlib import suppress
from enum import StrEnum
from pathlib import Path
from typing import NamedTuple

import apsw

from cma import CmaError, Memory
from cma.orion.anchor import anchor_path
from experiments.crashing import script, steps
from experiments.crashing.calls import Fate
from experiments.crashing.faults import FAULTS, Failing
from experiments.crashing.judging import Left, Verdict, left, standing
from experiments.crashing.script import Reference
from experiments.crashing.watching import watched
from experiments.failures import ExperimentError

OPENING = "open"
CLOSING = "close"
Stood = dict[int, dict[str, bytes]]


class Answer(StrEnum):
    """What a failed call led to."""

    REFUSED = "refused, nothing done"
    DONE_UNSAID = "refused, but wholly done"
    DONE = "done in spite of it"
    NOTICED = "the loss is noticed later"
    KEPT = "the disk keeps erased bytes"
    """It dropped the write that should have gone over them, which only the disk can know."""
    PARTIAL = "partly done"
    STUCK = "does not go on"
    UNTYPED = "an error that is none of ours"
    LOCKED = "a lock is left"
    SILENT = "a loss that nobody notices"


BAD = (Answer.PARTIAL, Answer.STUCK, Answer.UNTYPED, Answer.LOCKED, Answer.SILENT)


class Way(NamedTuple):
    """How a path is run: which fault it meets, with a log that grows or one folded at once."""

    fault: str
    log: str


class Try(NamedTuple):
    """One call that failed: in which path, which call of it, and what came of it."""

    path: str
    number: int
    call: str
    answer: Answer


def paths(reference: Reference) -> dict[str, int]:
    """Return the steps to interrupt by name, the first of each; opening and closing beside them."""
    found: dict[str, int] = {}
    for number, step in enumerate(reference.steps):
        found.setdefault(step.name, number)
    return found | {OPENING: found["link"], CLOSING: found["link"]}


def tries(place: Path, reference: Reference, stood: Stood, path: str, way: Way) -> Iterator[Try]:
    """Fail every call of a path in one way, until none is left to fail."""
    begin = paths(reference)[path]
    for number in itertools.count(1):
        folder = place / str(number)
        folder.mkdir()
        lay_out(folder, stood[begin])
        failing = Failing(FAULTS[way.fault], number)
        answer = _answer(folder, reference, path, begin, way, failing)
        shutil.rmtree(folder)
        if failing.hit is None:
            if answer is not Answer.DONE:
                raise ExperimentError(f"{path} does not run to its end even on a sound disk")
            return
        yield Try(path, number, failing.hit.kind, answer)


def stood_before(folder: Path) -> tuple[Reference, Stood]:
    """Run the script once and keep the files as they lie before each step, log and all."""
    stood: Stood = {0: {}}

    def keep(number: int) -> None:
        stood[number] = files_of(folder)

    return script.reference(folder, keep), stood


def files_of(folder: Path) -> dict[str, bytes]:
    """Return the files that a crash leaves: all but the shared memory."""
    return {
        file.name: file.read_bytes()
        for file in sorted(folder.iterdir())
        if not file.name.endswith("-shm")
    }


def _answer(
    folder: Path, reference: Reference, path: str, begin: int, way: Way, failing: Failing
) -> Answer:
    """Run a path with one call failing, and say what came of it."""
    end = begin + (path != OPENING)
    with watched(folder, failing):
        ran = _ran(folder, reference, path, begin, end, way, failing)
    if ran.answer in BAD:
        return ran.answer
    if ran.error is not None and not isinstance(ran.error, CmaError):
        return Answer.UNTYPED
    if _locked(folder / steps.STORE):
        return Answer.LOCKED
    found = standing(folder, reference, ran.reached, end)
    if failing.fault.fate is Fate.DROP:
        return _of_a_lie(found)
    answer = _of_a_refusal(found, ran.error, begin)
    return answer if answer in BAD else ran.answer or answer


class Ran(NamedTuple):
    """How a path ended: its error, what the open store said of it, and how far it has come."""

    error: BaseException | None
    answer: Answer | None
    reached: int


def _ran(
    folder: Path,
    reference: Reference,
    path: str,
    begin: int,
    end: int,
    way: Way,
    failing: Failing,
) -> Ran:
    error: BaseException | None = None
    answer: Answer | None = None
    reached = begin
    opens = path in (OPENING, steps.CREATE)
    try:
        failing.armed = opens
        with script.opened(folder, begin) as memory:
            failing.armed = False
            if way.log == "folded":
                memory.store.connection.pragma("wal_autocheckpoint", 1)
            if not opens:
                failing.armed = path != CLOSING
                error = _step(memory, reference, folder, begin)
                failing.armed = False
            reached = end if error is None else begin
            if failing.hit and failing.fault.fate is not Fate.DROP:
                answer = _same_handle(memory, reference, folder, begin, end, error)
                reached = end
            failing.armed = path == CLOSING
    except Exception as raised:
        error = error or raised
    failing.armed = False
    return Ran(error, answer, reached)


def _step(memory: Memory, reference: Reference, folder: Path, number: int) -> BaseException | None:
    try:
        reference.steps[number].run(memory, dict(reference.known), folder)
    except Exception as error:
        return error
    return None


def _same_handle(
    memory: Memory,
    reference: Reference,
    folder: Path,
    begin: int,
    end: int,
    error: BaseException | None,
) -> Answer:
    """Look at the store while it is open, and at its files as a crash would leave them now.

    Then do again what was not done: it must come out as in the clean run.
    """
    if _locked(folder / steps.STORE):
        return Answer.LOCKED
    crashed = folder.with_name(f"{folder.name}-crashed")
    crashed.mkdir()
    lay_out(crashed, files_of(folder))
    answer = _of_a_refusal(left(crashed, reference, begin if error else end, end), error, begin)
    shutil.rmtree(crashed)
    if answer in BAD:
        return answer
    try:
        found = script.seen_by(memory)
        if found not in (reference.states[begin], reference.states[end]):
            return Answer.PARTIAL
        if error is not None and found == reference.states[begin]:
            answer = Answer.REFUSED
            reference.steps[begin].again(memory, dict(reference.known), folder)
            found = script.seen_by(memory)
    except CmaError:
        return Answer.STUCK
    return answer if found == reference.states[end] else Answer.STUCK


def lay_out(folder: Path, files: Mapping[str, bytes]) -> None:
    """Write files into a folder."""
    for name, content in files.items():
        (folder / name).write_bytes(content)


def _of_a_refusal(found: Left, error: BaseException | None, begin: int) -> Answer:
    if found.verdict is not Verdict.WHOLE:
        return Answer.STUCK if found.verdict is Verdict.STUCK else Answer.PARTIAL
    if error is None:
        return Answer.DONE
    return Answer.REFUSED if found.place == begin else Answer.DONE_UNSAID


def _of_a_lie(found: Left) -> Answer:
    if found.verdict is Verdict.WHOLE:
        return Answer.DONE
    if found.verdict is Verdict.UNERASED:
        return Answer.KEPT
    said = found.verdict is Verdict.REFUSED or (found.verdict is Verdict.STUCK and found.said)
    return Answer.NOTICED if said else Answer.SILENT


def _locked(store: Path) -> bool:
    """Tell whether another connection cannot write to a store, or its anchor stays locked."""
    if not store.exists():
        return False
    other = apsw.Connection(str(store), flags=apsw.SQLITE_OPEN_READWRITE)
    try:
        other.execute("BEGIN IMMEDIATE; ROLLBACK")
    except apsw.BusyError:
        return True
    except apsw.Error:
        pass  # a file that cannot be read keeps nobody out by a lock
    finally:
        with suppress(apsw.Error):
            other.close()
    descriptor = os.open(anchor_path(store), os.O_RDWR)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(descriptor)
    return False

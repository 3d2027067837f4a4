"""The steps of the work that is interrupted: every way to write to a store, once or more.

Each step is one transition through the public interface. Ids and contents depend on the step alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from cma import Caller, CmaError, FixedClock, Memory

START = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
CALLER = Caller(name="ann", authority="user")
SCOPE = "session:crash"
STORE = "memory.cma"
SNAPSHOT = "memory.cma.jsonl"
SECOND_SNAPSHOT = "again.cma.jsonl"
RESTORED = "restored.cma"
STORE_ID = "crash"
CREATE = "create"
ERASE = "erase"
ERASED = b"event 5 of the batch"
"""Words of the cell that is erased."""
BATCH = 12
PAUSE = timedelta(minutes=1)
Known = dict[str, Any]
Work = Callable[[Memory, Known, Path], Any]


@dataclass(frozen=True, slots=True)
class Step:
    """One transition. `run` adds what later steps need to `known`."""

    name: str
    run: Work
    again: Work
    """What a caller does in the same process after `run` has failed."""


def every_step() -> Iterator[Step]:
    """Yield the steps, the creation of the store first."""
    yield _step(CREATE, lambda view, _, __: view.generation)
    for number in range(4):
        yield _step("write", _write(number))
    yield _step("write a batch", _batch)
    yield _step("write to expire", _working)
    yield _step("snapshot", _snapshot)
    yield _step("restore", _restore)
    yield _step("link", lambda view, known, _: view.link("temporal", known["e0"], known["e1"]))
    yield _step("link a batch", _links)
    yield _step("replace", lambda view, known, _: view.update(known["b0"], confidence=0.25))
    yield _step("retire", lambda view, known, _: view.update(known["b1"], lifecycle="superseded"))
    yield _step(ERASE, lambda view, known, _: view.erase(known["b5"], reason="retention-ended"))
    for frame in range(2):
        yield _step("bind a frame", _frame(frame))
        yield _step("replay", _replay(frame))
    for claim, thing in enumerate(("tea", "mate", "water")):
        yield _step("propose", _claim(claim, thing))
    yield _step("grant", lambda view, known, _: view.grant(known["c0"], approval_id="CR-1"))
    yield _step("admit", lambda view, known, _: view.admit(known["c0"], approval_id="CR-1"))
    yield _step("approve", lambda view, known, _: view.approve(known["c1"], approval_id="CR-2"))
    yield _step("reject", lambda view, known, _: view.reject(known["c2"], reason="not so"))
    yield _step("decide", _decide)
    for number, outcome in enumerate(("success", "failure")):
        yield _step("execute", _execution(number, outcome))
    yield _step("propose a skill", _skill)
    yield _step("approve a skill", lambda v, known, _: v.approve(known["s"], approval_id="CR-3"))
    yield _step("sweep", lambda view, _, __: view.sweep())
    yield _step("keep the index", lambda view, _, __: view.keep_index())
    yield _step("recall", _recall, _recall_again)
    yield _step("deliver", _deliver)
    yield _step("refuse", _refused)
    yield _step("write", _write(4))


def _step(name: str, run: Work, again: Work | None = None) -> Step:
    return Step(name, run, again or run)


def _write(number: int) -> Work:
    def run(view: Memory, known: Known, _: Path) -> None:
        known[f"e{number}"] = view.write(
            f"Ann drinks tea, day {number}",
            kind="episodic",
            origin="script",
            observed_at=START + number * PAUSE,
        ).id

    return run


def _batch(view: Memory, known: Known, _: Path) -> None:
    drafts = [
        {
            "kind": "episodic",
            "content": f"event {number} of the batch " + "and more of it " * 20,
            "origin": "script",
            "observed_at": START + number * PAUSE,
        }
        for number in range(BATCH)
    ]
    known.update({f"b{place}": name for place, name in enumerate(view.write_many(drafts).ids)})


def _working(view: Memory, _: Known, __: Path) -> None:
    view.write("soon gone", kind="working", origin="script", metadata={"ttl_seconds": 60})


def _links(view: Memory, known: Known, _: Path) -> None:
    view.link_many(
        [
            {"kind": kind, "source_id": known["b2"], "target_id": known[f"b{place}"]}
            for place in range(3, BATCH)
            for kind in ("task", "replay")
        ]
    )


def _frame(frame: int) -> Work:
    def run(view: Memory, known: Known, _: Path) -> None:
        sources = [known[f"e{2 * frame}"], known[f"e{2 * frame + 1}"]]
        known[f"f{frame}"] = view.bind(
            scene=f"kitchen, morning {frame}", sources=sources, entities=["Ann"], actions=["drinks"]
        ).id

    return run


def _replay(frame: int) -> Work:
    return lambda view, known, _: view.replay(known[f"f{frame}"])


def _claim(claim: int, thing: str) -> Work:
    def run(view: Memory, known: Known, _: Path) -> None:
        known[f"c{claim}"] = view.propose(
            frames=[known["f0"], known["f1"]],
            content=f"Ann drinks {thing}",
            subject="Ann",
            predicate="drinks",
            object=thing,
        ).candidate.id

    return run


def _decide(view: Memory, _: Known, __: Path) -> None:
    view.decide(view.conflicts()[0].id, handling="preserve_both")


def _execution(number: int, outcome: str) -> Work:
    def run(view: Memory, known: Known, _: Path) -> None:
        known[f"x{number}"] = view.execute(
            task="make tea", steps=["boil", "pour"], outcome=outcome, sources=[known[f"e{number}"]]
        ).id

    return run


def _skill(view: Memory, known: Known, _: Path) -> None:
    known["s"] = view.propose_skill(executions=[known["x0"], known["x1"]]).candidate.id


def _recall(view: Memory, known: Known, _: Path) -> None:
    known["trace"] = view.recall("what does Ann drink").trace
    view.store.flush_reads()


def _recall_again(view: Memory, known: Known, folder: Path) -> None:
    """A read that waits is recorded, one that was never made is made."""
    if view.store.reads.is_empty():
        _recall(view, known, folder)
    else:
        view.store.flush_reads()


def _deliver(view: Memory, known: Known, _: Path) -> None:
    view.deliver(view.packet(known["trace"], budget=400))


def _refused(view: Memory, known: Known, _: Path) -> None:
    """A transition that is refused leaves one record; a disk that fails is another matter."""
    try:
        view.update(known["e0"], content="what was not seen")
    except CmaError as error:
        if error.code != "witnessed-content":
            raise


def _snapshot(view: Memory, _: Known, folder: Path) -> None:
    """A name that was taken before the crash is not written over."""
    taken = (folder / SNAPSHOT).exists()
    view.snapshot(folder / (SECOND_SNAPSHOT if taken else SNAPSHOT))


def _restore(view: Memory, _: Known, folder: Path) -> None:
    """Restoring makes another store; this one is only asked for its clock."""
    if not (folder / RESTORED).exists():
        restore(folder / SNAPSHOT, folder / RESTORED, view.store.now())


def restore(snapshot: Path, target: Path, at: datetime) -> None:
    """Build a store from a snapshot and close it."""
    Memory.restore(snapshot, target, caller=CALLER, clock=FixedClock(at)).close()

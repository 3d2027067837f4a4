"""What is left of a store after a crash, held against the clean run.

Whole: the store opens, verifies, and stands exactly where the clean run stood after some step
that is neither before the last acknowledged one nor behind the last that was begun; a snapshot or
restored store that is there is whole too; and the script goes on from there to the next state.
"""

from __future__ import annotations

import hashlib
from enum import StrEnum
from pathlib import Path
from typing import NamedTuple

from cma import CmaError
from experiments.crashing import script, steps
from experiments.crashing.script import Reference, State


class Verdict(StrEnum):
    """What became of the acknowledged and of the interrupted transitions."""

    WHOLE = "whole"
    LOST = "acknowledged lost"
    REFUSED = "refused"
    """The store does not open or verify: what was acknowledged is out of reach."""
    TORN = "torn"
    """The store is none of the states that the clean run passed through."""
    UNERASED = "erased words are still there"
    STUCK = "stuck"
    """All is there, but the next transition does not come out as in the clean run."""


class Left(NamedTuple):
    """A verdict, after how many steps the store stands (if one was found), and what was said."""

    verdict: Verdict
    place: int | None = None
    said: str = ""


def left(folder: Path, reference: Reference, acknowledged: int, begun: int) -> Left:
    """Judge a folder of which `acknowledged` steps were confirmed and `begun` started; go on."""
    found = standing(folder, reference, acknowledged, begun)
    if found.verdict is not Verdict.WHOLE or found.place is None:
        return found
    return goes_on(folder, reference, found.place)


def standing(folder: Path, reference: Reference, acknowledged: int, begun: int) -> Left:
    """Judge what lies in the folder, without going on from it."""
    try:
        return _standing(folder, reference, acknowledged, begun)
    except CmaError as error:
        return Left(Verdict.REFUSED, None, error.code)


def _standing(folder: Path, reference: Reference, acknowledged: int, begun: int) -> Left:
    if (folder / steps.STORE).exists():
        with script.opened(folder, acknowledged) as memory:
            found = script.state_of(memory)
        place = _place(reference, found, acknowledged, begun)
        if place is None:
            seen = found in reference.states
            return Left(Verdict.LOST if seen else Verdict.TORN, None, f"record {found.records}")
    elif acknowledged:
        return Left(Verdict.LOST, None, "no store")
    else:
        place = 0
    if place >= reference.place(steps.ERASE) and _told(folder, steps.ERASED):
        return Left(Verdict.UNERASED, place)
    return Left(_files(folder, reference, acknowledged), place, "a file beside the store")


def _told(folder: Path, words: bytes) -> bool:
    """Tell whether a file of the store, which was opened and closed, holds words."""
    own = [file for file in folder.glob(f"{steps.STORE}*") if file.name != steps.SNAPSHOT]
    return any(words in file.read_bytes() for file in own)


def goes_on(folder: Path, reference: Reference, place: int) -> Left:
    """Run the next step on what is left; it must come out as in the clean run."""
    if place == len(reference.steps):
        return Left(Verdict.WHOLE, place)
    after: list[State] = []
    try:
        script.play(
            folder,
            dict(reference.known),
            begin=place,
            end=place + 1,
            done=lambda _, memory: after.append(script.seen_by(memory)),
        )
    except CmaError as error:
        return Left(Verdict.STUCK, place, error.code)
    same = after == [reference.states[place + 1]]
    return Left(Verdict.WHOLE if same else Verdict.STUCK, place)


def _place(reference: Reference, found: State, acknowledged: int, begun: int) -> int | None:
    """Return after which step the store stands, the earliest of those that it may stand after."""
    for place in range(acknowledged, begun + 1):
        if reference.states[place] == found:
            return place
    return None


def _files(folder: Path, reference: Reference, acknowledged: int) -> Verdict:
    """Judge the snapshot and the restored store: acknowledged is there, and there is whole.

    Raises the library's refusal of a snapshot that is not whole.
    """
    names = (steps.SNAPSHOT, steps.SECOND_SNAPSHOT)
    there = [folder / name for name in names if (folder / name).exists()]
    if not there and acknowledged >= reference.place("snapshot"):
        return Verdict.LOST
    for file in there:
        if hashlib.sha256(file.read_bytes()).hexdigest() != reference.snapshot:
            steps.restore(file, folder / "of-a-torn-snapshot.cma", steps.START)
            return Verdict.TORN
    if (folder / steps.RESTORED).exists():
        files = [folder / f"{steps.RESTORED}{end}" for end in ("", "-wal", ".head")]
        contents = tuple(file.read_bytes() if file.exists() else b"" for file in files)
        if _restored(contents, folder) != reference.restored:
            return Verdict.TORN
    elif acknowledged >= reference.place("restore"):
        return Verdict.LOST
    return Verdict.WHOLE


_verified: dict[tuple[bytes, ...], str] = {}


def _restored(contents: tuple[bytes, ...], folder: Path) -> str:
    """Return the digest of the restored store; files that were verified before are known."""
    key = tuple(hashlib.sha256(content).digest() for content in contents)
    if key not in _verified:
        _verified[key] = script.restored_digest(folder)
    return _verified[key]

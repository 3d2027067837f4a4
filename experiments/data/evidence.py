"""Evidence ids as people typed them.

A published evidence string should be the id of one turn ("D8:6"). Some hold several ids, padded
numbers or a stray colon: these are read where the meaning is plain. What cannot be read, or names
no turn, is left out of the evidence. Either way the string becomes an `EvidenceProblem`, so that
nothing is repaired or dropped in silence.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from experiments.data.conversations import EvidenceProblem, ProblemKind

_ID = re.compile(r"D:?(\d+):(\d+)")
_BETWEEN = re.compile(r"[\s;,]*")


@dataclass(frozen=True, slots=True)
class Reading:
    """The turns that one published string names, and the problems met on the way."""

    turns: tuple[str, ...]
    problems: tuple[tuple[ProblemKind, str], ...]


def read_evidence(raw: str, turns: Collection[str]) -> Reading:
    """Read one published evidence string against the ids of the turns that exist."""
    if raw in turns:
        return Reading((raw,), ())
    problems: list[tuple[ProblemKind, str]] = []
    matches = list(_ID.finditer(raw))
    if not matches or not _BETWEEN.fullmatch(_ID.sub("", raw)):
        return Reading((), (("malformed", "not readable; left out"),))
    named = [f"D{int(match[1])}:{int(match[2])}" for match in matches]
    found = tuple(name for name in named if name in turns)
    resolution = f"read as {' '.join(found)}" if found else "left out"
    if len(named) > 1:
        problems.append(("multiple", resolution))
    if any(match[0].startswith("D:") for match in matches):
        problems.append(("malformed", resolution))
    if any(number != str(int(number)) for match in matches for number in match.groups()):
        problems.append(("padded", resolution))
    problems.extend(
        ("unresolvable", f"{name} names no turn; left out") for name in named if name not in turns
    )
    return Reading(found, tuple(problems))


def read_all(
    conversation: str, question: str, published: Sequence[str], turns: Collection[str]
) -> tuple[tuple[str, ...], list[EvidenceProblem]]:
    """Read all evidence strings of one question: turn ids without repeats, and every problem."""
    if not published:
        return (), [EvidenceProblem(conversation, question, "", "empty", "question left out")]
    resolved: dict[str, None] = {}
    problems: list[EvidenceProblem] = []
    for raw in published:
        reading = read_evidence(raw, turns)
        resolved.update(dict.fromkeys(reading.turns))
        problems.extend(
            EvidenceProblem(conversation, question, raw, kind, resolution)
            for kind, resolution in reading.problems
        )
    return tuple(resolved), problems

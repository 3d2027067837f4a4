"""The hunt: inputs one after another, what became of each, and small copies of what went wrong."""

from __future__ import annotations

import random
import signal
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any

from experiments.fuzzing.shrinking import shrunk
from experiments.fuzzing.target import Read, Target

PATIENCE_SECONDS = 10.0
KEPT = 20
"""Most kinds of faults of which an input is kept."""
SHOWN = 200


class TookTooLongError(Exception):
    """An input was not done with within `PATIENCE_SECONDS`."""


@dataclass(frozen=True, slots=True)
class Fault:
    """One kind of untyped error: where it came from, how often, and a small input that shows it."""

    target: str
    index: int
    error: str
    message: str
    place: str
    data: bytes


@dataclass(slots=True)
class Tally:
    """What became of the inputs, by target."""

    inputs: Counter[str] = field(default_factory=Counter)
    accepted: Counter[str] = field(default_factory=Counter)
    refused: Counter[tuple[str, str]] = field(default_factory=Counter)
    """By target and code of the refusal."""
    untyped: Counter[str] = field(default_factory=Counter)
    slowest: dict[str, float] = field(default_factory=dict)
    faults: list[Fault] = field(default_factory=list)

    def as_dict(self) -> dict[str, Any]:
        """Return it as JSON holds it."""
        return {
            "inputs": self.inputs,
            "accepted": self.accepted,
            "refused": [[*key, count] for key, count in sorted(self.refused.items())],
            "untyped": self.untyped,
            "slowest": self.slowest,
            "faults": [asdict(each) | {"data": each.data.hex()} for each in self.faults],
        }


def tally_of(told: dict[str, Any]) -> Tally:
    """Return the tally that `as_dict` wrote."""
    return Tally(
        inputs=Counter(told["inputs"]),
        accepted=Counter(told["accepted"]),
        refused=Counter({(target, code): count for target, code, count in told["refused"]}),
        untyped=Counter(told["untyped"]),
        slowest=told["slowest"],
        faults=[Fault(**{**each, "data": bytes.fromhex(each["data"])}) for each in told["faults"]],
    )


def hunt(
    targets: Sequence[Target],
    seed: int,
    indexes: Iterable[int],
    folder: Path,
    begins: Callable[[int], object] = lambda _: None,
) -> Tally:
    """Make the inputs of these numbers and give each to its target; return what became of them.

    An input is a function of seed and number alone. folder: where targets keep their files, each
    in its own. begins: called with a number before its input is made.
    """
    tally = Tally()
    with ExitStack() as stack:
        reads: dict[str, Read] = {}
        for target in targets:
            place = folder / target.name.replace(" ", "-")
            place.mkdir()
            reads[target.name] = stack.enter_context(target.opened(place))
        shares = [target.share for target in targets]
        for index in indexes:
            begins(index)
            chance = random.Random(f"{seed} {index}")  # noqa: S311
            [target] = chance.choices(targets, shares)
            data = target.make(chance)
            began = time.perf_counter()
            code, error = answer(target, reads[target.name], data)
            seconds = time.perf_counter() - began
            tally.inputs[target.name] += 1
            tally.slowest[target.name] = max(tally.slowest.get(target.name, 0.0), seconds)
            if error is not None:
                _note(tally, target, reads[target.name], index, data, error)
            elif code is None:
                tally.accepted[target.name] += 1
            else:
                tally.refused[target.name, code] += 1
    return tally


def answer(target: Target, read: Read, data: bytes) -> tuple[str | None, BaseException | None]:
    """Return the code of a promised refusal, or the error that was not promised, or neither."""
    try:
        with _patience():
            read(data)
    except target.refusals as refusal:
        return str(getattr(refusal, "code", type(refusal).__name__)), None
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # an exit is no answer either
        return None, error
    return None, None


def place_of(error: BaseException) -> str:
    """Return where an error came from: file, function and line of the innermost frame of ours."""
    frames = traceback.extract_tb(error.__traceback__)
    ours = [each for each in frames if "site-packages" not in each.filename]
    ours = [each for each in ours if "fuzzing" not in each.filename] or ours
    if not ours:
        return ""
    return f"{Path(ours[-1].filename).name}:{ours[-1].name}:{ours[-1].lineno}"


def _note(
    tally: Tally, target: Target, read: Read, index: int, data: bytes, error: BaseException
) -> None:
    tally.untyped[target.name] += 1
    key = (target.name, type(error).__name__, place_of(error))
    known = any((each.target, each.error, each.place) == key for each in tally.faults)
    if known or len(tally.faults) >= KEPT:
        return

    def same(smaller: bytes) -> bool:
        _, other = answer(target, read, smaller)
        return other is not None and (type(other).__name__, place_of(other)) == key[1:]

    message = ""
    with suppress(Exception):  # what cannot be shown need not be
        message = str(error)[:SHOWN].encode(errors="backslashreplace").decode()
    tally.faults.append(Fault(target.name, index, key[1], message, key[2], shrunk(data, same)))


@contextmanager
def _patience() -> Iterator[None]:
    def stop(_: int, __: FrameType | None) -> None:
        raise TookTooLongError(f"not done within {PATIENCE_SECONDS:g} s")

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, PATIENCE_SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)

"""One size measured: every engine built and opened, then asked the same questions in turn."""

from __future__ import annotations

import gc
import shutil
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from time import perf_counter

import numpy as np

from experiments.scaling.engines import ENGINES, Cma, Engine, opened
from experiments.scaling.exact import best
from experiments.scaling.loading import Loaded, loaded
from experiments.scaling.texts import SPACING, START, Texts
from experiments.settings import ScaleSettings

ASKED_AFTER = timedelta(hours=1)
KEPT = "cma, kept index"
WARM = 20
"""Questions asked before the clock runs."""
BLOCK, SETTLING = 25, 3
APPENDED = 20
Advance = Callable[[int], None]


@dataclass(slots=True)
class Measured:
    """What one size gave."""

    cells: int
    build: dict[str, float] = field(default_factory=dict)
    disk: dict[str, float] = field(default_factory=dict)
    load: dict[str, Loaded] = field(default_factory=dict)
    append: dict[str, list[float]] = field(default_factory=dict)
    latency: dict[tuple[str, str], list[float]] = field(default_factory=dict)
    """Seconds by mix and way of asking."""
    checked: int = 0
    equal: int = 0


def measure(
    cells: int,
    made: Texts,
    names: Sequence[str],
    asked: ScaleSettings,
    folder: Path,
    advance: Advance,
) -> Measured:
    """Measure one size; what was built is removed after."""
    found = Measured(cells)
    told = made.told(made.cells[:cells])
    questions = {mix: made.told(codes) for mix, codes in made.questions.items()}
    for name in names:
        place = folder / name
        place.mkdir()
        started = perf_counter()
        ENGINES[name].build(place, told)
        found.build[name] = perf_counter() - started
        found.disk[name] = _size(place)
        found.load[name] = loaded(name, place, questions["rare"][0])
        if name == "cma":
            _keep(found, place, questions["rare"][0])
        advance(1)
    del told
    with ExitStack() as stack:
        engines = {name: stack.enter_context(opened(name, folder / name)) for name in names}
        _check(found, made, engines["cma"], asked)
        advance(1)
        for mix, texts in questions.items():
            _ask(found, mix, texts, engines, asked.patience_seconds)
            advance(1)
        for name, engine in engines.items():
            _append(found, name, engine, questions["rare"], cells)
    shutil.rmtree(folder)
    return found


def _keep(found: Measured, place: Path, question: str) -> None:
    """Keep CMA's index beside its store, and open it from there: so it is asked afterwards."""
    with closing(Cma(place)) as engine:
        started = perf_counter()
        kept = engine.memory.keep_index()
        found.build[KEPT] = perf_counter() - started
    found.disk[KEPT] = kept.stat().st_size / 1e6
    found.load[KEPT] = loaded("cma", place, question)


def _ask(
    found: Measured,
    mix: str,
    questions: Sequence[str],
    engines: Mapping[str, Engine],
    patience: float,
) -> None:
    """Ask every engine in turn, a block of questions at a time, so that all see the same machine.

    Within a block an engine has the caches to itself, as in use; its first questions after another
    engine are not counted. Each way of asking begins at another question. An engine that has taken
    longer than `patience` in all is asked no more questions.
    """
    asks = {way: ask for engine in engines.values() for way, ask in engine.asks.items()}
    spent = dict.fromkeys(asks, 0.0)
    for ask in asks.values():
        started = perf_counter()
        for question in questions[:WARM]:
            ask(question)
            if perf_counter() - started > patience / 10:
                break
    ways = list(asks)
    gc.collect()
    gc.disable()
    try:
        for first in range(0, len(questions), BLOCK):
            for place, way in enumerate(ways):
                offset = first + place * len(questions) // len(ways)
                for turn in range(-SETTLING, min(BLOCK, len(questions) - first)):
                    if spent[way] > patience and (mix, way) in found.latency:
                        break
                    question = questions[(offset + turn) % len(questions)]
                    started = perf_counter()
                    asks[way](question)
                    seconds = perf_counter() - started
                    spent[way] += seconds
                    if turn >= 0:
                        found.latency.setdefault((mix, way), []).append(seconds)
    finally:
        gc.enable()


def _check(found: Measured, made: Texts, engine: Engine, asked: ScaleSettings) -> None:
    """Hold answers of the index against brute force over the same cells."""
    if not isinstance(engine, Cma):
        raise TypeError("CMA comes first")
    ids, cells = engine.ids(), made.cells[: found.cells]
    at = START + len(cells) * SPACING + ASKED_AFTER
    for codes in made.questions.values():
        for question, text in zip(
            codes[: asked.checked], made.told(codes[: asked.checked]), strict=True
        ):
            expected = best(cells, ids, question, at, engine.memory.retrieval)
            found.checked += 1
            found.equal += engine.found_at(text, at) == expected


def _append(
    found: Measured, name: str, engine: Engine, questions: Sequence[str], cells: int
) -> None:
    """Append texts one at a time, each until a question was answered with it there."""
    ask = list(engine.asks.values())[-1]
    seconds = []
    for turn in range(APPENDED):
        started = perf_counter()
        try:
            engine.append(questions[turn % len(questions)], cells + turn)
        except NotImplementedError:
            return
        ask(questions[turn % len(questions)])
        seconds.append(perf_counter() - started)
    found.append[name] = seconds


def milliseconds(seconds: Sequence[float], share: float) -> float:
    """Return a quantile in milliseconds."""
    return 1e3 * float(np.quantile(seconds, share))


def _size(place: Path) -> float:
    return sum(each.stat().st_size for each in place.rglob("*") if each.is_file()) / 1e6

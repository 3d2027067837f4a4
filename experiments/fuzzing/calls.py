"""Calls as input: what users of the library, the command line and the experiments can give."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from contextlib import chdir, contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

from typer.testing import CliRunner

from cma import CmaError, FixedClock, Memory
from cma.cli import app
from experiments.fuzzing import growing
from experiments.fuzzing.mutating import changed_value
from experiments.fuzzing.target import BrokenPromiseError, Read
from experiments.fuzzing.world import CALLER, START
from experiments.overrides import composed

STORE = "fuzzed.cma"
SCOPE = "session:a"
FACT: dict[str, Any] = {"subject": "Ann", "predicate": "drinks", "object": "tea"}
EVENT = {"kind": "episodic", "content": "tea", "origin": "o", "observed_at": "2026-03-01T12:00:00Z"}
CALLS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("write", EVENT),
    ("write", {"kind": "working", "content": "x", "origin": "o", "metadata": {"ttl_seconds": 60}}),
    ("write_many", {"drafts": [EVENT, {**EVENT, "content": "mate", "derived_from": []}]}),
    ("link", {"kind": "similarity", "source_id": "CELL", "target_id": "OTHER", "weight": 0.5}),
    ("link_many", {"drafts": [{"kind": "causal", "source_id": "CELL", "target_id": "OTHER"}]}),
    ("links_of", {"cell_id": "CELL", "kind": "causal"}),
    ("update", {"cell_id": "CELL", "summary": "s", "confidence": 0.5, "metadata": {"turn": "1"}}),
    ("get", {"cell_id": "CELL", "revision": 1}),
    ("recall", {"query": "tea", "limit": 3, "include_inactive": True}),
    ("recall", {"query": "tea", "retrieval": {"lexical": "bm25", "coefficients": {"lexical": 1}}}),
    ("bind", {"scene": "s", "sources": ["CELL"], "actions": ["a"], "start": None, "end": None}),
    ("frame", {"frame_id": "FRAME"}),
    ("replay", {"frame_id": "FRAME", "sequence": ["CELL"]}),
    ("propose", {"frames": ["FRAME"], "content": "Ann drinks tea", **FACT, "scope": "global"}),
    ("execute", {"task": "t", "steps": ["a", "b"], "outcome": "success", "sources": ["CELL"]}),
    ("propose_skill", {"executions": ["execution-0"], "importance": 0.5}),
    ("proposals", {"status": "pending"}),
    ("proposal", {"candidate_id": "CANDIDATE"}),
    ("grant", {"candidate_id": "CANDIDATE", "approval_id": "CR-1", "expires_at": None}),
    ("admit", {"candidate_id": "CANDIDATE", "approval_id": "CR-1"}),
    ("approve", {"candidate_id": "CANDIDATE", "approval_id": "CR-2"}),
    ("approve_many", {"candidate_ids": ["CANDIDATE"], "approval_id": "CR-3"}),
    ("reject", {"candidate_id": "CANDIDATE", "reason": "no"}),
    ("regenerate", {"candidate_id": "CANDIDATE"}),
    ("decide", {"link_id": "link-0", "handling": "defer", "policy": "p"}),
    ("decisions", {"link_id": "link-0"}),
    ("explain", {"request": "trace-0"}),
    ("traverse", {"start": "FRAME", "scales": ["episode"], "depth": 2, "budget": 3}),
    ("packet", {"recollection": {"query": "tea"}, "budget": 100}),
    ("deliver", {"packet": {"groups": []}, "recipient": "model"}),
    ("within", {"scope": SCOPE}),
    ("acting_as", {"caller": {"name": "ann", "authority": "user"}}),
)
"""Each with arguments that are well, as the ids below have been put in their places."""
COMMANDS: tuple[list[str], ...] = (
    ["recall", STORE, "tea", "--scope", SCOPE, "--limit", "3", "--json"],
    ["recall", STORE, "tea", "--analyser", "english", "--lexical", "bm25", "--include-inactive"],
    ["explain", STORE, "TRACE", "--scope", SCOPE, "--json"],
    ["verify", STORE, "--json"],
    ["timeline", STORE, "--json"],
    ["doctor", STORE, "--json"],
    ["proposals", "list", STORE, "--status", "pending", "--json"],
    ["proposals", "show", STORE, "CANDIDATE", "--json"],
    ["proposals", "approve", STORE, "CANDIDATE", "--approval-id", "CR-9", "--as", "ann", "--json"],
    ["proposals", "reject", STORE, "CANDIDATE", "--reason", "no", "--as", "ann", "--json"],
    ["snapshot", STORE, "taken.cma.jsonl", "--json"],
    ["restore", "taken.cma.jsonl", "again.cma", "--json"],
    ["--version"],
)
OVERRIDES: tuple[list[str], ...] = (
    ["experiment=recovery"],
    ["experiment=retrieval", "data=generated", "retrieval.coefficients.link=0.3"],
    ["experiment=scale", "scale.cells=[1000,2000]", "seed=3"],
    ["experiment=coefficient_sweep", "sweep.points=10", "sweep.parts=[link]", "store=kept"],
)
OPTIONS = (
    "--scope", "--limit", "--json", "--analyser", "--lexical", "--status", "--as", "--reason",
    "--approval-id", "--expires-at", "--help", "--unknown", "--", "-k",
)  # fmt: skip
KEYS = (
    "seed", "data.path", "data.max_conversations", "retrieval", "scale.cells", "sweep",
    "fuzz.inputs", "experiment", "hydra.run.dir", "evaluation.scorers", "model.config",
    "paths.runs", "nothing",
)  # fmt: skip
NAMES = ("CELL", "OTHER", "FRAME", "CANDIDATE", "TRACE")
"""Stand for ids of the store that calls and commands are about."""
STATUSES = (0, 1, 2)


class CommandRefusedError(Exception):
    """A command ended with a status that says so: 1 refused, 2 wrong usage."""

    def __init__(self, status: int) -> None:
        """Keep the status as the code."""
        super().__init__(f"status {status}")
        self.code = f"status-{status}"


def make_call(chance: random.Random) -> bytes:
    """Return a call of the library with changed arguments."""
    name, arguments = chance.choice(CALLS)
    return json.dumps([name, changed_value(chance, arguments)]).encode()


def make_command(chance: random.Random) -> bytes:
    """Return a command line with a few of its words changed; most name the store still."""
    words = list(chance.choice(COMMANDS))
    for _ in range(chance.randint(1, 2)):
        words = _changed_words(chance, words)
    return json.dumps(words).encode()


def make_overrides(chance: random.Random) -> bytes:
    """Return overrides of an experiment with another value, key or letter in one of them."""
    words = list(chance.choice(OVERRIDES))
    place = chance.randrange(len(words))
    key, _, value = words[place].partition("=")
    way = chance.randrange(4)
    if way == 0:
        words[place] = f"{key}={_word(chance)}"
    elif way == 1:
        words.append(f"{chance.choice(KEYS)}={_word(chance)}")
    elif way == 2:
        words[place] = f"{chance.choice(('+', '++', '~', ''))}{key}.{_word(chance)}={value}"
    else:
        letter = chance.randrange(len(words[place]) + 1)
        piece = chance.choice((*"=.,[]{}$+~\\'\"/@:# \n", "${seed}", "null", "???", "1e999"))
        words[place] = words[place][:letter] + piece + words[place][letter + 1 :]
    return json.dumps(words).encode()


def _changed_words(chance: random.Random, words: list[str]) -> list[str]:
    way = chance.random()
    values = [place for place, word in enumerate(words) if place and not word.startswith("-")]
    if way < 0.6 and values:
        place = chance.choice(values)
        if words[place] == STORE and chance.random() < 0.8:
            return words
        return [*words[:place], _word(chance), *words[place + 1 :]]
    place = chance.randrange(1, len(words) + 1)
    if way < 0.75:
        return [*words[:place], *words[place + 1 :]]
    if way < 0.9:
        return [*words[:place], chance.choice(OPTIONS), _word(chance), *words[place:]]
    return [*words[:place], _word(chance), *words[place:]]


def _word(chance: random.Random) -> str:
    return str(chance.choice((*growing.TEXTS, *growing.NUMBERS, *NAMES)))


def _prepared(folder: Path) -> dict[str, str]:
    """Fill a store with what the calls are about; return the ids by their names in the calls."""
    with Memory.open(
        folder / STORE, caller=CALLER, clock=FixedClock(START), store_id="fuzzed"
    ) as memory:
        view = memory.within(SCOPE)
        cells, frames = [], []
        for number in range(2):
            at = START - timedelta(hours=number + 1)
            cells.append(
                view.write(f"Ann drinks tea {number}", kind="episodic", origin="o", observed_at=at)
            )
            frames.append(view.bind(scene=f"s{number}", sources=[cells[-1].id], actions=["tea"]).id)
            view.replay(frames[-1])
        proposal = view.propose(frames=frames, content="Ann drinks tea", **FACT)
        trace = view.recall("tea").trace
    return {
        "CELL": cells[0].id,
        "OTHER": cells[1].id,
        "FRAME": frames[0],
        "CANDIDATE": proposal.id,
        "TRACE": trace.id,
    }


def _named(value: Any, ids: dict[str, str]) -> Any:
    if isinstance(value, str):
        return ids.get(value, value)
    if isinstance(value, list):
        return [_named(each, ids) for each in value]
    if isinstance(value, dict):
        return {key: _named(each, ids) for key, each in value.items()}
    return value


@contextmanager
def library(folder: Path) -> Iterator[Read]:
    """Make each call on one store; a refused one changes no memory, and at the end it verifies."""
    ids = _prepared(folder)
    with Memory.open(folder / STORE, caller=CALLER, clock=FixedClock(START)) as memory:
        view = memory.within(SCOPE)

        def read(data: bytes) -> None:
            name, arguments = json.loads(data)
            arguments = growing.meant(_named(arguments, ids))
            use = getattr(view, name)
            before = view.generation
            try:
                if isinstance(arguments, dict):
                    use(**{str(key): value for key, value in arguments.items()})
                else:
                    use(arguments)
            except TypeError as error:
                if "argument" not in str(error):  # the call itself was none
                    raise
            except CmaError:
                if view.generation != before:
                    raise BrokenPromiseError("refused, and memory was changed") from None
                raise

        yield read
        memory.verify()


@contextmanager
def command_line(folder: Path) -> Iterator[Read]:
    """Run each command; it ends with a known status, and under --json says one JSON document."""
    ids = _prepared(folder)
    runner = CliRunner()

    def read(data: bytes) -> None:
        # No word leads out of this folder.
        words = [_here(ids.get(word, word), folder) for word in json.loads(data)]
        with chdir(folder):
            done = runner.invoke(app, words)
        for left in folder.iterdir():
            if not left.name.startswith(STORE):
                left.unlink()
        if done.exception is not None and not isinstance(done.exception, SystemExit):
            raise done.exception
        if done.exit_code not in STATUSES:
            raise BrokenPromiseError(f"it ended with status {done.exit_code}")
        asked = len(words) > 1 and words[-1] == "--json" and not words[-2].startswith("-")
        if asked and done.exit_code != 2 and not {"--help", "--version", "--"} & set(words):
            try:
                json.loads(done.stdout)
            except ValueError as error:
                raise BrokenPromiseError("no JSON document, though one was asked for") from error
        if done.exit_code:
            raise CommandRefusedError(done.exit_code)

    yield read


def _here(word: str, folder: Path) -> str:
    """Return a word that names nothing outside the folder."""
    word = word.replace("/", "-").replace("..", "-")
    return str(folder / word) if word.endswith((".cma", ".jsonl")) else word


@contextmanager
def overrides(_: Path) -> Iterator[Read]:
    """Compose settings from each list of overrides."""

    def read(data: bytes) -> None:
        composed([str(each) for each in json.loads(data)])

    yield read

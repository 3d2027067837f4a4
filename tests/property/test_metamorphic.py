"""What must not matter does not: order of writing, restoring, re-opening, another process.

The same memory is made in many ways. Digest, recall answers, packet, graph and traversal are the
same each time.
"""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from cma import FixedClock, Memory, Retrieval
from tests.faults.injection import CALLER, ROOT, START, draft, remember

QUERIES = ("who drinks tea", "deployment build", "cup 3", "mate")
ANN = "session:ann"
Told = dict[str, Any]


def opened(path: Path) -> Memory:
    return Memory.open(path, caller=CALLER, clock=FixedClock(START), store_id="one")


def write(memory: Memory, seed: int) -> None:
    """Write events, links and frames, each in an order that the seed chooses."""
    shuffled = random.Random(seed)
    ann = memory.within(ANN)
    texts = [f"Ann drinks {'tea' if n % 2 else 'mate'}, cup {n}" for n in range(12)]
    texts += [f"the deployment was a {outcome}" for outcome in ("success", "failure")]
    places = list(enumerate(texts))
    shuffled.shuffle(places)
    ids = {n: remember(ann, text, minutes=n).id for n, text in places}
    others = [draft(f"a tea notice {n}", origin=f"board {n}") for n in range(6)]
    shuffled.shuffle(others)
    memory.write_many(others)
    links = [("temporal", ids[n], ids[n + 1]) for n in range(11)]
    links += [("similarity", ids[0], ids[2]), ("task", ids[3], ids[1])]
    shuffled.shuffle(links)
    for kind, source, target in links:
        ann.link(kind, source, target)
    scenes = list(range(4))
    shuffled.shuffle(scenes)
    frames = {}
    for scene in scenes:
        sources = [ids[scene], ids[scene + 4]]
        frame = ann.bind(scene=f"kitchen {scene}", sources=sources, actions=[f"drinks {scene % 2}"])
        ann.replay(frame.id)
        frames[scene] = frame.id
    claims = [(frames[0], frames[2], "mate"), (frames[1], frames[3], "tea")]
    shuffled.shuffle(claims)
    for *both, drink in claims:
        proposal = ann.propose(
            frames=both[:: shuffled.choice([1, -1])],
            content=f"Ann drinks {drink}",
            subject="Ann",
            predicate="drinks",
            object=drink,
        )
        ann.approve(proposal.id, approval_id=f"CR-{drink}")
    runs = [("success", ids[12]), ("failure", ids[13])]
    shuffled.shuffle(runs)
    done = [
        ann.execute(task="deploy", steps=["build"], outcome=outcome, sources=[cell]).id
        for outcome, cell in runs
    ]
    shuffled.shuffle(done)
    ann.approve(ann.propose_skill(executions=done).id, approval_id="CR-skill")
    conflicts = [*ann.conflicts()]
    shuffled.shuffle(conflicts)
    for link in conflicts:
        ann.decide(link.id, handling="prefer_confident")


def told(memory: Memory) -> Told:
    """Return everything that a user can see, as plain JSON."""
    ann = memory.within(ANN)
    answers: Told = {"digest": memory.digest(), "generation": memory.generation}
    for lexical in ("overlap", "bm25"):
        for query in QUERIES:
            found = ann.recall(query, limit=5, retrieval=Retrieval(lexical=lexical))
            answers[f"{lexical} {query}"] = [[hit.cell.id, repr(hit.score)] for hit in found.hits]
            packet = ann.packet(found, budget=120)
            answers[f"packet {lexical} {query}"] = [packet.id, packet.digest, packet.text]
    graph = ann.graph()
    answers["graph"] = graph.digest
    answers["traversals"] = [
        list(ann.traverse(node.id, depth=2, budget=5).order) for node in graph.nodes
    ]
    answers["frames"] = sorted(frame.id for frame in ann.frames())
    answers["proposals"] = sorted(each.id for each in ann.proposals())
    answers["conflicts"] = [link.id for link in ann.conflicts()]
    return json.loads(json.dumps(answers))


@pytest.fixture(scope="module")
def first(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Told]:
    path = tmp_path_factory.mktemp("first") / "first.cma"
    with opened(path) as memory:
        write(memory, 0)
        return path, told(memory)


def test_there_is_something_to_compare(first: tuple[Path, Told]) -> None:
    answers = first[1]
    assert len(answers["conflicts"]) == 2
    assert len(answers["traversals"]) == 9  # four frames, three derived cells, two decisions
    assert all(answers[f"overlap {query}"] for query in QUERIES)
    assert answers["packet overlap who drinks tea"][2]


@pytest.mark.parametrize("seed", range(1, 5))
def test_the_order_of_writing(first: tuple[Path, Told], tmp_path: Path, seed: int) -> None:
    """One execution of each outcome: of several, a conflict link joins the one recorded first."""
    with opened(tmp_path / "other.cma") as memory:
        write(memory, seed)
        assert told(memory) == first[1]


def test_the_order_of_naming(first: tuple[Path, Told]) -> None:
    """The same frames or executions, named in another order or twice, are the same proposal."""
    with opened(first[0]) as memory:
        ann = memory.within(ANN)
        for proposal in ann.proposals():
            told = proposal.candidate
            fields = {"content": told.content, "summary": told.summary}
            claim = {name: told.metadata.get(name) for name in ("subject", "predicate", "object")}
            for turned in (told.frames[::-1], told.frames * 2) if told.frames else ():
                again = ann.propose(frames=turned, **claim, **fields)
                assert again.id == proposal.id
            for turned in (told.executions[::-1], told.executions * 2) if told.executions else ():
                again = ann.propose_skill(executions=turned, **fields)
                assert again.id == proposal.id
        assert len(ann.proposals()) == 3


def test_one_batch_or_single_writes(tmp_path: Path) -> None:
    """The generation counts transitions; all else is the same."""
    drafts = [draft(f"event {n}", origin=f"o {n}") for n in range(20)]
    answers = []
    for name, parts in {"one": [drafts], "many": [[each] for each in drafts[::-1]]}.items():
        with opened(tmp_path / f"{name}.cma") as memory:
            for part in parts:
                memory.write_many(part)
            found = memory.recall("event", limit=7)
            answers.append((memory.digest(), [(hit.cell.id, hit.score) for hit in found.hits]))
    assert answers[0] == answers[1]


def test_opening_again(first: tuple[Path, Told]) -> None:
    for _ in range(2):
        with opened(first[0]) as memory:
            assert told(memory) == first[1]
            memory.verify()


def test_looking_first_at_something_else(first: tuple[Path, Told]) -> None:
    """What an index or a cache kept from other questions and other sessions changes nothing."""
    with opened(first[0]) as memory:
        for scope in ("session:bob", "global", ANN):
            for query in QUERIES[::-1]:
                memory.within(scope).recall(query, include_inactive=True, limit=100)
        assert told(memory) == first[1]


def test_restoring(first: tuple[Path, Told], tmp_path: Path) -> None:
    """Twice over: the snapshot of a restored store restores to the same again."""
    with opened(first[0]) as memory:
        memory.snapshot(tmp_path / "0.jsonl")
    for number in range(2):
        file, target = tmp_path / f"{number}.jsonl", tmp_path / f"{number}.cma"
        with Memory.restore(file, target, caller=CALLER, clock=FixedClock(START)) as memory:
            assert told(memory) == first[1]
            memory.snapshot(tmp_path / f"{number + 1}.jsonl")


CHILD = """
import json, sys
from pathlib import Path
from tests.property.test_metamorphic import opened, told, write
path = Path(sys.argv[1])
new = not path.exists()
with opened(path) as memory:
    if new:
        write(memory, 3)
    print(json.dumps(told(memory)))
"""


def in_a_process(path: Path, **environment: str) -> Told:
    done = subprocess.run(
        [sys.executable, "-c", CHILD, str(path)],
        capture_output=True,
        text=True,
        check=True,
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT), **environment},
    )
    answers: Told = json.loads(done.stdout)
    return answers


ELSEWHERE: dict[str, dict[str, str]] = {
    "east": {"PYTHONHASHSEED": "1", "TZ": "Asia/Tokyo", "LC_ALL": "C"},
    "west": {"PYTHONHASHSEED": "4242", "TZ": "US/Pacific", "OMP_NUM_THREADS": "1"},
}


@pytest.mark.parametrize("place", ELSEWHERE)
@pytest.mark.parametrize("made", [True, False], ids=["made there", "read there"])
def test_another_process(first: tuple[Path, Told], tmp_path: Path, place: str, made: bool) -> None:
    path = tmp_path / "made.cma" if made else first[0]
    assert in_a_process(path, **ELSEWHERE[place]) == first[1]

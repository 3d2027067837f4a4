"""The five-node graph, really built: two episodes, a claim, a skill and a decision in one store.

Everything goes through the public interface, on a clock that stands still. The graph is then seen
in four ways: as built, asked for again, from a store restored from a snapshot, and built anew by a
process of its own with other hash seeds. A node counts as reached from a start only if every way
visits the same nodes in the same order; the figure is that of the worst start.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pandas as pd

from cma import Caller, FixedClock, Memory
from cma.rosette.graph import Adjacency, GraphView, Scale
from experiments import ranges
from experiments.failures import ExperimentError
from experiments.result import Figure, Result
from experiments.runs import ROOT
from experiments.settings import Settings

NODES = 5
START = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
CALLER = Caller(name="ann", authority="user")
SCOPE = "session:releases"
EVENTS = (
    "Ann builds the release",
    "The release went out",
    "Ann builds the next release",
    "The next release failed in production",
)
PATIENCE_SECONDS = 120.0
BOUNDS: Mapping[str, Mapping[str, Any]] = {
    "none": {},
    "scales=episode": {"scales": ["episode"]},
    "adjacencies=temporal": {"adjacencies": ["temporal"]},
    "depth=1": {"depth": 1},
    "budget=2": {"budget": 2},
}
"""The bounds whose traversals are tabled, from every start that they let in."""


def check(settings: Settings) -> None:
    """Refuse a seed that is none; nothing else can be set."""
    ranges.whole("seed", settings.seed, 0, ranges.SEED_LIMIT)


def run(settings: Settings, folder: Path) -> Result:  # noqa: ARG001
    """Build the fixture, see its graph in every way, and count."""
    with tempfile.TemporaryDirectory() as temporary:
        place = Path(temporary)
        with fixture(place / "fixture.cma") as memory:
            view = memory.graph()
            seen = {"built": told(view, memory), "asked again": told(memory.graph(), memory)}
            seen["restored from a snapshot"] = _restored(memory, place)
            bounded = _bounded(view, memory)
    seen["another process"] = another_process()
    return result_of(view, seen, bounded)


@contextmanager
def fixture(path: Path) -> Iterator[Memory]:
    """Build the fixture in a new file and give the session in which it stands.

    The executions rest on cells that the frames hold: that is what makes the graph connected.
    """
    with Memory.open(path, caller=CALLER, clock=FixedClock(START)) as opened:
        memory = opened.within(SCOPE)
        cells = [
            memory.write(
                text,
                kind="episodic",
                origin="fixture",
                observed_at=START + timedelta(minutes=place),
            ).id
            for place, text in enumerate(EVENTS)
        ]
        frames = []
        for scene, sources in (("first release", cells[:2]), ("second release", cells[2:])):
            frame = memory.bind(
                scene=scene, sources=sources, entities=["Ann"], actions=["builds a release"]
            )
            if not memory.replay(frame.id).complete:
                raise ExperimentError(f"the replay of {scene} is not complete")
            frames.append(frame.id)
        claim = memory.propose(
            frames=frames,
            content="Ann builds the releases",
            subject="Ann",
            predicate="builds",
            object="releases",
        )
        memory.approve(claim.id, approval_id="CR-1")
        executions = [
            memory.execute(
                task="release", steps=["build", "ship"], outcome=outcome, sources=[cell]
            ).id
            for outcome, cell in (("success", cells[1]), ("failure", cells[3]))
        ]
        skill = memory.propose_skill(executions=executions)
        memory.approve(skill.id, approval_id="CR-2")
        [conflict] = memory.conflicts()
        memory.decide(conflict.id, handling="preserve_both")
        yield memory


def told(view: GraphView, memory: Memory) -> dict[str, Any]:
    """Return what is compared: the view's digest and the order of visits from every start."""
    orders = {node.id: list(memory.traverse(node.id).order) for node in view.nodes}
    return {"digest": view.digest, "orders": orders}


def another_process() -> dict[str, Any]:
    """Return what a process of its own tells, which builds the fixture anew."""
    command = [sys.executable, "-m", "experiments.graph_fixture"]
    environment = {**os.environ, "PYTHONHASHSEED": "7"}
    try:
        done = subprocess.run(
            command,
            cwd=ROOT,
            env=environment,
            capture_output=True,
            text=True,
            timeout=PATIENCE_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise ExperimentError(
            f"the fixture was not built within {PATIENCE_SECONDS:.0f} s by another process"
        ) from error
    if done.returncode != 0:
        tail = "\n".join(done.stderr.strip().splitlines()[-5:])
        raise ExperimentError(f"another process could not build the fixture:\n{tail}")
    content: dict[str, Any] = json.loads(done.stdout)
    return content


def result_of(
    view: GraphView, seen: Mapping[str, Mapping[str, Any]], bounded: list[dict[str, Any]]
) -> Result:
    """Count nodes, scales, adjacencies and what was reached, and lay out the tables."""
    names = short_names(view)
    orders = [ways["orders"] for ways in seen.values()]
    reached = {
        node: len(first) if all(each.get(node) == first for each in orders) else 0
        for node, first in orders[0].items()
    }
    same = [way for way, each in seen.items() if dict(each) == dict(seen["built"])]
    differing = [way for way in seen if way not in same]
    notes = [f"The graph differs: {way}." for way in differing]
    found = {
        "graph.nodes": Figure(len(view.nodes), "nodes", NODES),
        "graph.scales": Figure(len({node.scale for node in view.nodes}), "scales", len(Scale)),
        "graph.adjacencies": Figure(
            len({edge.adjacency for edge in view.edges}), "adjacency types", len(Adjacency)
        ),
        "graph.nodes_reached": Figure(
            min(reached.values(), default=0), "nodes reached in one order", NODES
        ),
    }
    nodes = [
        {
            "name": names[node.id],
            "scale": node.scale.value,
            "label": node.label,
            "q": node.q,
            "r": node.r,
            "reached": reached[node.id],
            "id": node.id,
        }
        for node in view.nodes
    ]
    edges = [
        {
            "adjacency": edge.adjacency.value,
            "source": names[edge.source],
            "target": names[edge.target],
        }
        for edge in view.edges
    ]
    ways = [
        {"way": way, "same": way in same, "starts": len(each["orders"]), "digest": each["digest"]}
        for way, each in seen.items()
    ]
    return Result(
        figures=found,
        tables={
            "nodes": pd.DataFrame(nodes),
            "edges": pd.DataFrame(edges),
            "traversal": pd.DataFrame(bounded),
            "ways": pd.DataFrame(ways),
        },
        notes=tuple(notes),
    )


def short_names(view: GraphView) -> dict[str, str]:
    """Return a short name for each node: the initial of its scale, and a number."""
    counts: dict[Scale, int] = {}
    names = {}
    for node in view.nodes:
        counts[node.scale] = counts.get(node.scale, 0) + 1
        names[node.id] = f"{node.scale.value[0].upper()}{counts[node.scale]}"
    return names


def _restored(memory: Memory, folder: Path) -> dict[str, Any]:
    """Return what a store tells that was restored from a snapshot of this one."""
    snapshot = folder / "fixture.cma.jsonl"
    memory.snapshot(snapshot)
    clock = FixedClock(START)
    with Memory.restore(snapshot, folder / "restored.cma", caller=CALLER, clock=clock) as restored:
        own = restored.within(SCOPE)
        return told(own.graph(), own)


def _bounded(view: GraphView, memory: Memory) -> list[dict[str, Any]]:
    names = short_names(view)
    rows = []
    for bounds, given in BOUNDS.items():
        for node in view.nodes:
            if node.scale.value not in given.get("scales", list(Scale)):
                continue  # a start that the bounds shut out is refused
            done = memory.traverse(node.id, **given)
            visits: list[tuple[str, int | str, str]] = [
                (name, place, "") for place, name in enumerate(done.order, start=1)
            ]
            visits += [(cut.node, "", cut.reason) for cut in done.cut]
            rows += [
                {
                    "bounds": bounds,
                    "start": names[node.id],
                    "place": place,
                    "node": names[name],
                    "cut": reason,
                }
                for name, place, reason in visits
            ]
    return rows


def _main() -> None:
    with tempfile.TemporaryDirectory() as temporary, fixture(Path(temporary) / "f.cma") as memory:
        sys.stdout.write(json.dumps(told(memory.graph(), memory)))


if __name__ == "__main__":
    _main()

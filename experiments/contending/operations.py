"""What a contender does: fifteen operations on cells, claims and skills that others work on too.

Each works through the public `Memory` and returns what was acknowledged, in plain values. Cells,
claims and names of approvals are few, so that contenders meet: the same approval, the same cell
and the same link are asked for by several of them.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from cma import Caller, Cell, Memory

SCOPE = "session:shared"
STORE = "shared.cma"
WORLD = "world.json"
SETUP_LOG = "setup.log"
PEOPLE = ("ann", "bob", "eve", "ida", "jon", "kim", "leo", "mia", "ned", "pia", "sam", "zoe")
DRINKS = ("tea", "mate", "rum")
CONTENTS = 2
"""Wordings of a claim: proposals of one fingerprint that are not the same proposal."""
SHARED = 10
FRAMES = 2
APPROVALS = 40
BATCH = 8
BUDGET = 300
BEGAN = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
Said = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Contender:
    """One of those who use the store: its view, its chances, and what it has made itself."""

    name: str
    view: Memory
    chance: random.Random
    world: dict[str, Any]
    folder: Path
    own: list[str] = field(default_factory=list)

    def some_cell(self) -> str:
        """Return a cell that everybody changes, or one of its own."""
        cells: list[str] = [*self.world["cells"], *self.own[-3:]]
        return self.chance.choice(cells)

    def claim(self) -> tuple[str, str]:
        """Return a person and a drink."""
        return self.chance.choice(PEOPLE), self.chance.choice(DRINKS)


def prepare(folder: Path) -> None:
    """Begin a store with cells to change, episodes to claim from, and two claims in conflict.

    What was acknowledged is logged, as that of the contenders is.
    """
    with Memory.open(
        folder / STORE, caller=Caller(name="setup", authority="user"), store_id="shared"
    ) as memory:
        view = memory.within(SCOPE)
        made = [_event(view, f"shared event {number}", number) for number in range(SHARED)]
        cells = [cell.id for cell in made]
        frames: dict[str, list[str]] = {}
        for person in PEOPLE:
            for drink in DRINKS:
                sources = [
                    _event(view, f"{person} drinks {drink}, time {number}", number)
                    for number in range(FRAMES)
                ]
                made += sources
                frames[f"{person} {drink}"] = [
                    _episode(view, source, person, drink) for source in sources
                ]
                if drink != DRINKS[0]:
                    _propose(view, frames, person, drink, 0)
        said: list[Said] = [{"cells": [[cell.id, cell.content, cell.scope] for cell in made]}]
        for drink in DRINKS[:2]:
            name, approval = _propose(view, frames, PEOPLE[0], drink, 0), f"setup-{drink}"
            cell = view.approve(name, approval_id=approval)
            said.append({"candidate": name, "approval": approval, "admitted": cell.id})
    (folder / WORLD).write_text(json.dumps({"cells": cells, "frames": frames}), encoding="utf-8")
    lines = [json.dumps({"by": "setup", "op": "setup", "said": each}) + "\n" for each in said]
    (folder / SETUP_LOG).write_text("".join(lines), encoding="utf-8")


def _event(view: Memory, text: str, minute: int) -> Cell:
    at = BEGAN + timedelta(minutes=minute)
    return view.write(text, kind="episodic", origin="contest", observed_at=at)


def _episode(view: Memory, source: Cell, person: str, drink: str) -> str:
    frame = view.bind(scene=source.content, sources=[source.id], entities=[person], actions=[drink])
    view.replay(frame.id)
    return frame.id


def _propose(
    view: Memory, frames: dict[str, list[str]], person: str, drink: str, wording: int
) -> str:
    return view.propose(
        frames=frames[f"{person} {drink}"],
        content=f"{person} {('drinks', 'likes to drink')[wording]} {drink}",
        subject=person,
        predicate="drinks",
        object=drink,
    ).id


def _write(by: Contender) -> Said:
    number = by.chance.randrange(10**6)
    # A third of the texts are the same for all: one cell each, whoever comes first.
    text = f"{by.name} event {number}" if number % 3 else f"event for all {number % 20}"
    view = by.view if number % 4 else by.view.within("global")
    cell = view.write(
        text, kind="episodic", origin="contest", observed_at=BEGAN + timedelta(minutes=number % 20)
    )
    if number % 3 and number % 4:
        by.own.append(cell.id)
    return {"cells": [[cell.id, cell.content, cell.scope]]}


def _batch(by: Contender) -> Said:
    first = by.chance.randrange(10**6)
    texts = [f"{by.name} batch {first} {place}" for place in range(BATCH - 2)]
    texts += [f"batch for all {(first + place) % 12}" for place in range(2)]
    receipt = by.view.write_many(
        [
            {"kind": "episodic", "content": text, "origin": "contest", "observed_at": BEGAN}
            for text in texts
        ]
    )
    return {"cells": [[name, text, SCOPE] for name, text in zip(receipt.ids, texts, strict=True)]}


def _hold(by: Contender) -> Said:
    cell = by.view.write(
        f"{by.name} holds {by.chance.randrange(10**6)}",
        kind="working",
        origin="contest",
        metadata={"ttl_seconds": 1},
    )
    return {"cells": [[cell.id, cell.content, cell.scope]]}


def _replace(by: Contender) -> Said:
    summary = f"{by.name} {by.chance.randrange(10**9)}"
    cell = by.view.update(by.some_cell(), summary=summary, importance=by.chance.random())
    return {"cell": cell.id, "revision": cell.revision, "summary": summary}


def _retract(by: Contender) -> Said:
    name = by.own.pop(0) if by.own else by.chance.choice(by.world["cells"])
    if name in by.world["cells"]:  # those stay, for all to change
        return {}
    cell = by.view.update(name, lifecycle="retracted")
    return {"cell": cell.id, "revision": cell.revision, "summary": cell.summary}


def _link(by: Contender) -> Said:
    kind = by.chance.choice(("similarity", "causal", "task", "conflict"))
    link = by.view.link(kind, by.some_cell(), by.some_cell())
    return {"link": link.id, "kind": kind, "ends": [link.source_id, link.target_id]}


def _recall(by: Contender) -> Said:
    return {"trace": by.view.recall(f"{by.chance.choice(PEOPLE)} drinks event").trace.id}


def _suggest(by: Contender) -> Said:
    wording = by.chance.randrange(CONTENTS)
    return {"record": _propose(by.view, by.world["frames"], *by.claim(), wording)}


def _candidate(by: Contender) -> str:
    return by.chance.choice(sorted(each.id for each in by.view.proposals()))


def _approve(by: Contender) -> Said:
    candidate, approval = _candidate(by), f"CR-{by.chance.randrange(APPROVALS)}"
    cell = by.view.approve(candidate, approval_id=approval)
    return {"candidate": candidate, "approval": approval, "admitted": cell.id}


def _reject(by: Contender) -> Said:
    candidate = _candidate(by)
    by.view.reject(candidate, reason=f"{by.name} says no")
    return {"candidate": candidate, "rejected_by": by.name}


def _execute(by: Contender) -> Said:
    number = by.chance.randrange(10**6)
    source = _event(by.view, f"{by.name} deploys {number}", number % 20)
    outcome = by.chance.choice(("success", "failure"))
    task = f"deploy {number % 3}"
    done = by.view.execute(task=task, steps=["build", "ship"], outcome=outcome, sources=[source.id])
    return {"record": done.id, "cells": [[source.id, source.content, source.scope]]}


def _sweep(by: Contender) -> Said:
    return {"expired": list(by.view.sweep())}


def _deliver(by: Contender) -> Said:
    found = by.view.recall(f"{by.chance.choice(PEOPLE)} drinks", limit=5)
    receipt = by.view.deliver(by.view.packet(found, budget=BUDGET))
    return {"record": receipt.id, "trace": found.trace.id}


def _verify(by: Contender) -> Said:
    found = by.view.verify()
    return {"records": found.audit_records, "head": found.audit_head}


def _snapshot(by: Contender) -> Said:
    name = f"{by.name}-{by.chance.randrange(10**9)}.cma.jsonl"
    receipt = by.view.snapshot(by.folder / name)
    return {"file": name, "sha256": receipt.sha256}


Operation = Callable[[Contender], Said]
OPERATIONS: dict[str, tuple[int, Operation]] = {
    "write": (20, _write),
    "batch": (6, _batch),
    "hold": (5, _hold),
    "replace": (14, _replace),
    "retract": (2, _retract),
    "link": (10, _link),
    "recall": (12, _recall),
    "propose": (5, _suggest),
    "approve": (9, _approve),
    "reject": (2, _reject),
    "execute": (4, _execute),
    "sweep": (4, _sweep),
    "deliver": (4, _deliver),
    "verify": (2, _verify),
    "snapshot": (1, _snapshot),
}
"""By name: how often, in parts of a hundred, and what is done."""

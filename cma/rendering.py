"""How answers look on a terminal and as JSON. Stored text is quoted data, never marked up."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from typing import Any

import orjson
from pydantic import BaseModel
from rich.console import Console
from rich.table import Table
from rich.text import Text
from rich.tree import Tree

from cma.orion.audit import AuditRecord
from cma.orion.cells import Cell
from cma.orion.explanation import Explanation
from cma.orion.scopes import GLOBAL
from cma.orion.traces import Recollection
from cma.orion.verification import Verification

SHOWN_CONTENT = 100
GOVERNED = "frames, executions, approvals, admissions, decisions"
ATTENDANT = "replays, proposals, rejections, repeats, packets, receipts"


def as_json(answer: Any) -> bytes:
    """Return an answer as one JSON document, indented."""
    return orjson.dumps(
        answer,
        default=_plain,
        option=orjson.OPT_INDENT_2 | orjson.OPT_UTC_Z | orjson.OPT_SERIALIZE_NUMPY,
    )


def recollection(console: Console, answer: Recollection) -> None:
    """Show hits with the weighted parts of their scores, and why each stands above the next."""
    trace = answer.trace
    weights = trace.retrieval.coefficients
    table = Table(title=f"{len(answer.hits)} of at most {trace.limit} cells", expand=False)
    table.add_column("#", justify="right", no_wrap=True)
    table.add_column("score", justify="right", no_wrap=True)
    table.add_column("content, cell, parts x coefficients", overflow="fold")
    for place, hit in enumerate(answer.hits, 1):
        parts = " + ".join(
            f"{name} {hit.parts[name]:.3f} x {getattr(weights, name):g}" for name in weights.names
        )
        told = Text(quoted(hit.cell.content))
        told.append(f"\n{hit.cell.id}\n{parts}", style="dim")
        table.add_row(str(place), f"{hit.score:.4f}", told)
    if answer.hits:
        console.print(table)
    else:
        console.print(Text(f"nothing was found in the scope {trace.scope}"))
        if trace.scope == GLOBAL:
            console.print(Text("a session's cells are seen with --scope session:<id>", style="dim"))
    for place, (above, below) in enumerate(pairwise(trace.hits), 1):
        pair = f"{place} before {place + 1}: "
        console.print(Text(pair + trace.contrast(above, below), style="dim"))
    left = ", ".join(f"{count} {reason}" for reason, count in sorted(trace.excluded.items()))
    console.print(Text(f"left out: {left or 'nothing'}", style="dim"))
    console.print(Text(f"terms: {' '.join(trace.terms)}", style="dim"))
    console.print(Text(f"scope {trace.scope}, generation {trace.generation}", style="dim"))
    console.print(Text(f"trace {trace.id}", style="dim"), soft_wrap=True)


def recall_tree(answer: Explanation) -> Tree:
    """Return the explanation of a recall as a tree, from the recall back to the audit."""
    trace = answer.trace
    mark = "verified" if answer.verified else "NOT VERIFIED"
    tree = Tree(Text(f"{trace.id}  [{mark}]", style="bold"))
    asked = tree.add(Text("asked"))
    asked.add(Text(f"query {quoted(trace.query)}"))
    asked.add(Text(f"scope {trace.scope}, at {trace.at.isoformat()}"))
    asked.add(Text(f"generation {trace.generation}, index {trace.index_digest[:16]}"))
    if answer.recorded is not None:
        asked.add(Text(record_line(answer.recorded)))
    for place, item in enumerate(answer.hits, 1):
        line = f"{place}. {item.hit.cell} revision {item.hit.revision}, score {item.hit.score:.4f}"
        branch = tree.add(Text(line if item.verified else f"{line}  NOT VERIFIED"))
        parts = ", ".join(f"{name} {part:.3f}" for name, part in item.hit.parts.items())
        branch.add(Text(parts, style="dim"))
        if item.cell is not None:
            _add_cell(branch, item.cell)
        history = branch.add(Text("audit"))
        for record in item.history:
            history.add(Text(record_line(record), style="dim"))
        if place <= len(answer.comparisons):
            branch.add(Text(f"above the next: {answer.comparisons[place - 1]}", style="dim"))
    if trace.excluded:
        left = tree.add(Text("left out"))
        for reason, count in sorted(trace.excluded.items()):
            left.add(Text(f"{count} {reason}"))
        for exclusion in trace.exclusions:
            left.add(Text(f"{exclusion.cell} {exclusion.reason}", style="dim"))
    return tree


def verification(console: Console, answer: Verification) -> None:
    """Show what was verified, in words where a field's name does not say what it counts."""
    console.print(Text("the store is sound", style="bold"))
    told = answer.model_dump()
    pinned = told.pop("tail_pinned")
    told["governed records"] = f"{told.pop('governed')} ({GOVERNED})"
    told["attendant records"] = f"{told.pop('attendant')} ({ATTENDANT})"
    told["anchor names"] = "the last record" if pinned else "an earlier record"
    _facts(console, told)


def facts(console: Console, answer: BaseModel | Mapping[str, Any]) -> None:
    """Show a value, one fact a line and whole: digests are there to be compared."""
    _facts(console, answer.model_dump() if isinstance(answer, BaseModel) else answer)


def timeline(console: Console, answer: list[AuditRecord]) -> None:
    """Show audit records, one a line and whole, times in UTC: ids are there to be copied."""
    for record in answer:
        told = [f"{record.seq:>6}", f"{record.at:%Y-%m-%d %H:%M:%S}Z", f"{record.operation:<11}"]
        told += [record.actor, *record.subjects[:1]]
        line = Text("  ".join(told))
        reason = " ".join(filter(None, (record.reason, record.detail)))
        if reason:
            line.append(f"  {reason}", style="yellow")
        console.print(line, soft_wrap=True)
    console.print(Text(f"{len(answer)} audit records", style="dim"))


def counted(number: int, what: str, many: str = "") -> str:
    """Return a number of things in words."""
    return f"{number} {what if number == 1 else many or f'{what}s'}"


def quoted(content: str) -> str:
    """Return stored text as one quoted, printable line of bounded length."""
    line = "".join(letter if letter.isprintable() else " " for letter in content)
    return f"“{line if len(line) <= SHOWN_CONTENT else line[: SHOWN_CONTENT - 1] + '…'}”"


def _add_cell(branch: Tree, cell: Cell) -> None:
    branch.add(Text(f"{cell.kind.value} {quoted(cell.content)}"))
    source = f"source {quoted(cell.source.origin)}, authority {cell.source.authority.value}"
    branch.add(Text(f"{source}, {cell.scope}"))
    if cell.observed_at is not None:
        branch.add(Text(f"observed {cell.observed_at.isoformat()}", style="dim"))


def record_line(record: AuditRecord) -> str:
    """Return an audit record as one line."""
    told = f"record {record.seq}: {record.operation.value} by {record.actor}"
    reason = f" ({record.reason})" if record.reason else ""
    return f"{told} at {record.at.isoformat()}{reason}, hash {record.hash[:16]}"


def _facts(console: Console, told: Mapping[str, Any]) -> None:
    width = max(map(len, told), default=0) + 2
    for name, value in told.items():
        console.print(Text(f"{name.replace('_', ' '):<{width}}{value}"), soft_wrap=True)


def _plain(value: Any) -> Any:
    if isinstance(value, BaseModel):
        told = value.model_dump(mode="json")
        if hasattr(value, "verified"):
            told["verified"] = value.verified
        return told
    raise TypeError(f"no JSON form: {type(value).__name__}")

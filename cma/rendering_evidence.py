"""How proposals, their evidence and their lineage look on a terminal."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text
from rich.tree import Tree

from cma.lagoon.candidates import Candidate
from cma.lagoon.standing import Proposal, Status
from cma.orion.cells import Cell, Lifecycle
from cma.rendering import counted, quoted, recall_tree, record_line
from cma.rosette.explaining import RequestExplanation
from cma.rosette.lineage import Lineage, SourceCell


def proposal_list(console: Console, answer: Sequence[Proposal]) -> None:
    """Show proposals, one a row: how each stands, what it claims, what it rests on."""
    if not answer:
        console.print(Text("no proposals"))
        console.print(Text("a program makes them with memory.propose(...)", style="dim"))
        return
    table = Table(title=counted(len(answer), "proposal"), expand=False)
    table.add_column("status", no_wrap=True)
    table.add_column("claim or skill, id, evidence", overflow="fold")
    for proposal in answer:
        candidate = proposal.candidate
        told = Text(quoted(candidate.content))
        told.append(f"\n{candidate.id}\n{_carries(candidate)}", style="dim")
        for line in _decided(proposal):
            told.append(f"\n{line}", style="yellow")
        table.add_row(proposal.status.value, told)
    console.print(table)


def evidence(console: Console, answer: Any, *, store: Path) -> None:
    """Show a proposal as a tree with its evidence beside it, then what can be done with it."""
    proposal: Proposal = answer.proposal
    candidate = proposal.candidate
    tree = Tree(Text(f"{candidate.id}  [{proposal.status.value}]", style="bold"))
    claim = tree.add(Text(f"{candidate.kind.value} {quoted(candidate.content)}"))
    claim.add(Text(_said(candidate), style="dim"))
    claim.add(Text(f"confidence {candidate.confidence:g}, would live in {candidate.scope}"))
    claim.add(
        Text(f"proposed by {candidate.proposed_by} ({candidate.authority}), {_carries(candidate)}")
    )
    for frame in sorted(answer.frames, key=lambda each: (each.start, each.id)):
        whole = "replays completely" if frame.id not in answer.incomplete else "REPLAY INCOMPLETE"
        branch = tree.add(Text(f"{frame.id}  {quoted(frame.scene)}, {whole}"))
        branch.add(Text(f"{frame.start.isoformat()} to {frame.end.isoformat()}", style="dim"))
        _add_sources(branch, [each for each in answer.sources if each.id in frame.cells])
    for execution in answer.executions:
        branch = tree.add(Text(f"{execution.id}  {execution.outcome.value}"))
        _add_sources(branch, [each for each in answer.sources if each.id in execution.cells])
    for line in _decided(proposal):
        tree.add(Text(line, style="yellow"))
    console.print(tree)
    if proposal.status is Status.PENDING:
        which = f"{shlex.quote(str(store))} {candidate.id}"
        for do, given in (("approve", "-a <approval id>"), ("reject", "-r <reason>")):
            command = f"cma proposals {do} {which} {given} --as <name>"
            console.print(Text(command, style="dim"), soft_wrap=True)


def request(console: Console, answer: RequestExplanation) -> None:
    """Show a request told backwards: receipt, packet, decisions, recall, cells, lineage, audit."""
    mark = "verified" if answer.verified else "NOT VERIFIED"
    receipt, packet = answer.receipt, answer.packet
    if receipt is not None:
        tree = Tree(Text(f"{receipt.id}  [{mark}]", style="bold"))
        to = f"delivered to {quoted(receipt.recipient)} by {receipt.by} at {receipt.at.isoformat()}"
        tree.add(Text(f"{to}, generation {receipt.generation}"))
        packed = tree.add(Text(receipt.packet))
        if packet is not None:
            used = f"{packet['used']} of {packet['budget']} tokens by {packet['counter']}"
            packed.add(Text(f"{used}, {counted(len(packet['groups']), 'group')}"))
            for cells, reason in packet["excluded"]:
                packed.add(Text(f"left out ({reason}): {', '.join(cells)}", style="dim"))
        for each in answer.served:
            seen = "" if each.verified else "  NOT VERIFIED"
            told = _served(each.cell)
            packed.add(Text(f"{each.id} revision {each.revision} {told}{seen}"))
        for decision in answer.decisions:
            handled = f"{decision.handling.value} by {decision.by} under policy {decision.policy}"
            tree.add(Text(f"{decision.id}: {handled} (control, not served)"))
        for record in answer.records:
            tree.add(Text(record_line(record), style="dim"))
        tree.add(recall_tree(answer.recall))
    else:
        tree = recall_tree(answer.recall)
        if answer.recall.verified != answer.verified:
            tree.add(Text("lineage NOT VERIFIED"))
    for lineage in answer.lineages:
        add_lineage(tree.add(Text(lineage.cell)), lineage)
    console.print(tree)


def _served(cell: Cell | None) -> str:
    if cell is None:
        return "not visible from this scope"
    return "erased" if cell.lifecycle is Lifecycle.ERASED else quoted(cell.content)


def admitted(console: Console, answer: Sequence[Cell], *, under: str) -> None:
    """Show the cells that proposals became, one a line and whole.

    under: the approval id that was given; a cell of another one was memory before.
    """
    for cell in answer:
        name = cell.approval_id or ""
        before = "" if under in (name, name.rpartition("/")[0]) else "  (memory already)"
        told = f"{cell.kind.value}  {cell.id}  approval {name}{before}  {quoted(cell.content)}"
        console.print(Text(told), soft_wrap=True)


def add_lineage(tree: Tree, lineage: Lineage) -> None:
    """Add how a derived cell became memory."""
    mark = "" if lineage.verified else "  NOT VERIFIED"
    branch = tree.add(Text(f"derived memory{mark}"))
    if lineage.approval is not None:
        approval = lineage.approval
        branch.add(
            Text(
                f"approved as {quoted(approval.id)} by {approval.approver} ({approval.authority}) "
                f"under policy {approval.policy} at {approval.at.isoformat()}"
            )
        )
    if lineage.candidate is not None:
        candidate = lineage.candidate
        branch.add(Text(f"{candidate.id}, {_carries(candidate)}"))
    for frame in lineage.frames:
        branch.add(Text(f"{frame.id} {quoted(frame.scene)}", style="dim"))
    for execution in lineage.executions:
        branch.add(Text(f"{execution.id} {execution.outcome.value}", style="dim"))
    _add_sources(branch, lineage.sources)
    for record in lineage.history:
        branch.add(Text(record_line(record), style="dim"))


def _add_sources(branch: Tree, sources: Sequence[SourceCell]) -> None:
    for source in sources:
        if source.cell is None:
            gone = "gone" if source.visible else "not visible from this scope"
            branch.add(Text(f"{source.id}: {gone}"))
            continue
        cell = source.cell
        seen = "" if source.verified else "  NOT VERIFIED"
        if cell.lifecycle is Lifecycle.ERASED:
            branch.add(Text(f"{source.id}: erased{seen}"))
            continue
        told = f"{quoted(cell.content)} from {quoted(cell.source.origin)}"
        line = Text(f"{told} ({cell.source.authority.value}){seen}")
        branch.add(line.append(f"  {source.id}", style="dim"))


def _said(candidate: Candidate) -> str:
    """Return what is claimed in parts, in the order in which it is read."""
    order = ("subject", "predicate", "object", "task", "steps")
    said = {name: candidate.metadata.get(name) for name in (*order, *candidate.metadata)}
    told = []
    for name, part in said.items():
        each = part if isinstance(part, list | tuple) else [part]
        if part:
            told.append(f"{name} {', '.join(quoted(str(one)) for one in each)}")
    return ", ".join(told)


def _decided(proposal: Proposal) -> list[str]:
    told = []
    if proposal.rejection_reason:
        told.append(f"rejected: {quoted(proposal.rejection_reason)}")
    if proposal.status is Status.QUARANTINED:
        told.append("needs approval anew: a source of it was erased")
    if proposal.cell_id:
        told.append(f"in memory as {proposal.cell_id}")
    return told


def _carries(candidate: Candidate) -> str:
    sources = counted(len(candidate.cells), "source cell")
    if candidate.frames:
        return f"{counted(len(candidate.frames), 'frame')}, {sources}"
    wins = counted(len(candidate.successes), "success", "successes")
    return f"{wins}, {counted(len(candidate.failures), 'failure')}, {sources}"

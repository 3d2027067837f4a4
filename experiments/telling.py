"""The steps of a delivery told backwards, each with its audit records and whether they agree.

Receipt, packet with its groups and cells, decisions, the lineage of each derived cell, the recall,
the audit chain. A step counts as verified only where the chain says of it what is stored.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from cma import Cell, Memory
from cma.lagoon.approvals import approval_record_id
from cma.orion.audit import AuditRecord
from cma.orion.explanation import timeline
from cma.orion.governed import Shelf, record_digest
from cma.rosette.explaining import RequestExplanation, Served
from cma.rosette.lineage import Lineage, SourceCell
from cma.values.clock import utc_text
from cma.values.identity import MAX_INTEGER
from experiments.failures import ExperimentError


@dataclass(frozen=True, slots=True)
class Step:
    """One step of the telling. number: its place, with those of the steps that it lies within.

    records: numbers of the audit records that carry it (a group has none of its own).
    """

    number: tuple[int, ...]
    kind: str
    id: str
    told: str
    verified: bool
    records: tuple[int, ...] = ()


def told(memory: Memory, receipt: str) -> list[Step]:
    """Return the steps of a delivery that a memory's scope sees, from the receipt backwards."""
    answer = memory.explain(receipt)
    chain = timeline(memory.store, subject=None, last=MAX_INTEGER)
    return steps_of(answer, chain, _agreeing(memory, chain))


def steps_of(
    answer: RequestExplanation, chain: Sequence[AuditRecord], agreeing: Collection[str]
) -> list[Step]:
    """Return the steps in order: receipt, packet, decisions, lineages, recall, audit records.

    agreeing: ids of the filed records that are what their audit record says.
    """
    receipt, packet = answer.receipt, answer.packet
    if receipt is None or packet is None:
        raise ExperimentError("nothing of a delivery is on record")
    numbers = _Numbers()
    to = f"delivered to {receipt.recipient} by {receipt.by}"
    served = {each.id: each for each in answer.served}
    filed = _Filed(answer.records, agreeing, whole=answer.steps_verified)
    steps = [filed.step(numbers.next(), "receipt", receipt.id, to)]
    used = (
        f"{packet['used']} of {packet['budget']} tokens, "
        f"{_count(len(packet['groups']), 'group')} served"
    )
    steps.append(filed.step(numbers.next(), "packet", receipt.packet, used))
    for group in packet["groups"]:
        cells = [served[name] for name, _, _ in group["cells"]]
        whole = all(each.verified for each in cells)
        told = f"{_count(len(cells), 'cell')}, in together or not at all; {group['tokens']} tokens"
        number = numbers.next(1)
        steps.append(Step(number, f"group ({group['reason']})", "", told, whole))
        steps += [_cell_step(numbers.next(2), each) for each in cells]
    for names, reason in packet["excluded"]:
        told = f"{_count(len(names), 'cell')} that did not fit whole"
        kept = steps[1].verified  # what was left out stands in the packet's own record
        number = numbers.next(1)
        steps.append(Step(number, f"left out ({reason})", ", ".join(names), told, kept))
    for decision in answer.decisions:
        handling = decision.handling.value.replace("_", " ")
        told = f"{handling} by {decision.by}; governs the packet, is not in its text"
        steps.append(filed.step(numbers.next(), "decision", decision.id, told))
    for lineage in answer.lineages:
        steps += _lineage_steps(lineage, numbers, agreeing)
    steps += _recall_steps(answer, numbers)
    head = f"{len(chain)} records, each sealed over the one before it"
    sound = answer.recall.chain_verified
    steps.append(Step(numbers.next(), "audit chain", chain[-1].hash, head, sound))
    steps += [
        Step(numbers.next(1), record.operation.value, " ".join(record.subjects[:1]),
             f"by {record.actor} at {utc_text(record.at)}", sound, (record.seq,))
        for record in chain
    ]  # fmt: skip
    return steps


class _Numbers:
    """Gives each step its number: the next one at a depth, under the last one above it."""

    def __init__(self) -> None:
        self._last: tuple[int, ...] = ()

    def next(self, depth: int = 0) -> tuple[int, ...]:
        above, place = self._last[:depth], self._last[depth : depth + 1]
        self._last = (*above, (place[0] if place else 0) + 1)
        return self._last


@dataclass(frozen=True, slots=True)
class _Filed:
    """What the audit says of filed records. whole: whether they also agree with each other."""

    records: Sequence[AuditRecord]
    agreeing: Collection[str]
    whole: bool = True

    def step(
        self, number: tuple[int, ...], kind: str, name: str, told: str, known_as: str = ""
    ) -> Step:
        """Return a step that has an audit record of its own; without one it is not verified."""
        record = known_as or name
        own = tuple(each.seq for each in self.records if record in each.subjects[:1])
        agrees = self.whole and record in self.agreeing and bool(own)
        return Step(number, kind, name, told, agrees, own)


def _agreeing(memory: Memory, chain: Sequence[AuditRecord]) -> frozenset[str]:
    """Return the ids of the filed records whose stored bytes are what the chain says of them."""
    known = {(record.subjects[0], record.after) for record in chain if record.subjects}
    return frozenset(
        name
        for shelf in Shelf
        for name, data in memory.store.connection.execute(
            f"SELECT id, record FROM {shelf.value}"  # noqa: S608 (one of two names of ours)
        )
        if (name, record_digest(data)) in known
    )


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"


def _cell_step(number: tuple[int, ...], each: Served | SourceCell, kind: str = "") -> Step:
    cell = each.cell
    told = "gone" if cell is None else _content(cell)
    records = tuple(record.seq for record in each.history)
    name = kind or (cell.kind.value if cell is not None else "cell")
    return Step(number, name, each.id, told, each.verified, records)


def _content(cell: Cell) -> str:
    origin = f"approved as {cell.approval_id}" if cell.approval_id else f"from {cell.source.origin}"
    return f"\u201c{cell.content}\u201d {origin} ({cell.source.authority.value})"


def _lineage_steps(lineage: Lineage, numbers: _Numbers, agreeing: Collection[str]) -> list[Step]:
    told = "how this cell became memory"
    steps = [Step(numbers.next(), "lineage", lineage.cell, told, lineage.verified)]
    sources = {each.id: each for each in lineage.sources}
    filed = _Filed(lineage.history, agreeing)
    approval, candidate = lineage.approval, lineage.candidate
    if approval is not None:
        told = f"by {approval.approver} ({approval.authority}) under policy {approval.policy}"
        known_as = approval_record_id(approval.id)
        steps.append(filed.step(numbers.next(1), "approval", approval.id, told, known_as))
    if candidate is not None:
        told = f"proposed by {candidate.proposed_by}: \u201c{candidate.content}\u201d"
        steps.append(filed.step(numbers.next(1), "candidate", candidate.id, told))
    for frame in lineage.frames:
        told = f"an episode of {len(frame.cells)} sources in order: \u201c{frame.scene}\u201d"
        steps.append(filed.step(numbers.next(1), "frame", frame.id, told))
        steps += [_cell_step(numbers.next(2), sources[name], "source") for name in frame.cells]
    return steps


def _recall_steps(answer: RequestExplanation, numbers: _Numbers) -> list[Step]:
    recall, trace = answer.recall, answer.trace
    recorded = () if recall.recorded is None else (recall.recorded.seq,)
    told = f"\u201c{trace.query}\u201d, {len(recall.hits)} hits at generation {trace.generation}"
    known = recall.chain_verified and bool(recorded)
    steps = [Step(numbers.next(), "recall", trace.id, told, known, recorded)]
    for item in recall.hits:
        content = "" if item.cell is None else f": {_content(item.cell)}"
        told = f"score {item.hit.score:.4f}{content}"
        records = tuple(record.seq for record in item.history)
        steps.append(Step(numbers.next(1), "hit", item.hit.cell, told, item.verified, records))
    return steps

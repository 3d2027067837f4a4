"""The frozen-model diagnostic on one model: the nine conditions, gradients, and weights."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import torch

from cma import Caller, Cell, FixedClock, Memory
from cma.rosette.packets import ContextPacket
from cma.sun.adapter import MemoryAdapter
from cma.sun.attaching import attached
from cma.sun.interventions import CONDITIONS, Condition
from cma.sun.path import ModelPath
from cma.sun.runtime import FrozenRuntime
from cma.sun.tracing import DeltaTrace
from cma.sun.vectors import ContextVectors
from experiments.failures import ExperimentError
from experiments.settings import DeltaSettings

START = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
CALLER = Caller(name="ann", authority="user")
SCOPE = "session:diagnostic"
CUPS = 2


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """What one model showed. rows: one a condition and site, with the norms as they were.

    gradients: of the base model's `tensors` parameter tensors, how many have one.
    """

    rows: tuple[dict[str, Any], ...]
    context: ContextVectors
    trainable: int
    parameters: int
    tensors: int
    gradients: int
    unchanged: bool
    silent_equal: bool
    loud_differ: bool

    def norm(self, condition: str, place: int) -> float:
        """Return the delta norm of a condition at its site of that place, counted from 0."""
        found = [float(row["delta_norm"]) for row in self.rows if row["condition"] == condition]
        return found[place]

    @property
    def silent_max(self) -> float:
        """The largest norm without memory."""
        silent = [row for row in self.rows if row["condition"] == "no_memory"]
        return max(float(row["delta_norm"]) for row in silent)


@contextmanager
def one_claim(delta: DeltaSettings) -> Iterator[tuple[Memory, Cell, ContextPacket]]:
    """Give a memory with one approved semantic cell, the cell, and a packet that serves it alone.

    The claim goes the whole way: events, frames, complete replay, proposal, approval.
    """
    content = f"{delta.subject} {delta.predicate} {delta.object}"
    with (
        tempfile.TemporaryDirectory() as folder,
        Memory.open(
            Path(folder) / "memory.cma", caller=CALLER, clock=FixedClock(START), store_id="fixture"
        ) as opened,
    ):
        memory = opened.within(SCOPE)
        frames = []
        for cup in range(CUPS):
            event = memory.write(
                f"on day {cup + 1} the kettle was on",
                kind="episodic",
                origin="fixture",
                observed_at=START + timedelta(days=cup),
            )
            frame = memory.bind(scene=f"day {cup + 1}", sources=[event.id], actions=["boils"])
            memory.replay(frame.id)
            frames.append(frame.id)
        claim = memory.propose(
            frames=frames,
            content=content,
            subject=delta.subject,
            predicate=delta.predicate,
            object=delta.object,
        )
        cell = memory.approve(claim.id, approval_id="CR-1")
        packet = memory.packet(memory.recall(content), budget=512)
        if [served.id for served in packet.cells] != [cell.id]:
            raise ExperimentError("the packet serves other cells than the one claim")
        yield memory, cell, packet


def diagnose(
    runtime: FrozenRuntime, adapter: MemoryAdapter, delta: DeltaSettings
) -> tuple[Diagnosis, str]:
    """Run every condition on one model; return what it showed and the id of the receipt.

    The delivered packet goes through `Memory.deliver`; the controls run beside it.
    """
    with one_claim(delta) as (memory, cell, packet):
        receipt = memory.deliver(packet, ModelPath(runtime, adapter), prompt=delta.prompt)
        if not memory.explain(receipt.id).verified:
            raise ExperimentError("the delivery cannot be told backwards")
        content = cell.content
    context = runtime.encode([content], labels=[cell.id])
    other = runtime.encode([delta.other])
    ids, mask = runtime.ids([delta.prompt])
    with torch.no_grad():
        untouched = runtime.model(input_ids=ids, attention_mask=mask).logits
    rows: list[dict[str, Any]] = []
    equal: dict[str, bool] = {}
    for condition in CONDITIONS:
        with (
            torch.no_grad(),
            attached(runtime, adapter, context, condition, other=other) as running,
        ):
            out = runtime.model(input_ids=ids, attention_mask=mask).logits
        equal[condition.name] = torch.equal(out, untouched)
        rows += _rows(condition, running.told(), equal[condition.name])
    gradients = _gradients(runtime, adapter, context, delta.prompt)
    trainable = sum(each.numel() for each in runtime.model.parameters() if each.requires_grad)
    parameters = sum(each.numel() for each in runtime.model.parameters())
    runtime.check_unchanged()
    silent = ("no_memory", "masked", "zero_vectors", "adapter_off")
    diagnosis = Diagnosis(
        rows=tuple(rows),
        context=context,
        trainable=trainable,
        parameters=parameters,
        tensors=sum(1 for _ in runtime.model.parameters()),
        gradients=gradients,
        unchanged=True,
        silent_equal=all(equal[name] for name in silent),
        loud_differ=not any(same for name, same in equal.items() if name not in silent),
    )
    return diagnosis, receipt.id


def _rows(condition: Condition, trace: DeltaTrace, equal: bool) -> list[dict[str, Any]]:
    """Return a row a site; a condition without sites has one that says so and holds no norm."""
    common = {"condition": condition.name, "logits_equal": equal}
    if not trace.sites:
        return [{**common, "site": "none", "place": 0, "calls": 0}]
    first = 1 if condition.site is None else condition.site + 1
    return [
        {
            **common,
            "site": site.site,
            "place": place,
            "calls": site.calls,
            "tokens": site.tokens,
            "slots": site.slots,
            "delta_norm": site.delta_norm,
            "applied_norm": site.applied_norm,
            "mean_token_norm": site.mean_token_norm,
            "finite": site.finite,
        }
        for place, site in enumerate(trace.sites, first)
    ]


def _gradients(
    runtime: FrozenRuntime, adapter: MemoryAdapter, context: ContextVectors, prompt: str
) -> int:
    """Return how many base parameters have a gradient after a real step of the adapter.

    Raises ExperimentError when no gradient reached the adapter: then nothing was shown.
    """
    before = [each.detach().clone() for each in adapter.parameters()]
    optimiser = torch.optim.SGD(adapter.parameters(), lr=1e-3)
    ids, mask = runtime.ids([prompt])
    with attached(runtime, adapter, context):
        runtime.model(input_ids=ids, attention_mask=mask, labels=ids).loss.backward()
    if not any(each.grad is not None and bool(each.grad.any()) for each in adapter.parameters()):
        raise ExperimentError("no gradient reached the adapter")
    optimiser.step()
    with torch.no_grad():  # the same adapter goes on to what comes next
        for parameter, old in zip(adapter.parameters(), before, strict=True):
            parameter.copy_(old)
            parameter.grad = None
    return sum(each.grad is not None for each in runtime.model.parameters())

"""Attaching an adapter for the length of a block: plain forward hooks, always taken off again."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import nn

from cma.sun.adapter import MemoryAdapter, SiteAdapter
from cma.sun.families import layer_at
from cma.sun.interventions import Condition, sites_for, vectors_for
from cma.sun.runtime import FrozenRuntime
from cma.sun.tracing import DeltaTrace, SiteRecord
from cma.sun.vectors import ContextVectors
from cma.values.errors import InvalidValueError, ModelRefusedError, Reason

FULL = Condition()


class Attachment:
    """What is going on inside an `attached` block. `told()` gives the trace, also afterwards."""

    def __init__(self, condition: Condition, records: tuple[SiteRecord, ...]) -> None:
        """Begin with a record a site."""
        self.condition = condition
        self.records = records
        self.real: torch.Tensor | None = None
        """Attention mask of the call that is running: batch x tokens so far; None: all real."""

    def told(self) -> DeltaTrace:
        """Return the trace. Raises ModelRefusedError (`site-not-called`): a gap is no zero."""
        return DeltaTrace(
            condition=self.condition.name, sites=tuple(record.told() for record in self.records)
        )


@contextmanager
def attached(
    runtime: FrozenRuntime,
    adapter: MemoryAdapter,
    memory: ContextVectors,
    condition: Condition = FULL,
    *,
    other: ContextVectors | None = None,
) -> Iterator[Attachment]:
    """Run the model inside with memory under a condition; outside it is untouched, come what may.

    memory: as many rows as the model's batch will have. `adapter_off` registers nothing. Use a
    fresh KV cache for each block: a cache carries memory over. On leaving, the base model is
    checked. Raises InvalidValueError for vectors that do not fit, ModelRefusedError
    (`model-attached`, `model-compiled`, `site-missing`, `base-trainable`, `base-changed`).
    """
    vectors = vectors_for(condition, memory, other)
    sites = sites_for(condition, adapter.shape.sites)
    _check_fit(runtime, adapter, vectors)
    if runtime.attached:
        raise ModelRefusedError(
            Reason.MODEL_ATTACHED,
            "an adapter is attached to this model already; two would add up",
            field="runtime",
            remedy="leave the other block first",
        )
    runtime.check_untrained()
    records = tuple(SiteRecord(site) for site in sites)
    attachment = Attachment(condition, records)
    modules = [layer_at(runtime.model, site) for site in sites]
    versions = _versions(runtime.model)
    handles = []
    runtime.attached = True
    try:
        if sites:
            backbone = runtime.backbone()
            handles.append(
                backbone.register_forward_pre_hook(
                    _looking(attachment, backbone, vectors), with_kwargs=True
                )
            )
        for module, record in zip(modules, records, strict=True):
            hook = _adding(attachment, module, adapter.site(record.site), vectors, record)
            handles.append(module.register_forward_hook(hook))
        yield attachment
    finally:
        for handle in handles:
            handle.remove()
        runtime.attached = False
        runtime.check_untrained()
        if _versions(runtime.model) != versions:
            runtime.check_unchanged()


def _looking(attachment: Attachment, owner: nn.Module, vectors: ContextVectors) -> Any:
    """Return the hook that sees each call of the model before it runs."""

    def look(module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        _check_owner(module, owner)
        given = kwargs.get("input_ids")
        if given is None:
            given = args[0] if args else kwargs.get("inputs_embeds")
        if given is not None and given.shape[0] != vectors.batch:
            raise InvalidValueError(
                Reason.VECTORS_SHAPE,
                f"context for {vectors.batch} rows, and a batch of {given.shape[0]}",
                field="values",
                value=tuple(vectors.values.shape),
                remedy="repeat the context with stacked(vectors, rows); beams count as rows",
            )
        mask = kwargs.get("attention_mask")
        attachment.real = None
        if isinstance(mask, torch.Tensor) and mask.dim() == 2:
            attachment.real = mask.bool()

    return look


def _adding(
    attachment: Attachment,
    owner: nn.Module,
    part: SiteAdapter,
    vectors: ContextVectors,
    record: SiteRecord,
) -> Any:
    """Return the hook that adds the delta to what a layer gives."""
    remembers = vectors.mask.any(-1)[:, None, None]
    slots = vectors.mask.sum()

    def add(module: nn.Module, _: tuple[Any, ...], output: Any) -> Any:
        _check_owner(module, owner)
        # Some families, and older releases, give a tuple whose first part is the states.
        states: torch.Tensor = output[0] if isinstance(output, tuple) else output
        delta = part(states, vectors)
        # Not just states + 0: that would turn -0.0 into 0.0 where there is no memory.
        changed = torch.where(remembers, states + delta.to(states.dtype), states)
        tokens = states.shape[1]
        real = attachment.real
        if real is None:
            real = torch.ones(states.shape[:2], dtype=torch.bool, device=states.device)
        record.add(states, changed, delta, real[:, -tokens:], slots)
        return (changed, *output[1:]) if isinstance(output, tuple) else changed

    return add


def _check_owner(module: nn.Module, owner: nn.Module) -> None:
    if module is not owner:  # deepcopy copies hooks, and nobody takes those off again
        raise ModelRefusedError(
            Reason.MODEL_ATTACHED,
            "this is a copy of a model, made while an adapter was attached",
            field="model",
            remedy="copy the model outside the block",
        )


def _check_fit(runtime: FrozenRuntime, adapter: MemoryAdapter, vectors: ContextVectors) -> None:
    wanted = {
        Reason.VECTORS_SHAPE: (vectors.hidden, runtime.hidden),
        Reason.VECTORS_DTYPE: (vectors.values.dtype, torch.float32),
        Reason.VECTORS_DEVICE: (vectors.values.device, runtime.device),
    }
    for reason, (given, right) in wanted.items():
        if given != right:
            raise InvalidValueError(
                reason,
                "the context vectors do not fit the model",
                field="values",
                value=str(given),
                remedy=f"give {right}",
            )
    own = next(adapter.parameters())
    if adapter.shape.hidden != runtime.hidden or own.device != runtime.device:
        raise ModelRefusedError(
            Reason.SITE_MISSING,
            "the adapter was made for another model, or lies on another device",
            field="adapter",
            value=f"hidden {adapter.shape.hidden} on {own.device}",
            remedy=f"make one of hidden {runtime.hidden} and move it to {runtime.device}",
        )
    for name, module in runtime.model.named_modules():
        if getattr(module, "_compiled_call_impl", None) is not None:
            raise ModelRefusedError(
                Reason.MODEL_COMPILED,
                "a compiled module may skip the adapter without a word",
                field=name or "model",
                remedy="attach to a model that was not compiled",
            )


def _versions(model: nn.Module) -> tuple[int, ...]:
    """Return how often each parameter was written to: cheap, blind to writes through `.data`."""
    return tuple(parameter._version for parameter in model.parameters())

"""The language model that an experiment asks for, from settings. torch is imported when needed."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from experiments import ranges
from experiments.failures import UsageError
from experiments.settings import DeltaSettings, ModelSettings, Settings

if TYPE_CHECKING:
    from cma.sun.adapter import MemoryAdapter
    from cma.sun.runtime import FrozenRuntime

DEVICES = ("auto", "cpu", "cuda")
DTYPES = ("float32", "bfloat16")
TOKENIZERS = ("qwen", "bytes", "checkpoint")
LARGEST = 4096
"""Of an adapter's inner size."""


def check(settings: Settings) -> None:
    """Refuse settings of model and adapter that make no sense."""
    model, delta = settings.model, settings.delta
    ranges.whole("seed", settings.seed, 0, ranges.SEED_LIMIT)
    ranges.whole("model.seed", model.seed, 0, ranges.SEED_LIMIT)
    ranges.names("model.device", [model.device], DEVICES)
    ranges.names("model.tokenizer", [model.tokenizer], TOKENIZERS)
    if model.place is None and "model_type" not in model.config:
        raise UsageError("model.config has no model_type; give one, or model.place=FOLDER")
    ranges.whole("delta.sites", delta.sites, 2, 64)
    ranges.whole("delta.inner", delta.inner, 1, LARGEST)
    ranges.number("delta.gate", delta.gate, -1e3, 1e3)
    ranges.whole("delta.adapter_seed", delta.adapter_seed, 0, ranges.SEED_LIMIT)
    if not delta.dtypes:
        raise UsageError(f"delta.dtypes is empty; there are: {', '.join(DTYPES)}")
    ranges.names("delta.dtypes", delta.dtypes, DTYPES)
    for key in ("subject", "predicate", "object", "other", "prompt"):
        if not str(getattr(delta, key)).strip():
            raise UsageError(f"delta.{key} is empty; give some text")


def check_transfer(settings: Settings) -> None:
    """Refuse a family that nobody has described, or none at all."""
    from cma.sun.families import LAYERS

    check(settings)
    ranges.names("transfer.families", settings.transfer.families or [""], sorted(LAYERS))


def check_task_gain(settings: Settings) -> None:
    """Refuse sizes that no model can have, or that no machine of ours trains."""
    task = settings.task_gain
    ranges.whole("seed", settings.seed, 0, 2**32 - 1 - LARGEST)
    ranges.names("model.device", [settings.model.device], DEVICES)
    ranges.whole("task_gain.hidden", task.hidden, 16, LARGEST)
    if task.hidden % 8:
        raise UsageError(f"task_gain.hidden={task.hidden} is no multiple of 8")
    ranges.whole("task_gain.layers", task.layers, 2, 64)
    ranges.whole("task_gain.sites", task.sites, 1, task.layers - 1)
    ranges.whole("task_gain.inner", task.inner, 1, LARGEST)
    ranges.whole("task_gain.facts", task.facts, 1, 16)
    ranges.whole("task_gain.batch", task.batch, 1, LARGEST)
    ranges.whole("task_gain.base_steps", task.base_steps, 1, 10**7)
    ranges.whole("task_gain.adapter_steps", task.adapter_steps, 1, 10**7)
    ranges.above("task_gain.base_rate", task.base_rate, 0, 1)
    ranges.above("task_gain.adapter_rate", task.adapter_rate, 0, 1)
    ranges.whole("task_gain.seeds", task.seeds, 1, LARGEST)
    ranges.whole("task_gain.questions", task.questions, 2, 100_000)


def settled(model: ModelSettings) -> ModelSettings:
    """Return the settings with the device that `auto` stands for.

    Raises UsageError where CUDA is asked for and not there.
    """
    from cma.sun.loading import best_device

    best = best_device()
    if model.device == "cuda" and best != "cuda":
        raise UsageError("model.device=cuda: torch sees no CUDA device here; take model.device=cpu")
    return replace(model, device=best if model.device == "auto" else model.device)


def runtime_of(model: ModelSettings, *, dtype: str = "float32") -> FrozenRuntime:
    """Return the frozen model that the settings name."""
    from cma.sun.loading import checkpoint, seeded

    common: dict[str, Any] = {
        "dtype": dtype,
        "device": settled(model).device,
        "tokenizer": model.tokenizer,
        "name": model.name,
    }
    if model.place is not None:
        return checkpoint(model.place, **common)
    return seeded(model.config, seed=model.seed, **common)


def adapter_of(runtime: FrozenRuntime, delta: DeltaSettings) -> MemoryAdapter:
    """Return the seeded adapter for a model, on the model's device."""
    from cma.sun.adapter import AdapterShape, MemoryAdapter, spread_sites

    shape = AdapterShape(
        hidden=runtime.hidden,
        sites=spread_sites(runtime.sites, delta.sites),
        inner=delta.inner,
        gate=delta.gate,
        seed=delta.adapter_seed,
    )
    return MemoryAdapter(shape).to(runtime.device)

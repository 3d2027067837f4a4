"""The adapter's share of a forward pass: full memory against the untouched model, interleaved."""

from __future__ import annotations

import gc
from typing import Any

import pytest
import torch

from cma.sun.adapter import MemoryAdapter
from cma.sun.attaching import attached
from cma.sun.runtime import FrozenRuntime
from experiments.models import adapter_of, runtime_of
from experiments.overrides import composed
from tests.benchmarks.conftest import Figures, paired, timed

TOKENS = 256
ROUNDS = 15


@pytest.fixture(scope="module")
def setting() -> Any:
    return composed(["experiment=delta_norm"])


def test_adapter_overhead(setting: Any, figures: Figures) -> None:
    """The seeded 0.6B model reads 256 tokens with one memory, and without any adapter."""
    runtime: FrozenRuntime = runtime_of(setting.model)
    adapter: MemoryAdapter = adapter_of(runtime, setting.delta)
    memory = runtime.encode(["Ann drinks green tea"])
    ids = torch.randint(
        0, 1000, (1, TOKENS), generator=torch.Generator().manual_seed(0)
    ).to(runtime.device)  # fmt: skip

    def untouched() -> None:
        runtime.model(input_ids=ids)

    full, plain = [], []
    with torch.no_grad():
        untouched()
        gc.disable()
        for _ in range(ROUNDS):
            plain.append(timed(untouched))
            with attached(runtime, adapter, memory):
                full.append(timed(untouched))
        gc.enable()
    ratio, interval = paired(full, plain)
    figures["adapter.overhead_ratio"] = {
        "value": round(ratio, 4),
        "unit": "ratio",
        "n": ROUNDS,
        "interval": [round(bound, 4) for bound in interval],
    }

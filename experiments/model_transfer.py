"""The diagnostic over model families: small seeded models, one adapter recipe, the same demands."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pandas as pd

from cma.sun.families import LAYERS
from experiments import models
from experiments.delta_norm import DIGITS, device_name
from experiments.diagnostic import Diagnosis, diagnose
from experiments.progress import progress
from experiments.result import Figure, Result
from experiments.settings import ModelSettings, Settings

SHAPE: Mapping[str, Any] = {
    "vocab_size": 260,
    "hidden_size": 64,
    "intermediate_size": 128,
    "num_hidden_layers": 4,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 512,
    "bos_token_id": 257,
    "eos_token_id": 258,
    "pad_token_id": 259,
}
OWN: Mapping[str, Mapping[str, Any]] = {
    "gemma": {"head_dim": 16},
    "gpt2": {"n_embd": 64, "n_layer": 4, "n_head": 4, "n_positions": 512, "n_inner": 128},
    "qwen3": {"head_dim": 16},
}  # fmt: skip
"""What a family calls otherwise, or needs besides."""


def run(settings: Settings) -> Result:
    """Diagnose a model of every family in every type of number."""
    families, dtypes = settings.transfer.families, settings.delta.dtypes
    rows: list[dict[str, Any]] = []
    with progress("model_transfer", len(families) * len(dtypes), "models") as advance:
        for family in families:
            for dtype in dtypes:
                rows.append(_row(settings, family, dtype))
                advance(1)
    table = pd.DataFrame(rows)
    met = table.groupby("family", sort=False)["structure"].all()
    figures = {
        "transfer.families": Figure(int(met.sum()), "count", len(met)),
        "transfer.models": Figure(int(table["structure"].sum()), "count", len(table)),
    }
    return Result(
        figures=figures,
        tables={"transfer": table},
        notes=("Weights are seeded: this shows the path over families, no gain on any task.",),
    )


def _row(settings: Settings, family: str, dtype: str) -> dict[str, Any]:
    shape = {**SHAPE, **OWN.get(family, {}), "model_type": family}
    model = replace(
        ModelSettings(name=f"{family}_tiny", config=shape, tokenizer="bytes"),
        seed=settings.model.seed,
        device=settings.model.device,
    )
    runtime = models.runtime_of(model, dtype=dtype)
    adapter = models.adapter_of(runtime, settings.delta)
    found, _ = diagnose(runtime, adapter, settings.delta)
    return {
        "family": family,
        "layers": LAYERS[family],
        "device": device_name(runtime.device),
        "dtype": dtype,
        "parameters": found.parameters,
        **{f"full_{place + 1}": round(found.norm("full", place), DIGITS) for place in range(2)},
        "no_memory_max": found.silent_max,
        "logits_equal_without_memory": found.silent_equal,
        "logits_differ_with_memory": found.loud_differ,
        "trainable": found.trainable,
        "gradients": found.gradients,
        "structure": holds(found),
    }


def holds(found: Diagnosis) -> bool:
    """Tell whether a model showed all that the paper's diagnostic states."""
    return (
        min(found.norm("full", 0), found.norm("full", 1)) > 0
        and found.silent_max == 0
        and found.silent_equal
        and found.loud_differ
        and found.trainable == found.gradients == 0
        and found.unchanged
    )

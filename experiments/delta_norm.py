"""The paper's frozen-model diagnostic: one semantic cell, two layers, nine conditions.

The adapter's weights are ours, drawn from a seed, since the paper's are unpublished: that norms
are nonzero with memory and exactly zero without can be reproduced, their size cannot. Nothing is
scaled.
"""

from __future__ import annotations

from typing import Any

import pandas as pd
import torch

from experiments.diagnostic import Diagnosis, diagnose
from experiments.models import adapter_of, runtime_of
from experiments.progress import progress
from experiments.result import Figure, Result
from experiments.settings import Settings

COLUMNS = (
    "model", "weights", "device", "dtype", "condition", "place", "site", "delta_norm",
    "applied_norm", "mean_token_norm", "tokens", "slots", "calls", "finite", "logits_equal",
)  # fmt: skip
DIGITS = 4
"""Of a norm: more would differ between numbers of threads."""


def run(settings: Settings) -> Result:
    """Diagnose the model in every type of number; the headline figures are of the first."""
    tables: list[pd.DataFrame] = []
    checks: list[dict[str, Any]] = []
    first: Diagnosis | None = None
    notes: list[str] = []
    with progress("delta_norm", len(settings.delta.dtypes), "models") as advance:
        for dtype in settings.delta.dtypes:
            runtime = runtime_of(settings.model, dtype=dtype)
            adapter = adapter_of(runtime, settings.delta)
            found, receipt = diagnose(runtime, adapter, settings.delta)
            first = first or found
            common = {
                "model": runtime.name,
                "weights": runtime.weights,
                "device": device_name(runtime.device),
                "dtype": dtype,
            }
            tables.append(pd.DataFrame([{**common, **row} for row in found.rows]))
            checks.append({**common, **_checks(found), "fingerprint": runtime.fingerprint,
                           "receipt": receipt})  # fmt: skip
            notes.append(
                f"{dtype}: adapter at {', '.join(adapter.shape.sites)}; weights {runtime.weights}."
            )
            del runtime, adapter
            advance(1)
    assert first is not None  # noqa: S101 - check() refuses an empty list of types
    norms = pd.concat(tables, ignore_index=True).reindex(columns=list(COLUMNS))
    parts = ["delta_norm", "applied_norm", "mean_token_norm"]
    norms[parts] = norms[parts].round(DIGITS)
    norms = norms.astype({"tokens": "Int64", "slots": "Int64"})
    return Result(
        figures=figures_of(first, tables[0]),
        tables={"norms": norms, "checks": pd.DataFrame(checks)},
        notes=(*notes, "Sizes of norms cannot be compared with the paper's."),
    )


def figures_of(found: Diagnosis, rows: pd.DataFrame) -> dict[str, Figure]:
    """Return the headline figures of one diagnosis."""
    slots = found.context.slots
    finite = int(torch.isfinite(found.context.values).all(-1).sum())
    silent = int((rows["condition"] == "no_memory").sum())
    return {
        "delta.context.vectors": Figure(slots, "count", slots),
        "delta.context.width": Figure(found.context.hidden, "components", slots),
        "delta.context.finite": Figure(finite, "count", slots),
        "delta.context.mask_true": Figure(int(found.context.mask.sum()), "count", slots),
        "delta.full.location1": Figure(round(found.norm("full", 0), DIGITS), "norm", 1),
        "delta.full.location2": Figure(round(found.norm("full", 1), DIGITS), "norm", 1),
        "delta.no_memory.max": Figure(found.silent_max, "norm", silent),
        "delta.trainable_base_parameters": Figure(found.trainable, "count", found.parameters),
        "delta.base_gradients": Figure(found.gradients, "tensors", found.tensors),
        "delta.fingerprint_unchanged": Figure(int(found.unchanged), "boolean", 1),
        "delta.silent_logits_equal": Figure(int(found.silent_equal), "boolean", 1),
    }


def device_name(device: torch.device) -> str:
    """Return `cpu`, or the accelerator by its name."""
    return f"cuda ({torch.cuda.get_device_name(device)})" if device.type == "cuda" else device.type


def _checks(found: Diagnosis) -> dict[str, Any]:
    shape = " x ".join(map(str, found.context.values.shape))
    return {
        "context": shape,
        "parameters": found.parameters,
        "trainable": found.trainable,
        "gradients": found.gradients,
        "weights_unchanged": found.unchanged,
        "logits_equal_without_memory": found.silent_equal,
        "logits_differ_with_memory": found.loud_differ,
    }

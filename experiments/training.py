"""Training for `task_gain`: a tiny base model from scratch, then an adapter over it, frozen."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch.nn.functional import cross_entropy
from transformers import AutoConfig, AutoModelForCausalLM

from cma.sun.adapter import AdapterShape, MemoryAdapter, spread_sites
from cma.sun.attaching import attached
from cma.sun.runtime import FrozenRuntime
from cma.sun.vectors import ContextVectors
from experiments.facts import FACTS, QUESTIONS, TOKENIZER, WORDS, sample
from experiments.settings import TaskGainSettings

HEADS = 4
WARM_SHARE = 0.1
WITHOUT_TEXT = 8
"""One batch in so many has no text to read the answer from."""
OTHER_WORDS = 0.1
"""Weight of all words but the answer in the loss of the base model."""

Advance = Callable[[int], None]


def trained_base(
    settings: TaskGainSettings, pool: NDArray[np.bool_], *, seed: int, device: str, advance: Advance
) -> FrozenRuntime:
    """Return a frozen runtime over a model trained to read answers off the text before it.

    The seed draws its weights and its batches; torch's global generator stays as it was.
    """
    generator = np.random.default_rng(seed)
    config = AutoConfig.for_model(
        "qwen3",
        vocab_size=len(WORDS),
        hidden_size=settings.hidden,
        intermediate_size=2 * settings.hidden,
        num_hidden_layers=settings.layers,
        num_attention_heads=HEADS,
        num_key_value_heads=HEADS,
        head_dim=settings.hidden // HEADS,
        max_position_embeddings=256,
    )
    auto: Any = AutoModelForCausalLM
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = auto.from_config(config).to(device)
    optimiser = torch.optim.AdamW(model.parameters(), lr=settings.base_rate, weight_decay=0.0)
    for step in range(settings.base_steps):
        _set_rate(optimiser, settings.base_rate, step, settings.base_steps)
        drawn = sample(pool, settings.batch, settings.facts, generator)
        told = step % WITHOUT_TEXT != 0
        ids = torch.from_numpy(drawn.lessons(generator) if told else drawn.lesson()).to(device)
        logits = model(input_ids=ids[:, :-1]).logits
        # The answers of a lesson stand at even distances from its end.
        length = QUESTIONS.shape[1] + 1
        places = [-1 - length * back for back in range(settings.facts if told else 1)]
        right = cross_entropy(logits[:, places].reshape(-1, len(WORDS)), ids[:, places].reshape(-1))
        every = cross_entropy(logits.reshape(-1, len(WORDS)), ids[:, 1:].reshape(-1))
        loss: Any = right + OTHER_WORDS * every
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        advance(1)
    return FrozenRuntime(model, TOKENIZER, weights="trained here", name="qwen3_words")


def fact_vectors(runtime: FrozenRuntime) -> torch.Tensor:
    """Return a context vector of every fact, facts x hidden."""
    texts = [fact.text for fact in FACTS]
    chunks = [texts[first : first + 256] for first in range(0, len(texts), 256)]
    return torch.cat([runtime.encode(chunk).values[0] for chunk in chunks])


def context(vectors: torch.Tensor, shown: NDArray[np.int64]) -> ContextVectors:
    """Return the context of questions from the facts shown with each."""
    values = vectors[torch.from_numpy(shown).to(vectors.device)]
    return ContextVectors(values, torch.ones(shown.shape, dtype=torch.bool, device=values.device))


def trained_adapter(
    runtime: FrozenRuntime,
    vectors: torch.Tensor,
    settings: TaskGainSettings,
    pool: NDArray[np.bool_],
    *,
    seed: int,
    advance: Advance,
) -> MemoryAdapter:
    """Return an adapter trained to answer from context vectors; the base stays frozen.

    Raises ModelRefusedError if the base is not as it was.
    """
    generator = np.random.default_rng(seed)
    adapter = MemoryAdapter(
        AdapterShape(
            hidden=runtime.hidden,
            sites=spread_sites(runtime.sites, settings.sites),
            inner=settings.inner,
            seed=seed,
        )
    ).to(runtime.device)
    optimiser = torch.optim.AdamW(adapter.parameters(), lr=settings.adapter_rate, weight_decay=0.0)
    for step in range(settings.adapter_steps):
        _set_rate(optimiser, settings.adapter_rate, step, settings.adapter_steps)
        drawn = sample(pool, settings.batch, settings.facts, generator)
        ids = torch.from_numpy(drawn.lesson()).to(runtime.device)
        with attached(runtime, adapter, context(vectors, drawn.shown)):
            logits = runtime.model(input_ids=ids[:, :-1]).logits[:, -1]
            loss: Any = cross_entropy(logits, ids[:, -1])
            optimiser.zero_grad()
            loss.backward()
        optimiser.step()
        advance(1)
    runtime.check_unchanged()
    return adapter


def _set_rate(optimiser: torch.optim.Optimizer, peak: float, step: int, steps: int) -> None:
    """Set the rate: a linear rise over the first tenth, then a cosine down to zero."""
    warm = max(1, int(WARM_SHARE * steps))
    if step < warm:
        share = (step + 1) / warm
    else:
        share = 0.5 * (1 + math.cos(math.pi * (step - warm) / max(1, steps - warm)))
    for group in optimiser.param_groups:
        group["lr"] = peak * share

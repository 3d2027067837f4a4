"""The frozen runtime: a causal language model that nothing can train (paper: frozen Qwen)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import nn

from cma.sun.families import layer_sites, layers_path
from cma.sun.fingerprint import weights_fingerprint
from cma.sun.tokenizing import TextTokenizer
from cma.sun.vectors import ContextVectors
from cma.values.errors import InvalidValueError, ModelRefusedError, Reason


class FrozenRuntime:
    """A model in evaluation mode whose parameters need no gradient, with its fingerprint.

    weights: where they come from, `seeded`, `local` or `hub`, for every report. layers: path of
    the decoder layers where the family is unknown. The model is the caller's object; freezing it
    is what this does to it. Raises ModelRefusedError: `model-family-unknown`, `model-compiled`.
    """

    def __init__(
        self,
        model: nn.Module,
        tokenizer: TextTokenizer,
        *,
        weights: str,
        name: str = "",
        layers: str | None = None,
    ) -> None:
        """Freeze the model and take its fingerprint."""
        if hasattr(model, "_orig_mod"):
            raise ModelRefusedError(
                Reason.MODEL_COMPILED,
                "a compiled model may skip the adapter without a word",
                field="model",
                remedy="give the model as it was before torch.compile",
            )
        self.model: Any = model.eval().requires_grad_(False)
        self.tokenizer = tokenizer
        self.weights = weights
        self.name = name or type(model).__name__
        self.path = layers_path(model, layers=layers)
        self.sites = layer_sites(model, self.path)
        self.attached = False
        for parameter in model.parameters():
            parameter.grad = None
        self.fingerprint = weights_fingerprint(model)

    @property
    def hidden(self) -> int:
        """The length of a hidden state."""
        return int(self.model.config.hidden_size)

    @property
    def device(self) -> torch.device:
        """Where the model is."""
        return self._any().device

    @property
    def dtype(self) -> torch.dtype:
        """The type of the model's numbers."""
        return self._any().dtype

    def _any(self) -> torch.Tensor:
        parameter: torch.Tensor = next(iter(self.model.parameters()))
        return parameter

    def check_untrained(self) -> None:
        """Raise ModelRefusedError (`base-trainable`) if any base parameter could learn, or has."""
        for name, parameter in self.model.named_parameters():
            if parameter.requires_grad or parameter.grad is not None:
                raise ModelRefusedError(
                    Reason.BASE_TRAINABLE,
                    "a parameter of the frozen model is trainable or has a gradient",
                    field=name,
                    remedy="train the adapter alone; make a new runtime to freeze again",
                )

    def check_unchanged(self) -> None:
        """Raise ModelRefusedError (`base-changed`) unless the weights are those that were frozen.

        Reads every byte of them: about a second for 0.6 billion parameters.
        """
        if weights_fingerprint(self.model) != self.fingerprint:
            raise ModelRefusedError(
                Reason.BASE_CHANGED,
                "the weights are not those that were frozen",
                field="model",
                value=self.name,
                remedy="load the model again",
            )

    def ids(self, texts: Sequence[str]) -> tuple[torch.Tensor, torch.Tensor]:
        """Return token ids and attention mask of texts, padded on the left (batch x tokens).

        Raises InvalidValueError for no text, an empty one, or a token that the model has not.
        """
        rows = [self.tokenizer.encode(text) for text in texts]
        most = max((max(row, default=-1) for row in rows), default=-1)
        if not rows or not all(rows) or most >= self.model.config.vocab_size:
            raise InvalidValueError(
                Reason.FIELD_INVALID,
                "no text, an empty one, or a token that the model does not have",
                field="texts",
                value=list(texts),
                remedy=f"give text, and a tokenizer of at most {self.model.config.vocab_size} ids",
            )
        width = max(map(len, rows))
        ids = torch.zeros(len(rows), width, dtype=torch.long)
        mask = torch.zeros_like(ids)
        for place, row in enumerate(rows):
            ids[place, width - len(row) :] = torch.tensor(row)
            mask[place, width - len(row) :] = 1
        return ids.to(self.device), mask.to(self.device)

    @torch.no_grad()
    def encode(self, texts: Sequence[str], *, labels: Sequence[str] = ()) -> ContextVectors:
        """Return one vector a text, 1 x texts x hidden: the mean of its last hidden states.

        float32; scaled to a root mean square of 1, so that every family's vectors are alike in
        size. Raises InvalidValueError for no text, an empty one, or a result that is not finite.
        """
        ids, mask = self.ids(texts)
        states = self.backbone()(input_ids=ids, attention_mask=mask).last_hidden_state.float()
        real = mask[..., None].float()
        means = (states * real).sum(1) / real.sum(1)
        scaled = means / means.pow(2).mean(-1, keepdim=True).sqrt().clamp_min(1e-12)
        vectors = ContextVectors(
            scaled[None],
            torch.ones(1, len(texts), dtype=torch.bool, device=scaled.device),
            tuple(labels),
        )
        vectors.require_memory()
        return vectors

    def backbone(self) -> Any:
        """The model without its language head."""
        return getattr(self.model, self.model.base_model_prefix)

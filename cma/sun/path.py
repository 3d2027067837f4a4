"""The model path of a delivery: texts in, what reached the model out."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

import torch

from cma.sun.adapter import MemoryAdapter
from cma.sun.attaching import FULL, attached
from cma.sun.fingerprint import weights_fingerprint
from cma.sun.interventions import Condition, Intervention
from cma.sun.runtime import FrozenRuntime
from cma.sun.tracing import SiteTrace
from cma.values.errors import InvalidValueError, Reason
from cma.values.validation import Value

REACHING = (Intervention.FULL, Intervention.SINGLE_SITE)


class Reached(Value):
    """What reached a model: which model and adapter, under which condition, with what effect."""

    model: str
    weights: str
    fingerprint: str
    adapter: str
    condition: str
    vectors: str
    slots: int
    hidden: int
    prompt: str
    answer: str
    sites: tuple[SiteTrace, ...]


@dataclass(frozen=True, slots=True)
class ModelPath:
    """A runtime with an adapter: what `Memory.deliver` gives a packet to.

    condition: full, or one site alone; the controls deliver nothing and are run with `attached`.
    max_new_tokens: length of the answer, greedily generated; 0: the prompt is read and no more.
    """

    runtime: FrozenRuntime
    adapter: MemoryAdapter
    condition: Condition = FULL
    max_new_tokens: int = 0

    def __post_init__(self) -> None:
        """Raise InvalidValueError for a condition under which nothing is delivered."""
        if self.condition.intervention not in REACHING:
            raise InvalidValueError(
                Reason.FIELD_INVALID,
                "memory does not reach the model under this condition",
                field="condition",
                value=self.condition.name,
                remedy="deliver under full or single_site; run controls with attached(...)",
            )

    def run(self, texts: Sequence[str], *, labels: Sequence[str], prompt: str) -> Reached:
        """Encode the texts, one vector each, run the model on the prompt, and say what reached it.

        Raises InvalidValueError for vectors or a prompt that cannot be used, and ModelRefusedError
        when the frozen model is not as it was, or a site was not passed.
        """
        runtime = self.runtime
        runtime.check_unchanged()
        vectors = runtime.encode(texts, labels=labels)
        ids, mask = runtime.ids([prompt])
        answer = ""
        attachment = attached(runtime, self.adapter, vectors, self.condition)
        with torch.no_grad(), attachment as running:
            if self.max_new_tokens:
                made = runtime.model.generate(
                    input_ids=ids,
                    attention_mask=mask,
                    max_new_tokens=self.max_new_tokens,
                    do_sample=False,
                    pad_token_id=0,
                )
                answer = runtime.tokenizer.decode(made[0, ids.shape[1] :].tolist())
            else:
                runtime.model(input_ids=ids, attention_mask=mask)
        trace = running.told()
        return Reached(
            model=runtime.name,
            weights=runtime.weights,
            fingerprint=runtime.fingerprint,
            adapter=weights_fingerprint(self.adapter),
            condition=trace.condition,
            vectors=hashlib.sha256(vectors.values.cpu().numpy().tobytes()).hexdigest(),
            slots=vectors.slots,
            hidden=vectors.hidden,
            prompt=hashlib.sha256(prompt.encode()).hexdigest(),
            answer=answer,
            sites=trace.sites,
        )

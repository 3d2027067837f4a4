"""The adapter: what memory adds to the hidden states of a frozen model (paper: Adapter path).

At each of its sites the hidden states attend to the context vectors, and a gated delta comes out.
Without a counting slot the delta is exactly zero. The base model holds no part of the adapter.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import sqrt

import torch
from torch import nn

from cma.sun.vectors import ContextVectors
from cma.values.errors import InvalidValueError, ModelRefusedError, Reason

EPSILON = 1e-6


@dataclass(frozen=True, slots=True)
class AdapterShape:
    """What an adapter is made from. hidden: length of a state; inner: length of a query.

    gate: the factor of every delta at the start. sites: the module paths at which it works.
    """

    hidden: int
    sites: tuple[str, ...]
    inner: int = 64
    gate: float = 1.0
    seed: int = 0


class SiteAdapter(nn.Module):
    """The delta of one site. No bias anywhere: vectors of zeros add nothing."""

    def __init__(self, shape: AdapterShape, generator: torch.Generator) -> None:
        """Draw the weights from the generator, in float32."""
        super().__init__()
        self.query = _drawn(shape.inner, shape.hidden, generator)
        self.key = _drawn(shape.inner, shape.hidden, generator)
        self.value = _drawn(shape.inner, shape.hidden, generator)
        self.out = _drawn(shape.hidden, shape.inner, generator)
        self.gate = nn.Parameter(torch.tensor(float(shape.gate)))

    def forward(self, states: torch.Tensor, vectors: ContextVectors) -> torch.Tensor:
        """Return the delta, float32, of states (batch x tokens x hidden)."""
        mask = vectors.mask[:, None, :]
        # Means of squares: the families' states differ in size by orders of magnitude.
        flat = states.float()
        flat = flat * torch.rsqrt(flat.pow(2).mean(-1, keepdim=True) + EPSILON)
        context = vectors.values.float()
        scores = (flat @ self.query.T) @ (context @ self.key.T).transpose(1, 2)
        # A finite fill: all slots masked by -inf would be NaN, in the gradient too.
        scores = (scores / sqrt(self.query.shape[0])).masked_fill(~mask, -1e9)
        shares = scores.softmax(-1) * mask
        delta = self.gate * ((shares @ (context @ self.value.T)) @ self.out.T)
        return torch.where(mask.any(-1, keepdim=True), delta, 0.0)


class MemoryAdapter(nn.Module):
    """One SiteAdapter a site, outside the model's own module tree.

    Weights are seeded from the shape; the same shape is the same adapter.
    """

    def __init__(self, shape: AdapterShape) -> None:
        """Raise InvalidValueError for a shape without sites or with a repeated one."""
        super().__init__()
        if not shape.sites or len(set(shape.sites)) != len(shape.sites):
            raise InvalidValueError(
                Reason.FIELD_INVALID,
                "an adapter works at one or more different layers",
                field="sites",
                value=shape.sites,
                remedy="name each layer once, such as ('model.layers.0', 'model.layers.1')",
            )
        self.shape = shape
        generator = torch.Generator().manual_seed(shape.seed)
        self.at = nn.ModuleList(SiteAdapter(shape, generator) for _ in shape.sites)

    def site(self, name: str) -> SiteAdapter:
        """Return the part for one site. Raises ModelRefusedError (`site-missing`)."""
        if name not in self.shape.sites:
            raise ModelRefusedError(
                Reason.SITE_MISSING,
                "the adapter has no part there",
                field="site",
                value=name,
                remedy=f"it works at {', '.join(self.shape.sites)}",
            )
        part = self.at[self.shape.sites.index(name)]
        assert isinstance(part, SiteAdapter)  # noqa: S101 - ModuleList forgets its type
        return part


def spread_sites(sites: Sequence[str], count: int) -> tuple[str, ...]:
    """Return so many layers, evenly spread and the last not among them (nothing follows it).

    Of 28 layers, two are the 10th and the 19th. Raises InvalidValueError when there are fewer.
    """
    if not 1 <= count <= max(1, len(sites) - 1):
        raise InvalidValueError(
            Reason.FIELD_INVALID,
            "so many layers are not there",
            field="sites",
            value=count,
            remedy=f"take 1 to {max(1, len(sites) - 1)}",
        )
    return tuple(sites[len(sites) * (place + 1) // (count + 1)] for place in range(count))


def _drawn(rows: int, columns: int, generator: torch.Generator) -> nn.Parameter:
    return nn.Parameter(torch.randn(rows, columns, generator=generator) / sqrt(columns))

"""The delta trace: what the adapter added at each site, as it was added. A gap is no zero."""

from __future__ import annotations

from math import sqrt

import torch

from cma.values.errors import ModelRefusedError, Reason
from cma.values.validation import Value


class SiteTrace(Value):
    """What happened at one site while an adapter was attached.

    delta_norm: Frobenius norm of the delta over all real tokens of all calls, in float32.
    applied_norm: the same of what the states really changed by, in the model's own type.
    mean_token_norm: the mean norm of the delta of a real token.
    """

    site: str
    calls: int
    tokens: int
    slots: int
    shape: tuple[int, ...]
    dtype: str
    device: str
    delta_norm: float
    applied_norm: float
    mean_token_norm: float
    finite: bool


class DeltaTrace(Value):
    """The traces of every site at which a condition ran, in the adapter's order."""

    condition: str
    sites: tuple[SiteTrace, ...]

    @property
    def largest(self) -> float:
        """The largest delta norm; 0 where no site ran."""
        return max((site.delta_norm for site in self.sites), default=0.0)


class SiteRecord:
    """Adds up the calls of one site; the sums stay on the model's device until they are read."""

    def __init__(self, site: str) -> None:
        """Begin with no call."""
        self.site = site
        self.calls = 0
        self._rows: list[tuple[torch.Tensor, ...]] = []
        self._facts: tuple[tuple[int, ...], str, str] = ((), "", "")

    def add(
        self,
        states: torch.Tensor,
        changed: torch.Tensor,
        delta: torch.Tensor,
        real: torch.Tensor,
        slots: torch.Tensor,
    ) -> None:
        """Add one call. real: bool, batch x tokens; padding counts for nothing."""
        self.calls += 1
        with torch.no_grad():
            norms = delta.float().norm(dim=-1) * real
            applied = ((changed.float() - states.float()).norm(dim=-1) * real).pow(2).sum()
            finite = torch.isfinite(delta).all()
            self._rows.append((norms.pow(2).sum(), applied, norms.sum(), real.sum(), finite, slots))
        self._facts = (
            tuple(changed.shape),
            str(changed.dtype).removeprefix("torch."),
            str(changed.device),
        )

    def told(self) -> SiteTrace:
        """Return the trace. Raises ModelRefusedError (`site-not-called`) when nothing came by."""
        if self.calls == 0:
            raise ModelRefusedError(
                Reason.SITE_NOT_CALLED,
                "the model did not pass this layer while the adapter was attached",
                field="site",
                value=self.site,
                remedy="run the model inside the block; a compiled copy does not count",
            )
        squares, applied, sums, tokens, finite, slots = (
            [float(row[place]) for row in self._rows] for place in range(6)
        )
        shape, dtype, device = self._facts
        count = sum(tokens)
        return SiteTrace(
            site=self.site,
            calls=self.calls,
            tokens=int(count),
            slots=int(slots[-1]),
            shape=shape,
            dtype=dtype,
            device=device,
            delta_norm=sqrt(sum(squares)),
            applied_norm=sqrt(sum(applied)),
            mean_token_norm=sum(sums) / count if count else 0.0,
            finite=all(finite),
        )

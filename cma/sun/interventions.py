"""Interventions: the ways to run a model with memory, and the controls without (paper: Sun)."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from cma.sun.vectors import ContextVectors, masked, no_memory, shuffled, zeroed
from cma.values.errors import InvalidValueError, Reason


class Intervention(StrEnum):
    """What is done to the path of memory. Only ADAPTER_OFF leaves the adapter out altogether."""

    FULL = "full"
    NO_MEMORY = "no_memory"
    MASKED = "masked"
    ZERO_VECTORS = "zero_vectors"
    SHUFFLED = "shuffled"
    OTHER_MEMORY = "other_memory"
    ADAPTER_OFF = "adapter_off"
    SINGLE_SITE = "single_site"


@dataclass(frozen=True, slots=True)
class Condition:
    """An intervention with what it needs. site: index of the one site of SINGLE_SITE."""

    intervention: Intervention = Intervention.FULL
    site: int | None = None
    seed: int = 0

    def __post_init__(self) -> None:
        """Raise InvalidValueError for a site without SINGLE_SITE, or the other way round."""
        if (self.site is not None) != (self.intervention is Intervention.SINGLE_SITE):
            raise InvalidValueError(
                Reason.FIELD_INVALID,
                "a site is named for single_site, and for nothing else",
                field="site",
                value=self.site,
                remedy="Condition(Intervention.SINGLE_SITE, site=0)",
            )

    @property
    def name(self) -> str:
        """The condition's name in tables: `full`, ..., `site_1_only`, `site_2_only`."""
        if self.site is None:
            return self.intervention.value
        return f"site_{self.site + 1}_only"


CONDITIONS: tuple[Condition, ...] = (
    *(Condition(each) for each in Intervention if each is not Intervention.SINGLE_SITE),
    Condition(Intervention.SINGLE_SITE, site=0),
    Condition(Intervention.SINGLE_SITE, site=1),
)
"""The nine conditions of the diagnostic."""


def vectors_for(
    condition: Condition, memory: ContextVectors, other: ContextVectors | None = None
) -> ContextVectors:
    """Return the context vectors that a condition gives to the adapter.

    other: the vectors of another memory, needed for OTHER_MEMORY. Raises InvalidValueError when
    they are missing, or when memory that should count is zero (`vectors-zero`).
    """
    if condition.intervention is Intervention.NO_MEMORY:
        return no_memory(memory)
    if condition.intervention is Intervention.MASKED:
        return masked(memory)
    if condition.intervention is Intervention.ZERO_VECTORS:
        return zeroed(memory)
    chosen = memory
    if condition.intervention is Intervention.OTHER_MEMORY:
        if other is None:
            raise InvalidValueError(
                Reason.FIELD_INVALID,
                "other_memory needs another memory",
                field="other",
                remedy="give the context vectors of another cell",
            )
        chosen = other
    if condition.intervention is Intervention.SHUFFLED:
        chosen = shuffled(memory, seed=condition.seed)
    chosen.require_memory()
    return chosen


def sites_for(condition: Condition, sites: tuple[str, ...]) -> tuple[str, ...]:
    """Return the sites at which a condition runs the adapter.

    Raises InvalidValueError for a place that the adapter does not have.
    """
    if condition.intervention is Intervention.ADAPTER_OFF:
        return ()
    if condition.site is None:
        return sites
    if not 0 <= condition.site < len(sites):
        raise InvalidValueError(
            Reason.FIELD_INVALID,
            "the adapter has no such site",
            field="site",
            value=condition.site,
            remedy=f"count from 0 to {len(sites) - 1}",
        )
    return (sites[condition.site],)

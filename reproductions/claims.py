"""The schema of `claims.yaml`: what the paper says, and what would count as seeing it here.

Guaranteed after loading: ids are unique, no key is unknown, and each claim carries what its judge
needs (a number to compare with, a rule to hold, contracts to pass, or the reason why nothing can be
compared). Wrong files are refused with the claim's id and the key.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Literal, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from reproductions.inputs import CorruptInputError, finite, first_problem, read_yaml

CLAIMS_FORMAT = "cma.claims/1"
CLAIMS_FILE = Path(__file__).with_name("claims.yaml")
TALLY = "contract_tally"

Judge = Literal["exact", "structural", "by_construction", "not_comparable"]
Rule = Literal["positive", "zero", "complete"]
"""`positive`: above zero. `zero`: exactly zero. `complete`: equal to its denominator, not empty."""


class Claim(BaseModel):
    """One claim of the paper summary, in our words."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    id: str = Field(pattern=r"^[a-z0-9]+(-[a-z0-9]+)*$")
    statement: str = Field(min_length=10)
    section: str = Field(min_length=3)
    value: bool | int | float | str | None = None
    """What the paper reports: a number where one is compared, else a few words."""
    unit: str = ""
    """What the number counts or measures."""
    judge: Judge
    experiment: str | None = None
    figures: list[str] = Field(default_factory=list)
    """Keys whose values, added up, are the measured value of `exact` and `by_construction`."""
    of: int | None = None
    """The denominator that the measured figures must have, added up."""
    holds: dict[str, Rule | int | float] = Field(default_factory=dict)
    """Rule (or exact number) that each figure must satisfy; for `structural`."""
    contracts: list[str] = Field(default_factory=list)
    """Contracts that must all have passed in the tally."""
    why: str = ""
    """What the comparison leaves open, or why there is none."""

    @model_validator(mode="after")
    def _has_what_its_judge_needs(self) -> Self:
        wrong = [name for name in self.contracts if not re.fullmatch(r"[OTLER]\d\d", name)]
        if wrong:
            raise ValueError(f"contracts: {', '.join(wrong)} is no contract id such as O01")
        if self.judge in ("exact", "by_construction"):
            if finite(self.value) is None or not self.figures:
                raise ValueError(f"judge {self.judge} needs a number as value and figures")
            if self.holds:
                raise ValueError("holds belongs to judge structural; use value and figures")
        elif self.figures or self.of is not None:
            raise ValueError(f"figures and of do not go with judge {self.judge}; use holds")
        if self.judge == "structural" and not (self.holds or self.contracts):
            raise ValueError("judge structural needs holds or contracts")
        if self.judge in ("by_construction", "not_comparable") and not self.why:
            raise ValueError(f"judge {self.judge} needs why")
        if (self.figures or self.holds) and not self.experiment:
            raise ValueError("figures and holds need the experiment that supplies them")
        return self


class ClaimsFile(BaseModel):
    """The whole file."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    format: Literal["cma.claims/1"]
    source: str
    claims: list[Claim] = Field(min_length=1)

    @model_validator(mode="after")
    def _ids_are_unique(self) -> Self:
        seen: set[str] = set()
        for claim in self.claims:
            if claim.id in seen:
                raise ValueError(f"the id {claim.id} occurs twice")
            seen.add(claim.id)
        return self


def load_claims(path: Path = CLAIMS_FILE) -> ClaimsFile:
    """Return the claims, or raise `CorruptInputError` naming the claim and the key."""
    raw = read_yaml(path)
    try:
        return ClaimsFile.model_validate(raw)
    except ValidationError as error:
        raise CorruptInputError(
            f"{path.name}: {_claim_at(raw, error)}{first_problem(error)}"
        ) from error


def _claim_at(raw: object, error: ValidationError) -> str:
    place = error.errors()[0]["loc"]
    if len(place) > 1 and isinstance(place[1], int) and isinstance(raw, dict):
        entry = raw["claims"][place[1]]
        if isinstance(entry, dict) and "id" in entry:
            return f"claim {entry['id']}: "
    return ""

"""What an experiment returns, before it is written: figures, tables and notes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import pandas as pd

from experiments.data.conversations import DataRecord

DIGITS = 6
"""Decimals kept of a measured number: more than a sample supports, fewer than platforms share."""


@dataclass(frozen=True, slots=True)
class Figure:
    """One headline figure, with what is needed to judge it."""

    value: float
    unit: str
    n: int
    interval: tuple[float, float] | None = None
    control: float | None = None

    def as_dict(self) -> dict[str, Any]:
        """Return the figure as `figures.json` holds it: what was not measured is absent."""
        content: dict[str, Any] = {
            "value": _rounded(self.value),
            "unit": self.unit,
            "n": self.n,
        }
        if self.interval is not None:
            content["interval"] = [_rounded(bound) for bound in self.interval]
        if self.control is not None:
            content["control"] = _rounded(self.control)
        return content


@dataclass(frozen=True, slots=True)
class Result:
    """Everything that an experiment found out; what is `measured` alone may differ."""

    figures: Mapping[str, Figure] = field(default_factory=dict)
    tables: Mapping[str, pd.DataFrame] = field(default_factory=dict)
    """Tidy, long form, by name; each becomes `<name>.csv`."""
    data: tuple[DataRecord, ...] = ()
    notes: tuple[str, ...] = ()
    measured: Mapping[str, Figure] = field(default_factory=dict)
    """Figures of this machine and moment, such as seconds: they go to `machine.json`."""
    measured_tables: Mapping[str, pd.DataFrame] = field(default_factory=dict)
    """Tables of them; each becomes `<name>.csv` too, and its digest goes to `machine.json`."""


def _rounded(value: float) -> float:
    return value if isinstance(value, int) else round(float(value), DIGITS)

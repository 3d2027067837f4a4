"""Civilization Memory Architecture: governed, typed, auditable memory for AI agents."""

from cma.lagoon.policy import Policy
from cma.memory import Memory
from cma.orion.cells import Authority, Caller, Cell, CellDraft, Kind, Lifecycle, Provenance
from cma.orion.links import Link, LinkDraft, LinkKind
from cma.orion.presets import PAPER, TUNED
from cma.orion.traces import Coefficients, Recollection, Retrieval
from cma.values.clock import FixedClock, SystemClock
from cma.values.errors import CmaError, Reason

__version__ = "0.2.0"

__all__ = [
    "PAPER",
    "TUNED",
    "Authority",
    "Caller",
    "Cell",
    "CellDraft",
    "CmaError",
    "Coefficients",
    "FixedClock",
    "Kind",
    "Lifecycle",
    "Link",
    "LinkDraft",
    "LinkKind",
    "Memory",
    "Policy",
    "Provenance",
    "Reason",
    "Recollection",
    "Retrieval",
    "SystemClock",
]

"""The faults of a disk: which calls fail, how, and whether once or from then on."""

from __future__ import annotations

from typing import NamedTuple

from experiments.crashing.calls import Call, Fate

_NAMING = ("create", "delete", "rename", "link")


class Fault(NamedTuple):
    """How calls fail: with which fate, which calls, and whether once or from then on."""

    fate: Fate
    reaches: tuple[str, ...]
    stays: bool = False


_IO = ("write", "truncate", "sync", "open", *_NAMING)
_FULL = ("write", "truncate", "sync", "create", "rename", "link")
FAULTS = {
    "io": Fault(Fate.IO_ERROR, _IO),
    "io-stays": Fault(Fate.IO_ERROR, _IO, stays=True),
    "read": Fault(Fate.IO_ERROR, ("read",)),
    "full": Fault(Fate.FULL, _FULL),
    "full-stays": Fault(Fate.FULL, _FULL, stays=True),
    "short": Fault(Fate.SHORT, ("write",)),
    "dropped": Fault(Fate.DROP, ("write", "truncate", "sync", "delete")),
    "map": Fault(Fate.IO_ERROR, ("map",)),
}
LOGS = ("growing", "folded")


class Failing:
    """Lets the Nth call that a fault reaches fail, once or from then on."""

    def __init__(self, fault: Fault, number: int) -> None:
        """Begin unarmed."""
        self.fault = fault
        self.number = number
        self.armed = False
        self.count = 0
        self.hit: Call | None = None

    def __call__(self, call: Call) -> Fate:
        """Say what becomes of a call."""
        if not self.armed or call.kind not in self.fault.reaches:
            return Fate.PASS
        self.count += 1
        meets = self.count >= self.number if self.fault.stays else self.count == self.number
        if not meets:
            return Fate.PASS
        self.hit = self.hit or call
        return self.fault.fate

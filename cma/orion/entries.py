"""The cells of an index as columns, and the digest of the set that is live."""

from __future__ import annotations

import hashlib
import struct
from collections import defaultdict
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cma.orion.cell_ids import CellIds, packed
from cma.orion.columns import Column
from cma.orion.index_file import Image

__all__ = ["NEVER", "Entries", "Entry"]

NEVER = 2**63 - 1
_FARTHEST = 2**61
_MODULUS = 1 << 256
_SIZE = 32
_SHA256 = hashlib.sha256
_COLUMNS = (
    "scopes", "confidence", "importance", "observed", "expires", "inactive", "live", "lengths",
    "digests",
)  # fmt: skip
_FIELDS = struct.Struct("<qddqq?")


class Entry(NamedTuple):
    """The live revision of a cell, as the index needs it.

    `id` is "cell-" and 40 lower-case hex digits; `scope` the owner's own small code, at least 0;
    times are microseconds since 1970; `inactive` says that lifecycle has taken the cell out. `salt`
    (see `salting`) is part of the entry's digest and is not searched.
    """

    id: str
    revision: int
    scope: int
    confidence: float
    importance: float
    observed_us: int
    terms: Sequence[str]
    expires_us: int = NEVER
    inactive: bool = False
    salt: str = ""


class Entries:
    """Columns by ordinal; only `live` ever changes, and `version` with it."""

    def __init__(self) -> None:
        """Make empty columns."""
        self.ids = CellIds()
        self.cells = 0  # with a live row
        self.version = 0
        self.latest_us = -_FARTHEST
        self.earliest_expiry_us = NEVER
        self.retired = 0  # rows not live whose postings are still there
        self._scopes = Column(np.int32)
        self._confidence = Column(np.float64)
        self._importance = Column(np.float64)
        self._observed = Column(np.int64)
        self._expires = Column(np.int64)
        self._inactive = Column(np.bool_)
        self._live = Column(np.bool_)
        self._lengths = Column(np.int32)
        self._any_inactive = False
        self._digests = Column(np.uint8, _SIZE)
        self._sum = 0
        self._sizes: defaultdict[int, list[int]] = defaultdict(lambda: [0, 0])

    def __len__(self) -> int:
        """How many ordinals were given out."""
        return len(self.ids)

    @property
    def prefixes(self) -> NDArray[np.uint64]:
        """The first 16 hex digits of each id."""
        return self.ids.prefixes

    @property
    def confidence(self) -> NDArray[np.float64]:
        """Confidence of each cell."""
        return self._confidence.values

    @property
    def importance(self) -> NDArray[np.float64]:
        """Importance of each cell."""
        return self._importance.values

    @property
    def observed(self) -> NDArray[np.int64]:
        """When each cell was observed."""
        return self._observed.values

    @property
    def live(self) -> NDArray[np.bool_]:
        """Whether each ordinal is its cell's live one."""
        return self._live.values

    @property
    def digest(self) -> str:
        """The additive multiset digest of the live entries."""
        return f"{self._sum:0{2 * _SIZE}x}"

    def extent(self, viewer: frozenset[int]) -> tuple[int, int]:
        """How many live cells the viewer's scopes hold, and how many terms in all."""
        sizes = [self._sizes[scope] for scope in viewer if scope in self._sizes]
        return sum(cells for cells, _ in sizes), sum(terms for _, terms in sizes)

    def visible(self, viewer: frozenset[int], rows: slice) -> NDArray[np.bool_]:
        """Whether each of the rows is live and in one of the viewer's scopes."""
        scopes = self._scopes.values[rows]
        seen: NDArray[np.bool_] = self._live.values[rows] & np.isin(scopes, list(viewer))
        return seen

    def active(self, at_us: int) -> NDArray[np.bool_] | None:
        """Whether each cell is active at that time; None if every one is."""
        if not self._any_inactive and at_us < self.earliest_expiry_us:
            return None
        return ~self._inactive.values & (self._expires.values > at_us)

    def append(self, entries: Sequence[Entry]) -> range:
        """Append entries whose ids have no live row. Raises ValueError before any change."""
        start, count = len(self.ids), len(entries)
        ids, _, scopes, confidence, importance, observed, terms, expires, inactive, _ = zip(
            *entries, strict=True
        )
        numbers = packed(ids)
        shares = _shares(confidence, importance)
        times = _times(observed, expires)
        if not all(0 <= scope < 2**31 for scope in set(scopes)):
            raise ValueError(f"scope: must be a code from 0 to 2^31-1; among {sorted(set(scopes))}")
        lengths = np.fromiter(map(len, terms), np.int64, count)
        digests = list(map(_digest, entries))
        self._scopes.extend(scopes, count)
        self._confidence.extend(shares[0], count)
        self._importance.extend(shares[1], count)
        self._observed.extend(times[0], count)
        self._expires.extend(times[1], count)
        self._inactive.extend(inactive, count)
        self._live.extend(True, count)
        self._lengths.extend(lengths, count)
        self.ids.extend(ids, numbers)
        self.cells += count
        self._any_inactive = self._any_inactive or any(inactive)
        self.latest_us = max(self.latest_us, max(observed))
        self.earliest_expiry_us = min(self.earliest_expiry_us, min(expires))
        codes, places = np.unique(self._scopes.values[start:], return_inverse=True)
        words = np.bincount(places, lengths).tolist()
        for scope, cells, terms_held in zip(
            codes.tolist(), np.bincount(places).tolist(), words, strict=True
        ):
            self._sizes[scope][0] += cells
            self._sizes[scope][1] += int(terms_held)
        self._digests.extend(np.frombuffer(b"".join(digests), np.uint8).reshape(-1, _SIZE), count)
        self._sum = (self._sum + sum(map(int.from_bytes, digests))) % _MODULUS
        return range(start, start + count)

    def saved(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        """Return all entries as facts and arrays."""
        facts = {
            "cells": self.cells,
            "latest_us": self.latest_us,
            "earliest_expiry_us": self.earliest_expiry_us,
            "retired": self.retired,
            "any_inactive": self._any_inactive,
            "digest": self.digest,
            "sizes": [[scope, *size] for scope, size in self._sizes.items()],
        }
        columns = {name: getattr(self, f"_{name}").values for name in _COLUMNS}
        return facts, self.ids.saved() | columns

    @classmethod
    def loaded(cls, image: Image, codes: Sequence[int]) -> Entries:
        """Return the entries that were saved. codes: what each scope's code is now."""
        entries, facts = cls(), image.facts["entries"]
        entries.ids = CellIds.loaded(image)
        for name in ("cells", "latest_us", "earliest_expiry_us", "retired"):
            setattr(entries, name, int(facts[name]))
        entries._any_inactive = bool(facts["any_inactive"])
        entries._sum = int(facts["digest"], 16)
        for name in _COLUMNS:
            setattr(entries, f"_{name}", image.column(name))
        image.numbers("scopes", 0, len(codes))
        if any(image.used[name] != len(entries) for name in _COLUMNS):
            raise ValueError("columns: of different lengths")
        if list(codes) != list(range(len(codes))):
            scopes = entries._scopes.values
            scopes[:] = np.array(codes, np.int32)[scopes]
        for scope, cells, terms in facts["sizes"]:
            entries._sizes[codes[scope]] = [int(cells), int(terms)]
        return entries

    def retire(self, ordinal: int) -> None:
        """Take out a row whose cell has a newer one."""
        size = self._sizes[int(self._scopes.values[ordinal])]
        size[0] -= 1
        size[1] -= int(self._lengths.values[ordinal])
        self._live.values[ordinal] = False
        self.cells -= 1
        own = int.from_bytes(self._digests.values[ordinal].tobytes())
        self._sum = (self._sum - own) % _MODULUS
        self.retired += 1
        self.version += 1


def _digest(entry: Entry) -> bytes:
    # Id and fields have fixed lengths, so the bytes can be read in one way only.
    cell_id, revision, _, confidence, importance, observed, terms, expires, inactive, salt = entry
    fields = _FIELDS.pack(revision, confidence, importance, observed, expires, inactive)
    told = [*terms, "", salt] if salt else terms  # no term is empty
    words = "\0".join(told).encode("utf-8", "surrogatepass")
    return _SHA256(cell_id.encode() + fields + words).digest()


def _shares(*columns: Sequence[float]) -> NDArray[np.float64]:
    values = np.array(columns, np.float64)
    if not ((values >= 0.0) & (values <= 1.0)).all():
        raise ValueError("confidence, importance: must lie from 0 to 1")
    return values + 0.0  # no negative zero


def _times(observed: Sequence[int], expires: Sequence[int]) -> NDArray[np.int64]:
    if max(map(abs, observed)) > _FARTHEST or not -NEVER <= min(expires) <= max(expires) <= NEVER:
        raise ValueError("observed_us, expires_us: must be microseconds within the range of dates")
    return np.array((observed, expires), np.int64)

"""The context of cells: what stands around their terms, as columns beside an index.

A cell's speaker and session come from its metadata; whether it asks, whether it says a time, and
its pairs of adjacent terms come from its content; its month from the time at which it was
observed. Rows are those of the index, so that one ordinal means one revision in both. It is built
when a recall first weighs a part of `scoring.CONTEXT_PARTS`, and followed from then on.

Words for times and months are English, as the analysers are that leave out English words.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from cma.orion.analysis import ANALYSERS, analyse_unicode
from cma.orion.columns import Column
from cma.orion.postings import Postings
from cma.orion.stopwords import MONTHS, TIME_WORDS

__all__ = ["Asked", "Context", "Told", "asked"]

NOBODY = -1
_ASKS = frozenset("?\uff1f\u061f\u037e")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class Told(NamedTuple):
    """What a context needs of one revision of a cell."""

    scope: int
    content: str
    speaker: str
    """Empty where nobody is named; so is `session`."""
    session: str
    observed_us: int
    terms: Sequence[str]


class Asked(NamedTuple):
    """What of a question the parts of a context are held against."""

    terms: frozenset[str]
    bigrams: tuple[str, ...]
    """Distinct pairs of adjacent terms, in their order."""
    months: frozenset[int]
    """Months that it names, from 1 on."""
    moment: bool
    """Whether it asks when something was or how long it took."""


class Context:
    """The columns of one index's cells under one analyser."""

    def __init__(self, analyser: str) -> None:
        """Begin without cells."""
        self._analyse = ANALYSERS[analyser]
        self._sessions: dict[tuple[int, str], int] = {}
        self._speakers: dict[str, int] = {}
        self._names: list[frozenset[str]] = []
        self._session = Column(np.int64)
        self._speaker = Column(np.int64)
        self._month = Column(np.int8)
        self._asks = Column(np.bool_)
        self._timed = Column(np.bool_)
        self._codes: dict[str, int] = {}
        self._words: list[str] = []
        self._held = Column(np.int32)
        self._held_from = Column(np.int64)
        self._held_from.extend(0, 1)
        self.bigrams = Postings()

    def __len__(self) -> int:
        """How many revisions of cells are here."""
        return len(self._session)

    @property
    def session(self) -> NDArray[np.int64]:
        """A number for the session of each cell; those of two scopes are two. -1 without one."""
        return self._session.values

    @property
    def sessions(self) -> int:
        """How many numbers of sessions there are."""
        return len(self._sessions)

    @property
    def speaker(self) -> NDArray[np.int64]:
        """A number for the speaker of each cell, -1 without one."""
        return self._speaker.values

    @property
    def month(self) -> NDArray[np.int8]:
        """The month, from 1 on, in which each cell was observed (UTC)."""
        return self._month.values

    @property
    def asks(self) -> NDArray[np.bool_]:
        """Whether a question mark stands in each cell."""
        return self._asks.values

    @property
    def timed(self) -> NDArray[np.bool_]:
        """Whether a word for a time stands in each cell."""
        return self._timed.values

    def terms(self, cell: int) -> list[str]:
        """Return the distinct terms of one cell, in order."""
        first, last = self._held_from.values[cell : cell + 2]
        return [self._words[code] for code in self._held.values[first:last].tolist()]

    def named(self, terms: frozenset[str]) -> list[int]:
        """Return the speakers in whose names one of the terms stands."""
        return [code for code, name in enumerate(self._names) if not name.isdisjoint(terms)]

    def extend(self, cells: Iterable[Told]) -> None:
        """Append cells under the next ordinals."""
        told = list(cells)
        count = len(told)
        self._session.extend([self._session_of(each) for each in told], count)
        self._speaker.extend([self._speaker_of(each.speaker) for each in told], count)
        self._month.extend([_month(each.observed_us) for each in told], count)
        self._asks.extend([not _ASKS.isdisjoint(each.content) for each in told], count)
        words = [analyse_unicode(each.content) for each in told]
        self._timed.extend([not TIME_WORDS.isdisjoint(own) for own in words], count)
        self.bigrams.extend([_pairs(each.terms) for each in told])
        for each in told:
            self._hold(sorted(set(each.terms)))

    def _hold(self, terms: list[str]) -> None:
        codes = [self._codes.setdefault(term, len(self._codes)) for term in terms]
        for code, term in zip(codes, terms, strict=True):
            if code == len(self._words):
                self._words.append(term)
        self._held.extend(codes, len(codes))
        self._held_from.extend(len(self._held), 1)

    def _session_of(self, told: Told) -> int:
        if not told.session:
            return NOBODY
        return self._sessions.setdefault((told.scope, told.session), len(self._sessions))

    def _speaker_of(self, name: str) -> int:
        if not name:
            return NOBODY
        code = self._speakers.setdefault(name, len(self._speakers))
        if code == len(self._names):
            self._names.append(frozenset(self._analyse(name)))
        return code


def asked(query: str, terms: Sequence[str]) -> Asked:
    """Return what a question asks beside its terms."""
    words = frozenset(analyse_unicode(query))
    return Asked(
        terms=frozenset(terms),
        bigrams=tuple(dict.fromkeys(_pairs(terms))),
        months=frozenset(place for place, name in enumerate(MONTHS, 1) if name in words),
        moment="when" in words or {"how", "long"} <= words,
    )


def _pairs(terms: Sequence[str]) -> list[str]:
    return [f"{first} {second}" for first, second in pairwise(terms)]


def _month(observed_us: int) -> int:
    return (_EPOCH + timedelta(microseconds=observed_us)).month

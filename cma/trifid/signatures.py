"""Signatures: what several episodes have in common, whatever their wording looks like.

A signature covers entities, goals, actions and outcome. Scene, cues, time and sources are what
makes an episode this one and no other, and stay out of it.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Sequence

from cma.values.identity import canonical, digest

SIGNATURE_DOMAIN = "cma:signature:1"


def normalised(text: str) -> str:
    """Return a text without what case, spacing and Unicode form add to it."""
    folded = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold())
    return " ".join(folded.split())


def signature_of(
    *, entities: Iterable[str], goals: Iterable[str], actions: Sequence[str], outcome: str
) -> str:
    """Return the signature: entities and goals as sets, actions in order, and the outcome."""
    shared = {
        "actions": [normalised(action) for action in actions],
        "entities": sorted({normalised(entity) for entity in entities}),
        "goals": sorted({normalised(goal) for goal in goals}),
        "outcome": normalised(outcome),
    }
    return digest(SIGNATURE_DOMAIN, canonical(shared))

"""Ways to recall that come with the library, beside any that a caller makes.

`PAPER` is plain overlap and hand-set coefficients, as the paper has them (paper: transparent
lexical scoring); it is the default. `TUNED` weighs the parts that look around a cell too, by
coefficients chosen on conversations (LoCoMo) by the sweep in `reproductions/evidence/tuned`, which
also says what they are worth on conversations that had no say: they suit dialogue with speakers,
sessions and temporal links, in English.
"""

from __future__ import annotations

from typing import Final

from cma.orion.traces import Coefficients, Retrieval

__all__ = ["PAPER", "TUNED"]

PAPER: Final = Retrieval()
TUNED: Final = Retrieval(
    analyser="dialogue",
    lexical="idf_overlap",
    coefficients=Coefficients(
        lexical=1.0,
        confidence=0.0,
        importance=0.0,
        recency=0.0,
        link=0.218311,
        two_links=0.598245,
        reply=0.749971,
        session=0.412785,
        bigrams=0.226209,
        speaker=0.146374,
        statement=0.102593,
        month=0.346448,
        moment=0.162166,
        feedback=0.277688,
    ),
)

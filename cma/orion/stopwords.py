"""The English words that analysers leave out, and those that speak of time.

The list of `english` is the 33-word one of Apache Lucene's `EnglishAnalyzer`, which `bm25s` also
uses as `"en"`: small, well known, and without question words, so that it can be compared with peers
as they run.
"""

from __future__ import annotations

_LISTED = """
a an and are as at be but by for if in into is it no not of on or such that the their then there
these they this to was will with
"""

ENGLISH_STOPWORDS: frozenset[str] = frozenset(_LISTED.split())

_ASKING = """
what when where who whom whose which why how
did does do is are was were has have had will would could can should may might
i you he she they it his her their its him them me my your our we us
"""

DIALOGUE_STOPWORDS: frozenset[str] = ENGLISH_STOPWORDS | frozenset(_ASKING.split())
"""Those of `english`, question words, auxiliary verbs and pronouns: what a question about a
conversation is put together with, and what no turn is found by."""

MONTHS: tuple[str, ...] = (
    "january", "february", "march", "april", "may", "june", "july", "august", "september",
    "october", "november", "december",
)  # fmt: skip

_TIMES = """
yesterday today tomorrow last next week month year weekend ago day days weeks months years morning
evening night monday tuesday wednesday thursday friday saturday sunday since recently soon
"""

TIME_WORDS: frozenset[str] = frozenset(_TIMES.split()) | frozenset(MONTHS)
"""Words by which a turn says when something was or will be."""

"""The English words that the `english` analyser leaves out.

The list is the 33-word one of Apache Lucene's `EnglishAnalyzer`, which `bm25s` also uses as `"en"`:
small, well known, and without question words, so that it can be compared with peers as they run.
"""

from __future__ import annotations

_LISTED = """
a an and are as at be but by for if in into is it no not of on or such that the their then there
these they this to was will with
"""

ENGLISH_STOPWORDS: frozenset[str] = frozenset(_LISTED.split())

"""Analysis: from text to index terms, the same for cells and for questions.

Three analysers, by name in `ANALYSERS`:

`unicode`
    NFKC, case folding, NFKC again; then words: runs of letters, digits, underscores and the marks
    that combine with them. Chinese and Japanese are written without spaces, so a run of
    ideographs and kana becomes its overlapping pairs (a single one stays itself); Korean words
    stay whole. Where Latin and CJK letters touch, the word is split.
`english`
    The same words, less `ENGLISH_STOPWORDS`, as Snowball stems (Porter2).
`dialogue`
    As `english`, less `DIALOGUE_STOPWORDS` too: pronouns and what questions are made of.

Invisible format characters and variation selectors are no part of a word; the zero-width space
ends one. Text without a word has no terms, which never means "matches everything". All analysers
take time linear in the text and may be called from several threads.
"""

from __future__ import annotations

import re
import threading
import unicodedata
from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType

import regex
import Stemmer

from cma.orion.stopwords import DIALOGUE_STOPWORDS, ENGLISH_STOPWORDS

__all__ = [
    "ANALYSERS",
    "Analyser",
    "analyse_dialogue",
    "analyse_english",
    "analyse_many",
    "analyse_unicode",
]

Analyser = Callable[[str], list[str]]

_ASCII_WORDS = re.compile(r"\w+", re.ASCII).findall
# U+200B is where a line may break between words; the other format characters are inside words.
_INVISIBLE = regex.compile(r"[[\p{Cf}\uFE00-\uFE0F\U000E0100-\U000E01EF]--\u200B]+", regex.V1)
_CJK = r"\p{Han}\p{Hiragana}\p{Katakana}\u30FC"
_RUNS = regex.compile(
    rf"([{_CJK}]+)|[[\p{{L}}\p{{N}}_]--[{_CJK}]][[\p{{L}}\p{{N}}\p{{M}}_]--[{_CJK}]]*", regex.V1
)
# Putting a run of combining marks in order takes time quadratic in its length. As Unicode's
# stream-safe form does, a joiner that keeps the order is put in after each thirty.
_LONG_RUN_OF_MARKS = regex.compile(r"(\p{M}{30})(?=\p{M})")
_STEMS_KEPT = 1 << 17
_LONGEST_KEPT = 64


def analyse_unicode(text: str) -> list[str]:
    """The words of `text` in order, repeated ones repeated, in any script."""
    if text.isascii():
        return _ASCII_WORDS(text.lower())
    text = _LONG_RUN_OF_MARKS.sub("\\1\u034f", text)
    folded = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold())
    terms: list[str] = []
    for run in _RUNS.finditer(_INVISIBLE.sub("", folded)):
        word = run.group()
        if run.group(1) is None or len(word) == 1:
            terms.append(word)
        else:
            terms.extend(word[at : at + 2] for at in range(len(word) - 1))
    return terms


def analyse_english(text: str) -> list[str]:
    """The Snowball stems of the words of `text` that are not stopwords."""
    return [stem for stem in map(_STEMS.__getitem__, analyse_unicode(text)) if stem]


def analyse_dialogue(text: str) -> list[str]:
    """The same stems, less those of pronouns and of the words that questions are made of."""
    return [stem for stem in map(_DIALOGUE_STEMS.__getitem__, analyse_unicode(text)) if stem]


def analyse_many(name: str, texts: Iterable[str]) -> list[list[str]]:
    """The terms of each text by the analyser of that name."""
    analyser = ANALYSERS.get(name)
    if analyser is None:
        raise ValueError(f"analyser: {name!r} is unknown; use one of {', '.join(ANALYSERS)}")
    return [analyser(text) for text in texts]


class _Stems(dict[str, str]):
    """Stems by word, remembered up to a bound; a stopword's stem is the empty string.

    A Snowball stemmer holds state and must not be shared, so each thread has its own.
    """

    def __init__(self, stopwords: frozenset[str]) -> None:
        super().__init__()
        self._stopwords = stopwords
        self._own = threading.local()

    def __missing__(self, word: str) -> str:
        if word in self._stopwords:
            stem = ""
        else:
            stemmer = getattr(self._own, "stemmer", None)
            if stemmer is None:
                stemmer = self._own.stemmer = Stemmer.Stemmer("english", 0)
            stem = str(stemmer.stemWord(word)) or word
        if len(word) <= _LONGEST_KEPT:
            if len(self) >= _STEMS_KEPT:
                self.clear()
            self[word] = stem
        return stem


_STEMS = _Stems(ENGLISH_STOPWORDS)
_DIALOGUE_STEMS = _Stems(DIALOGUE_STOPWORDS)

ANALYSERS: Mapping[str, Analyser] = MappingProxyType(
    {
        "unicode": analyse_unicode,
        "english": analyse_english,
        "dialogue": analyse_dialogue,
    }
)

"""What the analysers make of text."""

from __future__ import annotations

import time
import unicodedata
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cma.orion import analysis
from cma.orion.analysis import ANALYSERS, analyse_english, analyse_many, analyse_unicode
from cma.orion.stopwords import ENGLISH_STOPWORDS


@pytest.mark.parametrize(
    ("text", "terms"),
    [
        ("", []),
        (" \t\n ", []),
        ("\u200b\u200d\ufeff\u2060\u00ad", []),
        ("... -- !?", []),
        ("Hello, WORLD_1 hello", ["hello", "world_1", "hello"]),
        ("don't", ["don", "t"]),
        ("Straße ﬁx Ｆｕｌｌ", ["strasse", "fix", "full"]),
        ("co\u00adop z\u200dw a\u200bb", ["coop", "zw", "a", "b"]),
        ("हिन्दी", ["हिन्दी"]),
        ("外币汇率换算", ["外币", "币汇", "汇率", "率换", "换算"]),
        ("汇", ["汇"]),
        ("外\ufe00币", ["外币"]),
        ("データを見る", ["デー", "ータ", "タを", "を見", "見る"]),
        ("ﾃﾞｰﾀ", ["デー", "ータ"]),
        ("iPhone手机a1", ["iphone", "手机", "a1"]),
        ("한국어 단어", ["한국어", "단어"]),
    ],
)
def test_unicode_terms(text: str, terms: list[str]) -> None:
    assert analyse_unicode(text) == terms


def test_composed_and_decomposed_forms_are_one_term() -> None:
    forms = [unicodedata.normalize(form, "CAFÉ 각") for form in ("NFC", "NFD")]
    assert forms[0] != forms[1]
    assert analyse_unicode(forms[0]) == analyse_unicode(forms[1]) == ["café", "각"]


def test_a_chinese_query_shares_terms_with_the_text_that_holds_it() -> None:
    assert set(analyse_unicode("汇率")) <= set(analyse_unicode("外币汇率换算"))


def test_english_drops_stopwords_and_stems() -> None:
    assert analyse_english("The running cats WERE not the ones") == ["run", "cat", "were", "one"]
    assert analyse_english("to be or not to be") == []
    assert len(ENGLISH_STOPWORDS) == 33


@given(st.text(alphabet=st.characters(max_codepoint=127)))
def test_ascii_takes_the_same_way_as_other_text(text: str) -> None:
    with_other = analyse_unicode(text + " é")
    assert [*analyse_unicode(text), "é"] == with_other


@given(st.text())
def test_terms_are_never_empty_and_analysis_is_steady(text: str) -> None:
    for name in ANALYSERS:
        first = analyse_many(name, [text])[0]
        assert all(first)
        assert ANALYSERS[name](text) == first
        assert not any(any(c.isspace() for c in term) for term in first)


def test_an_unknown_analyser_is_named() -> None:
    with pytest.raises(ValueError, match="'german' is unknown; use one of unicode, english"):
        analyse_many("german", ["text"])


@pytest.mark.parametrize("piece", ["word ", "a", "外", "é", "_\u0301", "\u0301", "\u200d", "외 "])
def test_a_megabyte_takes_linear_time(piece: str) -> None:
    # CPU time of ten times the text, against a bound that a quadratic way passes at once.
    analyse_english(piece)
    took = []
    for size in (100_000, 1_000_000):
        text = piece * (size // len(piece))
        began = time.process_time()
        analyse_english(text)
        took.append(time.process_time() - began)
    assert took[1] < 40 * took[0] + 1.0


def test_many_threads_get_the_same_stems(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(analysis, "_STEMS_KEPT", 50)  # so that words are forgotten and stemmed anew
    words = [f"{stem}{end}" for stem in ("walk", "nation", "hop", "argu") for end in
             ("", "ing", "ed", "s", "ional", "ization", "er", "ly", "ment")]  # fmt: skip
    text = " ".join(words)
    expected = analyse_english(text)
    with ThreadPoolExecutor(8) as pool:
        assert all(got == expected for got in pool.map(analyse_english, [text] * 400))
    assert len(analysis._STEMS) <= 50

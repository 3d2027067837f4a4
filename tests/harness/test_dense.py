"""The dense peer: unit vectors, sums with BM25, and a plain word where it is not installed."""

from __future__ import annotations

import importlib.util

import numpy as np
import pytest

from experiments import dense
from experiments.data.generated import generate
from experiments.engines import rows
from experiments.failures import UsageError
from experiments.ingest import ingested
from experiments.overrides import composed

ASKED = ["experiment=retrieval", "data=generated", "evaluation.analysers=[english]"]
needs_weights = pytest.mark.skipif(
    importlib.util.find_spec(dense.PACKAGE) is None, reason="the extra `dense` is not installed"
)


def test_without_its_weights_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dense, "PACKAGE", "no_such_package")
    settings = composed([*ASKED, "evaluation.dense=true"])
    with pytest.raises(UsageError, match=r"civilization-memory\[dense\]"):
        rows(settings.evaluation, settings.retrieval)


def test_a_sum_scales_both_first() -> None:
    found = dense.summed(np.array([2.0, 6.0, 4.0]), np.array([-1.0, -1.0, 1.0]))
    assert found.tolist() == [0.0, 1.0, 1.5]
    assert dense.summed(np.zeros(2), np.zeros(2)).tolist() == [0.0, 0.0]


@needs_weights
def test_like_texts_are_near_and_vectors_are_kept() -> None:
    encoder = dense.Encoder(dense.model_folder())
    texts = ["A cat sits on the mat.", "The stock market fell.", "A kitten rests on a rug."]
    found = encoder.vectors(texts)
    assert np.allclose(np.linalg.norm(found, axis=1), 1.0, atol=1e-5)
    assert found[0] @ found[2] > 0.4 > found[0] @ found[1]
    assert (encoder.vectors(texts[::-1]) == found[::-1]).all()


@needs_weights
def test_its_rows_stand_beside_the_others(tmp_path) -> None:
    small = [f"data.generated.{name}" for name in ("conversations=1", "turns=40", "questions=3")]
    corpus = generate(composed([*ASKED, *small]).data.generated)
    settings = composed([*ASKED, "evaluation.dense=true", "evaluation.scorers=[overlap]"])
    found = rows(settings.evaluation, settings.retrieval)
    assert [row.name for row in found][-2:] == [
        "dense/wordpiece/minilm", "bm25+dense/english/bm25s+minilm",
    ]  # fmt: skip
    [conversation] = corpus.conversations
    with ingested(conversation, corpus.name, tmp_path) as held:
        for row in found[-2:]:
            cells = row.bind(held, 5)(conversation.questions[0].text)
            assert len(cells) == len(set(cells)) == 5
            assert set(cells) <= set(held.text_of_cell)

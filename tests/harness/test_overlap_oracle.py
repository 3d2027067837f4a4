"""Rankings against independent oracles, question by question.

The overlap row against twenty lines that share nothing with the library but the analyser; the BM25
row against bm25s itself. Over generated conversations always, over LoCoMo where it is at hand.
"""

import os
import re
from itertools import pairwise
from pathlib import Path

import pytest

from cma import Coefficients, Retrieval
from cma.orion.analysis import ANALYSERS
from experiments.data.generated import generate
from experiments.data.loading import load
from experiments.engines import TIE_DIGITS, peer_scores, rows
from experiments.ingest import ingested
from experiments.overrides import composed
from experiments.retrieval import rank
from experiments.settings import GeneratedSettings

LIMIT = 20
ROUNDING = 1e-12
LEXICAL_ONLY = Coefficients(lexical=1.0, confidence=0.0, importance=0.0, recency=0.0, link=0.0)
HAS_LOCOMO = bool(os.environ.get("CMA_DATA_DIR")) and (
    Path(os.environ["CMA_DATA_DIR"], "locomo/locomo10.json").is_file()
)


def overlap_oracle(asked, terms_of_cell):
    """The best cells by |Q n D| / |Q| over distinct terms; ties by id; nothing without a term."""
    found = []
    for cell, terms in terms_of_cell.items():
        shared = asked & terms
        if shared:
            found.append((-len(shared) / len(asked), cell))
    found.sort()
    return [cell for _, cell in found[:LIMIT]]


@pytest.fixture(
    scope="module",
    params=[
        "generated",
        pytest.param(
            "locomo",
            marks=pytest.mark.skipif(not HAS_LOCOMO, reason="LoCoMo is not at hand (CMA_DATA_DIR)"),
        ),
    ],
)
def corpus(request):
    if request.param == "generated":
        return generate(GeneratedSettings())
    settings = composed(["experiment=retrieval", "data=locomo", "data.download=false"])
    return load(settings.data)[0]


@pytest.fixture(scope="module")
def answers(corpus, tmp_path_factory):
    """For each conversation: its cells' texts, its questions, and a function that recalls."""
    folder = tmp_path_factory.mktemp("stores")
    asked = []
    for conversation in corpus.conversations:
        with ingested(conversation, corpus.name, folder) as held:
            found = {}
            for lexical in ("overlap", "bm25"):
                for analyser in ANALYSERS:
                    how = Retrieval(analyser=analyser, lexical=lexical, coefficients=LEXICAL_ONLY)
                    for question in conversation.questions:
                        if not ANALYSERS[analyser](question.text):
                            continue
                        hits = held.memory.recall(question.text, limit=LIMIT, retrieval=how).hits
                        found[lexical, analyser, question.text] = [hit.cell.id for hit in hits]
            asked.append((dict(held.text_of_cell), found))
    return asked


@pytest.mark.parametrize("analyser", ["unicode", "english"])
def test_overlap_ranks_as_the_oracle_does(answers, analyser):
    analyse = ANALYSERS[analyser]
    compared = 0
    for texts, found in answers:
        terms = {cell: set(analyse(text)) for cell, text in texts.items()}
        for (lexical, used, question), cells in found.items():
            if (lexical, used) == ("overlap", analyser):
                assert cells == overlap_oracle(set(analyse(question)), terms), question
                compared += 1
    assert compared >= 200


@pytest.mark.parametrize("analyser", ["unicode", "english"])
def test_bm25_ranks_as_bm25s_scores(answers, analyser):
    """Rank by rank our cell has the score that bm25s gives to its own cell of that rank.

    So our order is one of bm25s's scores and nothing better was left out. Cells may differ only
    where bm25s's scores are equal but for rounding: different terms that are equally rare.
    """
    compared = same_cells = 0
    for texts, found in answers:
        cells = sorted(texts)
        score = peer_scores([texts[cell] for cell in cells], analyser, k1=1.5, b=0.75)
        for (lexical, used, question), ours in found.items():
            if (lexical, used) != ("bm25", analyser):
                continue
            theirs = dict(zip(cells, score(question).tolist(), strict=True))
            scored = [cell for cell in cells if theirs[cell] > 0.0]
            best = sorted(scored, key=lambda cell: (-round(theirs[cell], TIE_DIGITS), cell))[:LIMIT]
            assert len(set(ours)) == len(ours) == len(best), question
            for our_cell, their_cell in zip(ours, best, strict=True):
                assert abs(theirs[our_cell] - theirs[their_cell]) < ROUNDING, question
            compared += 1
            same_cells += ours == best
    assert compared >= 200
    assert same_cells >= 0.995 * compared


def test_oracle_reads_the_plain_analyser_as_words():
    """The one thing the oracle shares with the library, checked apart on plain text."""
    for conversation in generate(GeneratedSettings(conversations=1)).conversations:
        for turn in conversation.turns:
            assert ANALYSERS["unicode"](turn.text) == re.findall(r"\w+", turn.text.casefold())


def test_experiment_hands_on_what_the_store_recalled(tmp_path):
    """The rankings that are judged are the recalled cells, as turns, in the same order."""
    corpus = generate(GeneratedSettings(conversations=1, questions=10))
    settings = composed(["experiment=retrieval", "data=generated"])
    compared = rows(settings.evaluation, settings.retrieval)
    assert len({row.name for row in compared}) == len(compared) == 18
    rankings = rank(corpus, compared, LIMIT, tmp_path)
    (conversation,) = corpus.conversations
    texts = {turn.id: turn.text for turn in conversation.turns}
    for question in conversation.questions:
        turns = rankings["overlap/unicode/cma"][f"{conversation.id} {question.id}"]
        asked = set(ANALYSERS["unicode"](question.text))
        shares = [len(asked & set(ANALYSERS["unicode"](texts[turn]))) for turn in turns]
        assert len(turns) == LIMIT
        assert all(better >= worse > 0 for better, worse in pairwise(shares))
        assert (
            rankings["bm25/english/cma"][f"{conversation.id} {question.id}"]
            == rankings["bm25/english/bm25s"][f"{conversation.id} {question.id}"]
        )

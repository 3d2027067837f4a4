"""The retrieval experiment: its tables, denominators and checks."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from experiments import contract_tally, retrieval
from experiments.comparison import Judged, best_of
from experiments.data.conversations import DataRecord, EvidenceProblem
from experiments.data.generated import generate
from experiments.data.loading import load
from experiments.engines import rows
from experiments.evaluation import METRICS
from experiments.failures import ExperimentError, UsageError
from experiments.overrides import composed

OVERRIDES = [
    "experiment=retrieval",
    "data=generated",
    "data.generated.conversations=2",
    "data.generated.turns=60",
    "data.generated.questions=15",
    "evaluation.resamples=200",
]


@pytest.fixture(scope="module")
def settings():
    return composed(OVERRIDES)


@pytest.fixture(scope="module")
def corpus(settings):
    return generate(settings.data.generated)


@pytest.fixture(scope="module")
def result(settings, corpus, tmp_path_factory):
    return retrieval.run(settings, corpus, tmp_path_factory.mktemp("run"))


def test_table_is_whole_and_every_value_is_its_numerator_over_its_denominator(result):
    table = result.tables["recall"]
    assert list(table.columns) == [
        "data", "labels", "scorer", "analyser", "engine", "category", "metric", "value", "low",
        "high", "n", "numerator",
    ]  # fmt: skip
    assert len(table) == 18 * 6 * 6
    assert ((table["value"] - table["numerator"] / table["n"]).abs() < 1e-12).all()
    assert (
        (table["low"] <= table["value"] + 1e-12) & (table["value"] <= table["high"] + 1e-12)
    ).all()
    assert (table.loc[table["category"] == "all", "n"] == 30).all()
    one_row = table[(table["scorer"] == "overlap") & (table["analyser"] == "unicode")]
    per_category = one_row[(one_row["metric"] == "mrr") & (one_row["category"] != "all")]
    assert per_category["n"].sum() == 30


def test_recall_rises_with_the_cutoff(result):
    wide = result.tables["recall"].pivot_table(
        index=["scorer", "analyser", "engine", "category"], columns="metric", values="value"
    )
    assert (wide["recall@1"] <= wide["recall@5"]).all()
    assert (wide["recall@5"] <= wide["recall@10"]).all()
    assert (wide["recall@10"] <= wide["recall@20"]).all()


def test_our_bm25_and_the_peers_are_one(result):
    table = result.tables["recall"]
    both = table[table["scorer"] == "bm25"]
    keys = ["analyser", "category", "metric"]
    ours = both[both["engine"] == "cma"].set_index(keys)[["value", "low", "high", "numerator"]]
    theirs = both[both["engine"] == "bm25s"].set_index(keys)[["value", "low", "high", "numerator"]]
    pd.testing.assert_frame_equal(ours, theirs)


def test_differences_are_against_the_best_row_of_the_peer(result):
    table, gains = result.tables["recall"], result.tables["differences"]
    at_ten = table[(table["metric"] == "recall@10") & (table["category"] == "all")]
    peers = at_ten[at_ten["engine"] == "bm25s"]
    best = peers.loc[peers["value"].idxmax()]
    gains = gains[gains["metric"] == "recall@10"]
    assert set(gains["against"]) == {f"bm25/{best['analyser']}/bm25s"}
    row = gains[(gains["category"] == "all") & (gains["scorer"] == "overlap")].set_index("analyser")
    for analyser in ("unicode", "english"):
        ours = at_ten[(at_ten["scorer"] == "overlap") & (at_ten["analyser"] == analyser)]
        assert row.loc[analyser, "value"] == pytest.approx(ours["value"].item() - best["value"])


def test_best_row_of_the_peer_is_the_one_with_the_highest_headline(settings):
    compared = rows(settings.evaluation, settings.retrieval)
    values = {"overlap": 1.0, "unicode": 0.2, "english": 0.6, "dialogue": 0.4}
    judged = [
        Judged(row, np.full((4, len(METRICS)), values.get(row.scorer, values[row.analyser])))
        for row in compared
    ]
    best = best_of(judged, engine="bm25s")
    assert best is not None
    assert best.row.name == "bm25/english/bm25s"
    assert best_of(judged, engine="nobody's") is None


def test_headline_figures_are_rows_of_the_table(result):
    table = result.tables["recall"]
    at_ten = table[(table["metric"] == "recall@10") & (table["category"] == "all")]
    overlap = at_ten[(at_ten["scorer"] == "overlap") & (at_ten["analyser"] == "unicode")]
    figure = result.figures["generated.recall10.overlap"]
    assert figure.value == overlap["value"].item()
    assert figure.interval == (overlap["low"].item(), overlap["high"].item())
    assert figure.n == 30
    best = at_ten[at_ten["engine"] == "bm25s"]["value"].max()
    assert result.figures["generated.recall10.bm25"].value == best


def test_questions_without_evidence_leave_the_denominator_and_are_counted(
    settings, corpus, tmp_path
):
    first, second = corpus.conversations
    without = replace(first.questions[0], evidence=())
    corrected = replace(first.questions[1], corrected=())
    odd = replace(
        corpus,
        conversations=(
            replace(first, questions=(without, corrected, *first.questions[2:])),
            second,
        ),
        problems=(EvidenceProblem(first.id, "qa0", "", "empty", "question left out"),),
        corrected_labels=True,
    )
    found = retrieval.run(settings, odd, tmp_path)
    table = found.tables["recall"]
    counts = table[table["category"] == "all"].groupby("labels")["n"].unique()
    assert {name: values.tolist() for name, values in counts.items()} == {
        "published": [29],
        "corrected": [29],
    }
    assert "published labels: 29 questions judged, 1 left out" in " ".join(found.notes)
    assert len(found.tables["evidence_problems"]) == 1
    assert "label_corrections" in found.tables


def test_corpus_without_any_evidence_fails(settings, corpus, tmp_path):
    bare = replace(
        corpus,
        conversations=tuple(
            replace(talk, questions=tuple(replace(each, evidence=()) for each in talk.questions))
            for talk in corpus.conversations
        ),
        records=(DataRecord("bare", "0" * 64, "none", "generated"),),
    )
    with pytest.raises(ExperimentError, match="no question"):
        retrieval.run(settings, bare, tmp_path)


def test_kept_stores_stay_in_the_run_directory(settings, corpus, tmp_path):
    kept = replace(settings, store=replace(settings.store, keep=True))
    retrieval.run(kept, corpus, tmp_path)
    assert {path.name for path in (tmp_path / "stores").glob("*.cma")} == {"gen-1.cma", "gen-2.cma"}


@pytest.mark.parametrize(
    ("overrides", "words"),
    [
        (["evaluation.limit=10"], "evaluation.limit"),
        (["evaluation.resamples=0"], "evaluation.resamples"),
        (["evaluation.confidence=95"], "evaluation.confidence"),
        (["evaluation.scorers=[overlop]"], "overlop"),
        (["evaluation.analysers=[french]"], "french"),
        (["evaluation.analysers=[]"], "nothing to compare"),
        (["retrieval.name=overlap"], "one name"),
        (["retrieval.half_life_seconds=0"], "half_life_seconds"),
        (["seed=-3"], "seed"),
    ],
)
def test_settings_that_make_no_comparison_are_refused_by_name(overrides, words):
    with pytest.raises(UsageError, match=words):
        retrieval.check(composed([*OVERRIDES, *overrides]))


@pytest.mark.parametrize(
    ("override", "allowed"),
    [
        ("evaluation.peer_k1=nan", "from 0 to 1000"),
        ("evaluation.peer_k1=-1", "from 0 to 1000"),
        ("evaluation.peer_k1=inf", "from 0 to 1000"),
        ("evaluation.peer_b=1.5", "from 0 to 1"),
        ("evaluation.peer_b=-0.1", "from 0 to 1"),
        ("evaluation.peer_b=nan", "from 0 to 1"),
        ("evaluation.resamples=0", "from 1 to"),
        ("evaluation.resamples=1000001", "from 1 to 1000000"),
        ("evaluation.limit=0", "from 20 to"),
        ("evaluation.confidence=nan", "above 0 and below 1"),
        ("evaluation.confidence=1", "above 0 and below 1"),
        ("retrieval.half_life_seconds=inf", "above 0"),
        ("retrieval.coefficients.link=nan", "from -1e\\+06 to 1e\\+06"),
        ("retrieval.coefficients.lexical=1e7", "from -1e\\+06 to 1e\\+06"),
        (f"seed={10**400}", "from 0 to"),
    ],
)
def test_a_setting_out_of_range_is_named_with_its_value_and_range(override, allowed):
    key, _, value = override.partition("=")
    if len(value) < 20:
        value = str(float(value) if "." in value or "e" in value or "n" in value else value)
        key = f"{key}={value.removesuffix('.0')}"
    with pytest.raises(UsageError, match=allowed) as refused:
        retrieval.check(composed([*OVERRIDES, override]))
    assert str(refused.value).startswith(key)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    ("override", "there_are"),
    [
        ("evaluation.analysers=[zz]", "unicode, english, dialogue"),
        ("evaluation.scorers=[zz]", "overlap, idf_overlap, jaccard, bm25"),
        ("retrieval.lexical=zz", "overlap, idf_overlap, jaccard, bm25"),
    ],
)
def test_an_unknown_name_lists_those_there_are(override, there_are):
    with pytest.raises(UsageError) as refused:
        retrieval.check(composed([*OVERRIDES, override]))
    key = override.partition("=")[0]
    assert str(refused.value) == f"{key}: 'zz' is unknown; there are: {there_are}"


def test_names_and_ends_of_ranges_are_those_of_cma():
    """What the harness lets through, CMA takes: the two lists of rules must not part."""
    for name in ("unicode", "english", "dialogue"):
        assert name in retrieval.ANALYSERS
    at_the_end = retrieval.WEIGHT_LIMIT
    asked = composed([*OVERRIDES, f"retrieval.coefficients.link={at_the_end}",
                      f"retrieval.half_life_seconds={retrieval.HALF_LIFE_LIMIT}"])  # fmt: skip
    retrieval.check(asked)


@pytest.mark.parametrize(
    "override",
    ["data.timeout_seconds=nan", "data.max_conversations=0", "data.generated.turns=0",
     "data.generated.seed=-1"],
)  # fmt: skip
def test_data_settings_out_of_range_are_named(override):
    with pytest.raises(UsageError, match=f"{override} is out of range"):
        load(composed([*OVERRIDES, override]).data)


@pytest.mark.parametrize("override", ["tally.timeout_seconds=nan", "seed=-1"])
def test_tally_settings_out_of_range_are_named(override):
    with pytest.raises(UsageError, match=f"{override} is out of range"):
        contract_tally.check(composed(["experiment=contract_tally", override]))

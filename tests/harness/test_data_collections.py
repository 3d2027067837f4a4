"""Cranfield and BEIR-style folders: what is read, and that all else is named by file and line."""

import json
import os
import random
from contextlib import suppress
from pathlib import Path

import pytest

from experiments import retrieval, version_ladder
from experiments.data import cranfield
from experiments.data.beir import read_beir
from experiments.data.documents import titled
from experiments.data.loading import load
from experiments.evaluation import METRICS, Judge
from experiments.failures import DataError, ExperimentError, MissingDataError, UsageError
from experiments.overrides import composed

FOLDER = Path(os.environ.get("CMA_DATA_DIR", ""))
needs_cranfield = pytest.mark.skipif(
    not (os.environ.get("CMA_DATA_DIR") and (FOLDER / "cranfield/cran.qry.xml").is_file()),
    reason="Cranfield is not at hand: set CMA_DATA_DIR to a folder that holds cranfield/",
)
CORPUS = [
    {"_id": "d1", "title": "Wings", "text": "Wings in a slipstream", "metadata": {}},
    {"_id": "d2", "title": "Heat", "text": "conduction in slabs"},
    {"_id": "d3", "text": "turbulent Couette flow"},
    {"_id": "d4", "title": "", "text": "  "},
]
QUERIES = [
    {"_id": "q1", "text": "slipstream wings"},
    {"_id": "q2", "text": "heat in slabs"},
    {"_id": "q3", "text": "not judged"},
]
QRELS = "query-id\tcorpus-id\tscore\nq1\td1\t2\nq1\td2\t1\nq1\td3\t0\nq2\td2\t1\nq2\td4\t1\n"


@pytest.fixture
def folder(tmp_path):
    place = tmp_path / "My Own Set"
    (place / "qrels").mkdir(parents=True)
    for name, entries in (("corpus", CORPUS), ("queries", QUERIES)):
        lines = "".join(json.dumps(entry) + "\n" for entry in entries)
        (place / f"{name}.jsonl").write_text(lines)
    (place / "qrels/test.tsv").write_text(QRELS)
    return place


def read(folder, **more):
    return read_beir(folder, licence="not stated", **more)


def test_a_folder_becomes_one_conversation_of_documents(folder):
    corpus = read(folder)
    assert corpus.name == "beir-my-own-set"
    assert corpus.documents
    (held,) = corpus.conversations
    assert [(turn.id, turn.text) for turn in held.turns] == [
        ("d1", "Wings in a slipstream"),
        ("d2", "Heat conduction in slabs"),
        ("d3", "turbulent Couette flow"),
    ]
    assert all(len(session) == 1 for session in held.sessions())  # so that nothing links them
    assert [(q.id, q.evidence, q.grades, q.category) for q in held.questions] == [
        ("q1", ("d1", "d2"), (2, 1), None),
        ("q2", ("d2",), (), None),
    ]
    assert [(each.question, each.raw, each.kind) for each in corpus.problems] == [
        ("", "d4", "empty"),
        ("q2", "d4", "unresolvable"),
    ]
    assert "2 of 3 queries are judged in qrels/test.tsv." in corpus.notes


def test_the_digest_names_the_bytes_and_the_title_is_a_choice(folder):
    before = read(folder, title="Wing Papers!")
    assert before.name == "beir-wing-papers"
    (folder / "corpus.jsonl").write_text((folder / "corpus.jsonl").read_text() + "\n")
    assert read(folder).records[0].sha256 != before.records[0].sha256


def test_which_qrels_are_read_is_said_or_plain(folder):
    (folder / "qrels/train.tsv").write_text("q3\td1\t1\n")  # a header is no must
    assert [q.id for q in read(folder, split="train").conversations[0].questions] == ["q3"]
    assert len(read(folder).conversations[0].questions) == 2
    with pytest.raises(DataError, match=r"data.split=dev: .* only test, train"):
        read(folder, split="dev")
    (folder / "qrels/test.tsv").rename(folder / "qrels/dev.tsv")
    with pytest.raises(DataError, match=r"dev, train; choose with data.split=dev"):
        read(folder)


@pytest.mark.parametrize(
    ("file", "line", "content", "message"),
    [
        ("corpus.jsonl", 2, "{", r"corpus.jsonl, line 2: not JSON"),
        ("corpus.jsonl", 2, "[" * 100_000, r"corpus.jsonl, line 2: not JSON"),
        ("corpus.jsonl", 3, "[1]", r"corpus.jsonl, line 3: a JSON object is expected"),
        ("corpus.jsonl", 1, '{"text": "x"}', r"corpus.jsonl, line 1: no '_id'"),
        ("corpus.jsonl", 1, '{"_id": 3, "text": "x"}', r"line 1: '_id' is int and not text"),
        ("corpus.jsonl", 1, '{"_id": "a", "text": null}', r"'text' is NoneType and not text"),
        ("corpus.jsonl", 1, '{"_id": "a", "text": "x", "title": 1}', r"'title' is int"),
        ("corpus.jsonl", 2, '{"_id": "d1", "text": "x"}', r"line 2: .*'d1' was given .*line 1"),
        ("corpus.jsonl", 2, '{"_id": "", "text": "x"}', r"line 2: '' is no id"),
        ("corpus.jsonl", 2, '{"_id": "a\\u0000", "text": "x"}', r"line 2: .* is no id"),
        ("corpus.jsonl", 2, '{"_id": "\\ud800", "text": "x"}', r"line 2: .* is no id"),
        ("corpus.jsonl", 2, '{"_id": "a", "text": "\\ud800"}', r"line 2: the text of 'a'"),
        ("corpus.jsonl", 2, b"\xff\xfe", r"corpus.jsonl, line 2: not UTF-8"),
        ("corpus.jsonl", 2, '{"_id": "a", "text": "' + "x" * 1_000_001 + '"}', r"the cap"),
        ("queries.jsonl", 1, '{"_id": "q2", "text": "x"}', r"line 2: .*'q2' was given .*line 1"),
        ("queries.jsonl", 1, '{"_id": "q1", "text": "' + "x" * 100_001 + '"}', r"100,001"),
        ("queries.jsonl", 2, '"q1"', r"queries.jsonl, line 2: a JSON object"),
        ("qrels/test.tsv", 2, "q1 d1 1", r"qrels/test.tsv, line 2: 1 columns"),
        ("qrels/test.tsv", 2, "q1\t0\td1\t1", r"qrels/test.tsv, line 2: 4 columns"),
        ("qrels/test.tsv", 3, "q1\td2\thigh", r"qrels/test.tsv, line 3: the grade 'high'"),
        ("qrels/test.tsv", 3, "q1\td2\t1.5", r"qrels/test.tsv, line 3: the grade"),
        ("qrels/test.tsv", 3, "q1\td2\t" + "9" * 5000, r"qrels/test.tsv, line 3: the grade"),
        ("qrels/test.tsv", 3, "q9\td2\t1", r"line 3: no query has the id 'q9'"),
        ("qrels/test.tsv", 3, "q1\td1\t1", r"line 3: .* judged before, in qrels/test.tsv, line 2"),
        ("qrels/test.tsv", 2, b"\x80\td1\t1", r"qrels/test.tsv, line 2: not UTF-8"),
    ],
)  # fmt: skip
def test_what_is_malformed_is_named_by_file_and_line(folder, file, line, content, message):
    lines = (folder / file).read_bytes().splitlines()
    lines[line - 1] = content if isinstance(content, bytes) else content.encode()
    (folder / file).write_bytes(b"\n".join(lines))
    with pytest.raises(DataError, match=message):
        read(folder)


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda f: (f / "corpus.jsonl").unlink(), r"corpus.jsonl cannot be read"),
        (lambda f: (f / "corpus.jsonl").rename(f / "corpus.jsonl.gz"), r"unpack"),
        (lambda f: (f / "queries.jsonl").write_text("\n\n"), r"queries.jsonl is empty"),
        (lambda f: (f / "qrels/test.tsv").unlink(), r"no qrels/\*.tsv"),
        (lambda f: (f / "qrels/test.tsv").write_text(""), r"holds no judgement"),
        (lambda f: (f / "qrels/test.tsv").write_text("q1\td1\t0\n"), r"no query has a relevant"),
        (lambda f: (f / "corpus.jsonl").write_text('{"_id":"a","text":""}'), r"no document has"),
    ],
)  # fmt: skip
def test_a_folder_that_lacks_something_is_refused(folder, damage, message):
    damage(folder)
    with pytest.raises(DataError, match=message):
        read(folder)


@pytest.mark.parametrize("seed", range(8))
def test_random_damage_is_read_or_refused_and_never_a_traceback(folder, seed):
    chance = random.Random(seed)
    files = ["corpus.jsonl", "queries.jsonl", "qrels/test.tsv"]
    whole = {name: (folder / name).read_bytes() for name in files}
    for _ in range(150):
        name = chance.choice(files)
        data = bytearray(whole[name])
        for _ in range(chance.randint(1, 4)):
            place = chance.randrange(len(data))
            data[place : place + chance.randint(0, 3)] = chance.randbytes(chance.randint(0, 3))
        (folder / name).write_bytes(data)
        with suppress(DataError):
            read(folder)
        (folder / name).write_bytes(whole[name])


def test_the_command_takes_a_folder_and_records_no_place(folder, tmp_path):
    settings = composed(
        ["experiment=retrieval", "data=beir", f"data.path='{folder}'", "evaluation.resamples=50"]
    )
    corpus, used = load(settings.data)
    assert used.name == corpus.name == "beir-my-own-set"
    place = tmp_path / "run"
    place.mkdir()
    result = retrieval.run(settings, corpus, place)
    table = result.tables["recall"]
    assert set(table["category"]) == {"all"}
    figure = result.figures["beir-my-own-set.ndcg10.bm25"]
    assert 0.0 < figure.value <= 1.0
    assert set(result.tables["differences"]["metric"]) == {"recall@10", "ndcg@10"}
    with pytest.raises(ExperimentError, match="collection of documents"):
        version_ladder.run(settings, corpus, place)


def test_no_path_and_no_folder_are_usage_and_data_errors(tmp_path):
    with pytest.raises(UsageError, match=r"data.path"):
        load(composed(["experiment=retrieval", "data=beir"]).data)
    settings = composed(["experiment=retrieval", "data=beir", f"data.path={tmp_path}/nowhere"])
    with pytest.raises(DataError, match="no folder is there"):
        load(settings.data)


def test_grades_weigh_in_ndcg_alone():
    evidence = {"q": ("a", "b")}
    plain = Judge(evidence)
    graded = Judge(evidence, {"q": (1, 3)})
    ndcg = METRICS.index("ndcg@10")
    one, other = (judge.values({"q": ["a", "b"]})[0] for judge in (plain, graded))
    assert (one[ndcg], other[ndcg] < 1.0) == (1.0, True)
    best = graded.values({"q": ["b", "a"]})[0]
    assert best[ndcg] == 1.0
    assert [*one[:ndcg], *one[ndcg + 1 :]] == [*other[:ndcg], *other[ndcg + 1 :]]
    with pytest.raises(ValueError, match="zip"):
        Judge(evidence, {"q": (1,)})


def test_a_title_that_the_text_repeats_is_said_once():
    assert titled("a wing", "a wing\n in a slipstream") == "a wing in a slipstream"
    assert titled("heat", "a slab") == "heat a slab"
    assert titled("", "") == ""


def test_a_query_of_cranfield_is_named_by_its_place(tmp_path):
    path = tmp_path / "cran.qry.xml"
    entry = "<top>\n<num> {}</num>\n<title>\nwhat\nflow .\n</title>\n</top>\n"
    path.write_text("<xml>\n" + entry.format(1) + entry.format(4) + "</xml>\n")
    assert [(query.id, query.text, query.place) for query in cranfield.read_queries(path)] == [
        ("1", "what flow .", "cran.qry.xml, line 2"),
        ("2", "what flow .", "cran.qry.xml, line 9"),
    ]


@pytest.mark.parametrize(
    ("reader", "content", "message"),
    [
        (cranfield.read_queries, "<top>\n<num> x</num></top>", r"file, line 1: .* no whole entry"),
        (cranfield.read_documents, "\n<doc><docno>1</docno></doc>", r"file, line 2"),
        (cranfield.read_judgements, "1 0 2 1\n1 0 2\n", r"file, line 2: '1 0 2' is not"),
    ],
)
def test_malformed_cranfield_is_named_by_file_and_line(tmp_path, reader, content, message):
    (tmp_path / "file").write_text(content)
    with pytest.raises(DataError, match=message):
        reader(tmp_path / "file")


def test_without_cranfield_no_other_data_take_its_place(tmp_path, monkeypatch):
    monkeypatch.setenv("CMA_CACHE_DIR", str(tmp_path))
    monkeypatch.delenv("CMA_DATA_DIR", raising=False)
    settings = composed(["experiment=retrieval", "data=cranfield", "data.download=false"])
    with pytest.raises(MissingDataError, match="Cranfield was not found"):
        load(settings.data)


@needs_cranfield
def test_cranfield_as_pinned():
    corpus, _ = load(composed(["experiment=retrieval", "data=cranfield"]).data)
    (held,) = corpus.conversations
    assert (len(held.turns), len(held.questions)) == (1398, 225)
    assert sum(len(question.evidence) for question in held.questions) == 1611
    assert held.questions[0].text.startswith("what similarity laws")
    assert "184" in held.questions[0].evidence
    assert [each.raw for each in corpus.problems if not each.question] == ["471", "995"]
    assert {grade for question in held.questions for grade in question.grades} == {1, 3}
    assert [record.name for record in corpus.records] == [
        "cranfield", "cranfield-queries", "cranfield-judgements",
    ]  # fmt: skip

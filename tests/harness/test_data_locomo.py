"""LoCoMo: a miniature file with every known oddity, and the real file where it is at hand."""

import json
import os
from collections import Counter
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path

import pytest

from experiments.data.audit import apply_corrections, read_corrections
from experiments.data.loading import load
from experiments.data.locomo import read_locomo, session_time
from experiments.failures import DataError
from experiments.overrides import composed

FOLDER = Path(os.environ.get("CMA_DATA_DIR", ""))
needs_locomo = pytest.mark.skipif(
    not (os.environ.get("CMA_DATA_DIR") and (FOLDER / "locomo/locomo10.json").is_file()),
    reason="LoCoMo is not at hand: set CMA_DATA_DIR to a folder that holds locomo/locomo10.json",
)


def miniature():
    return [
        {
            "sample_id": "conv-1",
            "conversation": {
                "speaker_a": "Ada",
                "speaker_b": "Bo",
                "session_2_date_time": "12:05 am on 1 June, 2023",
                "session_2": [
                    {"speaker": "Bo", "dia_id": "D2:1", "text": "", "blip_caption": "a red kite"},
                    {"speaker": "Ada", "dia_id": "D2:2", "text": "Nice\n  kite!"},
                ],
                "session_1_date_time": "1:56 pm on 8 May, 2023",
                "session_1": [
                    {"speaker": "Ada", "dia_id": "D1:1", "text": "Hello Bo"},
                    {"speaker": "Bo", "dia_id": "D1:2", "text": "Hi", "blip_caption": "a cup"},
                ],
                "session_3_date_time": "2:00 pm on 9 June, 2023",
            },
            "qa": [
                {"question": "Who flew?", "answer": "Bo", "evidence": ["D2:1"], "category": 4},
                {"question": "Both?", "answer": "x", "evidence": ["D1:1; D2:02"], "category": 1},
                {"question": "Nothing?", "answer": "x", "evidence": [], "category": 3},
                {"question": "Where?", "answer": "x", "evidence": ["D7:1", "D"], "category": 2},
                {"question": "Trap?", "adversarial_answer": "x", "evidence": ["D1:2"],
                 "category": 5},
            ],
        }
    ]  # fmt: skip


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "locomo10.json"
    path.write_text(json.dumps(miniature()))
    return path


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1:56 pm on 8 May, 2023", datetime(2023, 5, 8, 13, 56, tzinfo=UTC)),
        ("12:05 am on 1 June, 2023", datetime(2023, 6, 1, 0, 5, tzinfo=UTC)),
        ("12:00 pm on 31 December, 2023", datetime(2023, 12, 31, 12, 0, tzinfo=UTC)),
    ],
)
def test_session_time_is_taken_as_utc(text, expected):
    assert session_time(text) == expected


@pytest.mark.parametrize("text", ["", "8 May 2023", "25:00 pm on 8 May, 2023"])
def test_unreadable_session_time_is_an_error(text):
    with pytest.raises(DataError, match="is not like"):
        session_time(text)


def test_turns_stand_in_observed_order_with_speaker_words_and_caption(file):
    (conversation,), _ = read_locomo(file)
    assert [turn.id for turn in conversation.turns] == ["D1:1", "D1:2", "D2:1", "D2:2"]
    assert [turn.text for turn in conversation.turns] == [
        "Ada: Hello Bo",
        "Bo: Hi [a cup]",
        "Bo: [a red kite]",
        "Ada: Nice kite!",
    ]
    times = [turn.observed_at for turn in conversation.turns]
    assert all(before < after for before, after in pairwise(times))
    assert [len(session) for session in conversation.sessions()] == [2, 2]


def test_questions_keep_category_and_every_oddity_is_listed(file):
    (conversation,), problems = read_locomo(file)
    assert [(each.id, each.category, each.evidence) for each in conversation.questions] == [
        ("qa0", "single_hop", ("D2:1",)),
        ("qa1", "multi_hop", ("D1:1", "D2:2")),
        ("qa2", "open_domain", ()),
        ("qa3", "temporal", ()),
        ("qa4", "adversarial", ("D1:2",)),
    ]
    assert [(each.question, each.raw, each.kind) for each in problems] == [
        ("qa1", "D1:1; D2:02", "multiple"),
        ("qa1", "D1:1; D2:02", "padded"),
        ("qa2", "", "empty"),
        ("qa3", "D7:1", "unresolvable"),
        ("qa3", "D", "malformed"),
    ]


def test_repeated_turn_id_is_refused(tmp_path):
    content = miniature()
    content[0]["conversation"]["session_2"][1]["dia_id"] = "D2:1"
    path = tmp_path / "locomo10.json"
    path.write_text(json.dumps(content))
    with pytest.raises(DataError, match="one turn id twice"):
        read_locomo(path)


@pytest.mark.parametrize("content", ["", "{}x", '[{"sample_id": "a"}]', "[3]", '{"a": 1}'])
def test_another_file_is_refused_with_a_hint(tmp_path, content):
    path = tmp_path / "locomo10.json"
    path.write_text(content)
    with pytest.raises(DataError, match="is not a LoCoMo file"):
        read_locomo(path)


def entry(question_id, question, evidence):
    return {
        "question_id": question_id,
        "question": question,
        "error_type": "WRONG_CITATION",
        "correct_evidence": evidence,
    }


def test_audit_corrects_only_where_the_question_is_the_same(file):
    conversations, _ = read_locomo(file)
    (corrected,), listed = apply_corrections(
        conversations,
        [
            entry("locomo_0_qa0", "Who flew?", ["D2:2", "D2:01"]),
            entry("locomo_0_qa1", "Another question", ["D1:1"]),
            entry("locomo_0_qa3", "Where?", ["D9:9"]),
            entry("locomo_0_qa4", "Trap?", []),
            entry("locomo_0_qa2", "Nothing?", []),
            entry("locomo_4_qa0", "Who?", ["D1:1"]),
            entry("nonsense", "Who?", ["D1:1"]),
        ],
    )
    assert [each.corrected for each in corrected.questions] == [
        ("D2:2", "D2:1"), ("D1:1", "D2:2"), (), (), (),
    ]  # fmt: skip
    assert corrected.questions[0].evidence == ("D2:1",)
    assert [(each.question, each.applied, each.why) for each in listed] == [
        ("qa0", True, "applied"),
        ("qa1", False, "the question's text differs"),
        ("qa3", False, "names no turn: D9:9"),
        ("qa4", True, "applied: no turn answers it, so it leaves the denominator"),
        ("locomo_4_qa0", False, "names no question"),
        ("nonsense", False, "names no question"),
    ]


@pytest.mark.parametrize("content", ["", "{}", "[1]"])
def test_unreadable_audit_is_refused(tmp_path, content):
    path = tmp_path / "errors.json"
    path.write_text(content)
    with pytest.raises(DataError, match=r"errors\.json"):
        read_corrections(path)


@needs_locomo
def test_locomo_is_counted_as_its_source_states(monkeypatch):
    settings = composed(["experiment=retrieval", "data=locomo", "data.download=false"])
    corpus, used = load(settings.data)
    assert used.name == "locomo"
    questions = [each for talk in corpus.conversations for each in talk.questions]
    assert (len(corpus.conversations), corpus.turn_count, len(questions)) == (10, 5882, 1986)
    assert Counter(each.category for each in questions) == {
        "multi_hop": 282, "temporal": 321, "open_domain": 96, "single_hop": 841, "adversarial": 446,
    }  # fmt: skip
    assert Counter(each.kind for each in corpus.problems) == {
        "empty": 4, "multiple": 4, "malformed": 2, "unresolvable": 2, "padded": 1,
    }  # fmt: skip
    # 1,981 questions name a turn outright; the padded D30:05 of one more is read as D30:5.
    assert sum(bool(each.evidence) for each in questions) == 1982
    for talk in corpus.conversations:
        times = [turn.observed_at for turn in talk.turns]
        assert all(before < after for before, after in pairwise(times)), talk.id


@needs_locomo
@pytest.mark.skipif(
    not (FOLDER / "locomo-audit/errors.json").is_file(), reason="the audit is not at hand"
)
def test_audit_fits_locomo():
    settings = composed(["experiment=retrieval", "data=locomo", "data.download=false"])
    corpus, _ = load(settings.data)
    assert corpus.corrected_labels
    assert all(each.applied for each in corpus.corrections)
    changed = [
        each
        for talk in corpus.conversations
        for each in talk.questions
        if each.corrected != each.evidence
    ]
    assert len(changed) == len(corpus.corrections) == 93

"""Evidence ids as people typed them: read where the meaning is plain, never dropped in silence."""

import pytest

from experiments.data.evidence import read_all, read_evidence

TURNS = {"D1:1", "D8:6", "D9:17", "D9:1", "D4:4", "D4:6", "D11:26", "D30:5"}


@pytest.mark.parametrize(
    ("raw", "turns", "kinds"),
    [
        ("D8:6", ("D8:6",), []),
        ("D8:6; D9:17", ("D8:6", "D9:17"), ["multiple"]),
        ("D9:1 D4:4 D4:6", ("D9:1", "D4:4", "D4:6"), ["multiple"]),
        ("D8:6,D9:1", ("D8:6", "D9:1"), ["multiple"]),
        ("D30:05", ("D30:5",), ["padded"]),
        ("D08:06 ", ("D8:6",), ["padded"]),
        ("D:11:26", ("D11:26",), ["malformed"]),
        ("D:11:27", (), ["malformed", "unresolvable"]),
        ("D", (), ["malformed"]),
        ("D:", (), ["malformed"]),
        ("", (), ["malformed"]),
        ("the eighth session", (), ["malformed"]),
        ("D8:6 perhaps", (), ["malformed"]),
        ("D10:19", (), ["unresolvable"]),
        ("D8:6 D10:19", ("D8:6",), ["multiple", "unresolvable"]),
    ],
)
def test_evidence_string_is_read_where_its_meaning_is_plain(raw, turns, kinds):
    reading = read_evidence(raw, TURNS)
    assert reading.turns == turns
    assert [kind for kind, _ in reading.problems] == kinds


def test_repeated_evidence_counts_once():
    turns, problems = read_all("c", "qa0", ["D4:4", "D4:4", "D8:6"], TURNS)
    assert turns == ("D4:4", "D8:6")
    assert problems == []


def test_missing_evidence_is_a_problem_of_its_own():
    turns, problems = read_all("c", "qa3", [], TURNS)
    assert turns == ()
    assert [(each.question, each.kind) for each in problems] == [("qa3", "empty")]


def test_one_unreadable_string_leaves_the_others():
    turns, problems = read_all("c", "qa0", ["D1:1", "D", "D9:1"], TURNS)
    assert turns == ("D1:1", "D9:1")
    assert [(each.raw, each.kind) for each in problems] == [("D", "malformed")]

"""The generated conversations: the same for a seed, and labelled rightly."""

from collections import Counter
from dataclasses import replace
from itertools import pairwise

import pytest

from experiments.data.conversations import CATEGORIES
from experiments.data.generated import digest, generate
from experiments.data.loading import load
from experiments.failures import UsageError
from experiments.settings import DataSettings, GeneratedSettings

SETTINGS = GeneratedSettings()


@pytest.fixture(scope="module")
def corpus():
    return generate(SETTINGS)


def test_same_seed_same_corpus_on_every_machine(corpus):
    assert generate(SETTINGS) == corpus
    assert corpus.records[0].sha256 == digest(corpus.conversations)
    # Pinned: the corpus is data, so a change of it is a change of every figure measured on it.
    assert corpus.records[0].sha256 == PINNED_DIGEST


def test_another_seed_is_another_corpus(corpus):
    other = generate(replace(SETTINGS, seed=SETTINGS.seed + 1))
    assert other.records[0].sha256 != corpus.records[0].sha256


def test_sizes_are_as_asked(corpus):
    assert len(corpus.conversations) == SETTINGS.conversations
    for conversation in corpus.conversations:
        assert len(conversation.turns) == SETTINGS.turns
        assert len(conversation.questions) == SETTINGS.questions
        assert len(list(conversation.sessions())) == SETTINGS.sessions
        assert len({turn.speaker for turn in conversation.turns}) == 2


def test_turns_have_their_own_ids_and_strictly_later_times(corpus):
    for conversation in corpus.conversations:
        assert len({turn.id for turn in conversation.turns}) == len(conversation.turns)
        times = [turn.observed_at for turn in conversation.turns]
        assert all(before < after for before, after in pairwise(times))


def test_every_question_has_evidence_among_the_turns(corpus):
    for conversation in corpus.conversations:
        turns = {turn.id for turn in conversation.turns}
        assert all(each.evidence and set(each.evidence) <= turns for each in conversation.questions)
        assert all(each.corrected == each.evidence for each in conversation.questions)
    categories = Counter(each.category for talk in corpus.conversations for each in talk.questions)
    assert set(categories) == set(CATEGORIES)
    assert min(categories.values()) >= 20


def test_evidence_is_told_by_the_one_who_is_asked_about_except_for_adversarial(corpus):
    for conversation in corpus.conversations:
        speaker = {turn.id: turn.speaker for turn in conversation.turns}
        names = set(speaker.values())
        for question in conversation.questions:
            (named,) = [name for name in names if name in question.text]
            told_by = {speaker[turn] for turn in question.evidence}
            wanted = names - {named} if question.category == "adversarial" else {named}
            assert told_by == wanted, question


def test_several_facts_make_a_multi_hop_question(corpus):
    for conversation in corpus.conversations:
        for question in conversation.questions:
            assert (len(question.evidence) > 1) == (question.category == "multi_hop")


@pytest.mark.parametrize(
    "changes",
    [{"conversations": 0}, {"turns": 0}, {"questions": -1}, {"seed": -1}, {"turns": 20}],
)
def test_impossible_sizes_are_refused_by_name(changes):
    with pytest.raises(UsageError, match=rf"data\.generated\.{next(iter(changes))}"):
        generate(replace(SETTINGS, **changes))


def test_first_conversations_only():
    corpus, _ = load(DataSettings(name="generated", max_conversations=2))
    assert [talk.id for talk in corpus.conversations] == ["gen-1", "gen-2"]
    with pytest.raises(UsageError, match="max_conversations"):
        load(DataSettings(name="generated", max_conversations=0))


PINNED_DIGEST = "06ba71f40cfef001f23be1ba37646153e2f8bd270ea925e146f59d6e5832c285"

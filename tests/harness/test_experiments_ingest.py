"""A conversation in a store: every turn a cell of its own, linked in time within its session."""

from datetime import UTC, datetime, timedelta

import pytest

from cma.orion.cells import Kind
from cma.orion.links import LinkKind
from experiments.data.conversations import Conversation, Turn
from experiments.ingest import ASKED_AFTER, ingested

START = datetime(2025, 3, 1, 12, 0, tzinfo=UTC)


def turn(name, session, speaker, words, minutes, caption=""):
    return Turn(name, session, speaker, words, caption, START + timedelta(minutes=minutes))


CONVERSATION = Conversation(
    "talk-1",
    (
        turn("D1:1", 1, "Ada", "Hello", 0),
        turn("D1:2", 1, "Bo", "Hello", 1, "a cup"),
        turn("D1:3", 1, "Ada", "Hello", 2),
        turn("D2:1", 2, "Ada", "Hello", 1000),
        turn("D2:2", 2, "Bo", "Bye", 1001),
    ),
    (),
)


@pytest.fixture
def held(tmp_path):
    with ingested(CONVERSATION, "corpus", tmp_path) as held:
        yield held


def test_every_turn_is_a_cell_even_where_the_same_is_said_again(held):
    assert sorted(held.turn_of_cell.values()) == ["D1:1", "D1:2", "D1:3", "D2:1", "D2:2"]
    for cell_id, name in held.turn_of_cell.items():
        cell = held.memory.get(cell_id)
        said = next(each for each in CONVERSATION.turns if each.id == name)
        assert cell.kind is Kind.EPISODIC
        assert cell.scope == "session:talk-1"
        assert cell.content == held.text_of_cell[cell_id] == said.text
        assert cell.observed_at == said.observed_at
        assert cell.source.origin == f"corpus talk-1 {name}"


def test_links_run_in_time_and_stay_within_a_session(held):
    links = {
        (held.turn_of_cell[link.source_id], held.turn_of_cell[link.target_id])
        for cell in held.turn_of_cell
        for link in held.memory.links_of(cell)
        if link.kind is LinkKind.TEMPORAL
    }
    assert links == {("D1:1", "D1:2"), ("D1:2", "D1:3"), ("D2:1", "D2:2")}


def test_recall_is_asked_at_a_present_that_follows_from_the_data(held):
    trace = held.memory.recall("hello").trace
    assert trace.at == CONVERSATION.turns[-1].observed_at + ASKED_AFTER


def test_another_session_sees_nothing_of_it(held):
    assert held.memory.within("session:talk-2").recall("hello").hits == ()

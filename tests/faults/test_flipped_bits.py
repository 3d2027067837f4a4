"""Flipped bits of a live store: what they change is noticed, what they leave is told apart."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from cma.orion.anchor import SLOT_SIZE
from experiments.crashing import flips
from experiments.crashing.flips import ACCEPTED, Effect, Files, Flip
from experiments.crashing.scratch import scratch
from experiments.failures import ExperimentError


@pytest.fixture
def place() -> Iterator[Path]:
    with scratch() as folder:
        yield folder


@pytest.fixture(scope="module")
def files() -> Files:
    with scratch() as folder:
        return flips.victim(folder)


def _of(place: Path, files: Files, flip: Flip) -> tuple[Effect, str, bool]:
    sound = flips.decoded(place, files)
    damaged = flips.flipped(files, flip)
    told = flips.decoded(place, damaged)
    return flips.effect_of(sound, told), flips.answered(place, damaged), told.intact


def test_the_store_lies_in_file_and_log(place: Path, files: Files) -> None:
    sound = flips.decoded(place, files)
    assert sound.intact
    alone = flips.decoded(place, files | {"log": b""})
    assert alone.rows is not None
    assert sound.rows is not None
    assert 100 < len(alone.rows) < len(sound.rows)


def test_flips_all_over_are_noticed_where_they_change_something(place: Path, files: Files) -> None:
    chosen = flips.flips(files, {"database": 40, "log": 12, "anchor": 8}, "5")
    counts = flips.tally(place, files, chosen, lambda _: None)
    changing = {key: count for key, count in counts.items() if key[1] is Effect.CHANGES}
    assert sum(changing.values()) > 20
    assert not [key for key in changing if key[2] == ACCEPTED]
    assert counts.total() == 60


def test_a_letter_of_a_cell_is_noticed_by_the_chain_and_not_by_the_database(
    place: Path, files: Files
) -> None:
    at = files["database"].rindex(b"Ann drinks tea, day 2")
    assert _of(place, files, Flip("database", at, 1)) == (
        Effect.CHANGES,
        "state-disagrees",
        True,
    )


def test_a_flip_in_the_log_drops_what_was_acknowledged_and_is_noticed(
    place: Path, files: Files
) -> None:
    effect, answer, intact = _of(place, files, Flip("log", len(files["log"]) // 2, 3))
    assert (effect, answer) == (Effect.CHANGES, "anchor-disagrees")
    assert intact  # the database alone takes the shorter log for the whole of it


def test_a_flip_where_nothing_is_stored_changes_nothing(place: Path, files: Files) -> None:
    assert _of(place, files, Flip("database", 72, 0)) == (Effect.INERT, ACCEPTED, True)


def test_an_anchor_with_one_spoilt_slot_is_told_apart(place: Path, files: Files) -> None:
    assert _of(place, files, Flip("anchor", 40, 0)) == (Effect.ONE_SLOT, ACCEPTED, True)
    both = flips.flipped(files, Flip("anchor", 40, 0))
    sound = flips.decoded(place, files)
    spoilt = flips.flipped(both, Flip("anchor", SLOT_SIZE + 40, 0))
    assert flips.effect_of(sound, flips.decoded(place, spoilt)) is Effect.CHANGES
    assert flips.answered(place, spoilt) == "anchor-missing"


def test_a_store_that_is_refused_as_it_is_teaches_nothing(place: Path, files: Files) -> None:
    damaged = flips.flipped(files, Flip("log", 40, 0))
    with pytest.raises(ExperimentError):
        flips.tally(place, damaged, iter(()), lambda _: None)


def test_the_same_seed_draws_the_same_flips_and_no_flip_twice(files: Files) -> None:
    counts = dict.fromkeys(files, 50)
    drawn = list(flips.flips(files, counts, "5"))
    assert drawn == list(flips.flips(files, counts, "5"))
    assert drawn != list(flips.flips(files, counts, "6"))
    assert len(set(drawn)) == 150
    assert len(list(flips.flips({"anchor": b"ab"}, {"anchor": 99}, "5"))) == 16

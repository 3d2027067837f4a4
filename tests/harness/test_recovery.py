"""The recovery experiment: damaged snapshots are refused, and an accepted one would be seen."""

from __future__ import annotations

from collections import Counter
from itertools import islice
from pathlib import Path

import pytest

from experiments import recovery
from experiments.failures import ExperimentError
from reports import recovery as section
from reproductions.results import read_runs
from tests.harness.sample_runs import write_run

STRIDE = 23


@pytest.fixture(scope="module")
def snapshot(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    return recovery.small_snapshot(tmp_path_factory.mktemp("snapshot"))


def test_the_snapshot_holds_every_type_and_is_always_the_same(
    snapshot: bytes, tmp_path: Path
) -> None:
    assert recovery.small_snapshot(tmp_path) == snapshot
    types = {line.rsplit(b'"', 2)[1] for line in snapshot.splitlines()[1:]}
    assert types == {b"attendant", b"audit", b"cell", b"governed", b"link", b"trace"}


def test_flips_and_cuts_all_over_the_file_are_refused(snapshot: bytes, tmp_path: Path) -> None:
    file = tmp_path / "damaged.cma.jsonl"
    answers: Counter[str] = Counter()
    for damages in (recovery._flips(snapshot), recovery._truncations(snapshot)):
        for damage in islice(damages, 0, None, STRIDE):
            assert damage.data != snapshot
            file.write_bytes(damage.data)
            answers[recovery._answer(file, tmp_path)] += 1
    assert answers[recovery.ACCEPTED] == 0
    assert {"snapshot-hash", "snapshot-envelope"} <= set(answers)


def test_every_bit_and_every_length_is_meant() -> None:
    flips = list(recovery._flips(b"ab"))
    assert len({flip.data for flip in flips}) == 16
    assert all(sum(a != b for a, b in zip(flip.data, b"ab", strict=True)) == 1 for flip in flips)
    assert [cut.data for cut in recovery._truncations(b"ab")] == [b"", b"a"]


def test_an_accepted_copy_is_counted(snapshot: bytes, tmp_path: Path) -> None:
    file = tmp_path / "same.cma.jsonl"
    file.write_bytes(snapshot)
    assert recovery._answer(file, tmp_path) == recovery.ACCEPTED
    assert [each.name for each in tmp_path.iterdir()] == ["same.cma.jsonl"]
    result = recovery.result_of(
        2,
        {
            "bit flipped": Counter({"snapshot-hash": 15, recovery.ACCEPTED: 1}),
            "cut short": Counter({"snapshot-envelope": 2}),
        },
    )
    assert {key: (each.value, each.n) for key, each in result.figures.items()} == {
        "snapshot.flips": (16, 16),
        "snapshot.flips_refused": (15, 16),
        "snapshot.truncations": (2, 2),
        "snapshot.truncations_refused": (2, 2),
    }


def test_an_untried_damage_is_an_error(snapshot: bytes, tmp_path: Path) -> None:
    with pytest.raises(ExperimentError):
        recovery._tally(snapshot, recovery._truncations(b"ab"), 3, tmp_path)


def test_the_section_counts_what_was_refused_and_names_what_was_not(tmp_path: Path) -> None:
    rows = [
        {"damage": "bit flipped", "answer": "snapshot-hash", "copies": 1500},
        {"damage": "bit flipped", "answer": "accepted", "copies": 1},
        {"damage": "cut short", "answer": "snapshot-envelope", "copies": 7},
    ]
    write_run(tmp_path, "recovery", tables={"snapshot_damage.csv": rows})
    [run] = read_runs(tmp_path)
    finding, (answers,) = section.build(run, "recovery")
    assert finding.startswith("1,500 of 1,501 copies with one bit flipped were refused; 7 of 7")
    assert answers.rows[1][1:] == ["accepted", "restored although it was damaged", "1"]
    assert "Copies" in answers.numeric

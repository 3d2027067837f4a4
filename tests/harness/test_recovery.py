"""The recovery experiment: what is lost would be counted, the controls lose, and it repeats."""

from __future__ import annotations

from collections import Counter
from itertools import islice
from pathlib import Path

import pandas as pd
import pytest

from experiments import recovery
from experiments.crashing import snapshots
from experiments.dispatch import lookup
from experiments.failures import ExperimentError, UsageError
from experiments.settings import RecoverySettings, Settings
from reports import recovery as section
from reproductions.inputs import CorruptInputError
from reproductions.results import read_runs
from tests.harness.sample_runs import write_run

STRIDE = 71


@pytest.fixture(scope="module")
def snapshot(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    return snapshots.small_snapshot(tmp_path_factory.mktemp("snapshot"))


def test_the_snapshot_holds_every_type_and_is_always_the_same(
    snapshot: bytes, tmp_path: Path
) -> None:
    assert snapshots.small_snapshot(tmp_path) == snapshot
    types = {line.rsplit(b'"', 2)[1] for line in snapshot.splitlines()[1:]}
    assert types == {b"attendant", b"audit", b"cell", b"governed", b"link", b"trace"}


def test_flips_and_cuts_all_over_the_file_are_refused(snapshot: bytes, tmp_path: Path) -> None:
    file = tmp_path / "damaged.cma.jsonl"
    answers: Counter[str] = Counter()
    for damages in (snapshots.flips(snapshot), snapshots.truncations(snapshot)):
        for damage in islice(damages, 0, None, STRIDE):
            assert damage.data != snapshot
            file.write_bytes(damage.data)
            answers[snapshots.answer(file, tmp_path)] += 1
    assert answers[snapshots.ACCEPTED] == 0
    assert {"snapshot-hash", "snapshot-envelope"} <= set(answers)


def test_every_bit_and_every_length_is_meant() -> None:
    flips = list(snapshots.flips(b"ab"))
    assert len({flip.data for flip in flips}) == 16
    assert all(sum(a != b for a, b in zip(flip.data, b"ab", strict=True)) == 1 for flip in flips)
    assert [cut.data for cut in snapshots.truncations(b"ab")] == [b"", b"a"]


def test_an_accepted_copy_is_seen(snapshot: bytes, tmp_path: Path) -> None:
    file = tmp_path / "same.cma.jsonl"
    file.write_bytes(snapshot)
    assert snapshots.answer(file, tmp_path) == snapshots.ACCEPTED
    assert [each.name for each in tmp_path.iterdir()] == ["same.cma.jsonl"]


def test_an_untried_damage_is_an_error(snapshot: bytes, tmp_path: Path) -> None:
    with pytest.raises(ExperimentError):
        snapshots.tally(snapshot, snapshots.truncations(b"ab"), 3, tmp_path)


def _settings(**asked: object) -> Settings:
    return Settings(experiment="recovery", recovery=RecoverySettings(**asked))  # type: ignore[arg-type]


def test_a_small_run_finds_nothing_lost_and_repeats(tmp_path: Path) -> None:
    settings = _settings(parts=["kills", "flips"], kills=4, control_kills=2, flips=12)
    result, again = (recovery.run(settings, tmp_path) for _ in range(2))
    figures = {key: each.value for key, each in result.figures.items()}
    assert figures["kill9.cycles"] == 4
    assert figures["kill9.acknowledged_lost"] == figures["kill9.torn"] == 0
    assert result.figures["kill9.control_lost"].n == 2
    assert figures["live_flips.tried"] == 36
    assert 12 <= figures["live_flips.changing"] == figures["live_flips.detected"]
    assert not [key for key in figures if key.startswith(("power", "iofault", "snapshot"))]
    assert again.figures == result.figures
    assert all(again.tables[name].equals(table) for name, table in result.tables.items())


TABLES = {
    "snapshots": [
        {"damage": "bit flipped", "answer": "snapshot-hash", "copies": 1500},
        {"damage": "bit flipped", "answer": "accepted", "copies": 1},
        {"damage": "cut short", "answer": "snapshot-envelope", "copies": 7},
    ],
    "kills": [
        {"synchronous": "FULL", "killed": "at any instant", "verdict": "whole", "cycles": 90},
        {"synchronous": "FULL", "killed": "at any instant", "verdict": "refused", "cycles": 2},
        {"synchronous": "FULL", "killed": "before a call", "verdict": "torn", "cycles": 8},
        {"synchronous": "OFF", "killed": "before a call", "verdict": "whole", "cycles": 20},
    ],
    "power": [
        {"synchronous": "FULL", "log": "growing", "survives": "nothing", "at_sync": True,
         "verdict": "acknowledged lost", "cuts": 3},
        {"synchronous": "FULL", "log": "folded", "survives": "nothing", "at_sync": False,
         "verdict": "whole", "cuts": 97},
        {"synchronous": "NORMAL", "log": "growing", "survives": "nothing", "at_sync": True,
         "verdict": "refused", "cuts": 40},
        {"synchronous": "NORMAL", "log": "growing", "survives": "nothing", "at_sync": True,
         "verdict": "whole", "cuts": 10},
    ],
    "io": [
        {"fault": "io", "log": "growing", "path": "write", "answer": "partly done", "sites": 1},
        {"fault": "io", "log": "growing", "path": "link", "answer": "a lock is left", "sites": 2},
        {"fault": "io", "log": "growing", "path": "link", "answer": "done in spite of it",
         "sites": 97},
    ],
    "flips": [
        {"file": "log", "effect": "changes what is stored", "answer": "anchor-disagrees",
         "sqlite_notices": False, "flips": 50},
        {"file": "database", "effect": "changes what is stored", "answer": "accepted",
         "sqlite_notices": False, "flips": 1},
        {"file": "database", "effect": "changes what is stored", "answer": "store-damaged",
         "sqlite_notices": True, "flips": 4},
        {"file": "database", "effect": "changes nothing", "answer": "accepted",
         "sqlite_notices": False, "flips": 45},
    ],
}  # fmt: skip


def test_what_is_lost_is_counted_and_the_control_beside_it() -> None:
    result = recovery.result_of({part: pd.DataFrame(rows) for part, rows in TABLES.items()}, 7)
    figures = {key: (each.value, each.n, each.control) for key, each in result.figures.items()}
    assert figures == {
        "snapshot.flips": (1501, 1501, None),
        "snapshot.flips_refused": (1500, 1501, None),
        "snapshot.truncations": (7, 7, None),
        "snapshot.truncations_refused": (7, 7, None),
        "kill9.cycles": (100, 100, None),
        "kill9.acknowledged_lost": (2, 100, 0),
        "kill9.torn": (8, 100, 0),
        "kill9.control_lost": (0, 20, None),
        "power.points": (100, 100, None),
        "power.acknowledged_lost": (3, 100, 40),
        "power.torn": (0, 100, None),
        "power.control_lost": (40, 50, None),
        "iofault.sites": (100, 100, None),
        "iofault.partial": (1, 100, None),
        "iofault.stranded_locks": (2, 100, None),
        "iofault.stuck": (0, 100, None),
        "iofault.untyped": (0, 100, None),
        "iofault.lies_unnoticed": (0, 100, None),
        "live_flips.tried": (100, 100, None),
        "live_flips.changing": (55, 100, None),
        "live_flips.detected": (54, 55, 4),
    }
    assert "seed 7" in result.notes[0]
    assert "SQLite 3." in result.notes[0]


def test_the_section_says_what_went_wrong_and_bounds_what_did_not(tmp_path: Path) -> None:
    result = recovery.result_of({part: pd.DataFrame(rows) for part, rows in TABLES.items()}, 7)
    write_run(
        tmp_path,
        "recovery",
        figures={key: each.as_dict() for key, each in result.figures.items()},
        tables={f"{recovery.TABLES[part]}.csv": rows for part, rows in TABLES.items()},
    )
    [run] = read_runs(tmp_path)
    finding, (summary, *details) = section.build(run, "recovery")
    assert finding.startswith("Snapshot, one bit flipped: 1,501 tried, 1 went wrong; snapshot,")
    assert "kill -9: 100 tried, 10 went wrong" in finding
    lines = {tuple(row[:2]): row[2:] for row in summary.rows}
    assert lines["kill -9", "acknowledged and lost"][:2] == ["100", "2"]
    assert lines["kill -9", "acknowledged and lost"][-1] == "0 of 20"
    assert lines["power cut", "acknowledged and lost"][-1] == "40 of 50"
    assert lines["power cut", "torn"][1:3] == ["0", "3%"]
    assert lines["bit flipped that changes a live store", "unnoticed"][:2] == ["55", "1"]
    assert lines["bit flipped that changes a live store", "unnoticed"][-1] == "51 of 55"
    assert len(details) == 5
    shown = {detail.name: detail for detail in details}
    assert shown["recovery-snapshot-damage"].rows[1][1:] == [
        "accepted", "restored although it was damaged", "1",
    ]  # fmt: skip
    assert ["io", "growing", "done in spite of it", "97"] in shown["recovery-io-faults"].rows
    assert "Calls failed" in shown["recovery-io-faults"].numeric


def test_a_run_of_some_parts_or_of_an_earlier_release_is_shown(tmp_path: Path) -> None:
    rows = TABLES["snapshots"]
    result = recovery.result_of({"snapshots": pd.DataFrame(rows)}, 7)
    figures = {key: each.as_dict() for key, each in result.figures.items()}
    write_run(tmp_path, "recovery", figures=figures, tables={"snapshot_damage.csv": rows})
    [run] = read_runs(tmp_path)
    finding, tables = section.build(run, "recovery")
    assert finding.startswith("Snapshot, one bit flipped: 1,501 tried, 1 went wrong")
    assert [item.name for item in tables] == ["recovery-summary", "recovery-snapshot-damage"]
    assert len(tables[0].rows) == 2


def test_a_run_without_figures_is_no_section(tmp_path: Path) -> None:
    write_run(tmp_path, "recovery", figures={})
    [run] = read_runs(tmp_path)
    with pytest.raises(CorruptInputError, match="without figures"):
        section.build(run, "recovery")


@pytest.mark.parametrize(
    ("asked", "key"),
    [
        ({"kills": 0}, "recovery.kills"),
        ({"between": -1}, "recovery.between"),
        ({"parts": ["everything"]}, "recovery.parts"),
        ({"faults": ["fire"]}, "recovery.faults"),
        ({"logs": ["wooden"]}, "recovery.logs"),
    ],
)
def test_settings_that_make_no_sense_are_refused(asked: dict[str, object], key: str) -> None:
    with pytest.raises(UsageError, match=key):
        lookup("recovery").check(_settings(**asked))

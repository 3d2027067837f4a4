"""The fuzz experiment: its inputs come again, and what it should find it finds, small and kept."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cma import CmaError
from cma.values.identity import canonical, parse_canonical
from experiments import fuzz
from experiments.data.locomo import read_locomo
from experiments.failures import DataError, UsageError
from experiments.fuzzing import hunting, replay, snapshots
from experiments.fuzzing.files import LOCOMO
from experiments.fuzzing.hunting import Fault, Tally, hunt, tally_of
from experiments.fuzzing.shrinking import shrunk
from experiments.fuzzing.target import Read, Target
from experiments.fuzzing.targets import BY_NAME, TARGETS
from experiments.overrides import composed
from reports import fuzz as section
from reproductions.claims import load_claims
from reproductions.inputs import CorruptInputError
from reproductions.results import read_runs
from tests.harness.sample_runs import write_run

FEW = {"snapshot": 15, "overrides": 4, "command line": 10}
QUICK = settings(
    max_examples=60, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True
)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


def planted(name: str, error: BaseException) -> Target:
    """A reader with a bug: it stumbles over the letter z."""

    @contextmanager
    def opened(folder: Path) -> Iterator[Read]:
        assert folder.is_dir()

        def read(data: bytes) -> None:
            if b"z" in data:
                raise error
            if len(data) % 2:
                raise ValueError("odd")

        yield read

    def make(chance: random.Random) -> bytes:
        return bytes(chance.choices(b"abcxyz", k=chance.randrange(40)))

    return Target(name, 1, make, opened, (ValueError,))


@pytest.mark.parametrize("error", [KeyError("oops"), RecursionError(), SystemExit(3)])
def test_a_planted_bug_is_found_and_made_small(tmp_path: Path, error: BaseException) -> None:
    found = hunt([planted("buggy", error)], 1, range(200), tmp_path)
    assert found.inputs["buggy"] == 200
    assert found.untyped["buggy"] > 50
    assert found.refused["buggy", "ValueError"] > 5
    assert found.accepted["buggy"] > 5
    [fault] = found.faults  # one kind, kept once
    assert (fault.target, fault.error, fault.data) == ("buggy", type(error).__name__, b"z")


def test_an_input_that_is_never_done_with_is_a_fault(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hunting, "PATIENCE_SECONDS", 0.05)

    @contextmanager
    def opened(_: Path) -> Iterator[Read]:
        def read(data: bytes) -> None:
            while data:
                pass

        yield read

    endless = Target("endless", 1, lambda _: b"x", opened, (ValueError,))
    [fault] = hunt([endless], 1, range(1), tmp_path).faults
    assert fault.error == "TookTooLongError"


@pytest.mark.parametrize("target", TARGETS, ids=BY_NAME)
def test_a_reader_keeps_its_promise(target: Target, tmp_path: Path) -> None:
    count = FEW.get(target.name, 100)
    found = hunt([target], 5, range(count), tmp_path)
    assert found.faults == []
    assert found.inputs == {target.name: count}
    assert any(name == target.name for name, _ in found.refused)


def test_inputs_and_answers_are_the_same_each_time(tmp_path: Path) -> None:
    quick = [target for target in TARGETS if target.name not in FEW]
    answers = []
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        found = hunt(quick, 3, range(0, 200, 2), tmp_path / name)
        answers.append((found.inputs, found.accepted, found.refused))
    assert answers[0] == answers[1]
    for target in TARGETS:
        assert target.make(random.Random(4)) == target.make(random.Random(4))


def test_an_error_that_is_not_promised_is_seen_on_every_reader(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hunting, "shrunk", lambda data, _: data)
    for target in TARGETS:
        strict = Target(target.name, 1, target.make, target.opened, ())
        if target.name not in FEW:
            (tmp_path / target.name).mkdir()
            found = hunt([strict], 5, range(30), tmp_path / target.name)
            assert found.faults, target.name


def test_shrinking_keeps_what_shows_the_fault() -> None:
    assert shrunk(b"a" * 50 + b"xy" + b"b" * 50, lambda data: b"xy" in data) == b"xy"
    assert shrunk(b"ab", lambda _: False) == b"ab"


def test_a_run_counts_all_inputs_and_keeps_what_it_finds(tmp_path: Path) -> None:
    given = composed(["experiment=fuzz", "fuzz.inputs=40", "fuzz.workers=2"])
    result = fuzz.run(given, tmp_path)
    assert result.figures["fuzz.inputs"].value == 40
    assert result.figures["fuzz.untyped"].value == 0
    assert result.notes == ()
    assert result.measured["fuzz.peak_mib"].value > 10
    assert not (tmp_path / fuzz.CRASHES).exists()
    faults = [Fault("command line", 7, "KeyError", "'x'", "cli.py:run:3", b'["verify"]')]
    fuzz.keep(tmp_path, faults)
    kept = tmp_path / fuzz.CRASHES / "command-line-1.bin"
    assert "replay 'command line' command-line-1.bin" in kept.with_suffix(".txt").read_text()
    assert replay.main(["command line", str(kept)]) == 0  # a wrong usage, as promised
    assert replay.main(["nothing", str(kept)]) == 2


def test_numbers_out_of_range_are_refused() -> None:
    for key in ("fuzz.inputs=0", "fuzz.workers=0", "fuzz.memory_mib=1", "seed=-1"):
        with pytest.raises(UsageError, match=key.partition("=")[0]):
            fuzz.check(composed(["experiment=fuzz", key]))


def test_the_section_says_what_came_out(tmp_path: Path) -> None:
    tally = Tally()
    tally.inputs["beir"], tally.accepted["beir"], tally.untyped["beir"] = 100, 10, 1
    tally.refused["beir", "DataError"] = 89
    tally.faults.append(Fault("beir", 3, "KeyError", "", "beir.py:f:1", b"\0"))
    told = tally_of(json.loads(json.dumps(tally.as_dict())))
    assert told == tally
    result = fuzz.result_of([told], [{"peak_mib": 1.0, "grown_mib": 0.5}])
    assert result.notes == ("FAILED: beir, input 3: KeyError at beir.py:f:1.",)
    tables = {**result.tables, **result.measured_tables}
    write_run(
        tmp_path,
        "fuzz",
        tables={f"{name}.csv": table.to_dict("records") for name, table in tables.items()},
    )
    [run] = read_runs(tmp_path)
    finding, (readers,) = section.build(run, "fuzz")
    assert finding == "100 hostile inputs: 1 came back with an error that nobody promised."
    assert "Untyped" in readers.numeric


@given(st.binary(max_size=200) | JSON.map(lambda value: json.dumps(value).encode()))
@QUICK
def test_any_bytes_are_canonical_or_refused(data: bytes) -> None:
    codes = []
    try:
        assert canonical(parse_canonical(data)) == data
    except CmaError as error:
        codes.append(error.code)
    assert codes in ([], ["not-canonical"])


@given(JSON)
@QUICK
def test_any_json_is_claims_and_conversations_or_refused(tmp_path: Path, value: object) -> None:
    file = tmp_path / "any.json"
    file.write_text(json.dumps(value))
    with pytest.raises(CorruptInputError):
        load_claims(file)
    with suppress(DataError):
        assert read_locomo(file)[0] == ()


def test_conversations_nested_too_deep_are_refused(tmp_path: Path) -> None:
    file = tmp_path / "deep.json"
    file.write_text("[" * 100_000)
    with pytest.raises(DataError, match=r"deep\.json is not a LoCoMo file"):
        read_locomo(file)


def test_conversations_with_half_a_character_are_refused(tmp_path: Path) -> None:
    whole = json.dumps(LOCOMO)
    file = tmp_path / "half.json"
    file.write_text(whole)
    assert len(read_locomo(file)[0]) == 1
    file.write_text(whole.replace("tea?", "tea \\ud800"))
    with pytest.raises(DataError, match="surrogates not allowed"):
        read_locomo(file)


def test_an_override_that_refers_to_another_type_is_refused() -> None:
    with pytest.raises(UsageError, match="could not be converted"):
        composed(["experiment=fuzz", "fuzz.inputs=${paths.runs}"])


def test_a_line_that_nests_too_deeply_is_changed_as_bytes() -> None:
    deep = b'{"record":' + b'{"a":' * 100_000
    for seed in range(20):
        assert isinstance(snapshots._changed_line(random.Random(seed), deep), bytes)

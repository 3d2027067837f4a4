"""The failure matrix: every row passes, a broken rule fails its row, and the page says so."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import apsw
import pytest

from cma.lagoon import admission
from cma.orion.store import Store
from cma.rosette import graph as graph_module
from cma.rosette import restoring
from cma.values.errors import InvalidValueError, Reason
from experiments import failure_matrix
from experiments.dispatch import EXPERIMENTS
from experiments.failures import UsageError
from experiments.injections.bench import Bench, remember
from experiments.injections.row import (
    Attempt,
    Injection,
    Required,
    Row,
    expect,
    keep,
    perform,
    refuse,
)
from experiments.overrides import composed
from experiments.result import Result
from reports import failures
from reports.__main__ import main
from reports.plots import DARK, LIGHT
from reproductions.__main__ import main as judge_main
from reproductions.judge import Verdict
from reproductions.judged import judge_runs
from reproductions.results import read_runs
from tests.harness.sample_runs import figure, write_run

DOCUMENTED = [
    "ttl_expiration", "incomplete_replay", "missing_approval", "repeated_fingerprint",
    "opposite_outcomes", "tight_budget", "mutated_snapshot", "missing_graph_cell",
]  # fmt: skip
CASES = {injection.case: injection for injection in failure_matrix.INJECTIONS}


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> Result:
    settings = composed(["experiment=failure_matrix"])
    return failure_matrix.run(settings, tmp_path_factory.mktemp("run"))


def test_every_fault_gets_its_response(found: Result) -> None:
    rows = found.tables["failures"]
    assert rows[~rows["passed"]].to_dict("records") == []
    assert rows["case"].tolist()[:8] == DOCUMENTED
    assert len(rows) == 8 + 16
    assert set(rows["required"]) == set(Required)
    assert {key: (each.value, each.n) for key, each in found.figures.items()} == {
        "failures.rows": (24, 24),
        "failures.passed": (24, 24),
        **{f"failures.case.{case}": (1, 1) for case in rows["case"]},
    }
    assert found.notes == failure_matrix.LEFT_OUT


def test_a_rejection_leaves_its_reason_and_no_change(found: Result) -> None:
    for row in found.tables["failures"].to_dict("records"):
        assert len(row["digest_before"]) == len(row["digest_after"]) == 64
        if row["required"] != Required.PRESERVE:
            assert row["reason"]
        if row["required"] == Required.REJECT and row["case"] != "large_input":
            assert row["digest_before"] == row["digest_after"]
        for record in filter(None, row["artifact"].split("; ")):
            _, _, operation, reason, sealed = record.split()
            assert operation == "reject"
            assert reason in row["reason"]
            assert len(sealed) == 64


def test_the_same_matrix_comes_out_again(found: Result, tmp_path: Path) -> None:
    for number, row in enumerate(found.tables["failures"].to_dict("records")):
        if row["case"] not in ("naive_time",):  # two more processes; a test of its own sees zones
            again = perform(CASES[row["case"]], tmp_path / str(number))
            assert asdict(again) == row


# ---- A rule that is broken fails its row


def _nothing(*_: object, **__: object) -> None:
    return None


BROKEN: list[tuple[str, Callable[[pytest.MonkeyPatch], None], str]] = [
    (
        "missing_approval",
        lambda patch: patch.setattr(Store, "record_rejection", _nothing),
        "artifact",
    ),
    (
        "missing_graph_cell",
        lambda patch: patch.setattr(graph_module, "_check_present", _nothing),
        "response",
    ),
    (
        "repeated_fingerprint",
        lambda patch: patch.setattr(admission, "find_admission", _nothing),
        "response",
    ),
    (
        "imported_again",
        lambda patch: patch.setattr(restoring, "check_topology", _nothing),
        "response",
    ),
]


@pytest.mark.parametrize(("case", "breaks", "aspect"), BROKEN, ids=[case for case, *_ in BROKEN])
def test_a_broken_rule_fails_its_row(
    case: str,
    breaks: Callable[[pytest.MonkeyPatch], None],
    aspect: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    breaks(monkeypatch)
    row = perform(CASES[case], tmp_path / "row")
    assert not row.passed
    assert row.fell_short == aspect
    assert "not as required" in row.observed or "unexpected" in row.observed


def ran(inject: Callable[[Bench], list[Attempt]], folder: Path) -> Row:
    return perform(Injection("g", "c", "nothing", Required.REJECT, inject), folder / "row")


def bad(bench: Bench) -> object:
    return remember(bench.memory, "")


def _strange(bench: Bench, sql: str) -> str:
    connection = apsw.Connection(str(bench.path))
    connection.execute(sql)
    connection.close()
    return "done"


def _raise() -> str:
    raise ZeroDivisionError("by nought")


@pytest.mark.parametrize(
    ("attempt", "aspect", "says"),
    [
        (lambda b: refuse(lambda: bad(b), Reason.CONTENT_EMPTY), "", "refused, content-empty"),
        (lambda b: refuse(lambda: bad(b), Reason.TIME_NAIVE), "response", "time-naive is required"),
        (lambda b: keep(lambda: str(bad(b))), "response", "an answer is required"),
        (lambda b: refuse(lambda: None, Reason.TIME_NAIVE), "response", "accepted"),
        (
            lambda b: refuse(lambda: bad(b), Reason.CONTENT_EMPTY, names="origin"),
            "response", "names content",
        ),
        (
            lambda b: refuse(lambda: bad(b), Reason.CONTENT_EMPTY, recorded=False),
            "artifact", "1 failure records, where 0",
        ),
        (
            lambda b: refuse(lambda: (bad(b) if remember(b.memory, "x") else 0),
                             Reason.CONTENT_EMPTY),
            "artifact", "other audit records",
        ),
        (lambda b: keep(lambda: remember(b.memory, "x")), "digest", "1 records added to cells"),
        (
            lambda b: keep(lambda: _strange(b, "DELETE FROM cells")),
            "digest", "1 records of cells were changed or removed",
        ),
        (
            lambda b: keep(lambda: _strange(b, "UPDATE cells SET record = CAST('{}' AS BLOB)")),
            "digest", "1 records of cells were changed or removed",
        ),
        (lambda b: keep(_raise), "response", "unexpected ZeroDivisionError: by nought"),
        (lambda b: keep(lambda: str(expect(False, "too few"))), "response", "too few"),
    ],
)  # fmt: skip
def test_what_else_changes_or_is_answered_fails_a_row(
    attempt: Callable[[Bench], Attempt], aspect: str, says: str, tmp_path: Path
) -> None:
    def inject(bench: Bench) -> list[Attempt]:
        remember(bench.memory, "was there before")
        return [attempt(bench)]

    row = ran(inject, tmp_path)
    assert says in row.observed
    assert (row.passed, row.fell_short) == (aspect == "", aspect)


def test_a_row_that_tries_nothing_or_does_not_start_fails(tmp_path: Path) -> None:
    def breaks(bench: Bench) -> list[Attempt]:
        raise InvalidValueError(Reason.FIELD_INVALID, f"at {bench.folder}")

    assert "nothing was tried" in ran(lambda _: [], tmp_path).observed
    row = ran(breaks, tmp_path / "other")
    assert row.fell_short == "response"
    assert str(tmp_path) not in row.observed
    assert row.digest_before == ""


def test_a_failed_row_is_noted_and_judged(
    found: Result, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(admission, "find_admission", _nothing)
    rows = [
        perform(CASES[case], tmp_path / case)
        for case in ("missing_approval", "same_approval_twice")
    ]
    result = failure_matrix.result_of(rows)
    assert result.figures["failures.passed"].value == 1
    assert result.figures["failures.case.same_approval_twice"].value == 0
    assert result.notes[0] == "1 of 2 rows FAILED."
    assert result.notes[1].startswith("FAILED: same_approval_twice, which must preserve: ")
    told = {key: each.as_dict() for key, each in result.figures.items()}
    write_run(tmp_path / "runs", "failure_matrix", figures=told)
    verdicts = {row.id: row.verdict for row in judge_runs(tmp_path / "runs").claims}
    assert verdicts["failure-missing-approval"] is Verdict.STRUCTURE
    assert verdicts["failures-never-repaired-silently"] is Verdict.FAILED
    assert verdicts["failure-ttl-expiration"] is Verdict.NOT_RUN


def test_the_experiment_is_in_the_table_and_its_seed_is_checked() -> None:
    assert EXPERIMENTS["failure_matrix"].run
    with pytest.raises(UsageError, match="seed"):
        EXPERIMENTS["failure_matrix"].check(composed(["experiment=failure_matrix", "seed=-1"]))


# ---- The section

PASSED = {
    "group": "documented", "case": "tight_budget", "injected": "a budget", "required": "preserve",
    "observed": "left out <whole>", "reason": "", "digest_before": "ab" * 32,
    "digest_after": "ab" * 32, "artifact": "", "passed": True, "fell_short": "",
}  # fmt: skip
REJECTED = PASSED | {
    "case": "missing_approval", "required": "reject", "reason": "approval-required",
    "artifact": "audit 1 reject approval-required ab; audit 2 reject approval-required cd",
}  # fmt: skip
FAILED = PASSED | {
    "case": "repeated_fingerprint", "digest_after": "cd" * 32, "passed": False,
    "fell_short": "digest", "observed": "not as required: another cell",
}  # fmt: skip


def section(tmp_path: Path, *rows: dict[str, Any]) -> Any:
    write_run(tmp_path, "failure_matrix", tables={"failures.csv": rows})
    [run] = read_runs(tmp_path)
    return failures.build(run, "failure-matrix")


def test_the_heat_map_has_words_marks_and_two_themes(tmp_path: Path) -> None:
    finding, (rows, evidence), (plot,) = section(tmp_path, PASSED, REJECTED, FAILED)
    assert finding.startswith("2 of 3 injected faults")
    assert finding.endswith("FAILED: repeated fingerprint.")
    assert rows.rows[0][0] == "repeated fingerprint"
    assert [row[-1] for row in rows.rows] == ["NO (digest)", "yes", "yes"]
    assert evidence.folded
    for part in (
        "tight budget: response preserved, store digest unchanged, failure record none due",
        "missing approval: response rejected, store digest unchanged, failure record 2 records",
        "response preserved? (not judged), store digest grown (not as required), failure record",
        "failure record none (not judged)",
    ):
        assert part in plot.alternative
    assert [failures.mark_of(FAILED, aspect) for aspect in failures.ASPECTS] == ["?", "✗", "?"]
    light = plot.svg(LIGHT)
    assert light == plot.svg(LIGHT)
    assert LIGHT.paper in light
    assert DARK.paper in plot.svg(DARK)
    assert failures.VERMILLION.lower() in light.lower()
    assert (
        failures.VERMILLION.lower() not in section(tmp_path / "b", PASSED)[2][0].svg(LIGHT).lower()
    )


def test_the_page_shows_the_matrix(tmp_path: Path) -> None:
    runs, out = tmp_path / "runs", tmp_path / "out"
    write_run(
        runs, "failure_matrix", tables={"failures.csv": [PASSED, FAILED]},
        figures={"failures.passed": figure(1, "rows", 2)}, notes=["1 of 2 rows FAILED."],
    )  # fmt: skip
    assert judge_main(["--runs", str(runs)]) == 1
    assert main(["--runs", str(runs), "--out", str(out)]) == 0
    page = (out / "index.html").read_text()
    assert "Injected faults" in page
    assert "1 of 2 rows FAILED." in page
    assert "left out <whole>" not in page
    for name in ("rows", "evidence"):
        assert (out / "tables" / f"failure-matrix-{name}.csv").is_file()


@pytest.mark.parametrize(
    "row",
    [
        {"case": "x"},
        PASSED | {"required": "repair"},
        PASSED | {"passed": False},
        PASSED | {"fell_short": "luck", "passed": False},
        FAILED | {"passed": True},
    ],
)
def test_a_table_that_is_no_matrix_is_status_two(
    tmp_path: Path, row: dict[str, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    write_run(tmp_path / "runs", "failure_matrix", tables={"failures.csv": [row]})
    assert main(["--runs", str(tmp_path / "runs"), "--out", str(tmp_path / "out")]) == 2
    assert "experiment=failure_matrix resume=false" in capsys.readouterr().err

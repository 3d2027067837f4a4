"""A wrong value fails each kind of claim; what is missing is never a pass."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from reproductions.claims import Claim, load_claims
from reproductions.inputs import CorruptInputError
from reproductions.judge import Judgement, Verdict, judge
from reproductions.judged import judge_runs
from reproductions.results import choose, read_runs
from tests.harness.sample_runs import figure, write_run, write_tally

DELTA = "delta_norm"


def claim(kind: str, **parts: Any) -> Claim:
    why = {} if kind in ("exact", "structural") else {"why": "Because of a reason."}
    fields = {"id": "c", "statement": "A claim to judge.", "section": "Evaluation", "judge": kind}
    return Claim.model_validate({**fields, **why, **parts})


def judged(root: Path, one: Claim) -> Judgement:
    return judge(one, choose(read_runs(root)))


EXACT = claim("exact", value=1024, experiment=DELTA, figures=["delta.width"])
BUILT = claim("by_construction", value=40, of=40, experiment=DELTA, figures=["a", "b"])
POSITIVE = claim("structural", value=7.7929, experiment=DELTA, holds={"delta.one": "positive"})
COMPLETE = claim("structural", experiment=DELTA, holds={"passed": "complete"})
CONTRACTS = claim("structural", contracts=["O20", "O35"])


@pytest.mark.parametrize(
    ("one", "figures", "verdict"),
    [
        (EXACT, {"delta.width": figure(1024)}, "reproduced"),
        (EXACT, {"delta.width": figure(1024.0)}, "reproduced"),
        (BUILT, {"a": figure(30, n=30), "b": figure(10, n=10)}, "reproduced by construction"),
        (POSITIVE, {"delta.one": figure(0.2)}, "structure reproduced"),
        (COMPLETE, {"passed": figure(8, n=8)}, "structure reproduced"),
    ],
)
def test_the_right_value_passes(
    tmp_path: Path, one: Claim, figures: dict[str, Any], verdict: str
) -> None:
    write_run(tmp_path, DELTA, figures=figures)
    found = judged(tmp_path, one)
    assert (found.verdict, found.run, found.device) == (verdict, "0123456789abcdef", "cpu")


@pytest.mark.parametrize(
    ("one", "figures"),
    [
        (EXACT, {"delta.width": figure(1023)}),
        (EXACT, {"delta.width": figure(1024.0000001)}),
        (BUILT, {"a": figure(30, n=30), "b": figure(9, n=10)}),
        (BUILT, {"a": figure(30, n=30), "b": figure(10, n=11)}),
        (BUILT, {"a": figure(31, n=31), "b": figure(10, n=10)}),
        (BUILT, {"a": figure(30, n=30), "b": {"value": 10, "unit": "count"}}),
        (BUILT, {"a": figure(29, n=30)}),
        (POSITIVE, {"delta.one": figure(0)}),
        (POSITIVE, {"delta.one": figure(-1.0)}),
        (COMPLETE, {"passed": figure(7, n=8)}),
        (COMPLETE, {"passed": figure(0, n=0)}),
        (COMPLETE, {"passed": {"value": 8, "unit": "count"}}),
    ],
)
def test_a_wrong_value_fails(tmp_path: Path, one: Claim, figures: dict[str, Any]) -> None:
    write_run(tmp_path, DELTA, figures=figures)
    found = judged(tmp_path, one)
    assert found.verdict is Verdict.FAILED
    assert found.why


@pytest.mark.parametrize("value", [float("nan"), float("inf"), "1024", None, True, [1024]])
@pytest.mark.parametrize("one", [EXACT, POSITIVE], ids=["exact", "structural"])
def test_a_value_that_is_no_finite_number_fails(tmp_path: Path, one: Claim, value: object) -> None:
    key = one.figures[0] if one.figures else "delta.one"
    write_run(tmp_path, DELTA, figures={key: figure(value)})
    found = judged(tmp_path, one)
    assert found.verdict is Verdict.FAILED
    assert found.measured is None


@pytest.mark.parametrize("one", [EXACT, BUILT, POSITIVE, COMPLETE, CONTRACTS])
def test_without_a_run_nothing_passes(tmp_path: Path, one: Claim) -> None:
    assert judged(tmp_path, one).verdict is Verdict.NOT_RUN
    assert judged(tmp_path / "absent", one).verdict is Verdict.NOT_RUN


def test_a_missing_figure_is_not_run(tmp_path: Path) -> None:
    write_run(tmp_path, DELTA, figures={"a": figure(30, n=30)})
    found = judged(tmp_path, BUILT)
    assert found.verdict is Verdict.NOT_RUN
    assert "writes b" in found.why


def test_an_experiment_that_does_not_exist_is_said_so(tmp_path: Path) -> None:
    one = claim("exact", value=1, experiment="dreams", figures=["x"])
    assert judged(tmp_path, one).why == "No experiment yet"


@pytest.mark.parametrize("one", [EXACT, POSITIVE])
def test_a_failed_run_never_passes(tmp_path: Path, one: Claim) -> None:
    good = {"delta.width": figure(1024), "delta.one": figure(1.0)}
    write_run(tmp_path, DELTA, figures=good, status="failed")
    assert judged(tmp_path, one).verdict is Verdict.FAILED


def test_a_failure_after_the_sources_changed_makes_the_older_run_stale(tmp_path: Path) -> None:
    write_run(tmp_path, DELTA, figures={"delta.width": figure(1024)})
    write_run(
        tmp_path, DELTA, run_id="f" * 16, status="failed", source_digest="ff" * 32,
        finished="2026-07-02T00:00:00+00:00",
    )  # fmt: skip
    found = judged(tmp_path, EXACT)
    assert (found.verdict, found.run) == (Verdict.FAILED, "f" * 16)


def test_an_older_failure_does_not_matter(tmp_path: Path) -> None:
    write_run(tmp_path, DELTA, figures={"delta.width": figure(1024)})
    write_run(
        tmp_path, DELTA, run_id="f" * 16, status="failed", source_digest="ff" * 32,
        finished="2026-06-01T00:00:00+00:00",
    )  # fmt: skip
    assert judged(tmp_path, EXACT).verdict is Verdict.REPRODUCED


def test_the_newest_good_run_speaks(tmp_path: Path) -> None:
    write_run(tmp_path, DELTA, figures={"delta.width": figure(1024)})
    write_run(
        tmp_path, DELTA, run_id="e" * 16, figures={"delta.width": figure(512)},
        finished="2026-07-02T00:00:00+00:00",
    )  # fmt: skip
    found = judged(tmp_path, EXACT)
    assert (found.verdict, found.run, found.measured) == (Verdict.FAILED, "e" * 16, 512)


def test_contracts_pass_fail_and_are_missing(tmp_path: Path) -> None:
    write_tally(tmp_path, failed=["O01"])
    assert judged(tmp_path, CONTRACTS).verdict is Verdict.STRUCTURE
    assert judged(tmp_path, CONTRACTS).denominator == 2
    broken = judged(tmp_path, claim("structural", contracts=["O01", "O20"]))
    assert (broken.verdict, broken.numerator) == (Verdict.FAILED, 1)
    untested = judged(tmp_path, claim("structural", contracts=["O20", "T04"]))
    assert untested.verdict is Verdict.NOT_RUN
    assert "T04" in untested.why
    both = judged(tmp_path, claim("structural", contracts=["O01", "T04"]))
    assert both.verdict is Verdict.FAILED


def test_an_unknown_outcome_is_no_pass(tmp_path: Path) -> None:
    rows = [{"version": "orion", "contract": c, "title": "", "outcome": "odd"} for c in ("O20",)]
    write_run(tmp_path, "contract_tally", tables={"contracts.csv": rows})
    assert judged(tmp_path, claim("structural", contracts=["O20"])).verdict is Verdict.FAILED


def test_a_tally_without_its_table_fails(tmp_path: Path) -> None:
    write_run(tmp_path, "contract_tally")
    assert judged(tmp_path, CONTRACTS).verdict is Verdict.FAILED


def test_not_comparable_never_passes_and_can_fail(tmp_path: Path) -> None:
    one = claim("not_comparable", experiment=DELTA, holds={"delta.one": "positive"})
    write_run(tmp_path, DELTA, figures={"delta.one": figure(1.0)})
    assert judged(tmp_path, one).verdict is Verdict.NOT_RUN
    write_run(
        tmp_path, DELTA, run_id="e" * 16, figures={"delta.one": figure(-1.0)},
        finished="2026-07-02T00:00:00+00:00",
    )  # fmt: skip
    assert judged(tmp_path, one).verdict is Verdict.FAILED


def test_the_papers_claims_without_runs(tmp_path: Path) -> None:
    found = judge_runs(tmp_path)
    assert {row.verdict for row in found.claims} == {Verdict.NOT_RUN}
    assert all(row.why for row in found.claims)
    assert found.figures["claims.total"].value == len(load_claims().claims)


def test_the_papers_claims_with_a_tally_and_with_one_broken_contract(tmp_path: Path) -> None:
    write_tally(tmp_path / "whole")
    whole = {row.id: row for row in judge_runs(tmp_path / "whole").claims}
    assert whole["orion-40-tests"].verdict is Verdict.BY_CONSTRUCTION
    assert (whole["orion-40-tests"].numerator, whole["orion-40-tests"].denominator) == (40, 40)
    assert whole["trifid-20-tests"].verdict is Verdict.NOT_RUN
    assert whole["orion-stable-ids-break-ties"].verdict is Verdict.STRUCTURE
    assert not [row for row in whole.values() if row.verdict is Verdict.FAILED]
    write_tally(tmp_path / "broken", failed=["O35"])
    broken = {row.id: row.verdict for row in judge_runs(tmp_path / "broken").claims}
    assert broken["orion-40-tests"] is Verdict.FAILED
    assert broken["orion-stable-ids-break-ties"] is Verdict.FAILED
    assert broken["orion-ttl"] is Verdict.STRUCTURE


def test_another_denominator_fails(tmp_path: Path) -> None:
    """A tally of 40 passed among 41 is another catalogue, and no reproduction of 40 of 40."""
    write_tally(tmp_path, figures={"contracts.orion": figure(40, n=41)})
    rows = {row.id: row.verdict for row in judge_runs(tmp_path).claims}
    assert rows["orion-40-tests"] is Verdict.FAILED


VALUES = {
    "exact": (EXACT, {"delta.width": figure(1024)}),
    "by_construction": (BUILT, {"a": figure(30, n=30), "b": figure(10, n=10)}),
    "structural": (POSITIVE, {"delta.one": figure(0.2)}),
}


@pytest.mark.parametrize("kind", list(VALUES))
def test_a_run_of_other_settings_is_no_pass(tmp_path: Path, kind: str) -> None:
    one, figures = VALUES[kind]
    machine = {"overrides": ["experiment=delta_norm", "delta.inner=8"]}
    write_run(tmp_path, DELTA, figures=figures, machine=machine)
    found = judged(tmp_path, one)
    assert found.verdict is Verdict.NOT_RUN
    assert "delta.inner=8" in found.why
    write_run(tmp_path, DELTA, figures=figures, run_id="1" * 16)
    assert judged(tmp_path, one).verdict not in (Verdict.NOT_RUN, Verdict.FAILED)


@pytest.mark.parametrize("kind", list(VALUES))
def test_a_run_of_other_sources_than_the_newest_is_no_pass(tmp_path: Path, kind: str) -> None:
    one, figures = VALUES[kind]
    write_run(tmp_path, DELTA, figures=figures)
    write_run(tmp_path, "graph_fixture", source_digest="99" * 32,
              finished="2026-07-02T10:00:00+00:00")  # fmt: skip
    found = judged(tmp_path, one)
    assert found.verdict is Verdict.NOT_RUN
    assert "of other sources than the newest run" in found.why


def test_a_tally_of_other_sources_is_no_pass(tmp_path: Path) -> None:
    write_tally(tmp_path)
    assert judged(tmp_path, CONTRACTS).verdict is Verdict.STRUCTURE
    write_run(tmp_path, DELTA, source_digest="99" * 32, finished="2026-07-02T10:00:00+00:00")
    assert judged(tmp_path, CONTRACTS).verdict is Verdict.NOT_RUN


def test_settings_changed_after_the_run_are_refused(tmp_path: Path) -> None:
    folder = write_run(tmp_path, DELTA, figures={"delta.width": figure(1024)})
    (folder / "config.yaml").write_text("experiment: delta_norm\nseed: 5\n")
    with pytest.raises(CorruptInputError, match=r"config\.yaml: changed after the run"):
        judged(tmp_path, EXACT)


def test_claims_on_the_artifact_tree_fail_with_it(tmp_path: Path) -> None:
    ids = ("stage150-153-files", "stage150-seven-gates", "disclosure-boundary",
           "public-package-contents")  # fmt: skip
    figures = {
        "stage150.files": figure(153, "files"), "stage150.gates_passed": figure(7, "gates"),
        "stage150.disclosures": figure(0, "findings", 153),
    }  # fmt: skip

    def verdicts(root: Path) -> list[str]:
        rows = {row.id: row.verdict for row in judge_runs(root).claims}
        return [str(rows[name]) for name in ids]

    assert verdicts(tmp_path) == ["not run here"] * 4
    write_run(tmp_path / "good", "stage150", figures=figures)
    assert "failed" not in verdicts(tmp_path / "good")
    assert "not run here" not in verdicts(tmp_path / "good")
    for place, (key, value, n) in enumerate(
        [("files", 152, 153), ("gates_passed", 6, 7), ("disclosures", 1, 153)]
    ):
        spoiled = figures | {f"stage150.{key}": figure(value, n=n)}
        write_run(tmp_path / key, "stage150", figures=spoiled)
        found = verdicts(tmp_path / key)
        assert [found[place], found[3]] == ["failed", "failed"]
    write_run(tmp_path / "bad", "stage150", status="failed", error={"type": "E", "message": "m"})
    assert verdicts(tmp_path / "bad") == ["failed"] * 4

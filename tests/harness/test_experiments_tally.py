"""The contract tally: a contract passes only if every test that names it ran and passed."""

import textwrap

import pytest

from experiments import contract_tally
from experiments.contract_tally import Version, catalogue, run_suite, tally
from experiments.failures import ExperimentError, UsageError
from experiments.overrides import composed

VERSIONS = (
    Version("orion", {"O01": "first", "O02": "second", "O03": "third"}, 3),
    Version("trifid", {"T01": "later"}, 1),
)


def line(outcome, *contracts, test="t"):
    return {"test": test, "contracts": list(contracts), "outcome": outcome}


def outcomes(result):
    table = result.tables["contracts"]
    return dict(zip(table["contract"], table["outcome"], strict=True))


def counts(result):
    table = result.tables["tally"]
    return {
        row["version"]: (row["passed"], row["total"], row["expected"], row["state"])
        for _, row in table.iterrows()
    }


def test_catalogue_is_the_papers_eighty_nine():
    versions = {version.name: version for version in catalogue()}
    sizes = {"orion": 40, "trifid": 20, "lagoon": 9, "eagle": 9, "rosette": 11}
    assert {name: len(version.contracts) for name, version in versions.items()} == sizes
    assert {name: version.paper_tests for name, version in versions.items()} == sizes
    for letter, (name, size) in zip("OTLER", sizes.items(), strict=True):
        expected = [f"{letter}{number:02}" for number in range(1, size + 1)]
        assert list(versions[name].contracts) == expected
    titles = [title for version in versions.values() for title in version.contracts.values()]
    assert len(set(titles)) == 89


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        ([line("passed", "O01")], "passed"),
        ([line("failed", "O01")], "failed"),
        ([line("skipped", "O01")], "missing"),
        ([line("not run", "O01")], "missing"),
        ([], "missing"),
        ([line("passed", "O01"), line("passed", "O01")], "passed"),
        ([line("passed", "O01"), line("failed", "O01")], "failed"),
        ([line("passed", "O01"), line("skipped", "O01")], "missing"),
        ([line("passed", "O02")], "missing"),
    ],
)
def test_outcome_of_a_contract(lines, expected):
    assert outcomes(tally(VERSIONS, lines))["O01"] == expected


def test_counts_and_figures_speak_only_of_versions_that_have_tests():
    result = tally(VERSIONS, [line("passed", "O01"), line("failed", "O02")])
    assert counts(result) == {"orion": (1, 2, 3, "run"), "trifid": (0, 0, 1, "not run")}
    assert {name: (each.value, each.n) for name, each in result.figures.items()} == {
        "contracts.orion": (1, 3)
    }
    assert outcomes(result)["O03"] == outcomes(result)["T01"] == "missing"


def test_strange_tests_are_noted_and_count_for_nothing():
    result = tally(VERSIONS, [line("passed", "O99", test="odd"), line("passed", test="bare")])
    notes = " ".join(result.notes)
    assert "odd names O99" in notes
    assert "bare names no contract" in notes
    assert not result.figures


def suite(tmp_path, body):
    (tmp_path / "pytest.ini").write_text("[pytest]\naddopts = --strict-markers\n")
    (tmp_path / "suite").mkdir()
    (tmp_path / "suite/test_them.py").write_text("import pytest\n" + textwrap.dedent(body))
    return "suite"


def test_child_process_reports_every_kind_of_outcome(tmp_path):
    name = suite(
        tmp_path,
        """
        @pytest.fixture
        def broken():
            raise RuntimeError("in setup")

        @pytest.fixture
        def untidy():
            yield
            raise RuntimeError("in teardown")

        @pytest.mark.contract("O01")
        def test_good(): pass

        @pytest.mark.contract("O02")
        def test_bad(): assert False

        @pytest.mark.contract("O03")
        @pytest.mark.skip
        def test_left_out(): pass

        @pytest.mark.contract("O04")
        def test_setup(broken): pass

        @pytest.mark.contract("O05")
        def test_teardown(untidy): pass

        @pytest.mark.contract("O06")
        @pytest.mark.xfail
        def test_expected_to_fail(): assert False

        @pytest.mark.contract("O07")
        @pytest.mark.parametrize("number", [1, 2])
        def test_twice(number): assert number == 1

        class TestInside:
            @pytest.mark.contract("O08")
            def test_method(self): pass
        """,
    )
    lines = run_suite(name, 60, root=tmp_path)
    seen = {}
    for each in lines:
        seen.setdefault(each["contracts"][0], []).append(each["outcome"])
    assert seen == {
        "O01": ["passed"],
        "O02": ["failed"],
        "O03": ["skipped"],
        "O04": ["failed"],
        "O05": ["failed"],
        "O06": ["skipped"],
        "O07": ["passed", "failed"],
        "O08": ["passed"],
    }
    assert not (tmp_path / ".pytest_cache").exists()


@pytest.mark.parametrize(
    "body",
    ["import nothing_of_that_name\n", "x = 1\n"],
    ids=["import error", "no tests"],
)
def test_suite_that_cannot_be_collected_is_a_failure_and_no_tally(tmp_path, body):
    with pytest.raises(ExperimentError, match="pytest ended with status"):
        run_suite(suite(tmp_path, body), 60, root=tmp_path)


def test_suite_that_does_not_end_is_a_failure(tmp_path):
    name = suite(tmp_path, "import time\ndef test_slow(): time.sleep(60)\n")
    with pytest.raises(ExperimentError, match=r"tally\.timeout_seconds"):
        run_suite(name, 2, root=tmp_path)


def test_missing_suite_is_refused():
    settings = composed(["experiment=contract_tally", "tally.suite=tests/nowhere"])
    with pytest.raises(UsageError, match="tests/nowhere"):
        contract_tally.check(settings)

"""`claims.yaml` is whole, and a claims file that is not is refused with the claim and the key."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from reproductions.claims import load_claims
from reproductions.inputs import CorruptInputError

EXPERIMENTS = Path(__file__).resolve().parents[2] / "configs" / "experiment"
WHOLE = """\
format: cma.claims/1
source: a paper
claims:
  - id: forty
    statement: Forty tests pass.
    section: Evaluation
    value: 40
    judge: exact
    experiment: contract_tally
    figures: [contracts.orion]
"""


def load(tmp_path: Path, text: str) -> None:
    path = tmp_path / "claims.yaml"
    path.write_text(text)
    load_claims(path)


def test_every_reported_number_is_a_claim() -> None:
    claims = load_claims().claims
    values = {claim.value for claim in claims}
    assert {40, 20, 29, 153, 7, 5, 3, 1024, 7.7929, 4.9193, 0} <= values
    assert len(claims) >= 80


def test_every_contract_version_and_failure_case_is_used() -> None:
    claims = load_claims().claims
    used = {contract for claim in claims for contract in claim.contracts}
    assert {contract[0] for contract in used} == set("OTLER")
    assert sum(claim.id.startswith("failure-") for claim in claims) == 8
    assert sum(claim.id.startswith("invariant-") for claim in claims) == 5


def test_statements_are_distinct_sentences() -> None:
    statements = [claim.statement for claim in load_claims().claims]
    assert len(set(statements)) == len(statements)
    assert all(re.fullmatch(r"[A-Z].*\.", statement, re.S) for statement in statements)


def test_a_whole_file_loads(tmp_path: Path) -> None:
    load(tmp_path, WHOLE)


@pytest.mark.parametrize(
    ("before", "after", "named"),
    [
        ("value: 40", "valeu: 40", "forty.*valeu"),
        ("judge: exact", "judge: roughly", "forty.*judge"),
        ("value: 40", "value: forty", "forty.*needs a number"),
        ("value: 40", "value: .nan", "forty.*needs a number"),
        ("    figures: [contracts.orion]\n", "", "forty.*figures"),
        ("    experiment: contract_tally\n", "", "forty.*need the experiment"),
        ("judge: exact", "judge: by_construction", "forty.*needs why"),
        ("judge: exact", "judge: not_comparable", "forty.*do not go with"),
        ("judge: exact", "judge: exact\n    contracts: [O1]", "forty.*O1 is no contract id"),
        ("judge: exact", "judge: exact\n    holds: {a: zero}", "forty.*holds"),
        ("id: forty", "id: Forty Two", "id"),
        ("cma.claims/1", "cma.claims/9", "format"),
        ("claims:\n", "claims: [\n", "cannot be read"),
    ],
)
def test_a_broken_file_names_what_is_wrong(
    tmp_path: Path, before: str, after: str, named: str
) -> None:
    with pytest.raises(CorruptInputError, match=named):
        load(tmp_path, WHOLE.replace(before, after))


def test_an_id_that_occurs_twice_is_refused(tmp_path: Path) -> None:
    entry = WHOLE.split("claims:\n")[1]
    with pytest.raises(CorruptInputError, match="forty occurs twice"):
        load(tmp_path, WHOLE + entry)


def test_every_number_has_a_unit_and_every_measured_claim_its_field() -> None:
    for claim in load_claims().claims:
        if isinstance(claim.value, int | float):
            assert claim.unit, claim.id
        if claim.judge != "not_comparable":
            assert claim.contracts or (claim.experiment and (claim.figures or claim.holds)), (
                claim.id
            )
        if claim.experiment:
            assert (EXPERIMENTS / f"{claim.experiment}.yaml").is_file(), claim.id
        assert claim.judge != "not_comparable" or claim.why, claim.id


def test_the_three_figures_of_the_artifact_tree_are_claimed() -> None:
    claims = [claim for claim in load_claims().claims if claim.experiment == "stage150"]
    keys = {key for claim in claims for key in (*claim.figures, *claim.holds)}
    assert keys == {"stage150.files", "stage150.gates_passed", "stage150.disclosures"}
    assert {claim.value for claim in claims} >= {153, 7, 0}

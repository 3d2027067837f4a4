"""The list of mutants is in step with the code; the mutation run itself is `make mutate`."""

from __future__ import annotations

from collections import Counter

from tests.mutants.catalogue import ROOT, contract_tests, load_mutants

ORION = [f"O{number:02}" for number in range(1, 41)]


def test_every_mutant_can_be_made():
    wrong = []
    for mutant in load_mutants():
        try:
            patched = mutant.patched((ROOT / mutant.file).read_text(encoding="utf-8"))
            if mutant.file.endswith(".py"):
                compile(patched, mutant.file, "exec")
        except (ValueError, OSError, SyntaxError) as error:
            wrong.append(f"{mutant.id}: {error}")
    assert not wrong


def test_every_mutant_has_its_own_name_and_a_reason():
    mutants = load_mutants()
    assert len({mutant.id for mutant in mutants}) == len(mutants)
    assert len({(mutant.file, mutant.find, mutant.replace) for mutant in mutants}) == len(mutants)
    assert all(mutant.why.strip() for mutant in mutants)


def test_every_contract_has_at_least_two_mutants():
    counts = Counter(name for mutant in load_mutants() for name in mutant.contracts)
    assert set(counts) <= set(ORION)
    assert [name for name in ORION if counts[name] < 2] == []


def test_every_contract_has_one_test():
    assert sorted(name for name in contract_tests() if name in ORION) == ORION

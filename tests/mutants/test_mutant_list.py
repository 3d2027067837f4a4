"""The lists of mutants are in step with the code; the mutation run itself is `make mutate`."""

from __future__ import annotations

from collections import Counter

from tests.mutants.catalogue import LISTS, ROOT, contract_tests, load_mutants

SIZES = {"orion": 40, "trifid": 20, "lagoon": 9, "eagle": 9, "rosette": 11}
BY_VERSION = {
    version: [f"{version[0].upper()}{number:02}" for number in range(1, size + 1)]
    for version, size in SIZES.items()
}
CONTRACTS = [name for names in BY_VERSION.values() for name in names]


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


def test_each_version_has_a_list_of_its_own():
    assert [path.stem for path in LISTS] == sorted(SIZES)
    for path in LISTS:
        strangers = [
            mutant.id
            for mutant in load_mutants([path])
            if not set(mutant.contracts) & set(BY_VERSION[path.stem])
        ]
        assert strangers == [], path.name


def test_every_contract_has_mutants():
    counts = Counter(name for mutant in load_mutants() for name in mutant.contracts)
    assert set(counts) == set(CONTRACTS)
    assert [name for name in BY_VERSION["orion"] if counts[name] < 2] == []


def test_every_contract_has_one_test():
    assert sorted(contract_tests()) == sorted(CONTRACTS)
    for version, names in BY_VERSION.items():
        folder = f"tests/contracts/{version}/"
        held = [name for name, node in contract_tests().items() if node.startswith(folder)]
        assert sorted(held) == names, version

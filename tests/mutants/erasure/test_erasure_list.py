"""The list of erasure's mutants is in step with the code; its run is by hand."""

from __future__ import annotations

import ast

from tests.mutants.catalogue import ROOT
from tests.mutants.erasure.run import FAULTS, entries, patched


def test_every_mutant_can_be_made() -> None:
    for entry in entries():
        text = patched(entry, (ROOT / entry["file"]).read_text(encoding="utf-8"))
        compile(text, entry["file"], "exec")


def test_every_mutant_has_its_own_name_a_reason_and_tests_that_are_there() -> None:
    listed = entries()
    assert len({entry["id"] for entry in listed}) == len(listed)
    assert all(entry["why"].strip() and entry["tests"] for entry in listed)
    for test in {test for entry in listed for test in entry["tests"]}:
        name, _, function = test.partition("::")
        tree = ast.parse((ROOT / FAULTS / name).read_text(encoding="utf-8"))
        known = {each.name for each in tree.body if isinstance(each, ast.FunctionDef)}
        assert function.partition("[")[0] in known, test

"""The lists of checks are in step with the code; taking the checks away is `make mutate`."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.mutants.catalogue import ROOT
from tests.mutants.checks import finding, listed, removing
from tests.mutants.trying import BROKEN, KILLED, SURVIVED

CODE = """
def f(a, b):
    if a is None or b < 0:
        raise ValueError("no")
    checked_id(a)
    try:
        return a[b]
    except KeyError as error:
        raise LookupError from error


def g(told):
    yield from f(told, 1)
    if not told:
        yield "é: nothing is told"
"""


def test_every_check_is_found_by_its_form() -> None:
    found = finding.checks_of("cma/rosette/coherence.py", CODE)
    assert [(each.id, each.was) for each in found] == [
        ("rosette.coherence:f:1", "or a is None"),
        ("rosette.coherence:f:2", "or b < 0"),
        ("rosette.coherence:f:3", "if a is None or b < 0: raise ValueError('no')"),
        ("rosette.coherence:f:4", "checked_id(a)"),
        ("rosette.coherence:f:5", "except KeyError: raise LookupError from error"),
        ("rosette.coherence:g:1", "yield from f(told, 1)"),
        ("rosette.coherence:g:2", "if not told: yield 'é: nothing is told'"),
    ]
    assert len(finding.checks_of("cma/orion/store.py", CODE)) == 5  # there, a yield is no check


def test_a_check_is_taken_away_alone() -> None:
    for each in finding.checks_of("cma/rosette/coherence.py", CODE):
        patched = each.patched(CODE)
        compile(patched, each.id, "exec")
        changed = [
            (old, new)
            for old, new in zip(CODE.splitlines(), patched.splitlines(), strict=True)
            if old != new
        ]
        assert len(changed) == 1
    assert "if False or b < 0" in finding.checks_of("x.py", CODE)[0].patched(CODE)


def test_the_lists_are_in_step_with_the_code() -> None:
    """Where this fails: python -m tests.mutants.checks.listed, then give new checks their tests."""
    checks, entries = finding.every_check(), listed.entries()
    assert listed.differences(entries, checks) == []
    assert listed.strays(entries) == []
    assert [each.id for each in entries if not each.tests and len(each.equivalent) < 20] == []
    for each in checks:
        compile(each.patched((ROOT / each.file).read_text(encoding="utf-8")), each.file, "exec")


def test_what_is_out_of_step_is_named() -> None:
    checks = finding.checks_of("cma/orion/store.py", CODE)
    good = listed.moved([], checks)
    assert listed.differences(good, checks) == []
    assert listed.differences(good[1:], checks) == ["orion.store:f:1: not in the lists"]
    assert listed.differences(good, checks[1:]) == ["orion.store:f:1: no such check"]
    assert listed.differences([good[0], *good], checks) == ["orion.store:f:1: listed twice"]
    other = [good[0]._replace(was="or a is 0"), *good[1:]]
    assert listed.differences(other, checks) == ["orion.store:f:1: it is now 'or a is None'"]
    stray = [good[0]._replace(tests=("tests/mutants/test_check_list.py::test_gone",))]
    assert len(listed.strays(stray)) == 1


def test_entries_move_along_with_their_check(tmp_path: Path) -> None:
    old = [
        each._replace(tests=(f"test {each.was}",))
        for each in listed.moved([], finding.checks_of("cma/orion/store.py", CODE))
    ]
    earlier = CODE.replace("    checked_id(a)\n", "").replace("b < 0", "check_b(b)")
    earlier = earlier.replace("    try:", "    check_b(b)\n    try:")
    new = listed.moved(old, finding.checks_of("cma/orion/store.py", earlier))
    told = {each.was: each.tests for each in new}
    assert told["or a is None"] == ("test or a is None",)
    assert told["check_b(b)"] == ()
    assert told["except KeyError: raise LookupError from error"] != ()
    listed.write(new, tmp_path)
    assert listed.entries(tmp_path) == new


def test_removing_tells_killed_from_survived_and_broken(tmp_path: Path) -> None:
    place = tmp_path / "copy"
    (place / "cma").mkdir(parents=True)
    code = "def f(a):\n    if a < 0:\n        raise ValueError\n    return a\n"
    (place / "cma" / "__init__.py").write_text("")
    (place / "cma" / "one.py").write_text(code)
    (place / "test_one.py").write_text(
        "import pytest\nfrom cma.one import f\n\n"
        "def test_refuses():\n    with pytest.raises(ValueError):\n        f(-1)\n\n"
        "def test_passes():\n    assert f(1) == 1\n"
    )
    [check] = finding.checks_of("cma/one.py", code)
    for tests, expected in (
        (["test_one.py::test_passes", "test_one.py::test_refuses"], KILLED),
        (["test_one.py::test_passes"], SURVIVED),
        ([], SURVIVED),
        (["test_one.py::test_gone"], BROKEN),
    ):
        outcome, failed = removing.outcome(place, check, tests)
        assert outcome == expected
        assert (failed == "test_one.py::test_refuses") == (expected == KILLED)
        assert (place / "cma" / "one.py").read_text() == code


def test_a_malformed_entry_is_refused(tmp_path: Path) -> None:
    (tmp_path / "orion.yaml").write_text("- id: a\n  was: b\n  tests: []\n  equivalent: c\n")
    with pytest.raises(ValueError, match="tests or equivalent"):
        listed.entries(tmp_path)

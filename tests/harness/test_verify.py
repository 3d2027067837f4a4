"""`python -m reproductions verify`: a tree made elsewhere, whole, damaged, forged and hostile."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from experiments.staging.building import write
from reproductions.__main__ import main
from reproductions.inputs import CorruptInputError
from reproductions.staging import reading
from reproductions.staging.canonical import canonical, sha256
from reproductions.staging.manifest import manifest_bytes
from reproductions.staging.verifying import verify_tree
from tests.harness.staged_runs import tree_of, write_staged


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("made")
    write_staged(place / "runs")
    write(tree_of(place / "runs"), place / "tree")
    return place / "tree"


@pytest.fixture
def tree(made: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(made, tmp_path / "tree"))


def red(tree: Path) -> dict[str, tuple[str, ...]]:
    """The rows that failed, with their problems."""
    return {row.what: row.problems for row in verify_tree(tree) if not row.passed}


def rewrite(path: Path, **changes: Any) -> None:
    path.write_bytes(canonical(json.loads(path.read_bytes()) | changes))


def reseal(tree: Path) -> None:
    """Make the manifest anew over what is there, as a forger would."""
    files = {
        path.relative_to(tree).as_posix(): path.read_bytes()
        for path in tree.rglob("*")
        if path.is_file()
    }
    (tree / "manifest.json").write_bytes(manifest_bytes(files))


def test_a_whole_tree_is_sound(tree: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["verify", str(tree)]) == 0
    said = capsys.readouterr().out
    assert "153 of 153 files" in said
    assert said.count("passed") == 12
    assert said.endswith("tree: sound\n")
    assert main(["verify", str(tree), "--json"]) == 0
    assert [each["sound"] for each in json.loads(capsys.readouterr().out)] == [True]


def test_of_several_trees_each_counts(
    tree: Path, made: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tree / "claims.json").unlink()
    assert main(["verify", str(made), str(tree)]) == 1
    said = capsys.readouterr().out
    assert f"{made}: sound" in said
    assert f"{tree}: NOT SOUND, 4 rows failed" in said


@pytest.mark.parametrize("path", ["contracts/O07.json", "machine.json", "schemas/gate.json"])
def test_a_flipped_byte_is_red(tree: Path, path: str, capsys: pytest.CaptureFixture[str]) -> None:
    data = bytearray((tree / path).read_bytes())
    data[len(data) // 2] ^= 1
    (tree / path).write_bytes(data)
    assert f"{path}: another digest than listed" in red(tree)["manifest"]
    assert main(["verify", str(tree)]) == 1
    assert "NOT SOUND" in capsys.readouterr().out


def test_a_flipped_byte_of_the_manifest_is_red(tree: Path) -> None:
    data = (tree / "manifest.json").read_bytes()
    for changed in (data[:-1], data.replace(b'"bytes":1', b'"bytes":2', 1), b"{}", b""):
        (tree / "manifest.json").write_bytes(changed)
        assert "manifest" in red(tree)


def test_a_removed_file_is_red(tree: Path) -> None:
    (tree / "failures" / "tight_budget.json").unlink()
    found = red(tree)
    assert found["composition"] == ("failures/tight_budget.json: not there",)
    assert "failures/tight_budget.json: listed and not there" in found["manifest"]
    assert "gate failure_matrix" in found
    reseal(tree)
    assert set(red(tree)) == {
        "composition", "gate failure_matrix", "gate integrity_and_disclosure"
    }  # fmt: skip


def test_an_added_file_is_red(tree: Path) -> None:
    (tree / "contracts" / "O41.json").write_bytes((tree / "contracts" / "O40.json").read_bytes())
    found = red(tree)
    assert "contracts/O41.json: not declared" in found["composition"]
    assert "contracts/O41.json: not listed" in found["manifest"]
    reseal(tree)
    assert set(red(tree)) == {"composition", "gate integrity_and_disclosure"}


FORGED: Mapping[str, tuple[str, dict[str, Any], str]] = {
    "a failed contract": ("contracts/T03.json", {"outcome": "failed"}, "gate trifid_tally"),
    "a failed row": ("failures/empty_input.json", {"passed": False}, "gate failure_matrix"),
    "a trainable parameter": (
        "diagnostic/checks/float32.json", {"trainable": 1}, "gate frozen_model",
    ),
    "a run that failed": ("runs/graph_fixture.json", {"status": "failed"}, "gate graph_fixture"),
    "other sources": ("environment.json", {"source_digest": "00" * 32}, "gate orion_tally"),
}  # fmt: skip


@pytest.mark.parametrize("name", list(FORGED))
def test_a_result_rewritten_and_rehashed_under_the_old_gates_is_red(tree: Path, name: str) -> None:
    path, changes, gate = FORGED[name]
    rewrite(tree / path, **changes)
    reseal(tree)
    found = red(tree)
    assert gate in found
    assert any("says other than what the files give" in problem for problem in found[gate])
    assert "manifest" not in found


def test_a_gate_rewritten_and_rehashed_is_red(tree: Path) -> None:
    rewrite(tree / "contracts" / "O01.json", outcome="failed")
    path = tree / "gates" / "orion_tally.json"
    content = json.loads(path.read_bytes())
    for check in content["checks"]:
        check["observed"], check["passed"] = check["required"], True
    rewrite(path, checks=content["checks"], passed=True)
    reseal(tree)
    assert set(red(tree)) == {"gate orion_tally"}
    rewrite(tree / "contracts" / "O01.json", outcome="passed")
    rewrite(path, passed=False)
    reseal(tree)
    assert set(red(tree)) == {"gate orion_tally"}


CLAIMED: Mapping[str, Callable[[dict[str, Any]], None]] = {
    "counts other": lambda content: content["verdicts"].update({"failed": 3}),
    "other claims": lambda content: content["claims"].pop(),
    "another statement": lambda content: row(content, "weights-unchanged").update(paper_value=0),
    "is no verdict of exact": lambda content: swap(content, "weights-unchanged"),
    "without anything measured": lambda content: passed(content, "failure-tight-budget"),
    "passed with 39": lambda content: row(content, "orion-40-tests").update(measured=39),
    "the run says otherwise": lambda content: row(content, "trifid-20-tests").update(measured=19),
}


def row(content: dict[str, Any], name: str) -> dict[str, Any]:
    return next(each for each in content["claims"] if each["id"] == name)


def swap(content: dict[str, Any], name: str) -> None:
    one = row(content, name)
    content["verdicts"][one["verdict"]] -= 1
    one["verdict"] = "structure reproduced"
    content["verdicts"][one["verdict"]] += 1


def passed(content: dict[str, Any], name: str) -> None:
    """Call what was not run a pass."""
    one = row(content, name)
    assert one["verdict"] == "not run here"
    content["verdicts"]["not run here"] -= 1
    one["verdict"] = "structure reproduced"
    content["verdicts"][one["verdict"]] += 1


@pytest.mark.parametrize("said", list(CLAIMED))
def test_claims_rewritten_and_rehashed_are_red(tree: Path, said: str) -> None:
    content = json.loads((tree / "claims.json").read_bytes())
    CLAIMED[said](content)
    rewrite(tree / "claims.json", **content)
    reseal(tree)
    found = red(tree)
    assert set(found) == {"claims"}
    assert any(said in problem for problem in found["claims"])


def test_an_honest_tree_of_a_failed_gate_is_still_not_sound(tmp_path: Path) -> None:
    write_staged(tmp_path / "runs", leave_out=["delta_norm"])
    write(tree_of(tmp_path / "runs"), tmp_path / "tree")
    found = red(tmp_path / "tree")
    assert set(found) == {"composition", "gate frozen_model", "gate integrity_and_disclosure"}
    assert not any("says other" in problem for problems in found.values() for problem in problems)


@pytest.mark.parametrize(
    ("path", "change"),
    [
        ("contracts/O01.json", lambda data: data.replace(b":", b": ", 1)),
        ("contracts/O01.json", lambda data: b"\xef\xbb\xbf" + data),
        ("contracts/O01.json", lambda data: data[:-1] + b',"version":"orion"}'),
        ("contracts/O01.json", lambda data: data[:-1] + b',"x":1}'),
        ("contracts/O01.json", lambda data: data.replace(b'"orion"', b'"sun"')),
        ("contracts/O01.json", lambda data: data.replace(b'"O01"', b'"O02"')),
        ("contracts/O01.json", lambda data: b"[" * 5000),
        ("contracts/O01.json", lambda data: b"9" * 5000),
        ("environment.json", lambda data: data.replace(b'"project"', b'"Project"')),
        ("schemas/contract.json", lambda data: data.replace(b"false", b"true", 1)),
        ("schemas/contract.json", lambda data: b"{}"),
    ],
)
def test_a_file_out_of_its_form_is_red_however_it_is_sealed(
    tree: Path, path: str, change: Callable[[bytes], bytes]
) -> None:
    data = change((tree / path).read_bytes())
    assert data != (tree / path).read_bytes()
    (tree / path).write_bytes(data)
    reseal(tree)
    found = red(tree)
    assert found["forms"][0].startswith(f"{path}: ")
    assert "gate integrity_and_disclosure" in found


def test_two_files_in_each_others_place_are_red(tree: Path) -> None:
    one, two = tree / "contracts" / "O01.json", tree / "contracts" / "O02.json"
    first, second = one.read_bytes(), two.read_bytes()
    one.write_bytes(second)
    two.write_bytes(first)
    reseal(tree)
    assert red(tree)["forms"] == (
        "contracts/O01.json: says that it is contracts/O02.json",
        "contracts/O02.json: says that it is contracts/O01.json",
    )


def test_a_manifest_that_lists_twice_or_leaves_out_is_red(tree: Path) -> None:
    content = json.loads((tree / "manifest.json").read_bytes())
    rewrite(tree / "manifest.json", files=[*content["files"], content["files"][0]])
    assert any("listed twice" in problem for problem in red(tree)["manifest"])
    rewrite(tree / "manifest.json", files=content["files"][1:])
    assert any("not listed" in problem for problem in red(tree)["manifest"])
    other = content["files"] + content["excepted"][:0]
    rewrite(tree / "manifest.json", files=other, comparable_sha256="00" * 32)
    assert red(tree)["manifest"] == ("manifest.json: not the manifest of these files",)
    entry = content["files"][0] | {"path": "../outside.json"}
    rewrite(tree / "manifest.json", files=[*content["files"], entry])
    assert "../outside.json: listed and not there" in red(tree)["manifest"]


def test_a_size_that_is_not_the_files_is_red(tree: Path) -> None:
    content = json.loads((tree / "manifest.json").read_bytes())
    content["files"][0]["bytes"] += 1
    rewrite(tree / "manifest.json", **content)
    [problem] = red(tree)["manifest"]
    assert "bytes, listed with" in problem


def test_an_exception_that_is_not_declared_is_red(tree: Path) -> None:
    content = json.loads((tree / "manifest.json").read_bytes())
    entry = content["files"].pop(0)
    content["excepted"].append(entry | {"why": "because"})
    comparable = sha256(canonical(content["files"]))
    rewrite(tree / "manifest.json", **content | {"comparable_sha256": comparable})
    assert red(tree)["manifest"] == ("manifest.json: not the manifest of these files",)


def test_a_planted_secret_is_red_and_not_shown(
    tree: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rewrite(tree / "failures" / "empty_input.json", observed="AKIA" + "Q" * 16)
    reseal(tree)
    found = red(tree)
    assert "failures/empty_input.json: cloud key at /observed" in found["disclosure"]
    assert "gate integrity_and_disclosure" in found
    assert main(["verify", str(tree)]) == 1
    assert "AKIA" not in capsys.readouterr().out


def test_private_texts_of_ones_own_are_looked_for(tree: Path, tmp_path: Path) -> None:
    (tmp_path / "texts").write_text("\nas required\n")
    assert main(["verify", str(tree), "--private", str(tmp_path / "texts")]) == 1
    (tmp_path / "texts").write_text("nothing of this kind\n")
    assert main(["verify", str(tree), "--private", str(tmp_path / "texts")]) == 0


def test_links_pipes_and_depth_are_refused_and_not_followed(tree: Path, tmp_path: Path) -> None:
    (tmp_path / "outside").write_text("secret")
    (tree / "contracts" / "O01.json").unlink()
    (tree / "contracts" / "O01.json").symlink_to(tmp_path / "outside")
    (tree / "more").symlink_to(tmp_path)
    os.mkfifo(tree / "pipe")
    (tree / "a" / "b" / "c" / "d" / "e").mkdir(parents=True)
    problems = red(tree)["composition"]
    assert {"contracts/O01.json: a link", "more: a link", "pipe: no regular file"} <= set(problems)
    assert any(problem.startswith("a/b/c/d: nested") for problem in problems)


def test_a_huge_file_is_refused_unread(tree: Path) -> None:
    with (tree / "claims.json").open("wb") as file:
        file.truncate(1 << 40)
    assert any(
        problem.startswith("claims.json: larger than") for problem in red(tree)["composition"]
    )


def test_a_tree_that_is_too_much_is_refused(
    tree: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "link").symlink_to(tree)
    for place in ("link", "none", "tree/claims.json"):
        assert main(["verify", str(tmp_path / place)]) == 2
        assert "give the folder of a tree" in capsys.readouterr().err
    for name in ("MAX_ENTRIES", "MAX_TREE_BYTES"):
        with monkeypatch.context() as patch:
            patch.setattr(reading, name, 10)
            with pytest.raises(CorruptInputError, match="more than a tree can"):
                verify_tree(tree)


def test_names_that_steer_a_terminal_are_not_printed(
    tree: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tree / "\x1b[2J\n.json").write_text("{}")
    (tree / os.fsdecode(b"\xff.json")).write_text("{}")
    assert main(["verify", str(tree)]) == 1
    assert "\x1b" not in capsys.readouterr().out

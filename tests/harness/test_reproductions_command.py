"""`python -m reproductions`: exit status, files, and what it says of unreadable input."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from reproductions.__main__ import main
from tests.harness.sample_runs import write_run, write_tally

ROOT = Path(__file__).resolve().parents[2]


def test_nothing_failed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_tally(tmp_path)
    assert main(["--runs", str(tmp_path)]) == 0
    said = capsys.readouterr().out
    assert "orion-40-tests" in said
    assert "reproduced by construction" in said
    assert "0 failed" in said
    written = json.loads((tmp_path / "claims.json").read_text())
    assert written["figures"]["claims.failed"]["value"] == 0
    row = next(row for row in written["claims"] if row["id"] == "orion-40-tests")
    assert (row["paper_value"], row["measured"], row["denominator"]) == (40, 40, 40)


@pytest.mark.parametrize("module", ["reproductions", "reports"])
def test_a_reader_that_closes_the_pipe_is_no_failure(tmp_path: Path, module: str) -> None:
    write_tally(tmp_path / "runs")
    out = tmp_path / "out"
    command = [sys.executable, "-m", module, "--runs", str(tmp_path / "runs"), "--out", str(out)]
    reading, writing = os.pipe()
    os.close(reading)
    done = subprocess.run(command, cwd=ROOT, stdout=writing, stderr=subprocess.PIPE, check=False)
    os.close(writing)
    assert (done.returncode, done.stderr) == (141, b"")
    assert out.exists()


def test_one_failed_claim_is_status_one(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_tally(tmp_path, failed=["O35"])
    assert main(["--runs", str(tmp_path), "--verdict", "failed"]) == 1
    said = capsys.readouterr().out
    assert "contract O35 did not pass" in said.lower().replace("o35", "O35")
    assert "orion-ttl" not in said


def test_json_is_json_and_the_filter_does_not_hide_the_failure(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_tally(tmp_path, failed=["O35"])
    assert main(["--runs", str(tmp_path), "--json", "--verdict", "reproduced"]) == 1
    assert json.loads(capsys.readouterr().out)["claims"] == []


def test_judging_twice_writes_the_same_bytes(tmp_path: Path) -> None:
    write_tally(tmp_path)
    main(["--runs", str(tmp_path)])
    first = (tmp_path / "claims.json").read_bytes()
    main(["--runs", str(tmp_path)])
    assert (tmp_path / "claims.json").read_bytes() == first


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("result.json", "{"),
        ("result.json", '{"format": "cma.result/9"}'),
        ("result.json", "[]"),
        ("machine.json", "no"),
        ("config.yaml", "a: [1"),
    ],
)
def test_an_unreadable_run_is_status_two_and_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str, text: str
) -> None:
    (write_tally(tmp_path) / name).write_text(text)
    assert main(["--runs", str(tmp_path)]) == 2
    assert "0123456789abcdef" in capsys.readouterr().err
    assert not (tmp_path / "claims.json").exists()


def test_a_table_changed_after_its_run_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = write_tally(tmp_path, failed=["O35"])
    table = folder / "contracts.csv"
    result = json.loads((folder / "result.json").read_text())
    digest = hashlib.sha256(table.read_bytes()).hexdigest()
    result["table_digests"] = {"contracts.csv": digest}
    (folder / "result.json").write_text(json.dumps(result))
    table.write_text(table.read_text().replace("failed", "passed"))
    assert main(["--runs", str(tmp_path)]) == 2
    assert "changed after the run" in capsys.readouterr().err


def test_an_unfinished_run_is_no_run(tmp_path: Path) -> None:
    (tmp_path / "contract_tally" / "unfinished").mkdir(parents=True)
    hidden = write_run(tmp_path, "contract_tally", run_id=".0123-draft")
    (hidden / "result.json").write_text("{")
    assert main(["--runs", str(tmp_path)]) == 0


@pytest.mark.parametrize("arguments", [["--verdict", "maybe"], ["--nonsense"]])
def test_a_wrong_request_is_status_two(arguments: list[str]) -> None:
    with pytest.raises(SystemExit) as stopped:
        main(arguments)
    assert stopped.value.code == 2


def test_a_claims_file_that_is_not_there_is_status_two(tmp_path: Path) -> None:
    assert main(["--runs", str(tmp_path), "--claims", str(tmp_path / "none.yaml")]) == 2


def test_the_command_teaches_by_example(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "reproductions", "--help"],
        cwd=ROOT, capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert "examples:" in done.stdout
    assert "exit status" in done.stdout


@pytest.mark.parametrize("kind", ["none", "file"])
def test_a_runs_folder_that_is_not_there_is_status_two_and_nothing_is_made(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], kind: str
) -> None:
    given = tmp_path / "given"
    if kind == "file":
        given.write_text("x")
    assert main(["--runs", str(given)]) == 2
    said = capsys.readouterr().err
    assert f"--runs {given}: there is no such folder" in said
    assert "python -m experiments" in said
    assert given.exists() == (kind == "file")


def test_without_the_default_folder_claims_are_not_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main([]) == 0
    assert "not run here" in capsys.readouterr().out


def digest_of(content: dict[str, object]) -> str:
    text = json.dumps(content, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(text.encode()).hexdigest()


def test_a_figure_changed_after_its_run_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = write_tally(tmp_path, failed=["O35"]) / "result.json"
    content = json.loads(path.read_text())
    whole = content | {"result_digest": digest_of(content)}
    path.write_text(json.dumps(whole))
    assert main(["--runs", str(tmp_path)]) == 1
    whole["figures"]["contracts.orion"]["value"] = 40
    path.write_text(json.dumps(whole))
    capsys.readouterr()
    assert main(["--runs", str(tmp_path)]) == 2
    assert f"{path}: changed after the run" in capsys.readouterr().err

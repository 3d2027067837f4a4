"""The README's examples run as they stand, and the commands that it names exist."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from cma import __version__
from reports import readme
from reports.__main__ import main as reports_main
from reports.tables import markdown_cell
from reproductions.__main__ import main as judge_main
from reproductions.claims import CLAIMS_FILE, load_claims
from reproductions.judge import Verdict
from reproductions.judged import read_judged, shown_value
from tests.harness.sample_runs import write_tally

ROOT = Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
MAKEFILE = (ROOT / "Makefile").read_text(encoding="utf-8")
PYTHON_BLOCKS = re.findall(r"```python\n(.*?)```", README, flags=re.DOTALL)


def test_python_examples_run(tmp_path: Path) -> None:
    assert PYTHON_BLOCKS
    for block in PYTHON_BLOCKS:  # in one folder, as a reader would run them
        done = subprocess.run(
            [sys.executable, "-c", block],
            cwd=tmp_path,
            env={"PYTHONPATH": str(ROOT), "PATH": ""},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        assert done.stdout


def test_first_example_serves_what_it_says(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", PYTHON_BLOCKS[0]],
        cwd=tmp_path,
        env={"PYTHONPATH": str(ROOT), "PATH": ""},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.startswith("The server moved to Oslo")
    assert "True" in done.stdout.splitlines()[1]


def test_it_opens_with_what_it_is_and_the_two_commands() -> None:
    opening = README.split("\n## ")[0]
    assert opening.startswith("# CMA: Civilization Memory Architecture")
    assert opening.index("make reproduce") < opening.index("make test")
    assert len(README.splitlines()) < 150


def test_every_link_leads_somewhere() -> None:
    for target in re.findall(r"\]\(([^)]+)\)", README):
        file, _, anchor = target.partition("#")
        assert (ROOT / file).is_file(), target
        heads = re.findall(r"^#+ (.*)$", (ROOT / file).read_text(encoding="utf-8"), re.MULTILINE)
        assert not anchor or anchor in {head.lower().replace(" ", "-") for head in heads}, target


def test_the_claims_are_as_a_command_wrote_them_and_as_they_were_measured() -> None:
    """A run's own values where this checkout has one; its form everywhere."""
    written = readme.between(README)
    rows = [line for line in written.splitlines() if line.startswith("| ")][1:]
    claims = {claim.id: claim for claim in load_claims(CLAIMS_FILE).claims}
    named = [claims[name] for name in readme.HEADLINES]
    assert len(rows) == len(named)
    judged = read_judged(ROOT / "runs" / "claims.json")
    measured = {row.id: row for row in judged.claims} if judged is not None else {}
    for row, claim in zip(rows, named, strict=True):
        statement, paper, _, verdict = (cell.strip() for cell in row.strip("| ").split(" | "))
        assert statement == markdown_cell(claim.statement)
        assert paper == shown_value(claim.value, claim.unit)
        assert verdict in set(Verdict)
        found = measured.get(claim.id)
        if found is not None and found.verdict is not Verdict.NOT_RUN:
            assert row == readme._row(found), "run: python -m reports readme"


def test_the_claims_command_writes_between_the_markers_alone(tmp_path: Path) -> None:
    file = tmp_path / "README.md"
    file.write_text(f"before\n{readme.BEGIN}\nold\n{readme.END}\nafter\n")
    runs = tmp_path / "runs"
    call = ["readme", "--runs", str(runs), "--file", str(file)]
    assert reports_main(call) == 2  # nothing is judged
    assert judge_main(["--runs", str(write_tally(runs).parents[1])]) == 0
    assert reports_main([*call, "--check"]) == 1
    assert reports_main(call) == 0
    text = file.read_text()
    assert text.startswith(f"before\n{readme.BEGIN}\n| claim | paper |")
    assert text.endswith(f"{readme.END}\nafter\n")
    assert "| 40 of 40 | reproduced by construction |" in text
    assert "\nold\n" not in text
    assert reports_main([*call, "--check"]) == 0
    file.write_text("no markers")
    assert reports_main(call) == 2


def test_the_version_is_the_same_everywhere() -> None:
    assert f'version = "{__version__}"' in (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    assert f"## {__version__} " in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")


def test_experiments_exist() -> None:
    for name in re.findall(r"experiment=(\w+)", README):
        assert (ROOT / "configs" / "experiment" / f"{name}.yaml").is_file()


@pytest.mark.parametrize("target", sorted(set(re.findall(r"make (\w+)", README))))
def test_make_targets_exist(target: str) -> None:
    assert re.search(rf"^{target}:", MAKEFILE, flags=re.MULTILINE)


@pytest.mark.parametrize(
    "command",
    [
        "recall", "explain", "timeline", "verify", "doctor", "snapshot", "restore",
        "proposals list",
        "proposals show", "proposals approve", "proposals reject",
    ],
)  # fmt: skip
def test_commands_exist(command: str) -> None:
    assert f"cma {command}" in README
    done = subprocess.run(
        [sys.executable, "-m", "cma.cli", *command.split(), "--help"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0
    assert "Example" in done.stdout

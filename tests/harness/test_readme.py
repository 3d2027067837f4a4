"""The README's examples run as they stand, and the commands that it names exist."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from cma import __version__

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


def test_second_example_delivers_the_claim_and_proves_it(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", PYTHON_BLOCKS[1]],
        cwd=tmp_path,
        env={"PYTHONPATH": str(ROOT), "PATH": ""},
        capture_output=True,
        text=True,
        check=True,
    )
    assert "The server runs in Oslo" in done.stdout
    receipt, verified = done.stdout.splitlines()[-1].split()
    assert receipt.startswith("receipt-")
    assert verified == "True"


def test_it_opens_with_what_it_is_and_the_two_commands() -> None:
    opening = README.split("\n## ")[0]
    assert opening.startswith("# CMA: Civilization Memory Architecture")
    assert opening.index("make reproduce") < opening.index("make test")
    assert len(README.splitlines()) < 220


def test_the_version_is_the_same_everywhere() -> None:
    assert f'version = "{__version__}"' in (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    assert f"## {__version__} " in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", sorted(set(re.findall(r"experiment=(\w+)", README))))
def test_experiments_exist(name: str) -> None:
    assert (ROOT / "configs" / "experiment" / f"{name}.yaml").is_file()


@pytest.mark.parametrize("target", sorted(set(re.findall(r"make (\w+)", README))))
def test_make_targets_exist(target: str) -> None:
    assert re.search(rf"^{target}:", MAKEFILE, flags=re.MULTILINE)


@pytest.mark.parametrize(
    "command",
    [
        "recall", "explain", "timeline", "verify", "snapshot", "restore", "proposals list",
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

"""Trying tests on a copy of the project in which something was changed."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

KILLED, SURVIVED, BROKEN = "killed", "survived", "broken"


def copied(origin: Path, target: Path, names: Sequence[str]) -> None:
    """Copy what tests need, with the compiled files that are still good."""
    for name in names:
        source, place = origin / name, target / name
        place.parent.mkdir(parents=True, exist_ok=True)
        if source.is_dir():
            shutil.copytree(source, place)
        else:
            shutil.copy2(source, place)


def put(file: Path, text: str) -> None:
    """Write a source file of a copy, and remove what was compiled of it."""
    file.write_text(text, encoding="utf-8")
    for compiled in file.parent.glob(f"__pycache__/{file.stem}.*"):
        compiled.unlink()


def tried(
    copy: Path, tests: Sequence[str], seconds: float, options: Sequence[str] = ()
) -> subprocess.CompletedProcess[str] | None:
    """Run pytest on a copy; None where it did not end within so many seconds."""
    command = [sys.executable, "-m", "pytest", "-q", "--tb=no", "--no-header"]
    command += ["-p", "no:cacheprovider", f"--basetemp={copy.parent / 'pytest'}", *options]
    try:
        return subprocess.run(
            [*command, *tests],
            cwd=copy,
            env=_environment(copy),
            capture_output=True,
            text=True,
            timeout=seconds,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return None


def _environment(copy: Path) -> dict[str, str]:
    """Return an environment in which the copy is the `cma` that is imported."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    return {
        **kept,
        "PYTHONPATH": str(copy),
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
    }

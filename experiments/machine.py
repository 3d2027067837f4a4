"""What may differ between two machines or two moments, and so stays out of the result.

Never recorded: host name, user name, absolute paths, environment, command line.
"""

from __future__ import annotations

import os
import platform
import subprocess
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

PACKAGES = (
    "apsw",
    "bm25s",
    "hydra-core",
    "numba",
    "numpy",
    "orjson",
    "pandas",
    "pooch",
    "pydantic",
    "PyStemmer",
    "pytest",
    "pytrec-eval-terrier",
    "regex",
    "safetensors",
    "scipy",
    "tantivy",
    "torch",
    "transformers",
)


def describe(
    root: Path, started: datetime, finished: datetime, *, device: str = "cpu"
) -> dict[str, Any]:
    """Return the content of `machine.json`. device: what the run's model was on."""
    return {
        "started_at": started.astimezone(UTC).isoformat(),
        "finished_at": finished.astimezone(UTC).isoformat(),
        "seconds": round((finished - started).total_seconds(), 3),
        "python": platform.python_version(),
        "packages": {name: found for name in PACKAGES if (found := _version(name)) is not None},
        "platform": f"{platform.system()} {platform.machine()}",
        "cpu_count": os.cpu_count(),
        **_device(device),
        "git_revision": _git(root, "rev-parse", "HEAD"),
        "git_dirty": _dirty(root),
    }


def _device(device: str) -> dict[str, Any]:
    """Name the accelerator and its driver where a run used one."""
    if device != "cuda":
        return {"device": device}
    import torch

    return {
        "device": f"cuda ({torch.cuda.get_device_name()})",
        "driver": str(getattr(torch.version, "cuda", "")),
    }


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def _dirty(root: Path) -> bool | None:
    changes = _git(root, "status", "--porcelain")
    return None if changes is None else bool(changes)


def _git(root: Path, *arguments: str) -> str | None:
    """Return what git says about the checkout, or None where there is no git or no commit."""
    try:
        done = subprocess.run(
            ["git", *arguments], cwd=root, capture_output=True, text=True, timeout=20, check=False
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip() if done.returncode == 0 else None

"""Where a pinned file comes from.

Looked for in this order: the folder given in the config, the folder that `CMA_DATA_DIR` names, the
cache, a download into the cache. Every file is checked against its pinned SHA-256 wherever it lay;
a difference is an error, never a reason to look further. A folder given in the config must hold the
file.
"""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import pooch

from experiments.failures import DataError
from experiments.settings import DataSettings, PinnedFile

ENVIRONMENT_VARIABLE = "CMA_DATA_DIR"
CACHE_VARIABLE = "CMA_CACHE_DIR"
Origin = Literal["config", "CMA_DATA_DIR", "cache"]


@dataclass(frozen=True, slots=True)
class Found:
    """A file that is exactly the pinned one."""

    path: Path
    origin: Origin


@dataclass(frozen=True, slots=True)
class Missing:
    """Nothing was found; `tried` says where."""

    tried: tuple[str, ...]


def cache_folder() -> Path:
    """Return the folder that downloads go to: CMA_CACHE_DIR, else the user's cache."""
    return Path(os.environ.get(CACHE_VARIABLE) or pooch.os_cache("civilization-memory"))


def find(pinned: PinnedFile, settings: DataSettings) -> Found | Missing:
    """Find one pinned file; raises DataError where it is not the pinned version."""
    if settings.path is not None:
        return _found(_in_given_folder(Path(settings.path).expanduser(), pinned), pinned, "config")
    tried: list[str] = []
    folder = os.environ.get(ENVIRONMENT_VARIABLE)
    if folder:
        path = Path(folder).expanduser() / pinned.path
        if path.is_file():
            return _found(path, pinned, "CMA_DATA_DIR")
        tried.append(f"{ENVIRONMENT_VARIABLE} is set, but holds no {pinned.path}")
    else:
        tried.append(f"{ENVIRONMENT_VARIABLE} is not set")
    path = cache_folder() / pinned.path
    if path.is_file():
        return _found(path, pinned, "cache")
    tried.append("the cache does not hold it")
    if not settings.download:
        tried.append("downloading is off (data.download=false)")
        return Missing(tuple(tried))
    problem = _download(pinned, path, settings.timeout_seconds)
    if problem is None:
        return _found(path, pinned, "cache")
    tried.append(problem)
    return Missing(tuple(tried))


def _in_given_folder(folder: Path, pinned: PinnedFile) -> Path:
    if not folder.exists():
        raise DataError(
            f"data.path={folder} does not exist; give a folder that holds {pinned.path}, "
            "or data=generated to run on generated conversations"
        )
    for path in (folder / pinned.path, folder / Path(pinned.path).name):
        if path.is_file():
            return path
    raise DataError(
        f"data.path={folder} holds no {pinned.path}; give the folder above it, "
        "or data=generated to run on generated conversations"
    )


def _found(path: Path, pinned: PinnedFile, origin: Origin) -> Found:
    with path.open("rb") as file:
        seen = hashlib.file_digest(file, "sha256").hexdigest()
    if seen != pinned.sha256:
        raise DataError(
            f"{path} is not the pinned version: its SHA-256 is {seen}, expected {pinned.sha256}; "
            f"replace it by {pinned.url}, or delete it"
        )
    return Found(path, origin)


def _download(pinned: PinnedFile, path: Path, timeout: float) -> str | None:
    """Fetch a file into the cache; return why it could not be had, or None."""
    try:
        pooch.retrieve(
            url=pinned.url,
            known_hash=f"sha256:{pinned.sha256}",
            fname=path.name,
            path=path.parent,
            downloader=pooch.HTTPDownloader(timeout=timeout),
        )
    except ValueError as error:
        raise DataError(
            f"{pinned.url} is no longer the pinned version (SHA-256 {pinned.sha256}): {error}"
        ) from error
    except OSError as error:
        return f"the download failed ({type(error).__name__})"
    return None

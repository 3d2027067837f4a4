"""Where a pinned file comes from.

Looked for in this order: the folder given in the config, the folder that `CMA_DATA_DIR` names, the
cache, a download into the cache. Every file is checked against its pinned SHA-256 wherever it lay;
a difference is an error, never a reason to look further. A folder given in the config must hold the
file, unless the caller can do without it.
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


def find(pinned: PinnedFile, settings: DataSettings, *, optional: bool = False) -> Found | Missing:
    """Find one pinned file.

    Raises DataError where it is not the pinned version, and where `data.path` lacks a file that is
    not `optional`.
    """
    tried: list[str] = []
    if settings.path is not None:
        path = Path(settings.path).expanduser() / pinned.path
        if path.is_file():
            return _found(path, pinned, "config")
        lack = f"data.path={settings.path} {_lack(Path(settings.path).expanduser(), pinned)}"
        if not optional:
            raise DataError(f"{lack}; or data=generated to run on generated conversations")
        tried.append(lack)
    folder = os.environ.get(ENVIRONMENT_VARIABLE)
    if folder:
        path = Path(folder).expanduser() / pinned.path
        if path.is_file():
            return _found(path, pinned, "CMA_DATA_DIR")
        tried.append(f"{ENVIRONMENT_VARIABLE}={folder} {_lack(Path(folder).expanduser(), pinned)}")
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


def _lack(folder: Path, pinned: PinnedFile) -> str:
    """Return why a folder does not give the file, and which folder to give."""
    file = Path(pinned.path)
    if not folder.exists():
        return f"does not exist; give a folder that holds {pinned.path}"
    if (folder / file.name).is_file():
        return (
            f"holds {file.name} itself; give the folder above it, so that {pinned.path} lies there"
        )
    return f"holds no {pinned.path}; give a folder that does"


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

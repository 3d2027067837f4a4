"""Reading a tree that somebody else made: regular files of bounded size, and nothing else.

No link is followed and no path of the manifest is opened: what is read is what lies in the folder.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path

from reproductions.inputs import CorruptInputError

MAX_ENTRIES = 1_000
MAX_DEPTH = 4
MAX_FILE_BYTES = 1 << 20
MAX_TREE_BYTES = 16 << 20


def read_tree(root: Path) -> tuple[dict[str, bytes], list[str]]:
    """Return the bytes of every file by path, and what was refused, each with its reason.

    Raises CorruptInputError where `root` is no folder, or holds more than a tree can.
    """
    if root.is_symlink() or not root.is_dir():
        raise CorruptInputError(f"{root}: give the folder of a tree, not a link or a file")
    files: dict[str, bytes] = {}
    refused: list[str] = []
    total = entries = 0
    waiting = [(root, "")]
    while waiting:
        folder, prefix = waiting.pop()
        for entry in sorted(os.scandir(folder), key=lambda each: each.name):
            entries += 1
            path = f"{prefix}{entry.name}".encode("utf-8", "backslashreplace").decode()
            if entry.is_symlink():
                refused.append(f"{path}: a link")
            elif entry.is_dir(follow_symlinks=False):
                if path.count("/") + 1 >= MAX_DEPTH:
                    refused.append(f"{path}: nested more than {MAX_DEPTH} deep")
                else:
                    waiting.append((Path(entry.path), f"{path}/"))
            elif not entry.is_file(follow_symlinks=False):
                refused.append(f"{path}: no regular file")
            else:
                data = _bounded(entry.path)
                if data is None:
                    refused.append(f"{path}: larger than {MAX_FILE_BYTES:,} bytes")
                    continue
                files[path] = data
                total += len(data)
            if entries > MAX_ENTRIES or total > MAX_TREE_BYTES:
                raise CorruptInputError(f"{root}: holds more than a tree can")
    return files, refused


def _bounded(path: str) -> bytes | None:
    """Return a file's bytes; None where it is too large, or became something else meanwhile."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    with os.fdopen(descriptor, "rb") as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            return None
        data = file.read(MAX_FILE_BYTES + 1)
    return data if len(data) <= MAX_FILE_BYTES else None

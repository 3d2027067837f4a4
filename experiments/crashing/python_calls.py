"""Python's calls: the anchor beside a store, the folder, snapshots. Functions of `os` are replaced.

What is replaced looks at the path or descriptor first and passes on everything outside the folder.
"""

from __future__ import annotations

import io
import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any
from unittest.mock import patch

from cma.orion import anchor
from experiments.crashing.calls import Call, Fate, Watch, die, os_error

_REFUSED = (Fate.IO_ERROR, Fate.FULL)
_WRITING = os.O_WRONLY | os.O_RDWR


@contextmanager
def python_watched(watch: Watch) -> Iterator[None]:
    """Replace the functions of `os` that the library writes with, until the block ends."""
    changes = {
        "open": _open(watch),
        "close": _close(watch),
        "pwrite": _pwrite(watch),
        "ftruncate": _ftruncate(watch),
        "fsync": _sync(watch, os.fsync),
        "fdopen": _fdopen(watch),
        "replace": _moved(watch, "rename", os.replace),
        "link": _moved(watch, "link", os.link),
        "unlink": _unlink(watch),
    }
    with ExitStack() as stack:
        for name, change in changes.items():
            stack.enter_context(patch.object(os, name, change))
        stack.enter_context(patch.object(anchor, "_sync", _sync(watch, anchor._sync)))
        yield


class WatchedRaw(io.FileIO):
    """The unbuffered file beneath one that Python buffers."""

    watch: Watch
    file: str

    def write(self, data: Any, /) -> int:
        """Write all of it, half of it, or nothing."""
        whole = bytes(data)
        return _written(
            self.watch, Call("write", self.file, self.tell(), whole), super().write, whole
        )

    def close(self) -> None:
        """Close and forget the descriptor."""
        if not self.closed:
            self.watch.descriptors.pop(self.fileno(), None)
        super().close()


def _open(watch: Watch) -> Callable[..., int]:
    real = os.open

    def opened(path: Any, flags: int, *more: Any, **named: Any) -> int:
        file = watch.name(path)
        if file is None:
            return real(path, flags, *more, **named)
        if flags & _WRITING:
            creates = bool(flags & os.O_CREAT) and not os.path.exists(path)
            fate = watch.fate(Call("create" if creates else "open", file))
            if fate in _REFUSED:
                raise os_error(fate)
            _die_if_torn(fate)
        descriptor = real(path, flags, *more, **named)
        watch.descriptors[descriptor] = file
        return descriptor

    return opened


def _close(watch: Watch) -> Callable[[int], None]:
    real = os.close

    def closed(descriptor: int) -> None:
        watch.descriptors.pop(descriptor, None)
        real(descriptor)

    return closed


def _pwrite(watch: Watch) -> Callable[[int, Any, int], int]:
    real = os.pwrite

    def written(descriptor: int, data: Any, at: int) -> int:
        file = watch.descriptors.get(descriptor)
        if file is None:
            return real(descriptor, data, at)
        call = Call("write", file, at, bytes(data))
        return _written(watch, call, lambda part: real(descriptor, part, at), bytes(data))

    return written


def _written(watch: Watch, call: Call, write: Callable[[bytes], Any], data: bytes) -> int:
    fate = watch.fate(call)
    if fate in _REFUSED:
        raise os_error(fate)
    if fate is Fate.DROP:
        return len(data)
    if fate in (Fate.SHORT, Fate.TEAR):
        data = data[: max(1, len(data) // 2)]
    count = int(write(data))
    _die_if_torn(fate)
    return count


def _ftruncate(watch: Watch) -> Callable[[int, int], None]:
    real = os.ftruncate

    def truncated(descriptor: int, size: int) -> None:
        file = watch.descriptors.get(descriptor)
        if file is None or _goes_on(watch, Call("truncate", file, size)):
            real(descriptor, size)

    return truncated


def _sync(watch: Watch, real: Callable[[int], Any]) -> Callable[[int], None]:
    def synced(descriptor: int) -> None:
        file = watch.descriptors.get(descriptor)
        if file is None or _goes_on(watch, Call("sync", file)):
            real(descriptor)

    return synced


def _moved(watch: Watch, kind: str, real: Callable[..., None]) -> Callable[..., None]:
    def moved(source: Any, target: Any, **named: Any) -> None:
        file, to = watch.name(source), watch.name(target)
        if file is None or to is None or _goes_on(watch, Call(kind, file, to=to)):
            real(source, target, **named)

    return moved


def _unlink(watch: Watch) -> Callable[..., None]:
    real = os.unlink

    def unlinked(path: Any, **named: Any) -> None:
        file = watch.name(path)
        there = file is not None and os.path.lexists(path)
        if file is None or not there or _goes_on(watch, Call("delete", file)):
            real(path, **named)

    return unlinked


def _fdopen(watch: Watch) -> Callable[..., Any]:
    real = os.fdopen

    def reopened(descriptor: int, mode: str = "r", *more: Any, **named: Any) -> Any:
        file = watch.descriptors.get(descriptor)
        if file is None or mode != "wb":
            return real(descriptor, mode, *more, **named)
        raw = WatchedRaw(descriptor, mode)
        raw.watch, raw.file = watch, file
        return io.BufferedWriter(raw)

    return reopened


def _goes_on(watch: Watch, call: Call) -> bool:
    """Tell whether the call is to be made; raise what the disk answers instead."""
    fate = watch.fate(call)
    if fate in (*_REFUSED, Fate.SHORT):
        raise os_error(fate)
    _die_if_torn(fate)
    return fate is not Fate.DROP


def _die_if_torn(fate: Fate) -> None:
    if fate is Fate.TEAR:
        die()

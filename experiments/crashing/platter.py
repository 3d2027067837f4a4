"""What a disk holds when the power is cut: what was synced, and any part of what was not.

Rules of the model, each at least as harsh as what file systems promise:
- Content is durable once the file was synced. Until then each piece of each write, and each
  truncation, may have reached the disk or not, whatever the order.
- A name (created, renamed, linked, deleted) is durable once its folder was synced; until then the
  changes of names have reached the disk up to some point of their order.
- A sync that fails throws away what it should have made durable: nothing tries it again.
- A name and the content behind it become durable independently: a durable name may show a file
  that is empty.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from enum import StrEnum

from experiments.crashing.calls import Call


class Survives(StrEnum):
    """What of the unsynced reaches the disk."""

    NOTHING = "nothing"
    ALL = "everything"
    NAMES = "names without content"
    CONTENT = "content without names"
    SECTORS = "random sectors of 512 bytes"
    SHREDS = "random shreds of 64 bytes"


FAILED_SYNC = "failed sync"
"""The kind of a call that is taken in place of a sync that was refused."""
PIECES = {Survives.SECTORS: 512, Survives.SHREDS: 64}


@dataclass(slots=True)
class Inode:
    """One file's content: the durable part, and the calls since."""

    durable: bytearray = field(default_factory=bytearray)
    pending: list[Call] = field(default_factory=list)


@dataclass(slots=True)
class Platter:
    """A folder on a disk that is asked to do one call after another."""

    present: dict[str, Inode] = field(default_factory=dict)
    """Names as a running process sees them."""
    durable: dict[str, Inode] = field(default_factory=dict)
    changes: list[tuple[Call, Inode | None]] = field(default_factory=list)
    """Changes of names since the folder was synced, with the file that a creation made."""

    def take(self, call: Call) -> None:
        """Do what a call asks for."""
        if call.kind in ("create", "delete", "rename", "link"):
            made = Inode() if call.kind == "create" else None
            _rename(self.present, call, made)
            self.changes.append((call, made))
        elif call.kind in ("write", "truncate"):
            self.present[call.file].pending.append(call)
        elif call.kind == "sync" and call.file != ".":
            _settle(self.present[call.file])
        elif call.kind == FAILED_SYNC:
            self.present[call.file].pending.clear()
        if call.syncs_name or (call.kind == "sync" and call.file == "."):
            self.durable = dict(self.present)
            self.changes.clear()

    def image(self, survives: Survives, seed: str) -> dict[str, bytes]:
        """Return the files as they are found after the power was cut here and now."""
        chance = random.Random(seed)  # noqa: S311 (which pieces survive is no secret)
        names = self._names(survives, chance)
        keep = _choice(survives, chance)
        contents: dict[int, bytes] = {}
        for _, inode in sorted(names.items()):
            if id(inode) not in contents:
                contents[id(inode)] = _content(inode, survives, keep)
        return {name: contents[id(inode)] for name, inode in sorted(names.items())}

    def _names(self, survives: Survives, chance: random.Random) -> dict[str, Inode]:
        if survives in (Survives.ALL, Survives.NAMES):
            return self.present
        if survives in (Survives.NOTHING, Survives.CONTENT):
            return self.durable
        names = dict(self.durable)
        for call, made in self.changes[: chance.randint(0, len(self.changes))]:
            _rename(names, call, made)
        return names


def _rename(names: dict[str, Inode], call: Call, made: Inode | None) -> None:
    if made is not None:
        names[call.file] = made
    elif call.kind == "delete":
        names.pop(call.file, None)
    elif call.kind == "rename":
        names[call.to] = names.pop(call.file)
    else:
        names[call.to] = names[call.file]


def _settle(inode: Inode) -> None:
    for call in inode.pending:
        _perform(inode.durable, call)
    inode.pending.clear()


def _choice(survives: Survives, chance: random.Random) -> Callable[[], bool]:
    if survives in PIECES:
        return lambda: chance.random() < 0.5
    kept = survives in (Survives.ALL, Survives.CONTENT)
    return lambda: kept


def _content(inode: Inode, survives: Survives, keep: Callable[[], bool]) -> bytes:
    content = bytearray(inode.durable)
    for call in _pieces(inode.pending, PIECES.get(survives)):
        if keep():
            _perform(content, call)
    return bytes(content)


def _pieces(calls: Iterable[Call], size: int | None) -> Iterator[Call]:
    """Yield calls, writes cut at the borders of pieces."""
    for call in calls:
        if size is None or call.kind != "write":
            yield call
            continue
        at, data = call.at, call.data
        while data:
            length = size - at % size
            yield call._replace(at=at, data=data[:length])
            at, data = at + length, data[length:]


def _perform(content: bytearray, call: Call) -> None:
    if call.kind == "truncate":
        del content[call.at :]
        content.extend(bytes(call.at - len(content)))
        return
    content.extend(bytes(max(0, call.at - len(content))))
    content[call.at : call.at + len(call.data)] = call.data

"""Inputs made from good ones: bytes changed in place, and values changed within a structure."""

from __future__ import annotations

import copy
import random
from collections.abc import Callable
from typing import Any

from experiments.fuzzing import growing

MOST_CHANGES = 4


def changed_bytes(chance: random.Random, data: bytes) -> bytes:
    """Return bytes after one to four changes, most of them small."""
    for _ in range(chance.randint(1, MOST_CHANGES)):
        data = chance.choice(_BYTE_CHANGES)(chance, data)
    return data


def changed_value(chance: random.Random, given: Any) -> Any:
    """Return a copy of a structure after one to three changes somewhere within."""
    changed = copy.deepcopy(given)
    for _ in range(chance.randint(1, 3)):
        changed = _change_somewhere(chance, changed)
    return changed


def _change_somewhere(chance: random.Random, given: Any) -> Any:
    inner = isinstance(given, dict | list) and given
    if not inner or chance.random() < 0.15:
        return growing.value(chance)
    if isinstance(given, dict):
        key = chance.choice(sorted(given))
        way = chance.randrange(8)
        if way == 0:
            del given[key]
        elif way == 1:
            given[chance.choice((*growing.WORDS, *growing.TEXTS))] = growing.value(chance)
        else:
            given[key] = _change_somewhere(chance, given[key])
        return given
    place = chance.randrange(len(given))
    way = chance.randrange(8)
    if way == 0:
        del given[place]
    elif way == 1:
        given.insert(place, copy.deepcopy(given[place]))
    else:
        given[place] = _change_somewhere(chance, given[place])
    return given


def _place(chance: random.Random, data: bytes) -> int:
    return chance.randrange(len(data) + 1)


def _flip(chance: random.Random, data: bytes) -> bytes:
    if not data:
        return data
    place = chance.randrange(len(data))
    return data[:place] + bytes([data[place] ^ 1 << chance.randrange(8)]) + data[place + 1 :]


def _cut(chance: random.Random, data: bytes) -> bytes:
    return data[: _place(chance, data)]


def _drop(chance: random.Random, data: bytes) -> bytes:
    place = _place(chance, data)
    return data[:place] + data[place + chance.choice((1, 1, 2, 8, 64)) :]


def _repeat(chance: random.Random, data: bytes) -> bytes:
    place = _place(chance, data)
    piece = data[place : place + chance.choice((1, 8, 64))]
    return data[:place] + piece * chance.choice((2, 3, 50)) + data[place:]


def _piece(chance: random.Random, data: bytes) -> bytes:
    place = _place(chance, data)
    return data[:place] + chance.choice(growing.RAW) + data[place:]


def _number(chance: random.Random, data: bytes) -> bytes:
    """Put another number where a digit stands."""
    digits = [place for place, byte in enumerate(data[:4_096]) if 0x30 <= byte <= 0x39]
    if not digits:
        return _piece(chance, data)
    place = chance.choice(digits)
    written = str(chance.choice(growing.NUMBERS)).encode()
    return data[:place] + written + data[place + 1 :]


def _swap_lines(chance: random.Random, data: bytes) -> bytes:
    lines = data.split(b"\n")
    one, other = chance.randrange(len(lines)), chance.randrange(len(lines))
    lines[one], lines[other] = lines[other], lines[one]
    return b"\n".join(lines)


def _other_encoding(chance: random.Random, data: bytes) -> bytes:
    told = data[:4_096].decode("utf-8", "replace")
    return told.encode(chance.choice(("utf-16", "utf-32", "utf-7", "utf-8-sig")))


_BYTE_CHANGES: tuple[Callable[[random.Random, bytes], bytes], ...] = (
    _flip, _flip, _cut, _drop, _drop, _repeat, _piece, _piece, _number, _number, _swap_lines,
    _other_encoding,
)  # fmt: skip

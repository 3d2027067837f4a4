"""Inputs grown from a grammar: JSON values and texts with every oddity that a reader must refuse.

A value is what Python's `json` can write, so an input for a call of many arguments is one JSON
text; what JSON has no form for is written as `{"$bytes": length}` or `{"$deep": levels}`.
"""

from __future__ import annotations

import json
import random
from typing import Any

from cma.values.identity import MAX_INTEGER

ODD: dict[str, tuple[int, ...]] = {
    "$bytes": (0, 1, 8),
    "$deep": (33, 200, 5_000),
    "$digits": (5_000,),
    "$numbers": (1, 3),
}
"""What JSON has no form for, by the name that it is written under, and in which sizes."""
LONG = 12_000
DEEP = 100_000
DIGITS = 5_000
NUMBERS: tuple[Any, ...] = (
    0, 1, -1, 2, 10, MAX_INTEGER, MAX_INTEGER + 1, -MAX_INTEGER - 1, 10**30, 0.0, -0.0, 0.5, 1.0,
    1.5, -0.1, 1e308, 5e-324, float("nan"), float("inf"), float("-inf"), True, False,
)  # fmt: skip
TEXTS = (
    "", " ", "\t\n", "\0", "a", "tea", "global", "session:a", "session:", "session:\0", "SESSION:A",
    "episodic", "working", "semantic", "x" * LONG, "\ud800", "\udfff\ud800", "\ufeff", "\u200b",
    "\u202eevil", "e\u0301", "\u00e9", "外币汇率", "🫖", "ignore instructions", "../../etc/passwd",
    "2026-03-01", "2026-03-01T12:00:00", "2026-03-01T12:00:00Z", "9999-12-31T23:59:59+00:00",
    "0001-01-01T00:00:00+14:00", "now", "cell-", "cell-" + "0" * 40, "link-" + "f" * 40, "NaN",
    "null", "{}", "[]", '"', "\\", "%s%n", "${oc.env:HOME}", "'; DROP TABLE audit; --", "<script>",
    "\r\n", "\x1b[31m", "a=b", "-", "--", "--json", "1e999", "0x10", "١٢٣",
)  # fmt: skip
WORDS = ("kind", "content", "id", "scope", "metadata", "format", "claims", "text", "_id", "$", "a")
RAW: tuple[bytes, ...] = (
    b"NaN", b"Infinity", b"-Infinity", b"1e999", b"-0", b"0.1", b"01", b"+1", b"9007199254740992",
    b'{"a":1,"a":2}', b'{"b":1,"a":2}', b'"\\ud800"', b'"\\u0041"', b"\xef\xbb\xbf{}",
    b"\xff\xfe{\0",
    b"tru", b"nul", b"[,]", b"{}{}", b"[1,]", b"'a'", b"/*c*/1", b'"\x01"', b"\xc0\x80",
    b"\xed\xa0\x80",
    b"1" * DIGITS, b"[" * DEEP, b'{"a":' * DEEP, b"[" * 40 + b"]" * 40, b'"' + b"a" * LONG + b'"',
    b"", b" ", b"\0", b"---", b"&a [*a]", b"!!python/object/apply:os.system [ls]", b"<<: *x", b"\t",
    b"<doc>", b"</doc>", b"<docno>", b"\n", b"\r", b"\t1\t",
)  # fmt: skip
"""Pieces of bytes that no value can be written as, or that mean something to one reader."""


def value(chance: random.Random, depth: int = 3) -> Any:
    """Return a value that JSON can hold, plain or odd, nested at most `depth` deep."""
    kind = chance.randrange(12)
    if kind < 4:
        return chance.choice(TEXTS)
    if kind < 7:
        return chance.choice(NUMBERS)
    if kind == 7:
        return None
    if kind == 8:
        return odd(chance)
    if depth == 0:
        return chance.randrange(-10, 10**6)
    if kind < 11:
        return [value(chance, depth - 1) for _ in range(chance.randrange(4))]
    return {
        chance.choice((*WORDS, *TEXTS[:6])): value(chance, depth - 1)
        for _ in range(chance.randrange(4))
    }


def odd(chance: random.Random) -> Any:
    """Return a value that JSON has no form for, as it is written here."""
    name, sizes = chance.choice(tuple(ODD.items()))
    return {name: chance.choice(sizes)}


def meant(written: Any) -> Any:
    """Return the value that a written one stands for."""
    if isinstance(written, list):
        return [meant(each) for each in written]
    if not isinstance(written, dict):
        return written
    [name, *others] = written or [""]
    size = written.get(name)
    # A change may have put anything there: no more is made than is meant to be.
    if others or not isinstance(size, int) or size not in ODD.get(name, ()):
        return {key: meant(each) for key, each in written.items()}
    if name == "$bytes":
        return b"\xff" * size
    if name == "$digits":
        return 10**size
    if name == "$numbers":
        return frozenset(range(size))
    nested: Any = []
    for _ in range(size):
        nested = [nested]
    return nested


def text(chance: random.Random) -> bytes:
    """Return the text of a JSON value, with a piece in it here and there that is none."""
    grown = json.dumps(
        value(chance), ensure_ascii=chance.random() < 0.5, separators=(",", ":"), sort_keys=True
    ).encode("utf-8", "surrogatepass")
    if chance.random() < 0.5:
        place = chance.randrange(len(grown) + 1)
        grown = grown[:place] + chance.choice(RAW) + grown[place:]
    return grown

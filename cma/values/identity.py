"""Canonical bytes and the names made from them.

Rules:
- The canonical form is RFC 8785 (JCS). orjson writes it as long as keys are ASCII and no float
  is inside; `canonical` enforces exactly that, and whole numbers within 2**53.
- Parsing is strict: UTF-8 only, capped in size and depth, and the bytes must be the canonical
  form of what they say. That one comparison refuses duplicate keys, blanks, other escapes,
  floats, NaN and a byte order mark together.
- An id or digest is SHA-256 over a domain tag and canonical bytes, so that no two kinds of thing
  can share a name.
"""

from __future__ import annotations

import hashlib
import unicodedata
from collections.abc import Mapping
from typing import Any

import orjson

from cma.values.errors import InvalidValueError, Reason

MAX_BYTES = 8 * 1024 * 1024
MAX_DEPTH = 32
MAX_INTEGER = 2**53 - 1
ID_HEX_LENGTH = 40
_OPTIONS = orjson.OPT_SORT_KEYS | orjson.OPT_STRICT_INTEGER | orjson.OPT_UTC_Z
_SHA256 = hashlib.sha256

Json = None | bool | int | str | list["Json"] | dict[str, "Json"]


def canonical(value: Any) -> bytes:
    """Return the canonical bytes of a JSON value made of strings, whole numbers, booleans, null.

    Raises InvalidValueError (`not-canonical`) that names the path of what has no canonical form.
    """
    _check(value, "$", 0)
    return canonical_of_checked(value)


def canonical_of_checked(value: Any) -> bytes:
    """Return canonical bytes of a value whose parts are known to be canonical.

    For records built from validated fields, where walking the value again would cost more than
    writing it. Times are written in UTC with a trailing Z.
    """
    try:
        return orjson.dumps(value, option=_OPTIONS)
    except (orjson.JSONEncodeError, TypeError) as error:
        raise _not_canonical(str(error), "$", None) from error


def parse_canonical(data: bytes, *, limit: int = MAX_BYTES) -> Any:
    """Return the value of canonical bytes of at most `limit` bytes.

    Raises InvalidValueError (`not-canonical`) for anything that is not exactly canonical.
    """
    if len(data) > limit:
        raise _not_canonical(f"over {limit} bytes", "$", None)
    if _depth_exceeds(data, MAX_DEPTH):
        raise _not_canonical(f"nested over {MAX_DEPTH} deep", "$", None)
    try:
        value = orjson.loads(data)
    except orjson.JSONDecodeError as error:
        raise _not_canonical(f"not JSON: {error}", "$", None) from error
    if canonical(value) != data:
        raise _not_canonical("bytes are not the canonical form of their value", "$", None)
    return value


def digest(domain: str, data: bytes) -> str:
    """Return SHA-256 in hex of `data` under a domain tag such as `cma:cell:1`."""
    return _SHA256(domain.encode() + b"\0" + data).hexdigest()


def identifier(kind: str, data: bytes) -> str:
    """Return the content-derived id `kind-<40 hex>` of canonical bytes."""
    return (
        f"{kind}-{_SHA256(f'cma:{kind}:1'.encode() + bytes(1) + data).hexdigest()[:ID_HEX_LENGTH]}"
    )


def is_identifier(kind: str, text: str) -> bool:
    """Tell whether `text` has the form of an id of that kind."""
    prefix, dash, tail = text.partition("-")
    return (
        prefix == kind
        and dash == "-"
        and len(tail) == ID_HEX_LENGTH
        and all(letter in "0123456789abcdef" for letter in tail)
    )


def is_normal(text: str) -> bool:
    """Tell whether an identifier is in Unicode NFC and holds no control character."""
    if text.isascii():
        return text.isprintable()
    return unicodedata.is_normalized("NFC", text) and not any(
        unicodedata.category(letter) in ("Cc", "Cs") for letter in text
    )


def _check(value: Any, path: str, depth: int) -> None:
    if value is None or isinstance(value, bool):
        return
    if isinstance(value, str):
        if not value.isascii():
            _check_text(value, path)
    elif isinstance(value, int):
        if abs(value) > MAX_INTEGER:
            raise _not_canonical("whole numbers end at 2**53 - 1", path, value)
    elif depth >= MAX_DEPTH and isinstance(value, Mapping | list | tuple):
        raise _not_canonical(f"nested over {MAX_DEPTH} deep", path, None)
    elif isinstance(value, Mapping):
        for key, item in value.items():
            if not isinstance(key, str) or not key.isascii():
                raise _not_canonical("keys are ASCII strings", path, key)
            _check(item, f"{path}.{key}", depth + 1)
    elif isinstance(value, list | tuple):
        for place, item in enumerate(value):
            _check(item, f"{path}[{place}]", depth + 1)
    else:
        raise _not_canonical(
            "only strings, whole numbers, booleans, null, lists and objects; hold a fraction as "
            "a whole number of millionths or as a string",
            path,
            value,
        )


def _check_text(text: str, path: str) -> None:
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise _not_canonical("a lone surrogate has no UTF-8 form", path, text) from error


def _depth_exceeds(data: bytes, limit: int) -> bool:
    # Brackets inside strings may overcount, so only a text with that many brackets is looked at.
    if data.count(b"[") + data.count(b"{") <= limit:
        return False
    depth, quoted, escaped = 0, False, False
    for byte in data:
        if quoted:
            if escaped:
                escaped = False
            elif byte == 0x5C:
                escaped = True
            elif byte == 0x22:
                quoted = False
        elif byte == 0x22:
            quoted = True
        elif byte in (0x5B, 0x7B):
            depth += 1
            if depth > limit:
                return True
        elif byte in (0x5D, 0x7D):
            depth -= 1
    return False


def _not_canonical(message: str, path: str, value: Any) -> InvalidValueError:
    return InvalidValueError(
        Reason.NOT_CANONICAL,
        message,
        field=path,
        value=value,
        remedy="give what has one form alone: text, whole numbers, booleans, null, lists, objects",
    )

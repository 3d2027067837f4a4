"""Canonical JSON (RFC 8785): one value has one form, and a file is exactly that form.

That one comparison refuses duplicate keys, blanks, other escapes, NaN and a byte order mark.
"""

from __future__ import annotations

import hashlib
import json
from typing import Any

import rfc8785

from reproductions.inputs import UNREADABLE, CorruptInputError, checked_content


def canonical(value: Any) -> bytes:
    """Return the canonical bytes of a JSON value; raises CorruptInputError where there are none."""
    try:
        return rfc8785.dumps(value)
    except (rfc8785.CanonicalizationError, *UNREADABLE) as error:
        raise CorruptInputError(f"no canonical JSON: {error}") from error


def parse_canonical(data: bytes) -> Any:
    """Return the value of canonical bytes; raises CorruptInputError for anything else."""
    try:
        value = checked_content(json.loads(data.decode("utf-8")))
    except UNREADABLE as error:
        raise CorruptInputError(f"not JSON: {error}") from error
    if canonical(value) != data:
        raise CorruptInputError("not the canonical form of its value")
    return value


def sha256(data: bytes) -> str:
    """Return the SHA-256 of bytes in hex."""
    return hashlib.sha256(data).hexdigest()

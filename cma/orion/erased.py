"""What is left of an erased record: a blank of its kind, with a mark that says so.

A blank keeps what others rest on: id, scope, kind, times, ends, and the digest that the audit chain
holds of what was there. Everything that a person could have written is gone. The chain tells of
each blank by a `redact` record, so a row that was blanked by hand is refused.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import orjson

Record = dict[str, Any]
WORD = "erased"
"""What stands where a form wants a word."""
MARK = "erased"
"""The key of the mark. Its value: of a cell or a filed record the digest of what was erased, of a
trace its id, which was made of what was erased."""
WHOLE_LENGTH = 16
"""A shorter text is looked for as a whole, a longer one within other texts too."""
_BLANK_METADATA: Record = {
    "attributes": {},
    "object": WORD,
    "predicate": WORD,
    "session": None,
    "speaker": None,
    "steps": [WORD],
    "subject": WORD,
    "task": WORD,
    "turn": None,
}


def is_blank(record: Record) -> bool:
    """Tell whether a stored cell or trace was erased."""
    return MARK in record


def blank_metadata(metadata: Record) -> Record:
    """Return metadata of a kind without what was written into it; a time to live is a time."""
    return {
        name: value if name == "ttl_seconds" else _BLANK_METADATA[name]
        for name, value in metadata.items()
    }


def blank_cell(record: Record, commitment: str) -> Record:
    """Return what is left of one revision. commitment: the digest that the chain holds of it."""
    return {
        **record,
        "confidence": 0,
        "content": "",
        "importance": 0,
        "lifecycle": "erased",
        "metadata": blank_metadata(record["metadata"]),
        "source": {**record["source"], "origin": WORD},
        "summary": "",
        MARK: commitment,
    }


def blank_trace(record: Record, trace_id: str) -> Record:
    """Return what is left of a trace: what was served, not what was asked."""
    return {**record, "query": "", "terms": [], MARK: trace_id}


def texts_of(record: Record) -> Iterator[str]:
    """Yield every text of a cell's revision that a person could have written."""
    yield record["content"]
    yield record["summary"]
    yield record["source"]["origin"]
    yield from _texts(record["metadata"])


def needles_of(record: Record) -> Iterator[bytes]:
    """Yield what a record that quotes a cell word for word holds among its canonical bytes."""
    for text in (record["content"], record["summary"]):
        written = orjson.dumps(text)
        if text:
            yield written if len(text) < WHOLE_LENGTH else written[1:-1]


def _texts(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for name, part in value.items():
            if name not in _BLANK_METADATA:
                yield name
            yield from _texts(part)
    elif isinstance(value, list):
        for part in value:
            yield from _texts(part)

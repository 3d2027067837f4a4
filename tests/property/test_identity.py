"""Canonical bytes: one form for one value, equal to an outside writer's, and nothing else read."""

from __future__ import annotations

import json
import os
import time
import tracemalloc
from typing import Any

import pytest
import rfc8785
from hypothesis import example, given, settings
from hypothesis import strategies as st

from cma.values.errors import InvalidValueError, Reason
from cma.values.identity import (
    MAX_BYTES,
    MAX_DEPTH,
    MAX_INTEGER,
    canonical,
    digest,
    identifier,
    is_identifier,
    is_normal,
    parse_canonical,
)

EXAMPLES = int(os.environ.get("CMA_EXAMPLES", "0"))
PROFILE = settings(
    max_examples=EXAMPLES or 200, derandomize=not EXAMPLES, database=None, deadline=None
)
TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
KEYS = st.text(st.characters(max_codepoint=127), max_size=8)
SCALARS = st.none() | st.booleans() | st.integers(-MAX_INTEGER, MAX_INTEGER) | TEXT
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(KEYS, inner, max_size=5),
    max_leaves=25,
)


def refused(data: bytes) -> InvalidValueError:
    with pytest.raises(InvalidValueError) as info:
        parse_canonical(data)
    assert info.value.reason is Reason.NOT_CANONICAL
    return info.value


@PROFILE
@given(VALUES)
@example('\x00\x1f\x7f\u2028\U0001f600"\\/\b\f\n\r\t')
@example({"b": 1, "a": {"": [], "A": {}}, "aa": [True, None, -0]})
def test_the_bytes_are_those_of_an_outside_writer(value: Any) -> None:
    assert canonical(value) == rfc8785.dumps(value)


@PROFILE
@given(VALUES)
def test_what_is_written_reads_back_equal(value: Any) -> None:
    data = canonical(value)
    again = parse_canonical(data)
    assert again == value
    assert canonical(again) == data


@PROFILE
@given(VALUES, st.randoms(use_true_random=False))
def test_the_order_of_keys_does_not_count(value: Any, chance: Any) -> None:
    def shuffled(part: Any) -> Any:
        if isinstance(part, dict):
            items = [(key, shuffled(item)) for key, item in part.items()]
            chance.shuffle(items)
            return dict(items)
        return [shuffled(item) for item in part] if isinstance(part, list) else part

    assert canonical(shuffled(value)) == canonical(value)


@PROFILE
@given(VALUES, st.sampled_from(["spaces", "ascii", "unsorted", "trailing", "leading", "twice"]))
def test_another_spelling_of_the_same_value_is_refused(value: Any, spelling: str) -> None:
    data = canonical(value)
    other = {
        "spaces": json.dumps(value, sort_keys=True, ensure_ascii=False).encode(),
        "ascii": json.dumps(value, sort_keys=True, separators=(",", ":")).encode(),
        "unsorted": json.dumps(
            _reversed(value), separators=(",", ":"), ensure_ascii=False
        ).encode(),
        "trailing": data + b"\n",
        "leading": b" " + data,
        "twice": data + data,
    }[spelling]
    try:
        again = parse_canonical(other)
    except InvalidValueError as error:
        assert error.reason is Reason.NOT_CANONICAL  # noqa: PT017 (some spellings are the form)
    else:
        assert other == canonical(again)


def _reversed(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _reversed(value[key]) for key in sorted(value, reverse=True)}
    return [_reversed(item) for item in value] if isinstance(value, list) else value


@PROFILE
@given(st.binary(max_size=60))
def test_bytes_are_read_only_if_they_are_what_would_be_written(data: bytes) -> None:
    try:
        value = parse_canonical(data)
    except InvalidValueError as error:
        assert error.reason is Reason.NOT_CANONICAL  # noqa: PT017 (most bytes are refused)
    else:
        assert canonical(value) == data


@PROFILE
@given(VALUES, st.data())
def test_a_changed_byte_is_refused_or_another_value(value: Any, data: st.DataObject) -> None:
    whole = canonical(value)
    at = data.draw(st.integers(0, len(whole) - 1))
    changed = bytearray(whole)
    changed[at] ^= data.draw(st.integers(1, 255))
    try:
        again = parse_canonical(bytes(changed))
    except InvalidValueError:
        return
    assert canonical(again) == changed != whole


CORPUS: dict[str, bytes] = {
    "empty": b"",
    "duplicate keys": b'{"a":1,"a":2}',
    "the same key twice": b'{"a":1,"a":1}',
    "escaped duplicate key": b'{"a":1,"\\u0061":2}',
    "NaN": b"NaN",
    "Infinity": b"[Infinity]",
    "minus infinity": b"-Infinity",
    "1e999": b"1e999",
    "-1e999": b"[-1e999]",
    "a fraction": b"1.5",
    "a whole float": b"1.0",
    "an exponent": b"1e2",
    "minus zero": b"-0",
    "a leading zero": b"01",
    "a plus": b"+1",
    "2**53": b"9007199254740992",
    "-2**53": b"-9007199254740992",
    "2**63": b"9223372036854775808",
    "2**64": b"18446744073709551616",
    "5000 digits": b"1" + b"0" * 4_999,
    "a million digits": b"7" * 1_000_000,
    "a lone surrogate": b'"\\ud800"',
    "a low surrogate": b'"\\udc00"',
    "a surrogate in bytes": b'"\xed\xa0\x80"',
    "surrogates in the wrong order": b'"\\udc00\\ud800"',
    "overlong UTF-8": b'"\xc0\xaf"',
    "cut UTF-8": b'"\xe6\xb1"',
    "a byte order mark": b"\xef\xbb\xbf{}",
    "UTF-16": '{"a":1}'.encode("utf-16"),
    "UTF-16 without a mark": '{"a":1}'.encode("utf-16-le"),
    "UTF-32": '{"a":1}'.encode("utf-32"),
    "Latin-1": '"é"'.encode("latin-1"),
    "lists 100,000 deep": b"[" * 100_000 + b"]" * 100_000,
    "lists 100,000 deep and open": b"[" * 100_000,
    "objects 100,000 deep": b'{"a":' * 100_000 + b"1" + b"}" * 100_000,
    "one deeper than allowed": b"[" * (MAX_DEPTH + 1) + b"]" * (MAX_DEPTH + 1),
    "a comment": b"{}/**/",
    "a trailing comma": b"[1,]",
    "single quotes": b"{'a':1}",
    "a bare key": b"{a:1}",
    "a control character": b'"\n"',
    "an escaped letter": b'"\\u0061"',
    "an escaped slash": b'"\\/"',
    "capital hex": b'"\\u001F"',
    "two values": b"1 2",
    "a null byte": b"{}\0",
    "a key that is not ASCII": '{"é":1}'.encode(),
    "over the cap": b'"' + b"x" * MAX_BYTES + b'"',
    "many brackets in a text": b'"' + b"[" * 4_000_000 + b'"x',
}


@pytest.mark.parametrize("name", CORPUS)
def test_the_strict_corpus_is_refused_in_bounded_time_and_memory(name: str) -> None:
    data = CORPUS[name]
    began = time.process_time()
    tracemalloc.start()
    try:
        refused(data)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 16 * len(data) + 2_000_000
    assert time.process_time() - began < 10


@pytest.mark.parametrize(
    "value",
    [
        1.0,
        float("nan"),
        float("inf"),
        MAX_INTEGER + 1,
        -MAX_INTEGER - 1,
        10**5_000,
        "\ud800",
        {"\ud800": 1},
        {"é": 1},
        {1: 2},
        {None: 1},
        b"bytes",
        {1, 2},
        object(),
        {"a": [{"b": 0.5}]},
    ],
    ids=[f"value {number}" for number in range(15)],
)
def test_a_value_without_a_canonical_form_is_refused(value: Any) -> None:
    with pytest.raises(InvalidValueError) as info:
        canonical(value)
    assert info.value.reason is Reason.NOT_CANONICAL
    assert len(str(info.value)) < 1_000


def test_the_error_names_the_path() -> None:
    with pytest.raises(InvalidValueError) as info:
        canonical({"a": [{"b": 0.5}]})
    assert info.value.field == "$.a[0].b"


def test_nesting_and_cycles_end() -> None:
    deep: Any = []
    for _ in range(MAX_DEPTH - 1):
        deep = [deep]
    assert parse_canonical(canonical(deep)) == deep
    with pytest.raises(InvalidValueError):
        canonical([deep])
    cycle: list[Any] = []
    cycle.append(cycle)
    with pytest.raises(InvalidValueError):
        canonical(cycle)


@PROFILE
@given(st.binary(max_size=20), st.binary(max_size=20))
def test_ids_and_digests_tell_kinds_and_contents_apart(one: bytes, other: bytes) -> None:
    assert (identifier("cell", one) == identifier("cell", other)) == (one == other)
    assert identifier("cell", one)[-40:] != identifier("link", one)[-40:]
    assert digest("cma:cell:1", one) != digest("cma:link:1", one)
    assert is_identifier("cell", identifier("cell", one))
    assert not is_identifier("link", identifier("cell", one))


@pytest.mark.parametrize(
    "text",
    [
        "",
        "cell",
        "cell-",
        "cell-" + "0" * 39,
        "cell-" + "0" * 41,
        "cell-" + "A" * 40,
        "link-" + "0" * 40,
        "cell-" + "٠" * 40,
        "cell-" + "0" * 39 + "\n",
    ],
)
def test_what_has_not_the_form_of_an_id_is_none(text: str) -> None:
    assert not is_identifier("cell", text)


@pytest.mark.parametrize(
    ("text", "normal"),
    [("plain", True), ("café", True), ("cafe\u0301", False), ("a\nb", False), ("a\x7f", False),
     ("\x85", False), ("é\x1b[2J", False), ("汇率", True), ("\ud800", False), ("", True)],
)  # fmt: skip
def test_identifiers_are_composed_and_hold_no_control_character(text: str, normal: bool) -> None:
    assert is_normal(text) is normal

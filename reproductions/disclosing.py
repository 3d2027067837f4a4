"""Finds what must not stand in a published file: secrets, places, names, private text, models.

Guaranteed: a finding names the file, the kind and where, and never shows what was found; time grows
with the size of what is scanned, whatever it holds. Text is looked at as it stands, and in JSON
also with its escapes undone, key by key. A scan finds forms and the names that it is given; that it
finds nothing is no proof that nothing is there.
"""

from __future__ import annotations

import base64
import binascii
import functools
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any

from reproductions.inputs import UNREADABLE, checked_content

SHORTEST_NAME = 4
SHORTEST_PRIVATE = 8
"""Characters from which a private text is looked for."""
COMMON_NAMES = frozenset({"root", "user", "admin", "nobody", "runner", "ubuntu", "localhost"})
"""Names of accounts and hosts that say nothing of whose they are."""
MODEL_SUFFIXES = frozenset(
    {".safetensors", ".bin", ".gguf", ".ggml", ".pt", ".pth", ".ckpt", ".pkl", ".pickle", ".onnx",
     ".h5", ".npz", ".npy", ".msgpack", ".tflite"}
)  # fmt: skip
_WORD = r"[\w.+@-]+"
_NAME_OF_ONE = (
    r"(?:pass(?:word|wd|phrase)|secret(?:[_-]?(?:access[_-]?)?key)?|api[_-]?key|access[_-]?key"
    r"|(?:auth|access|refresh|bearer|deploy(?:ment)?)[_-]?token|token|credentials?)"
)
_PATTERNS: Mapping[str, Sequence[str]] = {
    "private key": (
        r"-----BEGIN [A-Z0-9 ]*PRIVATE KEY",
        r"PuTTY-User-Key-File-\d",
        r"AGE-SECRET-KEY-1[0-9A-Z]{20,}",
    ),
    "cloud key": (
        r"\b(?:AKIA|ASIA|ABIA|ACCA)[0-9A-Z]{16}\b",
        r"\bAIza[0-9A-Za-z_-]{35}",
        r"AccountKey=[0-9A-Za-z+/=]{20,}",
    ),
    "token": (
        r"\bgh[pousr]_[0-9A-Za-z]{20,}",
        r"\bgithub_pat_\w{20,}",
        r"\bglpat-[\w-]{16,}",
        r"\bxox[abeprs]-[0-9A-Za-z-]{10,}",
        r"\b(?:sk|pk|rk)[-_](?:live|test|proj|ant)?[-_]?[0-9A-Za-z_-]{20,}",
        r"\bhf_[0-9A-Za-z]{20,}",
        r"\bnpm_[0-9A-Za-z]{30,}",
        r"\bpypi-[0-9A-Za-z_-]{20,}",
        r"\beyJ[\w-]{8,500}\.eyJ[\w-]{8,2000}\.[\w-]{8}",
        r"(?i:\bbearer\s+[\w.~+/-]{16,})",
    ),
    "password": (
        r"\b[a-z][a-z0-9+.-]{0,20}://[^/\s:@\"]{1,100}:[^/\s@\"]{1,200}@",
        rf"(?i:\b{_NAME_OF_ONE}\\?[\"']?\s*[=:]\s*\\?[\"']?[^\s\"',;{{}}\\]{{6,}})",
    ),
    "host location": (
        rf"(?<![\w.:/~#<$])/(?:{_WORD}/)+{_WORD}",
        r"(?<![\w.:/~#<$])/(?:root|home|Users|tmp|var|etc|opt|mnt|srv|private|Volumes)\b",
        r"~/[\w.]",
        r"\b[A-Za-z]:\\{1,2}\w",
        r"(?<!\\)\\{2,4}[\w.-]+\\{1,2}[\w$.-]+",
        r"\bfile:/",
    ),
    "host name": (
        r"\b[\w-]{1,63}\.(?:local|internal|intranet|lan|corp|localdomain)\b",
        r"(?<![\d.])(?:10|127)(?:\.\d{1,3}){3}(?![\d.])",
        r"(?<![\d.])(?:192\.168|172\.(?:1[6-9]|2\d|3[01]))(?:\.\d{1,3}){2}(?![\d.])",
    ),
    "operational configuration": (
        r"\b(?:PATH|HOME|PWD|LD_LIBRARY_PATH|KUBECONFIG|DOCKER_HOST|DATABASE_URL)=\S",
        r"\b(?:SSH_AUTH_SOCK|AWS_[A-Z_]{1,40}|CUDA_VISIBLE_DEVICES)=\S",
        r"\bapiVersion:\s*\w",
        r"\[(?:core|remote|credential|includeIf)(?:\s+\\?\"[^\"]*\")?\]",
    ),
    "user name": (
        r"\b[\w.+-]{1,64}@[\w-]{1,63}\.[\w-]",
        r"\b[\w.-]{1,64}@[\w.-]{1,200}:[~/\w]",
    ),
}
PATTERNS = {
    kind: re.compile("|".join(f"(?:{each})" for each in forms)) for kind, forms in _PATTERNS.items()
}
_SECRET_KEY = re.compile(rf"(?i)(?:^|[_.-]){_NAME_OF_ONE}$")
_BASE64 = re.compile(r"[A-Za-z0-9+/]{64,}={0,2}")
_MAGIC = (
    (re.compile(rb"GGUF|GGML|ggjt|lmgg"), 4),
    (re.compile(rb"PK\x03\x04"), 4),
    (re.compile(rb"\x80[\x02-\x05][\x95}\](cX\x8a\x8c]"), 3),
    (re.compile(rb"\x89HDF\r\n"), 6),
    (re.compile(rb"\x93NUMPY"), 6),
    (re.compile(rb".{8}\{\s*\"", re.DOTALL), 10),
)
"""How files of weights begin; the last is safetensors: a length, then a header."""
_HEADER_LENGTH = re.compile(rb"^.{5}\0\0\0", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Disclosure:
    """One finding: which file, what kind of thing, and where in the file."""

    path: str
    kind: str
    where: str


@dataclass(frozen=True, slots=True)
class Known:
    """What is looked for by its very text.

    hosts, users: names of a machine and its people. private: texts that are nobody else's.
    """

    hosts: tuple[str, ...] = ()
    users: tuple[str, ...] = ()
    private: tuple[str, ...] = ()

    def found_in(self, text: str) -> Iterator[str]:
        """Yield the kinds of known text that a text holds."""
        for kind, names in (("host name", self.hosts), ("user name", self.users)):
            for name in names:
                if len(name) < SHORTEST_NAME or name.lower() in COMMON_NAMES:
                    continue
                if _as_word(name).search(text):
                    yield kind
        if any(len(each) >= SHORTEST_PRIVATE and each in text for each in self.private):
            yield "private payload"


NOTHING = Known()


@functools.cache
def _as_word(name: str) -> re.Pattern[str]:
    return re.compile(rf"(?i)(?<![\w-]){re.escape(name)}(?![\w-])")


def disclosures(files: Mapping[str, bytes], known: Known = NOTHING) -> list[Disclosure]:
    """Return every finding in these files, by path; a kind is told once for each place."""
    found: dict[Disclosure, None] = {}
    for path, data in sorted(files.items()):
        for kind, where in _in_file(path, data, known):
            found[Disclosure(path, kind, where)] = None
    return list(found)


def is_model_file(data: bytes) -> bool:
    """Tell by its first bytes whether data is a file of weights or a pickle."""
    for pattern, length in _MAGIC:
        if pattern.match(data[: length + 8]):
            return not pattern.pattern.startswith(b".{8}") or bool(_HEADER_LENGTH.match(data[:8]))
    return False


def _in_file(path: str, data: bytes, known: Known) -> Iterator[tuple[str, str]]:
    for kind in _in_text(path, known):
        yield kind, "the path"
    if PurePosixPath(path).suffix.lower() in MODEL_SUFFIXES or is_model_file(data):
        yield "model file", "the whole file"
    text = data.decode("utf-8", "replace")
    for kind in _in_text(text, known):
        yield kind, "the text"
    try:
        content = checked_content(json.loads(text))
    except UNREADABLE:
        return
    yield from _in_content(content, known)


def _in_content(content: Any, known: Known) -> Iterator[tuple[str, str]]:
    """Look at every key and text of JSON with its escapes undone."""
    waiting: list[tuple[str, Any]] = [("", content)]
    while waiting:
        where, value = waiting.pop()
        if isinstance(value, str):
            for kind in _in_text(value, known):
                yield kind, where or "the file"
            if _holds_model(value):
                yield "model file", where or "the file"
        elif isinstance(value, list):
            waiting += [(f"{where}/{place}", each) for place, each in enumerate(value)]
        elif isinstance(value, dict):
            if _is_private(value):
                yield "private payload", where or "the file"
            for key, each in value.items():
                for kind in _in_key(key, known):
                    yield kind, f"{where}/{key[:40]}"
                if isinstance(each, str) and each and _SECRET_KEY.search(key):
                    yield "password", f"{where}/{key[:40]}"
                waiting.append((f"{where}/{key[:40]}", each))


def _in_text(text: str, known: Known) -> Iterator[str]:
    for kind, pattern in PATTERNS.items():
        if pattern.search(text):
            yield kind
    yield from known.found_in(text)


@functools.lru_cache(maxsize=4_096)
def _in_key(key: str, known: Known) -> tuple[str, ...]:
    return tuple(_in_text(key, known))


def _is_private(value: Mapping[str, Any]) -> bool:
    """Tell whether an object is a record of one session that says what it holds."""
    scope = value.get("scope")
    if not (isinstance(scope, str) and scope.startswith("session:")) and not value.get("private"):
        return False
    return any(value.get(name) for name in ("content", "summary", "query", "text", "payload"))


def _holds_model(text: str) -> bool:
    for found in _BASE64.finditer(text):
        try:
            if is_model_file(base64.b64decode(found[0][:64], validate=True)):
                return True
        except (binascii.Error, ValueError):
            continue
    return False

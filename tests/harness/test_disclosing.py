"""The scan for disclosures: each kind planted and found, honest text left alone."""

from __future__ import annotations

import base64
import json
import pickle
from dataclasses import asdict

import pytest

from reproductions.disclosing import NOTHING, Known, disclosures, is_model_file

PLANTED = {
    "private key": [
        "-----BEGIN RSA PRIVATE KEY-----\nMIIE", "-----BEGIN OPENSSH PRIVATE KEY-----",
        "-----BEGIN PRIVATE KEY-----", "PuTTY-User-Key-File-3: ssh-ed25519",
    ],
    "cloud key": [
        "AKIA" + "Q" * 16, "key ASIA" + "7" * 16 + ".", "AIza" + "x" * 35,
        "AccountKey=" + "a" * 40 + "==",
    ],
    "token": [
        "ghp_" + "a1" * 18, "github_pat_" + "A" * 30, "xoxb-" + "1" * 12, "sk-" + "a" * 40,
        "sk-ant-" + "a" * 30, "hf_" + "B" * 30, "glpat-" + "c" * 20, "pypi-" + "d" * 40,
        "Authorization: Bearer " + "e" * 24, "eyJhbGciOiJI.eyJzdWIiOiIx.c2lnbmF0dXJl",
    ],
    "password": [
        "postgres://ann:hunter22@db/x", "https://u:p4ss@example.org/", "password=hunter22",
        'api_key: "0123456789ab"', "DEPLOYMENT_TOKEN=abcdef123456", "passphrase : opensesame",
    ],
    "host location": [
        "/home/ann/runs/result.json", "see /tmp/x1", "at /root", "C:\\Users\\ann", "\\\\nas\\share",
        "~/secrets", "file:///etc/passwd", "(/opt/tool/bin/run)", "/Users/ann",
    ],
    "host name": ["on build-7.internal", "10.0.0.12", "http://192.168.1.4:80", "printer.local"],
    "operational configuration": [
        "PATH=bin:sbin", "AWS_REGION=eu-1", "DATABASE_URL=x", "apiVersion: v1", '[remote "origin"]',
    ],
    "user name": ["ann@example.org", "ann@build7:/srv"],
}  # fmt: skip
HONEST = [
    "https://json-schema.org/draft/2020-12/schema", "#/$defs/Node", "13 of 14 and/or 3/4",
    "apsw 3.54.1.0", "version 10.2.3", "US/Pacific", "the password is never written",
    "tokens: 9 of 12", "session:ann", "model.layers.9", "^[0-9a-f]{64}$", "1 x 1 x 1024",
    "a token counter; each token costs", "the PATH = none", "[core idea]",
    "cell-55cf9ca41432238418fc039a7dc18ea19268fa3d",
]  # fmt: skip


def kinds(value: object, known: Known = NOTHING, path: str = "a.json") -> set[str]:
    return {each.kind for each in disclosures({path: json.dumps(value).encode()}, known)}


@pytest.mark.parametrize(
    ("kind", "text"), [(kind, text) for kind, texts in PLANTED.items() for text in texts]
)
def test_what_is_planted_is_found_and_never_shown(kind: str, text: str) -> None:
    for value in (text, {"a": ["x", {"b": f"said: {text}"}]}, {text: 1}):
        assert kind in kinds(value)
    found = disclosures({"deep/file.json": json.dumps({"a": {"b": text}}).encode()})
    assert {each.path for each in found} == {"deep/file.json"}
    assert any(each.where == "/a/b" for each in found)
    assert not any(text in str(asdict(each)) for each in found)


@pytest.mark.parametrize("kind", list(PLANTED))
def test_it_is_found_in_plain_text_too(kind: str) -> None:
    data = f"first line\n{PLANTED[kind][0]}\n".encode()
    assert kind in {each.kind for each in disclosures({"notes.txt": data})}


@pytest.mark.parametrize("text", HONEST)
def test_honest_text_is_left_alone(text: str) -> None:
    assert kinds({"said": text, "tokens": 9}) == set()


@pytest.mark.parametrize("key", ["password", "db_password", "apiKey", "api-key", "client.secret"])
def test_a_secret_under_a_telling_key_is_found_however_it_looks(key: str) -> None:
    assert "password" in kinds({"db": {key: "x"}})
    assert kinds({"db": {key: ""}}) == set()


def test_escapes_hide_nothing() -> None:
    hidden = b'{"a":"\\u002fhome\\u002fann\\u002fx"}'
    assert [each.where for each in disclosures({"a.json": hidden})] == ["/a"]


@pytest.mark.parametrize(
    ("known", "kind"),
    [
        (Known(hosts=("build-host-7",)), "host name"),
        (Known(users=("annette",)), "user name"),
        (Known(private=("Ann drinks tea",)), "private payload"),
    ],
)
def test_known_names_and_texts_are_found(known: Known, kind: str) -> None:
    text = "annette on BUILD-HOST-7 said: Ann drinks tea, often"
    assert kinds({"a": text}, known) == {kind}
    assert kinds({"a": "the builder's host, annettes, drinks"}, known) == set()


def test_names_that_say_nothing_are_not_looked_for() -> None:
    known = Known(hosts=("localhost", "ab"), users=("root",), private=("tea",))
    assert kinds({"a": "the root on localhost ab drinks tea"}, known) == set()


@pytest.mark.parametrize("field", ["content", "summary", "query", "text"])
def test_a_record_of_a_session_is_private(field: str) -> None:
    assert kinds([{"scope": "session:ann", field: "tea"}]) == {"private payload"}
    assert kinds([{"scope": "global", field: "tea"}]) == set()
    assert kinds([{"private": True, field: "tea"}]) == {"private payload"}
    assert kinds([{"scope": "session:ann", field: ""}]) == set()


MODELS = {
    "gguf": b"GGUF\x03\0\0\0", "torch": b"PK\x03\x04rest", "hdf5": b"\x89HDF\r\n\x1a\n",
    "numpy": b"\x93NUMPY\x01", "safetensors": (60).to_bytes(8, "little") + b'{"__metadata__":{}}',
    "pickle": pickle.dumps({"weights": [1.0]}), "old pickle": pickle.dumps([1], protocol=2),
}  # fmt: skip


@pytest.mark.parametrize("name", list(MODELS))
def test_a_model_is_found_by_how_it_begins(name: str) -> None:
    found = disclosures({"harmless.json": MODELS[name]})
    assert [(each.kind, each.where) for each in found] == [("model file", "the whole file")]
    hidden = base64.b64encode(MODELS[name] + bytes(90)).decode()
    assert "model file" in kinds({"a": f"data:{hidden}"})


@pytest.mark.parametrize("name", ["w.safetensors", "a/w.BIN", "w.gguf", "w.pkl", "w.pt", "w.onnx"])
def test_a_model_is_found_by_its_name(name: str) -> None:
    assert [each.kind for each in disclosures({name: b""})] == ["model file"]


@pytest.mark.parametrize("data", [b"", b"{}", b'{"a":1}', b"plain text", b"\xff\xfe", b"[" * 999])
def test_what_is_no_model_is_none(data: bytes) -> None:
    assert not is_model_file(data)
    assert disclosures({"a.json": data}) == []


def test_a_path_is_looked_at() -> None:
    assert [each.where for each in disclosures({"home/ann@example.org/x.json": b"{}"})] == [
        "the path"
    ]


@pytest.mark.parametrize(
    "part",
    ["a.", "a-", "a@", "eyJ-", "/a", "http:", "a:", "x://a:", "A", "[core ", "token ", "\\\\"],
)
def test_hostile_text_is_scanned_in_time_that_grows_with_its_size(part: str) -> None:
    disclosures({"a.txt": part.encode() * 40_000})

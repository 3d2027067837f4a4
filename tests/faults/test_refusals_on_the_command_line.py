"""A store that is refused ends the command with status 1 and a reason code; no file is changed."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import CliRunner

from cma import FixedClock, Memory
from cma.cli import app
from tests.faults.injection import START, files_of, remember, tamper


def _link(path: Path) -> None:
    path.rename(path.with_name("target.cma"))
    path.symlink_to(path.with_name("target.cma"))


def _folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


def _flip(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[0:4] = b"cma!"
    path.write_bytes(data)


def _old(path: Path) -> None:
    old = path.read_bytes()
    with Memory.open(path) as memory:
        remember(memory, "acknowledged")
    path.write_bytes(old)


BREAKS: dict[str, tuple[Callable[[Path], object], str]] = {
    "a text": (lambda path: path.write_text("notes"), "store-not-cma"),
    "an empty file": (lambda path: path.write_bytes(b""), "store-not-cma"),
    "a folder": (_folder, "store-not-cma"),
    "a symbolic link": (_link, "store-not-cma"),
    "a flipped head": (_flip, "store-not-cma"),
    "a newer version": (lambda path: tamper(path, ("PRAGMA user_version = 99",)), "store-newer"),
    "no anchor": (lambda path: path.with_name(f"{path.name}.head").unlink(), "anchor-missing"),
    "an older file": (_old, "anchor-disagrees"),
    "no such file": (lambda path: path.unlink(), "store-not-found"),
    "no table": (lambda path: tamper(path, ("DROP TABLE audit",)), "store-damaged"),
}


@pytest.mark.parametrize("name", BREAKS)
@pytest.mark.parametrize("command", [("verify",), ("timeline",), ("recall", "event")])
def test_a_refused_store_ends_with_status_one(path: Path, name: str, command: list[str]) -> None:
    with Memory.open(path, clock=FixedClock(START)) as memory:
        remember(memory, "event")
    breaks, code = BREAKS[name]
    breaks(path)
    before = files_of(path)
    arguments = [command[0], str(path), *command[1:]]
    plain = CliRunner().invoke(app, arguments)
    assert plain.exit_code == 1, plain.output
    assert f"[{code}]" in plain.stderr
    assert plain.stdout == ""
    told = CliRunner().invoke(app, [*arguments, "--json"])
    assert told.exit_code == 1
    assert json.loads(told.stdout)["error"]["code"] == code
    assert files_of(path) == before

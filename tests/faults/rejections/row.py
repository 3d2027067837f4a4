"""One row of the table: a reason code, an entry point, and how to provoke the refusal there."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from typer.testing import CliRunner

from cma import CmaError, Reason
from cma.cli import app
from tests.faults.rejections.world import World

Use = Callable[[World], Any]


@dataclass(frozen=True)
class Refusal:
    """What a caller is told, as an error of the library or as the JSON of the command line."""

    code: str
    field: str | None
    message: str
    remedy: str | None


@dataclass(frozen=True)
class Row:
    """A refusal at one entry point.

    use: what is refused. before: what is done first. records: how many `reject` records it leaves:
    1 for a transition that was refused, 0 for a read, a setting, a file that is not trusted.
    damaged: the file itself was broken by `before`, so that it no longer verifies.
    """

    reason: Reason
    way: str
    use: Use
    before: Use | None = None
    records: int = 1
    damaged: bool = False


def row(reason: Reason, way: str, use: Use, before: Use | None = None, **how: Any) -> Row:
    """A transition that is refused in the library."""
    return Row(reason, way, use, before, **how)


def read(reason: Reason, way: str, use: Use, before: Use | None = None, **how: Any) -> Row:
    """A read or a setting that is refused: nothing was to change, so nothing is on record."""
    return Row(reason, way, use, before, records=0, **how)


def shell(
    reason: Reason, command: str, before: Use | None = None, *, records: int = 0, **how: Any
) -> Row:
    """A command that is refused. Words in braces are the path and the ids of the world."""

    def use(world: World) -> Refusal:
        names = {"path": world.path, "folder": world.folder, **vars(world.ids)}
        words = [word.format(**names) for word in command.split(" ")]
        words = [word.replace("\u2423", " ") for word in words]
        told = CliRunner().invoke(app, [*words, "--json"])
        assert told.exit_code == 1, (told.exit_code, told.output, told.exception)
        return Refusal(**_error(told.stdout))

    return Row(reason, f"cma {command.split(' {')[0]}", use, before, records=records, **how)


def attempt(line: Row, world: World) -> Refusal:
    """Do what the row says is refused, and return what the caller is told."""
    try:
        found = line.use(world)
    except CmaError as error:
        return Refusal(error.code, error.field, error.message, error.remedy)
    assert isinstance(found, Refusal), f"not refused: {found!r}"
    return found


def _error(stdout: str) -> dict[str, Any]:
    told: dict[str, Any] = json.loads(stdout)["error"]
    return told

"""How a command gets its answer and gives it: one store, one answer, one exit status."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import orjson
import typer
from rich.console import Console

from cma import rendering
from cma.lagoon.policy import Policy
from cma.memory import Memory
from cma.orion.cells import Authority, Caller
from cma.values.errors import CmaError, InvalidValueError, Reason, StoreRefusedError
from cma.values.validation import validated

CALLER = Caller(name="cma-cli", authority=Authority.USER)

StorePath = Annotated[Path, typer.Argument(help="the store file, for example agent.cma")]
Scope = Annotated[str, typer.Option("--scope", "-s", help="who looks: 'global' or 'session:<id>'")]
AsJson = Annotated[bool, typer.Option("--json", help="print one JSON document, for scripts")]
Show = Callable[[Console, Any], None]


def opened(
    store: Path, *, name: str | None = None, policy: Callable[[], Policy] | None = None
) -> Memory:
    """Open the store that a command names; refuse a path where none is."""
    if not _exists(store):
        raise StoreRefusedError(
            Reason.STORE_NOT_FOUND,
            "there is no file at that path",
            field="store",
            value=str(store),
            remedy="check the path; a store is created by Memory.open in a program",
        )
    caller = CALLER
    if name is not None:
        if not name.strip():
            raise InvalidValueError(
                Reason.FIELD_INVALID,
                "who decides goes on record by name",
                field="as",
                value=name,
                remedy="give your name, such as --as ann",
            )
        caller = validated(lambda: Caller(name=name, authority=Authority.USER))
    return Memory.open(store, caller=caller, policy=None if policy is None else policy())


def answer(
    store: Path,
    run: Callable[[Memory], Any],
    show: Show,
    as_json: bool,
    *,
    accept: Callable[[Any], bool] = lambda _: True,
    name: str | None = None,
    policy: Callable[[], Policy] | None = None,
) -> None:
    """Run a command on a store and print its answer; exit status 1 where it was not accepted."""

    def told() -> Any:
        with opened(store, name=name, policy=policy) as memory:
            return run(memory)

    tell(told, show, as_json, accept=accept)


def tell(
    run: Callable[[], Any],
    show: Show,
    as_json: bool,
    *,
    accept: Callable[[Any], bool] = lambda _: True,
    refusal: int = 1,
) -> None:
    """Print what `run` returns, or why it was refused (exit status `refusal`)."""
    try:
        found = run()
    except CmaError as error:
        if as_json:
            fields = {
                "code": error.code,
                "field": error.field,
                "message": error.message,
                "remedy": error.remedy,
            }
            sys.stdout.buffer.write(orjson.dumps({"error": fields}) + b"\n")
        else:
            Console(stderr=True).print(str(error), style="red", markup=False, highlight=False)
        raise typer.Exit(refusal) from error
    if as_json:
        sys.stdout.buffer.write(rendering.as_json(found) + b"\n")
    else:
        show(Console(), found)
    if not accept(found):
        raise typer.Exit(1)


def _exists(path: Path) -> bool:
    try:
        return path.exists()
    except (OSError, ValueError):  # no file can have such a name
        return False

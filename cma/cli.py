"""`cma`: look into a store from a terminal or a script.

Exit status: 0 done; 1 refused, not found or not verified (the reason code is printed); 2 wrong
usage. `--json` prints one JSON document on standard output, errors included.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Annotated, Any

import orjson
import typer
from rich.console import Console

from cma import rendering
from cma.memory import Memory
from cma.orion.cells import Authority, Caller
from cma.orion.explanation import timeline
from cma.orion.scopes import GLOBAL
from cma.orion.traces import Retrieval
from cma.values.errors import CmaError, Reason, StoreRefusedError
from cma.values.identity import MAX_INTEGER
from cma.values.validation import validated

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode="rich",
    help="Look into a CMA store: what is remembered, where it came from, and whether it is sound.",
)
CALLER = Caller(name="cma-cli", authority=Authority.USER)

StorePath = Annotated[Path, typer.Argument(help="the store file, for example agent.cma")]
Scope = Annotated[str, typer.Option("--scope", "-s", help="who looks: 'global' or 'session:<id>'")]
AsJson = Annotated[bool, typer.Option("--json", help="print one JSON document, for scripts")]


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"cma {version('civilization-memory')}")
        raise typer.Exit


@app.callback()
def cma_command(
    _version: Annotated[
        bool,
        typer.Option("--version", callback=_show_version, is_eager=True, help="show the version"),
    ] = False,
) -> None:
    """Look into a CMA store: what is remembered, where it came from, and whether it is sound."""


@app.command("recall")
def recall_command(
    store: StorePath,
    query: Annotated[str, typer.Argument(help="what to look for, in plain words")],
    scope: Scope = GLOBAL,
    limit: Annotated[int, typer.Option("--limit", "-k", help="how many cells, at least 1")] = 10,
    analyser: Annotated[str, typer.Option(help="unicode or english")] = "unicode",
    lexical: Annotated[str, typer.Option(help="overlap, idf_overlap, jaccard or bm25")] = "overlap",
    include_inactive: Annotated[
        bool, typer.Option("--include-inactive", help="serve expired and retired cells too")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Recall cells, with every part of every score and why each stands where it stands.

    The recall is recorded; explain it later by its trace id.

    Example: cma recall agent.cma "when did we move the server" --scope session:42
    """

    def run(memory: Memory) -> Any:
        retrieval = validated(
            lambda: Retrieval.model_validate({"analyser": analyser, "lexical": lexical})
        )
        return memory.within(scope).recall(
            query, limit=limit, retrieval=retrieval, include_inactive=include_inactive
        )

    _answer(store, run, rendering.recollection, as_json)


@app.command("explain")
def explain_command(
    store: StorePath,
    trace_id: Annotated[str, typer.Argument(help="a trace id, as `cma recall` prints it")],
    scope: Scope = GLOBAL,
    as_json: AsJson = False,
) -> None:
    """Tell a recorded recall backwards: trace, cells, sources and the audit records behind them.

    Example: cma explain agent.cma trace-0123... --scope session:42
    """
    _answer(
        store,
        lambda memory: memory.within(scope).explain(trace_id),
        rendering.explanation,
        as_json,
        accept=lambda explanation: explanation.verified,
    )


@app.command("verify")
def verify_command(store: StorePath, as_json: AsJson = False) -> None:
    """Recompute the audit chain and hold every stored record against it. Mends nothing.

    Example: cma verify agent.cma && echo sound
    """
    _answer(store, lambda memory: memory.verify(), rendering.verification, as_json)


@app.command("timeline")
def timeline_command(
    store: StorePath,
    subject: Annotated[
        str | None, typer.Option(help="only the records of this cell, link or trace id")
    ] = None,
    last: Annotated[int, typer.Option("--last", "-n", help="how many records, at least 1")] = 50,
    as_json: AsJson = False,
) -> None:
    """Show the audit chain: what happened, when, by whom, in order.

    Example: cma timeline agent.cma --last 20
    """

    def run(memory: Memory) -> Any:
        if last < 1:
            raise typer.BadParameter("--last is a whole number of at least 1")
        return timeline(memory.store, subject=subject, last=min(last, MAX_INTEGER))

    _answer(store, run, rendering.timeline, as_json)


def main() -> None:
    """Run the command line."""
    app()


def _exists(path: Path) -> bool:
    try:
        return path.exists()
    except (OSError, ValueError):  # no file can have such a name
        return False


def _answer(
    store: Path,
    run: Callable[[Memory], Any],
    show: Callable[[Console, Any], None],
    as_json: bool,
    accept: Callable[[Any], bool] = lambda _: True,
) -> None:
    try:
        if not _exists(store):
            raise StoreRefusedError(
                Reason.STORE_NOT_FOUND,
                "there is no file at that path",
                field="store",
                value=str(store),
                remedy="check the path; a store is created by Memory.open in a program",
            )
        with Memory.open(store, caller=CALLER) as memory:
            answer = run(memory)
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
        raise typer.Exit(1) from error
    if as_json:
        sys.stdout.buffer.write(rendering.as_json(answer) + b"\n")
    else:
        show(Console(), answer)
    if not accept(answer):
        raise typer.Exit(1)


if __name__ == "__main__":
    main()

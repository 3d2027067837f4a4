"""`cma`: look into a store from a terminal or a script.

Exit status: 0 done; 1 refused, not found or not verified (the reason code is printed); 2 wrong
usage. `--json` prints one JSON document on standard output, errors included.
"""

from __future__ import annotations

from importlib.metadata import version
from pathlib import Path
from typing import Annotated, Any

import typer

from cma import desk, rendering, rendering_checkup, rendering_evidence
from cma.answering import CALLER, AsJson, Scope, StorePath, answer, tell
from cma.doctor.examining import examine
from cma.erasure import REASONS
from cma.memory import Memory
from cma.orion.explanation import timeline
from cma.orion.scopes import GLOBAL
from cma.orion.traces import Retrieval
from cma.rosette.restoring import restore_snapshot
from cma.values.clock import SystemClock
from cma.values.errors import InvalidValueError, Reason
from cma.values.identity import MAX_INTEGER
from cma.values.validation import validated

EXPLAINED = ("receipt-", "trace-")
app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode="rich",
    help="""Look into a CMA store: what is remembered, where it came from, and whether it is sound.

    Example: cma recall agent.cma "where is the server" --scope session:42""",
)
app.add_typer(desk.app, name="proposals")


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
    analyser: Annotated[str, typer.Option(help="unicode, english or dialogue")] = "unicode",
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

    answer(store, run, rendering.recollection, as_json)


@app.command("explain")
def explain_command(
    store: StorePath,
    request: Annotated[
        str, typer.Argument(help="receipt-... as deliver gave it, or trace-... as a recall did")
    ],
    scope: Scope = GLOBAL,
    as_json: AsJson = False,
) -> None:
    """Tell a delivery or a recall backwards: receipt, packet, recall, cells, sources, audit.

    Example: cma explain agent.cma receipt-0123... --scope session:42
    """
    answer(
        store,
        lambda memory: memory.within(scope).explain(_request_id(request)),
        rendering_evidence.request,
        as_json,
        accept=lambda explanation: explanation.verified,
    )


@app.command("verify")
def verify_command(store: StorePath, as_json: AsJson = False) -> None:
    """Recompute the audit chain and hold every stored record against it. Mends nothing.

    Example: cma verify agent.cma && echo sound
    """
    answer(store, lambda memory: memory.verify(), rendering.verification, as_json)


@app.command("doctor")
def doctor_command(store: StorePath, as_json: AsJson = False) -> None:
    """Say all that is wrong with a store, where, and what to do. Looks only, and mends nothing.

    Exit status: 0 healthy, 1 something was found, 2 there is no such store.

    Example: cma doctor agent.cma
    """
    tell(
        lambda: examine(store, clock=SystemClock()),
        rendering_checkup.checkup,
        as_json,
        accept=lambda found: found.healthy,
        refusal=2,
    )


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

    answer(store, run, rendering.timeline, as_json)


@app.command("erase")
def erase_command(
    store: StorePath,
    cell_id: Annotated[str, typer.Argument(help="cell-... as recall and timeline print it")],
    reason: Annotated[
        str, typer.Option("--reason", "-r", help=f"{', '.join(REASONS)}, or a note in lower case")
    ],
    scope: Scope = GLOBAL,
    name: desk.Name = "cma-cli",
    as_json: AsJson = False,
) -> None:
    """Erase a cell for good, with what names or quotes it. Nothing brings it back.

    Exit status 1 also where the bytes could not be overwritten yet; the next opening does it.

    Example: cma erase agent.cma cell-0123... --reason person-request --scope session:42 --as ann
    """
    answer(
        store,
        lambda memory: memory.within(scope).erase(cell_id, reason=reason),
        rendering.facts,
        as_json,
        accept=lambda erasure: erasure.cleaned,
        name=name,
    )


@app.command("index")
def index_command(
    store: StorePath,
    analyser: Annotated[str, typer.Option(help="unicode, english or dialogue")] = "unicode",
    as_json: AsJson = False,
) -> None:
    """Keep the index of a store in a file beside it, which the next opening maps at once.

    The file may be removed at any time: the index is built from the store then.

    Example: cma index agent.cma
    """

    def run(memory: Memory) -> Any:
        place = memory.keep_index(analyser)
        return {"file": place.name, "bytes": place.stat().st_size}

    answer(store, run, rendering.facts, as_json)


@app.command("snapshot")
def snapshot_command(
    store: StorePath,
    file: Annotated[Path, typer.Argument(help="the file to write, such as agent.cma.jsonl")],
    as_json: AsJson = False,
) -> None:
    """Write the whole store, checked, to one new file. Nothing is overwritten.

    Example: cma snapshot agent.cma backup.cma.jsonl
    """
    answer(store, lambda memory: memory.snapshot(file), rendering.facts, as_json)


@app.command("restore")
def restore_command(
    file: Annotated[Path, typer.Argument(help="a snapshot, as `cma snapshot` wrote it")],
    store: Annotated[Path, typer.Argument(help="where the store is to be; nothing may be there")],
    as_json: AsJson = False,
) -> None:
    """Build a store from a snapshot. One that disagrees with itself is refused whole.

    Example: cma restore backup.cma.jsonl restored.cma
    """

    def run() -> Any:
        restored = restore_snapshot(file, store, caller=CALLER, clock=SystemClock())
        return {"store": str(store), **restored.model_dump()}

    tell(run, rendering.facts, as_json)


def _request_id(request: str) -> str:
    """Return an id that can be explained; refuse any other with what it must begin with."""
    if not request.startswith(EXPLAINED):
        raise InvalidValueError(
            Reason.FIELD_INVALID,
            "only a delivery or a recall can be explained",
            field="request",
            value=request,
            remedy="give an id that begins with receipt- (as deliver and `cma timeline` tell it) "
            "or trace- (as `cma recall` does)",
        )
    return request


def main() -> None:
    """Run the command line."""
    app()


if __name__ == "__main__":
    main()

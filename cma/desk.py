"""`cma proposals`: the review desk. A person reads the evidence, then approves or rejects.

A desk looks at the whole store: proposals of every session stand in one queue.
"""

from __future__ import annotations

from typing import Annotated, Any

import typer
from rich.console import Console

from cma import rendering_evidence, review
from cma.answering import AsJson, StorePath, answer
from cma.eagle.executions import ExecutionTrace, read_execution
from cma.lagoon.candidates import Candidate, read_candidate
from cma.lagoon.policy import Policy
from cma.lagoon.standing import Status, proposal_of, proposals
from cma.memory import Memory
from cma.orion.connection import database_errors
from cma.orion.scopes import checked_scope
from cma.rosette.lineage import SourceCell, source_cell
from cma.trifid.frames import EpisodeFrame, read_frame
from cma.trifid.replaying import replayed
from cma.values.validation import Value, trusted, validated

app = typer.Typer(
    no_args_is_help=True,
    help="""Review proposals: read the evidence, approve or reject, one or a batch.

    Example: cma proposals list agent.cma --status pending""",
)
Ids = Annotated[list[str], typer.Argument(help="ids, as `cma proposals list` prints them")]
Name = Annotated[str, typer.Option("--as", help="your name: it goes on record as approver")]
PolicyName = Annotated[str, typer.Option("--policy", help="name of the policy that applies")]
Frames = Annotated[int, typer.Option(help="how many frames the policy asks for", min=1)]
Executions = Annotated[int, typer.Option(help="how many executions the policy asks for", min=1)]


class Evidence(Value):
    """A proposal with everything that it rests on, as it stands now.

    incomplete: frames whose replay is not complete any more.
    """

    proposal: Any
    frames: tuple[EpisodeFrame, ...]
    executions: tuple[ExecutionTrace, ...]
    sources: tuple[SourceCell, ...]
    incomplete: tuple[str, ...]


@app.command("list")
def list_command(
    store: StorePath,
    status: Annotated[Status | None, typer.Option(help="how they stand (all by default)")] = None,
    scope: Annotated[
        str | None, typer.Option("--scope", "-s", help="those that a scope sees (all by default)")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """List the proposals of the whole store, oldest first.

    Example: cma proposals list agent.cma --status pending
    """

    def run(memory: Memory) -> Any:
        with database_errors(memory.store.path):
            viewer = None if scope is None else checked_scope(scope)
            return proposals(memory.store.connection, viewer=viewer, status=status)

    answer(store, run, rendering_evidence.proposal_list, as_json)


@app.command("show")
def show_command(
    store: StorePath,
    candidate_id: Annotated[str, typer.Argument(help="a proposal's id")],
    as_json: AsJson = False,
) -> None:
    """Show a proposal with its evidence beside it: frames, executions, source cells, replays.

    Example: cma proposals show agent.cma candidate-0123...
    """

    def show(console: Console, found: Evidence) -> None:
        rendering_evidence.evidence(console, found, store=store)

    answer(store, lambda memory: evidence_of(memory, candidate_id), show, as_json)


@app.command("approve")
def approve_command(
    store: StorePath,
    candidate_ids: Ids,
    approval_id: Annotated[
        str, typer.Option("--approval-id", "-a", help="the id under which the approval is known")
    ],
    name: Name = "cma-cli",
    expires_at: Annotated[
        str | None, typer.Option("--expires-at", help="until when it holds, with a zone")
    ] = None,
    policy: PolicyName = "default",
    frames: Frames = 2,
    executions: Executions = 1,
    as_json: AsJson = False,
) -> None:
    """Approve proposals: all of them in one transition, or none.

    Several are recorded as <approval id>/1, <approval id>/2, in the order given.

    Example: cma proposals approve agent.cma candidate-0123... -a CR-17 --as ann
    """

    def run(memory: Memory) -> Any:
        return review.approve(
            memory.store,
            _each_once(candidate_ids),
            approval_id=approval_id,
            expires_at=expires_at,
            viewer=None,
            caller=memory.caller,
            policy=memory.policy,
        )

    def show(console: Console, cells: Any) -> None:
        rendering_evidence.admitted(console, cells, under=approval_id)

    def applied() -> Policy:
        return _policy(policy, frames, executions)

    answer(store, run, show, as_json, name=name, policy=applied)


@app.command("reject")
def reject_command(
    store: StorePath,
    candidate_ids: Ids,
    reason: Annotated[str, typer.Option("--reason", "-r", help="why, in a sentence")],
    name: Name = "cma-cli",
    as_json: AsJson = False,
) -> None:
    """Reject proposals and say why; memory stays as it is.

    Example: cma proposals reject agent.cma candidate-0123... -r "one source is hearsay"
    """

    def run(memory: Memory) -> Any:
        return review.reject(
            memory.store,
            _each_once(candidate_ids),
            reason=reason,
            viewer=None,
            caller=memory.caller,
        )

    answer(store, run, rendering_evidence.proposal_list, as_json, name=name)


def evidence_of(memory: Memory, candidate_id: str) -> Evidence:
    """Return a proposal of any scope with its evidence as it stands."""
    store = memory.store
    with database_errors(store.path), store.reading() as connection:
        candidate: Candidate = read_candidate(connection, candidate_id, viewer=None)
        viewer = candidate.held_in
        frames = tuple(read_frame(connection, name, viewer=viewer) for name in candidate.frames)
        return trusted(
            Evidence,
            {
                "proposal": proposal_of(connection, candidate),
                "frames": frames,
                "executions": tuple(
                    read_execution(connection, name, viewer=viewer) for name in candidate.executions
                ),
                "sources": tuple(source_cell(store, name, viewer) for name in candidate.cells),
                "incomplete": tuple(
                    frame.id for frame in frames if not replayed(connection, frame).complete
                ),
            },
        )


def _each_once(ids: list[str]) -> list[str]:
    return list(dict.fromkeys(ids))


def _policy(name: str, frames: int, executions: int) -> Policy:
    return validated(
        lambda: Policy.model_validate({"name": name, "frames": frames, "executions": executions})
    )

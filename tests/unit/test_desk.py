"""`cma proposals`: evidence beside each proposal, whole batches, kind refusals."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result

from cma import Caller, FixedClock, Memory
from tests.unit.test_cli import answered, refusal, run

AT = datetime(2026, 3, 1, 12, tzinfo=UTC)
SCOPE = "session:42"
HOSTILE = "\x1b[2J[bold red]tea[/nonsense] :skull:"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A closed store with two claims and a skill that wait for review in a session."""
    path = tmp_path / "agent.cma"
    caller = Caller(name="agent", authority="user")
    clock = FixedClock(AT)
    with Memory.open(path, caller=caller, clock=clock, store_id="named") as memory:
        view = memory.within(SCOPE)
        for drink in ("tea", "coffee"):
            frames = [episode(view, clock, f"{drink} {time}") for time in ("once", "twice")]
            view.propose(
                frames=frames,
                content=f"Ann drinks {drink}",
                subject="Ann",
                predicate="drinks",
                object=drink,
            )
            clock.advance(timedelta(minutes=1))
        cell = write(view, clock, "the tea is brewed")
        run_of_it = view.execute(
            task="brew", steps=["boil", "pour"], outcome="success", sources=[cell]
        )
        view.propose_skill(executions=[run_of_it.id])
    return path


def write(view: Memory, clock: FixedClock, content: str) -> str:
    clock.advance(timedelta(minutes=1))
    return view.write(content, kind="episodic", origin="chat 7", observed_at=clock.now()).id


def episode(view: Memory, clock: FixedClock, what: str) -> str:
    sources = [write(view, clock, f"Ann {verb} {what}") for verb in ("asks for", "drinks")]
    scene = f"the {what}".replace("\x1b", "")  # names hold no control characters
    frame = view.bind(scene=scene, sources=sources, entities=["Ann"], actions=["drinks"])
    assert view.replay(frame.id).complete
    return frame.id


@pytest.fixture
def queue(path: Path) -> list[str]:
    """The ids of the proposals: tea, coffee, the skill."""
    return [each["candidate"]["id"] for each in answered("proposals", "list", path)]


def contents(path: Path, *more: str) -> list[str]:
    told = answered("proposals", "list", path, *more)
    return [each["candidate"]["content"] for each in told]


def state(path: Path) -> tuple[str, int]:
    with Memory.open(path, clock=FixedClock(AT)) as memory:
        return memory.digest(), memory.generation


def names(result: Result, *words: str) -> None:
    assert result.exit_code == 0, result.output
    flat = " ".join(result.stdout.split())
    for word in words:
        assert word in flat, word


def test_list_shows_every_sessions_proposals_in_order(path: Path, queue: list[str]) -> None:
    names(
        run("proposals", "list", path), "3 proposals", "“Ann drinks tea”", "“Ann drinks coffee”",
        "2 frames, 4 source cells", "1 success, 0 failures, 1 source cell", *queue,
    )  # fmt: skip
    assert contents(path)[:2] == ["Ann drinks tea", "Ann drinks coffee"]
    assert {each["candidate"]["held_in"] for each in answered("proposals", "list", path)} == {SCOPE}


def test_list_by_status(path: Path, queue: list[str]) -> None:
    assert len(contents(path, "--status", "pending")) == 3
    names(run("proposals", "list", path, "--status", "rejected"), "no proposals", "propose")
    assert answered("proposals", "list", path, "--status", "approved") == []
    answered("proposals", "reject", path, queue[1], "-r", "hearsay")
    assert contents(path, "--status", "rejected") == ["Ann drinks coffee"]
    names(run("proposals", "list", path, "--status", "rejected"), "1 proposal", "hearsay")
    wrong = run("proposals", "list", path, "--status", "waiting")
    assert wrong.exit_code == 2
    assert all(word in wrong.output for word in ("pending", "approved", "rejected"))
    assert contents(path, "--scope", SCOPE) == contents(path)
    assert answered("proposals", "list", path, "--scope", "session:43") == []


def test_show_lays_the_evidence_beside_a_claim(path: Path, queue: list[str]) -> None:
    told = answered("proposals", "show", path, queue[0])
    cells = [each["id"] for each in told["sources"]]
    names(
        run("proposals", "show", path, queue[0]),
        f"{queue[0]} [pending]", "semantic “Ann drinks tea”",
        "subject “Ann”, predicate “drinks”, object “tea”",
        "would live in session:42", "proposed by agent (user)", "replays completely",
        "“Ann asks for tea once” from “chat 7” (user)", *cells,
        f"cma proposals approve {path} {queue[0]}", f"cma proposals reject {path} {queue[0]}",
    )  # fmt: skip
    for each in queue[:2]:  # frames stand in the order of what happened, whatever their ids are
        shown = run("proposals", "show", path, each).stdout
        assert "attributes" not in shown
        assert shown.index("once”, replays") < shown.index("twice”, replays")
    assert [frame["scene"] for frame in told["frames"]] == ["the tea once", "the tea twice"]
    assert cells == told["proposal"]["candidate"]["cells"]
    assert all(each["verified"] and each["history"] for each in told["sources"])
    assert told["incomplete"] == []


def test_show_lays_the_executions_beside_a_skill(path: Path, queue: list[str]) -> None:
    told = answered("proposals", "show", path, queue[2])
    assert [each["outcome"] for each in told["executions"]] == ["success"]
    names(
        run("proposals", "show", path, queue[2]), "procedural", "success", "the tea is brewed",
        "task “brew”, steps “boil”, “pour”",
    )  # fmt: skip


def test_show_says_where_the_evidence_no_longer_stands(path: Path, queue: list[str]) -> None:
    with Memory.open(path, clock=FixedClock(AT)) as memory:
        view = memory.within(SCOPE)
        source = view.proposal(queue[0]).candidate.cells[0]
        view.update(source, lifecycle="retracted")
    names(run("proposals", "show", path, queue[0]), "REPLAY INCOMPLETE", "replays completely")
    assert len(answered("proposals", "show", path, queue[0])["incomplete"]) == 1
    before = state(path)
    error = refusal("proposals", "approve", path, queue[0], "-a", "CR-1", "--as", "ann")
    assert error["code"] == "evidence-incomplete"
    assert state(path) == before


def test_approve_puts_the_name_and_the_approval_on_record(path: Path, queue: list[str]) -> None:
    result = run("proposals", "approve", path, queue[0], "-a", "CR-17", "--as", "ann")
    names(result, "semantic", "approval CR-17", "“Ann drinks tea”")
    assert "already" not in result.stdout
    shown = run("proposals", "show", path, queue[0])
    names(shown, "[approved]", "in memory as cell-")
    assert "cma proposals" not in shown.stdout  # there is nothing left to decide
    [consolidated] = [
        each
        for each in answered("timeline", path)
        if each["operation"] == "consolidate" and each["subjects"][0].startswith("cell-")
    ]
    assert consolidated["actor"] == "ann"
    assert run("verify", path).exit_code == 0


def test_approving_again_says_that_it_was_memory(path: Path, queue: list[str]) -> None:
    (cell,) = answered("proposals", "approve", path, queue[0], "-a", "CR-17", "--as", "ann")
    before = state(path)
    result = run("proposals", "approve", path, queue[0], "-a", "CR-18", "--as", "bea")
    names(result, f"{cell['id']} approval CR-17 (memory already)")
    assert state(path) == before


def test_a_batch_is_approved_under_numbered_approvals(path: Path, queue: list[str]) -> None:
    told = answered("proposals", "approve", path, *queue, "-a", "CR-2", "--as", "ann")
    assert [cell["approval_id"] for cell in told] == ["CR-2/1", "CR-2/2", "CR-2/3"]
    assert [cell["kind"] for cell in told] == ["semantic", "semantic", "procedural"]
    assert contents(path, "--status", "pending") == []


def test_a_proposal_named_twice_is_decided_once(path: Path, queue: list[str]) -> None:
    told = answered("proposals", "approve", path, queue[0], queue[0], "-a", "CR-3")
    assert [cell["approval_id"] for cell in told] == ["CR-3"]
    told = answered("proposals", "reject", path, queue[1], queue[1], "-r", "hearsay")
    assert [each["status"] for each in told] == ["rejected"]


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (("approve", "-a", "CR-4"), "proposal-not-found"),
        (("reject", "-r", "hearsay"), "proposal-not-found"),
    ],
)
def test_a_batch_with_one_bad_id_changes_nothing(
    path: Path, queue: list[str], words: tuple[str, ...], code: str
) -> None:
    before = state(path)
    error = refusal("proposals", words[0], path, queue[0], "candidate-0", *words[1:])
    assert (error["code"], error["field"]) == (code, "candidate_id")
    assert "cma proposals list" in error["remedy"]
    assert state(path) == before
    assert len(contents(path, "--status", "pending")) == 3


def test_reject_says_why_and_changes_no_memory(path: Path, queue: list[str]) -> None:
    before = state(path)
    result = run("proposals", "reject", path, *queue[:2], "-r", "one voice", "--as", "ann")
    names(result, "2 proposals", "rejected: “one voice”")
    assert state(path) == before
    names(run("proposals", "show", path, queue[0]), "[rejected]", "rejected: “one voice”")
    error = refusal("proposals", "approve", path, queue[0], "-a", "CR-5")
    assert error["code"] == "proposal-decided"
    assert "further evidence" in error["remedy"]


def test_what_is_memory_is_retracted_and_not_rejected(path: Path, queue: list[str]) -> None:
    answered("proposals", "approve", path, queue[0], "-a", "CR-6")
    error = refusal("proposals", "reject", path, queue[0], "-r", "no")
    assert error["code"] == "proposal-decided"
    assert "lifecycle='retracted'" in error["remedy"]


@pytest.mark.parametrize(
    ("words", "code", "field"),
    [
        (("show", "{path}", "cell-1"), "proposal-not-found", "candidate_id"),
        (("approve", "{path}", "{tea}", "-a", " "), "approval-required", "approval_id"),
        (("approve", "{path}", "{tea}", "-a", "CR", "--as", " "), "field-invalid", "as"),
        (("approve", "{path}", "{tea}", "-a", "CR", "--policy", ""), "field-invalid", "name"),
        (
            ("approve", "{path}", "{tea}", "-a", "CR", "--expires-at", "soon"),
            "field-invalid",
            "expires_at",
        ),
        (
            ("approve", "{path}", "{tea}", "-a", "CR", "--expires-at", "2026-01-01T00:00:00"),
            "time-naive",
            "expires_at",
        ),
        (
            ("approve", "{path}", "{tea}", "-a", "CR", "--expires-at", "2020-01-01T00:00:00Z"),
            "approval-expired",
            "approval_id",
        ),
        (
            ("approve", "{path}", "{tea}", "-a", "CR", "--frames", "3"),
            "evidence-incomplete",
            "evidence",
        ),
        (
            ("approve", "{path}", "{skill}", "-a", "CR", "--executions", "2"),
            "evidence-incomplete",
            "evidence",
        ),
        (("reject", "{path}", "{tea}", "-r", " "), "field-invalid", "reason"),
        (("reject", "{path}", "{tea}", "-r", "no", "--as", ""), "field-invalid", "as"),
        (("list", "{path}.not-there"), "store-not-found", "store"),
        (("show", "{path}.not-there", "{tea}"), "store-not-found", "store"),
        (("approve", "{path}.not-there", "{tea}", "-a", "CR"), "store-not-found", "store"),
        (("reject", "{path}.not-there", "{tea}", "-r", "no"), "store-not-found", "store"),
    ],
)
def test_a_refusal_names_its_code_and_a_way_out(
    path: Path, queue: list[str], words: tuple[str, ...], code: str, field: str
) -> None:
    before = state(path)
    named = (word.format(path=path, tea=queue[0], skill=queue[2]) for word in words)
    error = refusal("proposals", *named)
    assert (error["code"], error["field"]) == (code, field)
    assert state(path) == before


def test_an_approval_of_one_proposal_is_not_another_ones(path: Path, queue: list[str]) -> None:
    answered("proposals", "approve", path, queue[0], "-a", "CR-7")
    error = refusal("proposals", "approve", path, queue[1], "-a", "CR-7")
    assert error["code"] == "approval-mismatch"


@pytest.mark.parametrize(
    "words",
    [
        ("list",),
        ("show", "{path}"),
        ("approve", "{path}", "{tea}"),
        ("approve", "{path}", "-a", "CR"),
        ("approve", "{path}", "{tea}", "-a", "CR", "--frames", "0"),
        ("reject", "{path}", "{tea}"),
        ("forget", "{path}"),
    ],
)
def test_wrong_usage_ends_with_status_two(
    path: Path, queue: list[str], words: tuple[str, ...]
) -> None:
    result = run("proposals", *(word.format(path=path, tea=queue[0]) for word in words))
    assert result.exit_code == 2, result.output


@pytest.mark.parametrize("command", ["list", "show", "approve", "reject"])
def test_help_teaches_by_example(command: str) -> None:
    names(run("proposals", command, "--help"), f"Example: cma proposals {command} agent.cma")
    names(run("proposals", "--help"), "Example: cma proposals list", command)


@pytest.fixture
def hostile(tmp_path: Path) -> Path:
    path = tmp_path / "hostile.cma"
    clock = FixedClock(AT)
    with Memory.open(path, caller=Caller(name="agent", authority="user"), clock=clock) as memory:
        frames = [episode(memory, clock, f"{HOSTILE} {time}") for time in ("once", "twice")]
        memory.propose(
            frames=frames, content=HOSTILE, subject="[red]it", predicate="is", object="odd"
        )
    return path


def test_stored_text_is_shown_and_never_interpreted(hostile: Path) -> None:
    (proposal,) = answered("proposals", "list", hostile)
    name = proposal["candidate"]["id"]
    assert proposal["candidate"]["content"] == HOSTILE
    results = [run("proposals", "list", hostile), run("proposals", "show", hostile, name)]
    results.append(run("proposals", "reject", hostile, name, "-r", HOSTILE))
    for result in results:
        assert result.exit_code == 0, result.output
        assert "\x1b" not in result.stdout
        assert "[boldred]tea[/nonsense]:skull:" in "".join(result.stdout.split())


def test_looking_is_no_decision(path: Path, queue: list[str]) -> None:
    before = state(path)
    for words in (("list",), ("show", queue[0])):
        told: Any = json.loads(run("proposals", words[0], path, *words[1:], "--json").stdout)
        assert told
    assert state(path) == before

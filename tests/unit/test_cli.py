"""The `cma` command: plain and JSON answers, exit status, and stored text that is only shown."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import apsw
import pytest
from click.testing import Result
from typer.testing import CliRunner

from cma import Caller, Cell, FixedClock, Memory, Retrieval
from cma.cli import app

AT = datetime(2026, 3, 1, 12, tzinfo=UTC)
HOSTILE = (
    "\x1b[2J\x07 [bold red]boom[/bold red] [link=http://example.org]x[/link]"
    " [/nonsense] :skull:\r\n\u202egnp"
)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A closed store with two events in a session and one that anyone sees."""
    path = tmp_path / "agent.cma"
    caller = Caller(name="agent", authority="tool")
    with Memory.open(path, caller=caller, clock=FixedClock(AT), store_id="named") as memory:
        event(memory, "the server was moved in May")
        view = memory.within("session:42")
        event(view, "we moved the desk", importance=1.0)
        event(view, "nothing of note")
    return path


def event(view: Memory, content: str, **fields: Any) -> Cell:
    fields.setdefault("origin", "chat 7")
    return view.write(content, kind="episodic", observed_at=AT, **fields)


def run(*arguments: object) -> Result:
    return CliRunner(env={"COLUMNS": "200", "NO_COLOR": "1"}).invoke(
        app, [str(a) for a in arguments]
    )


def answered(*arguments: object) -> Any:
    result = run(*arguments, "--json")
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


def refusal(*arguments: object) -> dict[str, Any]:
    """Expect exit status 1, the reason code on stderr, and the same as JSON on stdout."""
    plain = run(*arguments)
    assert plain.exit_code == 1, plain.output
    assert plain.stdout == ""
    told = run(*arguments, "--json")
    assert told.exit_code == 1
    error: dict[str, Any] = json.loads(told.stdout)["error"]
    assert plain.stderr.startswith(f"[{error['code']}]"), plain.stderr
    assert error["message"]
    assert error["remedy"]
    return error


def test_recall_shows_scores_with_their_parts_and_why(path: Path) -> None:
    result = run("recall", path, "moved", "--scope", "session:42")
    assert result.exit_code == 0
    for told in (
        "“the server was moved in May”", "“we moved the desk”", "lexical", "importance",
        "x 0.6", "2 of at most 10 cells", "before", "importance +0.05", "generation 3", "trace-",
    ):  # fmt: skip
        assert told in result.stdout, told
    assert "nothing of note" not in result.stdout


def test_recall_as_json_is_the_recollection(path: Path) -> None:
    told = answered("recall", path, "moved", "-s", "session:42", "-k", 1)
    (hit,) = told["hits"]
    assert hit["cell"]["content"] == "we moved the desk"
    assert hit["cell"]["source"] == {"origin": "chat 7", "authority": "tool"}
    assert set(hit["parts"]) == {"lexical", "confidence", "importance", "recency", "link"}
    weights = told["trace"]["retrieval"]["coefficients"]
    assert hit["score"] == pytest.approx(sum(weights[n] * p for n, p in hit["parts"].items()))
    assert told["trace"]["excluded"] == {"below_limit": 1}
    assert told["trace"]["at"].endswith("Z")


def test_recall_takes_the_settings_of_the_library(path: Path) -> None:
    for arguments in (("--lexical", "bm25"), ("--analyser", "english"), ("--include-inactive",)):
        told = answered(
            "recall", path, "moving", "moved"[:0] or "--scope", "session:42", *arguments
        )
        assert told["trace"]["scope"] == "session:42"
    assert told["trace"]["include_inactive"] is True
    told = answered("recall", path, "moving servers", "--analyser", "english")
    assert [hit["cell"]["content"] for hit in told["hits"]] == ["the server was moved in May"]


def test_recall_of_nothing_is_an_answer(path: Path) -> None:
    result = run("recall", path, "zebra")
    assert result.exit_code == 0
    assert "nothing was found in the scope global" in result.stdout
    assert "--scope session:<id>" in result.stdout
    assert answered("recall", path, "zebra")["hits"] == []


def test_a_session_is_not_shown_to_another(path: Path) -> None:
    for scope in ("global", "session:43"):
        told = answered("recall", path, "moved desk", "--scope", scope, "--include-inactive")
        assert [hit["cell"]["scope"] for hit in told["hits"]] == ["global"]
        assert "desk" not in run("recall", path, "moved", "--scope", scope).stdout


def test_explain_tells_a_recall_backwards(path: Path) -> None:
    trace = answered("recall", path, "moved", "--scope", "session:42")["trace"]["id"]
    result = run("explain", path, trace, "--scope", "session:42")
    assert result.exit_code == 0
    for told in (
        "[verified]",
        "“moved”",
        "“chat 7”",
        "authority tool",
        "write by agent",
        "read by cma-cli",
    ):
        assert told in result.stdout, told
    assert "NOT VERIFIED" not in result.stdout
    told = answered("explain", path, trace, "--scope", "session:42")
    assert told["verified"] is True
    assert told["recall"]["chain_verified"] is True
    assert [hit["verified"] for hit in told["recall"]["hits"]] == [True, True]
    assert refusal("explain", path, trace, "--scope", "session:43")["code"] == "trace-not-found"
    assert refusal("explain", path, "trace-" + "0" * 40)["code"] == "trace-not-found"


def test_explain_of_what_no_longer_agrees_ends_with_status_one(path: Path) -> None:
    told = answered("recall", path, "server")
    connection = apsw.Connection(str(path))
    connection.execute(
        "UPDATE cells SET record = CAST(replace(CAST(record AS TEXT), 'May', 'June') AS BLOB)"
    )
    connection.close()
    result = run("explain", path, told["trace"]["id"])
    assert result.exit_code == 1
    assert "NOT VERIFIED" in result.stdout
    assert refusal("verify", path)["code"] == "state-disagrees"


def test_verify_says_what_was_verified(path: Path) -> None:
    result = run("verify", path)
    assert result.exit_code == 0
    assert "the store is sound" in result.stdout
    assert "0 (frames, executions, approvals, admissions, decisions)" in result.stdout
    assert "anchor names       the last record" in result.stdout
    told = answered("verify", path)
    assert (told["store_id"], told["cells"], told["audit_records"]) == ("named", 3, 4)
    assert told["tail_pinned"] is True


def test_timeline_shows_the_audit_in_order(path: Path) -> None:
    result = run("timeline", path)
    assert result.exit_code == 0
    assert "4 audit records" in result.stdout
    assert "2026-03-01 12:00:00Z" in result.stdout
    told = answered("timeline", path)
    assert [record["operation"] for record in told] == ["create", "write", "write", "write"]
    assert [record["seq"] for record in told] == [1, 2, 3, 4]
    subject = told[1]["subjects"][0]
    assert [r["seq"] for r in answered("timeline", path, "--subject", subject)] == [2]
    assert [r["seq"] for r in answered("timeline", path, "--last", 2)] == [3, 4]
    assert answered("timeline", path, "--subject", "cell-unknown") == []


@pytest.mark.parametrize(
    "arguments",
    [
        (),
        ("recall",),
        ("recall", "x.cma"),
        ("recall", "{path}", "moved", "--limit", "many"),
        ("timeline", "{path}", "--last", "0"),
        ("timeline", "{path}", "--last", "-5"),
        ("forget", "{path}"),
        ("verify", "{path}", "--mend"),
    ],
)
def test_wrong_usage_ends_with_status_two(path: Path, arguments: tuple[str, ...]) -> None:
    result = run(*(word.format(path=path) for word in arguments))
    assert result.exit_code == 2, result.output


@pytest.mark.parametrize(
    ("arguments", "code", "field"),
    [
        (("recall", "{path}", "  "), "query-empty", "query"),
        (("recall", "{path}", "moved", "--limit", "0"), "limit-invalid", "limit"),
        (("recall", "{path}", "moved", "--scope", "me"), "field-invalid", "scope"),
        (("recall", "{path}", "moved", "--lexical", "magic"), "field-invalid", "lexical"),
        (("recall", "{path}", "moved", "--analyser", "?"), "field-invalid", "analyser"),
        (("explain", "{path}", "trace-1"), "trace-not-found", "trace_id"),
        (("explain", "{path}", "bla"), "field-invalid", "request"),
        (("verify", "{path}.not-there"), "store-not-found", "store"),
        (("recall", "{path}.not-there", "moved"), "store-not-found", "store"),
        (("timeline", "{path}.not-there"), "store-not-found", "store"),
    ],
)
def test_a_refusal_ends_with_status_one_and_its_code(
    path: Path, arguments: tuple[str, ...], code: str, field: str
) -> None:
    error = refusal(*(word.format(path=path) for word in arguments))
    assert (error["code"], error["field"]) == (code, field)
    assert not path.with_name(f"{path.name}.not-there").exists()
    assert not path.with_name(f"{path.name}.not-there.head").exists()


def test_a_huge_number_of_records_is_as_many_as_there_are(path: Path) -> None:
    assert len(answered("timeline", path, "--last", 10**30)) == 4


@pytest.fixture
def hostile(tmp_path: Path) -> Path:
    path = tmp_path / "hostile.cma"
    with Memory.open(path, clock=FixedClock(AT)) as memory:
        cell = event(memory, f"payload {HOSTILE}", origin="[red]origin[/red] :skull:")
        memory.update(cell.id, summary=HOSTILE)
    return path


def test_stored_text_is_quoted_and_never_interpreted(hostile: Path) -> None:
    query = "payload [bold]x[/bold] \x1b[31m"
    recalled = run("recall", hostile, query)
    assert recalled.exit_code == 0, recalled.output
    trace = answered("recall", hostile, query)["trace"]["id"]
    explained = run("explain", hostile, trace)
    assert explained.exit_code == 0, explained.output
    for result in (recalled, explained):
        assert not {"\x1b", "\x07", "\r", "\u202e"} & set(result.stdout)
        flat = "".join(result.stdout.split())
        assert "[boldred]boom[/boldred]" in flat
        assert "[/nonsense]" in flat
        assert ":skull:" in flat
    assert "“payload" in recalled.stdout
    assert "[red]origin[/red]" in explained.stdout
    assert run("timeline", hostile).exit_code == 0


def test_json_keeps_stored_text_as_it_is(hostile: Path) -> None:
    told = answered("recall", hostile, "payload")
    assert told["hits"][0]["cell"]["content"] == f"payload {HOSTILE}"
    assert "\x1b" not in run("recall", hostile, "payload", "--json").stdout


def test_errors_do_not_interpret_what_was_asked(path: Path) -> None:
    result = run("recall", path, "moved", "--scope", "[bold]\x1b[31m[/x]")
    assert result.exit_code == 1
    assert "\x1b" not in result.stderr
    assert "[bold]" in result.stderr


def test_long_text_is_shortened_on_a_terminal_only(tmp_path: Path) -> None:
    path = tmp_path / "long.cma"
    content = "word " * 1_000
    with Memory.open(path, clock=FixedClock(AT)) as memory:
        event(memory, content)
    assert run("recall", path, "word").stdout.count("word") < 40
    assert answered("recall", path, "word")["hits"][0]["cell"]["content"] == content


def test_looking_changes_no_memory(path: Path) -> None:
    with Memory.open(path) as memory:
        before = memory.digest(), memory.generation
    run("recall", path, "moved")
    run("timeline", path)
    run("verify", path)
    with Memory.open(path, retrieval=Retrieval()) as memory:
        assert (memory.digest(), memory.generation) == before
        assert [row[1] for row in memory.store.audit_rows()][4:] == ["read"]


def test_the_command_runs_as_a_program(path: Path) -> None:
    root = Path(__file__).resolve().parents[2]
    environment = {**os.environ, "PYTHONPATH": str(root), "NO_COLOR": "1"}
    done = subprocess.run(
        [sys.executable, "-m", "cma.cli", "verify", str(path), "--json"],
        capture_output=True,
        text=True,
        env=environment,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["cells"] == 3
    gone = subprocess.run(
        [sys.executable, "-m", "cma.cli", "verify", f"{path}.not-there"],
        capture_output=True,
        text=True,
        env=environment,
        check=False,
    )
    assert gone.returncode == 1
    assert "[store-not-found]" in gone.stderr
    assert gone.stdout == ""

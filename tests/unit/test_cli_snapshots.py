"""`cma snapshot`, `restore`, `verify`, and `cma explain` of a delivery, plainly and as JSON."""

from __future__ import annotations

import json
from datetime import timedelta
from pathlib import Path
from typing import Any

import apsw
import pytest

from cma import Caller, FixedClock, Memory
from tests.unit.test_cli import AT, answered, refusal, run

SCOPE = "session:42"
CALLER = Caller(name="agent", authority="user")
ANN = Caller(name="ann", authority="user")


@pytest.fixture
def delivered(tmp_path: Path) -> tuple[Path, str]:
    """A closed store that delivered a claim, and the receipt."""
    path = tmp_path / "agent.cma"
    clock = FixedClock(AT)
    with Memory.open(path, caller=CALLER, clock=clock, store_id="named") as memory:
        view = memory.within(SCOPE)
        for number, drink in enumerate(("tea", "coffee"), 1):
            frames = []
            for time in ("once", "twice"):
                cells = []
                for verb in ("asks for", "drinks"):
                    clock.advance(timedelta(minutes=1))
                    cell = view.write(
                        f"Ann {verb} {drink} {time}", kind="episodic", origin="chat 7",
                        observed_at=clock.now(),
                    )  # fmt: skip
                    cells.append(cell.id)
                frame = view.bind(
                    scene=f"{drink} {time}", sources=cells, entities=["Ann"], actions=["drinks"]
                )
                view.replay(frame.id)
                frames.append(frame.id)
            claim = view.propose(
                frames=frames,
                content=f"Ann drinks {drink}",
                subject="Ann",
                predicate="drinks",
                object=drink,
            )
            view.acting_as(ANN).approve(claim.id, approval_id=f"CR-{number}")
        [conflict] = view.conflicts()
        view.acting_as(ANN).decide(conflict.id, handling="preserve_both")
        packet = view.packet(view.recall("Ann drinks tea", limit=3), budget=400)
        receipt = view.deliver(packet, recipient="model")
    return path, receipt.id


def test_a_store_survives_its_snapshot(delivered: tuple[Path, str], tmp_path: Path) -> None:
    path, receipt = delivered
    file, restored = tmp_path / "backup.cma.jsonl", tmp_path / "restored.cma"
    taken = answered("snapshot", path, file)
    assert taken["file"] == "backup.cma.jsonl"
    assert taken["bytes"] == file.stat().st_size
    built = answered("restore", file, restored)
    before, after = answered("verify", path), answered("verify", restored)
    assert built["store"] == str(restored)
    assert built["store_digest"] == taken["store_digest"] == after["store_digest"]
    assert before["store_id"] == after["store_id"] == "named"
    for name in ("cells", "revisions", "links", "governed", "attendant", "traces", "generation"):
        assert before[name] == after[name], name
    told = answered("explain", restored, receipt, "--scope", SCOPE)
    assert told["verified"] is True
    assert [each["operation"] for each in answered("timeline", restored)][-1] == "restore"
    assert [each["operation"] for each in answered("timeline", path)][-1] == "snapshot"


def test_both_are_told_on_a_terminal(delivered: tuple[Path, str], tmp_path: Path) -> None:
    path, _ = delivered
    file = tmp_path / "backup.cma.jsonl"
    for result, facts in (
        (run("snapshot", path, file), ("sha256", "store digest", "records", "bytes")),
        (run("restore", file, tmp_path / "r.cma"), ("store id", "store digest", "generation")),
    ):
        assert result.exit_code == 0, result.output
        for fact in facts:
            assert fact in result.stdout, fact


def test_nothing_is_overwritten(delivered: tuple[Path, str], tmp_path: Path) -> None:
    path, _ = delivered
    file = tmp_path / "backup.cma.jsonl"
    answered("snapshot", path, file)
    kept = file.read_bytes()
    assert refusal("snapshot", path, file)["code"] == "snapshot-target-exists"
    assert refusal("snapshot", path, path)["code"] == "snapshot-target-exists"
    assert refusal("restore", file, path)["code"] == "snapshot-target-exists"
    assert file.read_bytes() == kept
    assert run("verify", path).exit_code == 0


@pytest.mark.parametrize("command", ["snapshot", "restore"])
def test_a_folder_that_is_not_there_is_named(
    delivered: tuple[Path, str], tmp_path: Path, command: str
) -> None:
    path, _ = delivered
    file, nowhere = tmp_path / "backup.cma.jsonl", tmp_path / "nowhere"
    answered("snapshot", path, file)
    source = path if command == "snapshot" else file
    error = refusal(command, source, nowhere / "new")
    assert (error["code"], error["field"]) == ("field-invalid", "target")
    assert "folder" in error["message"]
    assert not nowhere.exists()


def test_a_snapshot_that_disagrees_is_refused_whole(
    delivered: tuple[Path, str], tmp_path: Path
) -> None:
    path, _ = delivered
    file, target = tmp_path / "backup.cma.jsonl", tmp_path / "restored.cma"
    answered("snapshot", path, file)
    whole = file.read_bytes()
    for damaged, code in (
        (whole[: len(whole) // 2], "snapshot-hash"),
        (whole.replace(b"Ann drinks tea", b"Ann drinks gin"), "snapshot-hash"),
        (b"", "snapshot-envelope"),
        (b"{}\n", "snapshot-envelope"),
    ):
        file.write_bytes(damaged)
        error = refusal("restore", file, target)
        assert error["code"] == code
        assert "another snapshot" in error["remedy"]
    assert sorted(each.name for each in tmp_path.iterdir()) == [
        "agent.cma", "agent.cma.head", "backup.cma.jsonl",
    ]  # fmt: skip


def test_what_is_no_snapshot_or_no_store_is_refused(
    delivered: tuple[Path, str], tmp_path: Path
) -> None:
    path, _ = delivered
    file, target = tmp_path / "backup.cma.jsonl", tmp_path / "restored.cma"
    answered("snapshot", path, file)
    assert refusal("restore", tmp_path / "none", target)["code"] == "snapshot-not-found"
    assert refusal("restore", tmp_path, target)["code"] == "snapshot-not-found"
    assert refusal("restore", path, target)["code"] == "snapshot-envelope"
    assert refusal("verify", file)["code"] == "store-not-cma"
    error = refusal("snapshot", tmp_path / "none.cma", tmp_path / "new")
    assert error["code"] == "store-not-found"
    assert not target.exists()


@pytest.mark.parametrize(
    "words", [("snapshot",), ("snapshot", "x.cma"), ("restore", "x"), ("verify",), ("explain", "x")]
)
def test_wrong_usage_ends_with_status_two(words: tuple[str, ...]) -> None:
    result = run(*words)
    assert result.exit_code == 2, result.output


@pytest.mark.parametrize("command", ["recall", "explain", "verify", "snapshot", "restore"])
def test_help_teaches_by_example(command: str) -> None:
    result = run(command, "--help")
    assert result.exit_code == 0
    assert f"Example: cma {command} " in result.stdout
    assert "Example: cma recall" in run("--help").stdout


def test_explain_tells_a_delivery_as_a_tree(delivered: tuple[Path, str]) -> None:
    path, receipt = delivered
    result = run("explain", path, receipt, "--scope", SCOPE)
    assert result.exit_code == 0, result.output
    flat = " ".join(result.stdout.replace("│", " ").split())
    places = [
        flat.index(told)
        for told in (
            f"{receipt} [verified]", "delivered to “model” by agent", "packet-", "of 400 tokens",
            "“Ann drinks coffee”", "preserve_both by ann", "(control, not served)", "trace-",
            "query “Ann drinks tea”", "approved as “CR-", "candidate-",
        )
    ]  # fmt: skip
    assert places[:4] == sorted(places[:4])
    for told in ("“CR-1” by ann (user) under policy default", "“CR-2” by ann",
                 "“Ann asks for tea once” from “chat 7” (user)", "frame-",
                 "deliver by agent", "consolidate by ann"):  # fmt: skip
        assert told in flat, told
    assert "NOT VERIFIED" not in flat
    assert "packet-" not in run("timeline", path, "--subject", receipt).stdout


def test_explain_tells_a_delivery_as_json(delivered: tuple[Path, str]) -> None:
    path, receipt = delivered
    told = answered("explain", path, receipt, "--scope", SCOPE)
    assert told["verified"] is True
    assert told["receipt"]["id"] == receipt
    assert told["packet"]["trace"] == told["recall"]["trace"]["id"] == told["receipt"]["trace"]
    claims = {each["cell"]["content"] for each in told["served"] if each["cell"]["approval_id"]}
    assert claims == {"Ann drinks tea", "Ann drinks coffee"}
    assert {each["approval"]["id"] for each in told["lineages"]} == {"CR-1", "CR-2"}
    for lineage in told["lineages"]:
        assert len(lineage["frames"]) == 2
        assert len(lineage["sources"]) == 4
    assert [each["handling"] for each in told["decisions"]] == ["preserve_both"]
    assert {each["operation"] for each in told["records"]} == {"deliver", "decide"}
    assert [each["seq"] for each in told["records"]] == sorted(
        each["seq"] for each in told["records"]
    )


def test_explain_of_the_trace_tells_the_recall_and_its_lineage(
    delivered: tuple[Path, str],
) -> None:
    path, receipt = delivered
    trace = answered("explain", path, receipt, "--scope", SCOPE)["receipt"]["trace"]
    told = answered("explain", path, trace, "--scope", SCOPE)
    assert told["receipt"] is None
    assert told["packet"] is None
    # The other claim was no hit: it came into the packet by the conflict.
    assert [each["approval"]["id"] for each in told["lineages"]] == ["CR-1"]
    result = run("explain", path, trace, "--scope", SCOPE)
    assert result.exit_code == 0
    assert f"{trace}  [verified]" in result.stdout
    assert "approved as “CR-1”" in result.stdout


def test_another_scope_is_told_nothing_of_a_delivery(delivered: tuple[Path, str]) -> None:
    path, receipt = delivered
    for scope in ("global", "session:43"):
        error = refusal("explain", path, receipt, "--scope", scope)
        assert error["code"] == "receipt-not-found"
        assert "scope" in error["remedy"]
    error = refusal("explain", path, "receipt-0", "--scope", SCOPE)
    assert error["code"] == "receipt-not-found"


@pytest.mark.parametrize(
    ("shelf", "before", "after"),
    [
        ("cells", "Ann asks for tea once", "Ann asks for gin once"),
        ("cells", "Ann drinks coffee\"", "Ann drinks cocoa!\""),
        ("attendant", '"recipient":"model"', '"recipient":"other"'),
        ("governed", '"approver":"ann"', '"approver":"eve"'),
        ("governed", "preserve_both", "prefer_recent"),
    ],
)  # fmt: skip
def test_what_was_rewritten_is_never_told_as_verified(
    delivered: tuple[Path, str], shelf: str, before: str, after: str
) -> None:
    path, receipt = delivered
    connection = apsw.Connection(str(path))
    connection.execute(
        f"UPDATE {shelf} SET record = CAST(replace(CAST(record AS TEXT), ?, ?) AS BLOB)",
        (before, after),
    )
    connection.close()
    result = run("explain", path, receipt, "--scope", SCOPE)
    assert result.exit_code == 1
    assert "NOT VERIFIED" in result.stdout
    told: dict[str, Any] = json.loads(
        run("explain", path, receipt, "--scope", SCOPE, "--json").stdout
    )
    assert told["verified"] is False
    assert refusal("verify", path)["code"] == "state-disagrees"

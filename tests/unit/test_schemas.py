"""The committed JSON Schemas are those of the models, and hold real output to its form."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from cma import Caller, FixedClock, Memory
from cma.orion.explanation import timeline
from cma.rendering import as_json
from cma.schemas import __main__ as command
from cma.schemas import making
from cma.schemas.making import DIALECT, MODELS, outdated, place

START = datetime(2026, 3, 1, 12, tzinfo=UTC)
ANN = Caller(name="ann", authority="user")


def schema(name: str) -> dict[str, Any]:
    content: dict[str, Any] = json.loads(place(name).read_text(encoding="utf-8"))
    return content


def problems(name: str, content: Any) -> list[str]:
    found = Draft202012Validator(schema(name)).iter_errors(content)
    return [f"{name} {list(each.absolute_path)}: {each.message[:300]}" for each in found]


def values_of(memory: Memory) -> Iterator[tuple[str, Any]]:
    """Do everything that leaves a record, and yield each value with the name of its schema."""
    view = memory.within("session:s")
    cells = [
        view.write(
            f"the server starts, {number}", kind="episodic", origin="the log",
            observed_at=START + timedelta(minutes=number),
            metadata={"speaker": "ann", "attributes": {"loud": True, "level": 3}},
        )
        for number in range(8)
    ]  # fmt: skip
    yield "values/cell", cells[0]
    note = view.write("a note", kind="working", origin="x", metadata={"ttl_seconds": 60})
    yield "values/cell", note
    yield "values/link", view.link("task", cells[0].id, cells[1].id, weight=0.5, evidence="said")
    frames = []
    for number in range(0, 8, 2):
        frame = view.bind(
            scene=f"start {number}", sources=[each.id for each in cells[number : number + 2]],
            entities=["server"], actions=["runs"], goals=["serve"], cues=["boot"],
        )  # fmt: skip
        yield "values/frame", frame
        yield "values/replay", view.replay(frame.id)
        frames.append(frame.id)
    says = {"subject": "server", "predicate": "runs in"}
    claims = [
        view.propose(frames=pair, content=f"it runs in {city}", object=city, **says)
        for pair, city in ((frames[:2], "Oslo"), (frames[2:], "Bergen"), (frames[:2], "Rome"))
    ]
    for name, claim in zip(("CR-1", "CR-2"), claims, strict=False):
        yield "values/candidate", claim.candidate
        yield "values/cell", view.approve(claim.id, approval_id=name)
    again = view.propose(frames=frames[:2], content="IT RUNS", object="OSLO", **says)
    yield "values/cell", view.approve(again.id, approval_id="CR-3")
    yield "values/proposal", view.reject(claims[2].id, reason="nobody said so")
    executions = []
    for outcome, cell in (("success", cells[0]), ("failure", cells[1])):
        ran = view.execute(task="deploy", steps=["a", "b"], outcome=outcome, sources=[cell.id])
        yield "values/execution", ran
        executions.append(ran.id)
    skill = view.propose_skill(executions=executions)
    yield "values/cell", view.approve(skill.id, approval_id="CR-4")
    conflict = view.conflicts()[0]
    yield "values/link", conflict
    yield "values/decision", view.decide(conflict.id, handling="preserve_both")
    found = view.recall("where does the server run in Oslo", limit=3)
    yield "values/recollection", found
    yield "values/trace", found.trace
    packet = view.packet(found, budget=60)
    yield "values/packet", packet
    wide = view.packet(found, budget=5_000)
    yield "values/packet", wide
    receipt = view.deliver(wide, recipient="model")
    yield "values/receipt", receipt
    yield "values/request_explanation", view.explain(receipt.id)
    yield "values/request_explanation", view.explain(found.trace.id)
    graph = view.graph()
    yield "values/graph", graph
    yield "values/traversal", view.traverse(graph.nodes[0].id, budget=2)
    for record in timeline(memory.store, subject=None, last=1_000):
        yield "values/audit_record", record
    yield "values/verification", memory.verify()


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[list[tuple[str, Any]], list[bytes]]:
    """Every value of a busy store, and the lines of its snapshot."""
    folder = tmp_path_factory.mktemp("store")
    with Memory.open(folder / "s.cma", caller=ANN, clock=FixedClock(START)) as memory:
        values = list(values_of(memory))
        values.append(("values/snapshot_receipt", memory.snapshot(folder / "s.cma.jsonl")))
    return values, (folder / "s.cma.jsonl").read_bytes().splitlines()


def test_the_committed_schemas_are_those_of_the_models() -> None:
    assert outdated() == [], "run: python -m cma.schemas"
    for name in MODELS:
        content = schema(name)
        assert content["$schema"] == DIALECT
        Draft202012Validator.check_schema(content)
    assert len({schema(name)["$id"] for name in MODELS}) == len(MODELS)


def test_every_printed_value_fits_its_schema(made: Any) -> None:
    values, _ = made
    for name, value in values:
        assert problems(name, json.loads(as_json(value))) == []
    unseen = {name for name in MODELS if name.startswith("values/")} - {name for name, _ in values}
    assert unseen <= {"values/approval"}, "a format that no test has seen"


def test_every_line_of_a_snapshot_fits_its_schema(made: Any) -> None:
    _, lines = made
    assert problems("stored/snapshot_envelope", json.loads(lines[0])) == []
    kinds = set()
    for line in map(json.loads, lines[1:]):
        assert problems("stored/snapshot_line", line) == []
        kind = line["record"]["kind"] if line["type"] in ("governed", "attendant") else line["type"]
        kind = "audit_record" if kind == "audit" else kind
        assert problems(f"stored/{kind}", line["record"]) == []
        kinds.add(f"stored/{kind}")
    stored = {name for name in MODELS if name.startswith("stored/") and "snapshot" not in name}
    assert kinds == stored


def test_what_is_no_record_does_not_fit(made: Any) -> None:
    _, lines = made
    for line in {json.loads(line)["type"]: json.loads(line) for line in lines[1:]}.values():
        for spoilt in (
            {**line, "record": {**line["record"], "more": 1}},
            {**line, "type": "other"},
            {**line, "record": {key: line["record"][key] for key in list(line["record"])[1:]}},
            {**line, "hash": 5},
        ):
            assert problems("stored/snapshot_line", spoilt)


def test_a_value_that_lacks_a_field_or_has_another_does_not_fit(made: Any) -> None:
    values, _ = made
    for name, value in dict(values).items():
        told = json.loads(as_json(value))
        first = next(iter(told))
        for spoilt in ({**told, "more": 1}, {key: told[key] for key in told if key != first}):
            assert problems(name, spoilt)


def test_the_command_names_what_is_old_and_writes_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(making, "FOLDER", tmp_path)
    monkeypatch.setattr(making, "MODELS", {"values/link": MODELS["values/link"]})
    monkeypatch.setattr(command, "MODELS", making.MODELS)
    (tmp_path / "values").mkdir()
    (tmp_path / "values" / "stray.json").write_text("{}")
    assert command.main(["--check"]) == 1
    assert "not up to date: values/link" in capsys.readouterr().out
    assert command.main([]) == 0
    assert [path.name for path in (tmp_path / "values").iterdir()] == ["link.json"]
    assert command.main(["--check"]) == 0
    (tmp_path / "values" / "link.json").write_text("{}")
    assert command.main(["--check"]) == 1

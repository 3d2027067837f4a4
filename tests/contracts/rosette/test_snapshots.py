"""Snapshots: R10 and R11."""

from __future__ import annotations

import hashlib
import json

import pytest

from cma import Caller, CmaError, Memory, Reason
from cma.orion.governed import record_id

CALLER = Caller(name="restorer", authority="user")
QUERY = "Ann ships the release"
ENOUGH = 100_000


@pytest.fixture
def filled(memory, ann, five, hold):
    """A memory with something of every kind: graph, delivery, a working cell, a revision."""
    made = five(ann)
    made.receipt = ann.deliver(ann.packet(ann.recall(QUERY), budget=ENOUGH))
    made.held = hold(ann, "the build is running")
    ann.update(made.held.id, summary="build")
    return made


@pytest.fixture
def restore(clock):
    def run(snapshot, target):
        return Memory.restore(snapshot, target, caller=CALLER, clock=clock)

    return run


def packed(value):
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()


def sealed(lines, **envelope):
    """Return a snapshot of these lines whose own digests are right, whatever it says."""
    told = {**json.loads(lines[0]), **envelope}
    told.pop("envelope_sha256")
    if "records_sha256" not in envelope:
        told["records_sha256"] = hashlib.sha256(b"".join(lines[1:])).hexdigest()
    told["envelope_sha256"] = hashlib.sha256(packed(told)).hexdigest()
    return packed(told) + b"\n" + b"".join(lines[1:])


def counted(lines):
    """Return the lines' own count of each type."""
    counts = dict.fromkeys(json.loads(lines[0])["counts"], 0)
    for line in lines[1:]:
        counts[json.loads(line)["type"]] += 1
    return counts


def without(lines, *found):
    """Return a sealed snapshot without the records of these ids."""
    kept = [line for line in lines if not any(f'"id":"{name}"'.encode() in line for name in found)]
    assert len(kept) < len(lines)
    return sealed(kept, counts=counted(kept))


def changed(lines, name, *, revision=1, **parts):
    """Return a sealed snapshot in which the record of this id says something else."""
    told, found = [lines[0]], 0
    for line in lines[1:]:
        row = json.loads(line)
        if row["record"].get("id") == name and row["record"].get("revision", 1) == revision:
            row["record"].update(parts)
            line, found = packed(row) + b"\n", found + 1
        told.append(line)
    assert found == 1
    return sealed(told)


def decided(lines, decision, link):
    """Return a sealed snapshot in which this decision, under the id that fits, is on that link."""
    rows = [json.loads(line) for line in lines[1:]]
    [record] = [row["record"] for row in rows if row["record"].get("id") == decision]
    record["identity"]["link"] = record["subject"] = link
    record.update(refs=[link], id=record_id("decision", record["identity"]))
    filed = sorted(
        (row for row in rows if row["type"] == "governed"), key=lambda row: row["record"]["id"]
    )
    others = [row for row in rows if row["type"] != "governed"]
    place = sum(row["type"] < "governed" for row in others)
    told = [*others[:place], *filed, *others[place:]]
    return sealed([lines[0], *(packed(row) + b"\n" for row in told)])


@pytest.mark.contract("R10")
def test_a_snapshot_restores_to_the_same_digest(
    memory, ann, filled, tmp_path, restore, audit, clock
):
    """A snapshot restores to the same digest, records and audit chain; nothing is overwritten."""
    digest, generation, graph = memory.digest(), memory.generation, ann.graph().digest
    told = memory.verify()
    found = ann.recall(QUERY)
    records = audit(memory)
    receipt = memory.snapshot(tmp_path / "one.cma.jsonl")
    assert (memory.digest(), memory.generation) == (digest, generation)
    assert (receipt.store_digest, receipt.generation) == (digest, generation)
    data = (tmp_path / "one.cma.jsonl").read_bytes()
    assert receipt.sha256 == hashlib.sha256(data).hexdigest()
    assert (receipt.bytes, receipt.records) == (len(data), data.count(b"\n") - 1)
    [taken] = audit(memory)[len(records) :]
    assert (taken["operation"], taken["detail"]) == ("snapshot", receipt.sha256)
    with restore(tmp_path / "one.cma.jsonl", tmp_path / "again.cma") as again:
        assert (again.digest(), again.generation) == (digest, generation)
        then = audit(again)
        assert then[:-1] == records
        assert (then[-1]["operation"], then[-1]["actor"]) == ("restore", "restorer")
        seen = again.verify()
        assert (seen.cells, seen.revisions, seen.links) == (told.cells, told.revisions, told.links)
        assert (seen.governed, seen.attendant) == (told.governed, told.attendant)
        view = again.within("session:ann")
        assert view.graph().digest == graph
        assert view.frames() == ann.frames()
        assert view.proposals() == ann.proposals()
        assert view.decisions() == ann.decisions()
        assert view.conflicts() == ann.conflicts()
        for cell in (*filled.cells, filled.claim.id, filled.skill.id, filled.held.id):
            assert view.get(cell) == ann.get(cell)
        assert view.get(filled.held.id, revision=1) == filled.held
        assert [hit.score for hit in view.recall(QUERY).hits] == [hit.score for hit in found.hits]
        assert view.explain(filled.receipt.id).verified
        copied = again.snapshot(tmp_path / "two.cma.jsonl")
        assert copied.store_digest == digest
        view.write("life goes on", kind="episodic", origin="test", observed_at=clock.now())
        assert again.generation == generation + 1
        assert again.verify().cells == told.cells + 1
    with pytest.raises(CmaError) as no:
        memory.snapshot(tmp_path / "one.cma.jsonl")
    assert no.value.reason is Reason.SNAPSHOT_TARGET_EXISTS
    assert (tmp_path / "one.cma.jsonl").read_bytes() == data
    before = (tmp_path / "again.cma").read_bytes()
    with pytest.raises(CmaError) as no:
        restore(tmp_path / "one.cma.jsonl", tmp_path / "again.cma")
    assert no.value.reason is Reason.SNAPSHOT_TARGET_EXISTS
    assert (tmp_path / "again.cma").read_bytes() == before


@pytest.mark.contract("R11")
def test_a_changed_snapshot_is_refused_whole(memory, ann, filled, tmp_path, restore):
    """A changed envelope, hash, topology or cell is refused, and nothing is loaded."""
    memory.snapshot(tmp_path / "good.cma.jsonl")
    good = (tmp_path / "good.cma.jsonl").read_bytes()
    lines = good.splitlines(keepends=True)
    assert sealed(lines) == good
    head = json.loads(lines[0])
    claim, source = filled.claim, filled.cells[0]
    admission, approval = (
        next(
            json.loads(line)["record"]["id"]
            for line in lines[1:]
            if f'"kind":"{kind}"'.encode() in line and b'"CR-1"' in line
        )
        for kind in ("admission", "approval")
    )
    place = {json.loads(line)["type"]: number for number, line in enumerate(lines) if number}
    last = json.loads(lines[place["audit"]])
    turned = lines.copy()
    turned[1:3] = turned[2:0:-1]
    twice = [*lines, lines[-1]]
    spaced = [*lines[:-1], lines[-1].replace(b'"record":', b'"record": ', 1)]
    other_hash = {**last, "hash": "0" * 64}
    rehashed = [*lines[: place["audit"]], packed(other_hash) + b"\n", *lines[place["audit"] + 1 :]]
    shorter = [*lines[: place["audit"]], *lines[place["audit"] + 1 :]]
    told = {**last["record"], "actor": "somebody else"}
    rewritten = [
        *lines[: place["audit"]],
        packed({**last, "record": told}) + b"\n",
        *lines[place["audit"] + 1 :],
    ]
    [replay] = ann.links_of(source, kind="replay")
    misled = decided(lines, filled.decision.id, replay.id)
    counts = {**head["counts"], "cell": head["counts"]["cell"] + 1}
    cases = {
        "envelope altered": (
            good.replace(b'"generation":', b'"generation":1', 1),
            Reason.SNAPSHOT_ENVELOPE,
        ),
        "envelope of a later release": (sealed(lines, version=2), Reason.SNAPSHOT_NEWER),
        "envelope of another format": (sealed(lines, format="other"), Reason.SNAPSHOT_ENVELOPE),
        "envelope with more": (sealed(lines, note="x"), Reason.SNAPSHOT_ENVELOPE),
        "another store digest": (sealed(lines, store_digest="0" * 64), Reason.SNAPSHOT_ENVELOPE),
        "another generation": (
            sealed(lines, generation=head["generation"] + 1),
            Reason.SNAPSHOT_CHAIN,
        ),
        "another chain head": (sealed(lines, audit_head="0" * 64), Reason.SNAPSHOT_CHAIN),
        "another store id": (sealed(lines, store_id="another"), Reason.SNAPSHOT_CHAIN),
        "other counts": (sealed(lines, counts=counts), Reason.SNAPSHOT_COUNTS),
        "empty": (b"", Reason.SNAPSHOT_ENVELOPE),
        "a byte flipped": (good[:-20] + bytes([good[-20] ^ 1]) + good[-19:], Reason.SNAPSHOT_HASH),
        "cut short": (b"".join(lines[:-1]), Reason.SNAPSHOT_HASH),
        "another digest of records": (
            sealed(lines, records_sha256="0" * 64),
            Reason.SNAPSHOT_HASH,
        ),
        "a record of the chain dropped": (
            sealed(shorter, counts=counted(shorter)),
            Reason.SNAPSHOT_CHAIN,
        ),
        "another hash in the chain": (sealed(rehashed), Reason.SNAPSHOT_CHAIN),
        "the chain rewritten": (sealed(rewritten), Reason.SNAPSHOT_CHAIN),
        "lines turned": (sealed(turned), Reason.SNAPSHOT_RECORD),
        "a line twice": (sealed(twice, counts=counted(twice)), Reason.SNAPSHOT_RECORD),
        "a line not canonical": (sealed(spaced), Reason.SNAPSHOT_RECORD),
        "a source gone": (without(lines, source), Reason.SNAPSHOT_TOPOLOGY),
        "an admission gone": (without(lines, admission), Reason.SNAPSHOT_TOPOLOGY),
        "an approval gone": (without(lines, approval), Reason.SNAPSHOT_TOPOLOGY),
        "a candidate gone": (without(lines, claim.source.origin), Reason.SNAPSHOT_TOPOLOGY),
        "a frame gone": (without(lines, filled.frames[0].id), Reason.SNAPSHOT_TOPOLOGY),
        "a conflict gone": (without(lines, filled.conflict.id), Reason.SNAPSHOT_TOPOLOGY),
        "a claim gone": (without(lines, claim.id), Reason.SNAPSHOT_TOPOLOGY),
        "a cell's content": (
            changed(lines, claim.id, content="Ann ships nothing"),
            Reason.SNAPSHOT_IDENTITY,
        ),
        "a cell's importance": (
            changed(lines, claim.id, importance=1_000_000),
            Reason.SNAPSHOT_IDENTITY,
        ),
        "a later revision": (
            changed(lines, filled.held.id, revision=2, importance=1_000_000),
            Reason.SNAPSHOT_CHAIN,
        ),
        "a cell out of bounds": (
            changed(lines, claim.id, importance=1_000_001),
            Reason.SNAPSHOT_RECORD,
        ),
        "a cell with a part more": (changed(lines, source, note="x"), Reason.SNAPSHOT_RECORD),
        "a link's end": (
            changed(lines, filled.conflict.id, source_id=filled.cells[2]),
            Reason.SNAPSHOT_IDENTITY,
        ),
        "a decision's handling": (
            changed(lines, filled.decision.id, identity={"handling": "defer"}),
            Reason.SNAPSHOT_IDENTITY,
        ),
        "a decision on no conflict": (misled, Reason.SNAPSHOT_TOPOLOGY),
        "an approval without its proposal": (
            changed(lines, approval, refs=[]),
            Reason.SNAPSHOT_TOPOLOGY,
        ),
        "an approver": (
            changed(lines, approval, by="somebody else"),
            Reason.SNAPSHOT_CHAIN,
        ),
    }
    # Several rules would refuse these; the first of them says what is the matter.
    said = {"a decision on no conflict": "no conflict", "a source gone": "no episodic cell"}
    digest, files = memory.digest(), sorted(tmp_path.iterdir())
    wrong = {}
    for name, (data, reason) in cases.items():
        assert data != good, name
        bad = tmp_path / "bad.cma.jsonl"
        bad.write_bytes(data)
        try:
            restore(bad, tmp_path / "new.cma").close()
            wrong[name] = "restored"
        except CmaError as error:
            if error.reason is not reason or said.get(name, "") not in str(error):
                wrong[name] = f"{error.reason}: {error}"
        bad.unlink()
        assert sorted(tmp_path.iterdir()) == files, name
    assert wrong == {}
    assert memory.digest() == digest
    (tmp_path / "link.cma.jsonl").symlink_to(tmp_path / "good.cma.jsonl")
    for no_file in ("link.cma.jsonl", "nothing.cma.jsonl"):
        with pytest.raises(CmaError) as caught:
            restore(tmp_path / no_file, tmp_path / "new.cma")
        assert caught.value.reason is Reason.SNAPSHOT_NOT_FOUND
    assert not (tmp_path / "new.cma").exists()
    restore(tmp_path / "good.cma.jsonl", tmp_path / "new.cma").close()

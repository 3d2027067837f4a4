"""Erasure, proven on bytes: marked words in every field that holds text, before and after.

Each field that a person could have written has a word of its own. Before the erasure every word is
found in the store's files; after it none is, in no file of the folder, nor in a snapshot made
later, nor in a store restored from that.
"""

from __future__ import annotations

import json
import tempfile
from datetime import timedelta
from pathlib import Path
from typing import Any

import apsw
import pytest
from jsonschema import Draft202012Validator

from cma import Cell, FixedClock, Memory
from cma.orion import cleaning
from cma.orion.store import Store
from cma.rendering import as_json
from cma.rosette.blanks import WITH_TEXT, WITHOUT_TEXT
from cma.rosette.topology import KINDS
from cma.schemas.making import place
from tests.faults.injection import CALLER, START, hold, remember
from tests.faults.marked import WHY, WORDS, found_in, told


def test_no_byte_of_any_text_is_left(ann: Memory, path: Path, monkeypatch: Any) -> None:
    temporary = path.parent / "temporary"
    temporary.mkdir()
    for name in ("TMPDIR", "SQLITE_TMPDIR"):
        monkeypatch.setenv(name, str(temporary))
    monkeypatch.setattr(tempfile, "tempdir", None)
    ids = told(ann)
    assert {word for word, _ in found_in(path.parent)} == set(WORDS)

    done = ann.erase(ids.cell, reason=WHY)

    assert (done.cleaned, done.revisions, done.still_quoting) == (True, 2, ())
    assert found_in(path.parent) == set()  # the store is open: file, log, its index, anchor
    assert {ids.frame, ids.pending, ids.run, ids.trace, ids.elsewhere, ids.receipt, ids.packet} <= {
        *done.blanked
    }
    ann.snapshot(path.with_name("later.cma.jsonl"))
    Memory.restore(path.with_name("later.cma.jsonl"), path.with_name("restored.cma")).close()
    ann.close()
    assert found_in(path.parent) == set()
    with Memory.open(path.with_name("restored.cma"), caller=CALLER) as restored:
        restored.verify()
        assert restored.within("session:ann").get(ids.cell).lifecycle == "erased"
        assert restored.within("session:ann").erase(ids.other, reason=WHY).cleaned


def test_the_search_finds_what_is_there(ann: Memory, path: Path) -> None:
    """The control: without an erasure, and with an erasure whose bytes are not overwritten."""
    ids = told(ann)
    connection = ann.store.connection
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    assert {word for word, name in found_in(path.parent) if name == path.name} == set(WORDS)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Store, "clean", lambda _: False)
        assert not ann.erase(ids.cell, reason=WHY).cleaned
    assert "quagmark" in {word for word, _ in found_in(path.parent)}


def test_what_is_left_has_its_form(ann: Memory, path: Path) -> None:
    """Every line of a snapshot, and every value that is printed, fits its published schema."""
    ids = told(ann)
    ann.erase(ids.cell, reason=WHY)
    ann.snapshot(path.with_name("later.cma.jsonl"))
    lines = path.with_name("later.cma.jsonl").read_bytes().splitlines()[1:]
    printed = {
        "cell": ann.get(ids.cell),
        "frame": ann.frame(ids.frame),
        "proposal": ann.proposal(ids.pending),
        "request_explanation": ann.explain(ids.receipt),
    }
    found = [("stored/snapshot_line", json.loads(line)) for line in lines]
    found += [(f"values/{name}", json.loads(as_json(each))) for name, each in printed.items()]
    for name, content in found:
        schema = json.loads(place(name).read_text(encoding="utf-8"))
        assert not [each.message for each in Draft202012Validator(schema).iter_errors(content)]
    assert Cell.model_validate(ann.get(ids.cell)) == ann.get(ids.cell)


def test_every_revision_of_a_working_cell_goes(ann: Memory, path: Path) -> None:
    note = hold(ann, "firstquag thought", ttl=3_600)
    ann.update(note.id, content="secondquag thought")
    assert ann.erase(note.id, reason=WHY).revisions == 2
    assert found_in(path.parent, ("firstquag", "secondquag")) == set()
    assert [ann.get(note.id, revision=number).content for number in (1, 2)] == ["", ""]
    assert ann.get(note.id).expires_at == note.expires_at
    ann.verify()


def test_what_is_left_says_who_when_which_and_why(ann: Memory, clock: FixedClock) -> None:
    ids = told(ann)
    before = ann.get(ids.cell)
    clock.advance(timedelta(hours=1))
    done = ann.erase(ids.cell, reason="retention-ended")
    left = ann.get(ids.cell)
    kept = ("id", "kind", "scope", "revision", "created_at", "observed_at", "expires_at")
    assert [getattr(left, name) for name in kept] == [getattr(before, name) for name in kept]
    assert (left.content, left.summary, left.source.origin) == ("", "", "erased")
    recorded = [
        each for each in ann.explain(ids.receipt).served[0].history if each.operation == "redact"
    ]
    assert {(each.actor, each.reason, each.subjects[0]) for each in recorded} == {
        ("tester", "retention-ended", ids.cell)
    }
    assert {each.at for each in recorded} == {done.at} == {clock.now()}


def test_what_names_the_cell_still_resolves(ann: Memory) -> None:
    ids = told(ann)
    ann.erase(ids.cell, reason=WHY)
    explained = ann.explain(ids.receipt)
    assert explained.verified
    assert (explained.trace.query, explained.trace.terms) == ("", ())
    assert [each.id for each in explained.served] == [ids.cell]
    assert explained.served[0].cell.lifecycle == "erased"
    assert [link.source_id for link in ann.links_of(ids.other)] == [ids.cell] * 2
    assert {link.evidence for link in ann.links_of(ids.other)} == {None}
    frame = ann.frame(ids.frame)
    assert (frame.erased, frame.cells) == (True, (ids.cell, ids.other))
    assert [step.state for step in ann.replay(ids.frame).steps] == ["erased", "present"]
    assert ann.proposal(ids.pending).candidate.erased
    ann.verify()


def test_the_digest_changes_and_is_the_same_everywhere(tmp_path: Path) -> None:
    digests = []
    for name in ("one", "two"):
        with Memory.open(
            tmp_path / name, caller=CALLER, clock=FixedClock(START), store_id=name
        ) as memory:
            ids = told(memory.within("session:ann"))
            before = memory.digest()
            memory.within("session:ann").erase(ids.cell, reason=WHY)
            digests.append((before, memory.digest()))
    assert digests[0] == digests[1]
    assert digests[0][0] != digests[0][1]


def test_recall_forgets_at_once_in_every_open_memory(ann: Memory, path: Path) -> None:
    ids = told(ann)
    with Memory.open(path, caller=CALLER, clock=FixedClock(START)) as again:
        other = again.within("session:ann")
        assert ids.cell in {hit.cell.id for hit in other.recall("quagmarkings remark").hits}
        ann.erase(ids.cell, reason=WHY)
        for view in (ann, other):
            served = view.recall("quagmarkings remark", include_inactive=True)
            assert {hit.cell.content for hit in served.hits} == {
                "an innocent remark",
                "a plain remark",
            }
            followed = view._indexes._followed["unicode"]
            assert ids.cell not in followed.index
            assert "quagmarkings" not in followed.index._postings._codes
        again.verify()


def test_a_read_that_comes_late_keeps_nothing(ann: Memory, path: Path) -> None:
    cell = remember(ann, "latequag is what it says")
    with Memory.open(path, caller=CALLER, clock=FixedClock(START)) as again:
        again.store.reads.close()  # as in a process that is about to record what it read
        late = again.within("session:ann").recall("latequag").trace
        ann.erase(cell.id, reason=WHY)
    assert ann.explain(late.id).trace.query == ""
    assert cleaning.clean(ann.store.connection)
    ann.verify()


def test_an_old_store_opens_and_erases(ann: Memory, path: Path) -> None:
    ids = told(ann)
    ann.close()
    connection = apsw.Connection(str(path))
    connection.execute("DROP TABLE cleaning; DROP INDEX cells_erased; PRAGMA user_version=2")
    connection.close()
    with Memory.open(path, caller=CALLER) as opened:
        assert opened.within("session:ann").erase(ids.cell, reason=WHY).cleaned
        opened.verify()
    assert found_in(path.parent) == set()


def test_every_kind_of_record_is_known_to_hold_text_or_none() -> None:
    assert frozenset().union(*KINDS.values()) == WITH_TEXT | WITHOUT_TEXT
    assert not WITH_TEXT & WITHOUT_TEXT


def test_a_kept_index_goes_with_the_words(ann: Memory, path: Path) -> None:
    cell = remember(ann, "keptquag is what it says")
    kept = ann.keep_index()
    assert ("keptquag", kept.name) in found_in(path.parent, ("keptquag",))
    with pytest.MonkeyPatch.context() as patch:  # one that is kept again before it was cleaned
        patch.setattr(Store, "clean", lambda _: False)
        old = kept.read_bytes()
        assert not ann.erase(cell.id, reason=WHY).cleaned
        kept.write_bytes(old)
    ann.close()
    Memory.open(path).close()
    assert found_in(path.parent, ("keptquag",)) == set()

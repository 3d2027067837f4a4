"""What an id tells of erased content: all, to whoever can guess the cell; nothing, with a salt."""

from __future__ import annotations

from pathlib import Path
from random import Random

from cma import Memory
from cma.orion.analysis import ANALYSERS
from cma.orion.cells import Authority, Cell, CellDraft
from cma.orion.index import Entry, Index
from cma.orion.records import cell_id, identity_of_draft
from cma.orion.salting import SALT, salted
from cma.values.clock import microseconds
from tests.faults.injection import START, remember

PIN = "the pin is 4711"


def guessed(pin: int, cell: Cell, **metadata: object) -> str:
    """Return the id that a cell would have if this were the pin; all else is known."""
    draft = CellDraft(
        kind=cell.kind,
        content=f"the pin is {pin}",
        origin="test",
        observed_at=START,
        metadata=metadata,
    )
    return cell_id(identity_of_draft(draft, cell.scope, Authority.USER))


def test_an_id_confirms_a_guess_of_all_that_it_is_made_of(ann: Memory) -> None:
    cell = remember(ann, PIN)
    ann.erase(cell.id, reason="person-request")
    left = ann.get(cell.id)
    assert [pin for pin in range(4700, 4720) if guessed(pin, left) == left.id] == [4711]


def test_a_salt_keeps_a_guess_from_being_confirmed(ann: Memory, path: Path) -> None:
    draw = Random(7).randbytes
    cell = remember(ann, PIN, metadata=salted({"speaker": "Ann"}, draw=draw))
    salt = cell.metadata.attributes[SALT]
    assert guessed(4711, cell, **salted({"speaker": "Ann"}, draw=Random(7).randbytes)) == cell.id
    assert str(salt).encode() in b"".join(p.read_bytes() for p in path.parent.iterdir())
    ann.erase(cell.id, reason="person-request")
    assert not [pin for pin in range(10_000) if guessed(pin, cell, speaker="Ann") == cell.id]
    assert str(salt).encode() not in b"".join(p.read_bytes() for p in path.parent.iterdir())
    ann.verify()


def test_the_index_in_a_trace_confirms_no_guess_either(ann: Memory) -> None:
    """Whoever holds all other cells can make the digest of an index that holds the guess too."""
    plain = remember(ann, PIN)
    shown = ann.recall("pin").trace.index_digest
    assert _with_guess(plain, 4711) == shown
    assert _with_guess(plain, 4712) != shown
    salty = remember(ann, PIN, minutes=1, metadata=salted())
    shown = ann.recall("pin").trace.index_digest
    ann.erase(salty.id, reason="person-request")
    assert _with_guess(plain, 4711, _guess(salty, 4711)) != shown


def _guess(cell: Cell, pin: int) -> Entry:
    at = microseconds(cell.observed_at or cell.created_at)
    terms = ANALYSERS["unicode"](f"the pin is {pin}")
    return Entry(cell.id, 1, 0, cell.confidence, cell.importance, at, terms)


def _with_guess(cell: Cell, pin: int, *others: Entry) -> str:
    index = Index()
    index.add_many([_guess(cell, pin), *others])
    return index.digest


def test_a_salt_is_another_each_time(ann: Memory) -> None:
    assert len({remember(ann, PIN, metadata=salted()).id for _ in range(3)}) == 3
    assert remember(ann, PIN).id == remember(ann, PIN).id

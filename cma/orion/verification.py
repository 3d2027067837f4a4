"""Verification of a whole store: database, anchor, chain and records, read and never mended."""

from __future__ import annotations

import apsw

from cma.orion.agreement import check_records, read_story
from cma.orion.anchor import Anchor, anchor_path, locked, newest, read_slots
from cma.orion.authority import store_digest
from cma.orion.connection import database_errors
from cma.orion.store import Store
from cma.values.errors import Reason, StoreRefusedError
from cma.values.validation import Value


class Verification(Value):
    """What was verified. `tail_pinned` says whether the anchor names the very last record."""

    store_id: str
    audit_records: int
    audit_head: str
    cells: int
    revisions: int
    links: int
    governed: int
    attendant: int
    traces: int
    generation: int
    store_digest: str
    tail_pinned: bool


def verify_store(store: Store) -> Verification:
    """Recompute the chain and hold every stored record against it.

    Raises StoreRefusedError with `store-damaged`, `chain-broken`, `anchor-disagrees`,
    `state-disagrees` or `reference-missing`, naming the first thing that is wrong.
    """
    store.flush_reads()
    anchor = _anchor_of(store)  # read first: what it names was committed before it
    with database_errors(store.path), store.reading() as connection:
        check_database(connection, store.path.name)
        story = read_story(connection, store.store_id)
        pinned = _check_anchor(store, anchor, story.audit_records)
        agreed = check_records(connection, story)
        return Verification(
            store_id=store.store_id,
            audit_records=agreed.audit_records,
            audit_head=agreed.audit_head.hex(),
            cells=agreed.cells,
            revisions=agreed.revisions,
            links=agreed.links,
            governed=agreed.governed,
            attendant=agreed.attendant,
            traces=agreed.traces,
            generation=agreed.generation,
            store_digest=store_digest(connection),
            tail_pinned=pinned,
        )


def check_database(connection: apsw.Connection, name: str) -> None:
    """Let the database check its own pages. Raises StoreRefusedError (`store-damaged`)."""
    answer = connection.execute("PRAGMA integrity_check(1)").fetchone()[0]
    if answer != "ok":
        raise StoreRefusedError(
            Reason.STORE_DAMAGED,
            f"the database says: {answer}",
            field="store",
            value=name,
            remedy="keep the file as it is and go back to a backup of both files",
        )


def _anchor_of(store: Store) -> Anchor | None:
    with locked(anchor_path(store.path)) as anchor_file:
        return newest(read_slots(anchor_file))


def _check_anchor(store: Store, anchor: Anchor | None, last: int) -> bool:
    row = (
        anchor
        and store.connection.execute(
            "SELECT hash FROM audit WHERE seq = ?", (anchor.seq,)
        ).fetchone()
    )
    if anchor is None or anchor.store_id != store.store_id or not row or row[0] != anchor.head:
        raise StoreRefusedError(
            Reason.ANCHOR_DISAGREES,
            "store and anchor tell different histories",
            field="anchor",
            value=anchor_path(store.path).name,
            remedy="keep both files as they are and go back to a backup of both files",
        )
    return anchor.seq == last

"""The store: one SQLite file, its anchor, and transitions that happen whole or not at all.

Rules:
- A transition is one transaction that carries its audit records. It is acknowledged after the
  database synced it and the anchor names its head.
- A transition that is refused is rolled back whole; then one `reject` record is appended. The
  store's digest, which covers authoritative records alone, is as it was.
- Each thread has a connection of its own; a store is not used across a fork.
"""

from __future__ import annotations

import atexit
import os
import re
import threading
import uuid
import weakref
from collections.abc import Callable, Iterator
from contextlib import (
    AbstractContextManager,
    _GeneratorContextManager,
    contextmanager,
    suppress,
)
from datetime import datetime
from functools import partial, wraps
from pathlib import Path

import apsw

from cma.orion.anchor import Anchor, advancing, anchor_path
from cma.orion.audit import ChainWriter, Operation, Row
from cma.orion.authority import audit_rows, store_digest
from cma.orion.cleaning import clean
from cma.orion.connection import (
    allow_checkpoint,
    connect,
    database_errors,
    use_write_ahead_log,
)
from cma.orion.late_reads import blank_late_reads, blanks_among
from cma.orion.opening import (
    STORE_ACTOR,
    accepted_store,
    create_store,
    file_identity,
    head_of,
    store_path,
)
from cma.orion.reads import Read, ReadQueue
from cma.orion.transition import Transition
from cma.values.clock import Clock, SystemClock, in_utc
from cma.values.errors import (
    CmaError,
    InvalidValueError,
    Reason,
    StoreRefusedError,
    StoreUnavailableError,
)

_STORE_ID = re.compile(r"[A-Za-z0-9_.-]{1,64}")


def _known_until_left(
    block: Callable[[Store, str], _GeneratorContextManager[Transition]],
) -> Callable[[Store, str], AbstractContextManager[Transition]]:
    """Let the store know a block until it ends.

    Python may raise an interrupt on entering the exit of a `with`, which is then never run.
    """

    @wraps(block)
    def begin(store: Store, actor: str) -> AbstractContextManager[Transition]:
        begun = block(store, actor)
        before = [known for known in getattr(store._local, "begun", ()) if known() is not None]
        store._local.begun = [*before, weakref.ref(begun.gen)]
        return begun

    return begin


class Store:
    """An open store. Use `Store.open`; close it, or use it as a context manager."""

    def __init__(self, path: Path, store_id: str, clock: Clock, vfs: str | None) -> None:
        """Hold an accepted file; `Store.open` is the way in."""
        self.path = path
        self.store_id = store_id
        self.clock = clock
        self._vfs = vfs
        self._process = os.getpid()
        self._local = threading.local()
        # A thread's own connection is held by the thread alone, and closes when the thread ends.
        self._connections: weakref.WeakSet[apsw.Connection] = weakref.WeakSet()
        self._file = file_identity(path)
        self._writing = threading.RLock()
        self._closed = False
        self.reads = ReadQueue(self.flush_reads)
        # An interpreter that ends without `close` still records the reads that wait.
        self._at_exit = partial(_close_at_exit, weakref.ref(self))
        atexit.register(self._at_exit)

    @classmethod
    def open(
        cls,
        path: str | os.PathLike[str],
        *,
        clock: Clock | None = None,
        store_id: str | None = None,
        vfs: str | None = None,
    ) -> Store:
        """Open a store, or create one where no file is.

        clock: where time comes from. store_id: the name that a new store gets (random by
        default). vfs: a registered apsw VFS, for tests that inject faults.

        Raises StoreRefusedError when file, anchor or chain cannot be trusted; the files stay as
        they were.
        """
        place = store_path(path)
        clock = clock or SystemClock()
        named = isinstance(store_id, str) and _STORE_ID.fullmatch(store_id) is not None
        if store_id is not None and not named:
            raise InvalidValueError(
                Reason.FIELD_INVALID,
                "not the name of a store",
                field="store_id",
                value=store_id,
                remedy="use up to 64 ASCII letters, digits, dots, dashes and underscores",
            )
        with database_errors(place):
            if not place.exists() and not place.is_symlink():
                create_store(place, store_id or uuid.uuid4().hex, clock, vfs)
            return cls(place, accepted_store(place, vfs), clock, vfs)

    def __enter__(self) -> Store:
        """Return the store itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close."""
        self.close()

    def close(self) -> None:
        """Record the reads that wait and close every connection. Closing twice is harmless."""
        if self._closed or os.getpid() != self._process:
            return
        atexit.unregister(self._at_exit)
        self._let_go()
        self.reads.close()
        try:
            self.flush_reads()
        finally:
            self._closed = True
            for connection in list(self._connections):
                with suppress(apsw.Error):
                    connection.close()

    @property
    def connection(self) -> apsw.Connection:
        """This thread's connection."""
        self.check_usable()
        connection: apsw.Connection | None = getattr(self._local, "connection", None)
        if connection is None:
            with database_errors(self.path):
                connection = connect(self.path, vfs=self._vfs)
                use_write_ahead_log(connection, self.path)
                allow_checkpoint(connection)
            self._local.connection = connection
            self._connections.add(connection)
        return connection

    def now(self) -> datetime:
        """Return the present by the store's clock, in UTC; refuse a clock that tells no instant."""
        return in_utc(self.clock.now(), field="clock")

    def check_usable(self) -> None:
        """Raise StoreUnavailableError after a fork (`store-forked`) or `close` (`store-closed`).

        Asked before any lock is taken: in the child of a fork a lock may be held for ever.
        """
        if os.getpid() != self._process:
            raise StoreUnavailableError(
                Reason.STORE_FORKED,
                "this store was opened before a fork",
                field="store",
                value=self.path.name,
                remedy="open it anew in the child process",
            )
        if self._closed:
            raise StoreUnavailableError(
                Reason.STORE_CLOSED,
                "the store was closed",
                field="store",
                value=self.path.name,
                remedy="open it again",
            )

    def head(self) -> tuple[int, bytes, int]:
        """Return number, hash and generation of the last audit record."""
        with database_errors(self.path):
            return head_of(self.connection)

    def generation(self) -> int:
        """Return the generation of memory: raised by each committed change of it."""
        return self.head()[2]

    def digest(self) -> str:
        """Return SHA-256 over the authoritative records in sorted canonical form, streamed."""
        with database_errors(self.path), self.reading() as connection:
            return store_digest(connection)

    @contextmanager
    def reading(self) -> Iterator[apsw.Connection]:
        """Give one consistent view of the store for several queries."""
        connection = self.connection
        if connection.in_transaction:
            yield connection
            return
        try:  # an interrupt may come as soon as it has begun
            connection.execute("BEGIN")
            yield connection
        finally:
            if connection.in_transaction:
                connection.execute("ROLLBACK")

    @_known_until_left
    @contextmanager
    def transition(self, actor: str) -> Iterator[Transition]:
        """Run one transition: all of it is committed and anchored, or none of it.

        A CmaError raised inside leaves one `reject` record with its reason code.
        """
        self.check_usable()
        with self._writing, database_errors(self.path):
            try:
                with self._transaction(actor) as transition:
                    yield transition
            except (StoreUnavailableError, StoreRefusedError):
                raise
            except CmaError as error:
                self.record_rejection(actor, error)
                raise

    def record_rejection(self, actor: str, error: CmaError) -> None:
        """Append the failure record of a refused transition: its code and field, no values.

        Every scope reads it, so what a caller made up within a field's name is not in it.
        """
        self.check_usable()
        field = error.field or ""
        if error.made_up:
            field = f"{field[: -error.made_up]}*"
        detail = field[:200].encode(errors="backslashreplace").decode()
        with self._writing, database_errors(self.path), self._transaction(actor) as transition:
            transition.record(
                Operation.REJECT,
                error.subjects,
                reason=error.code,
                policy=error.policy,
                detail=detail or None,
            )

    def flush_reads(self) -> None:
        """Commit the read records that wait."""
        self.check_usable()
        with self._writing:
            if self.reads.is_empty():
                return
            with database_errors(self.path), self._transaction(STORE_ACTOR):
                pass

    def clean(self) -> bool:
        """Overwrite the bytes of what was erased; tell whether nothing of it is left to do.

        Over a connection of its own, so that no query of this thread is in its way.
        """
        self.check_usable()
        with database_errors(self.path):
            connection = connect(self.path, vfs=self._vfs)
            try:
                use_write_ahead_log(connection, self.path)
                allow_checkpoint(connection)
                return clean(connection)
            finally:
                connection.close()

    def audit_rows(self, *, after: int | None = None) -> Iterator[Row]:
        """Yield the rows of the audit chain behind a number, in order."""
        yield from audit_rows(self.connection, after=after)

    @_known_until_left
    @contextmanager
    def _transaction(self, actor: str) -> Iterator[Transition]:
        connection = self.connection
        if file_identity(self.path) != self._file:
            raise StoreRefusedError(
                Reason.STORE_NOT_FOUND,
                "the file was moved, deleted or replaced while the store was open",
                field="store",
                value=self.path.name,
                remedy="put the file back or open the store anew",
            )
        reads: list[Read] = []
        within = connection.in_transaction  # another's, which is not ours to end
        try:  # an interrupt may come as soon as it has begun
            connection.execute("BEGIN IMMEDIATE")
            self.reads.take(reads)
            seq, head, generation = head_of(connection)
            at = self.now()
            chain = ChainWriter(
                self.store_id, seq=seq, head=head, generation=generation, at=at, actor=actor
            )
            transition = Transition(connection, chain, at, actor)
            self._add_reads(transition, reads)
            yield transition
            transition.flush()
            if chain.seq == seq:
                connection.execute("COMMIT")
                return
            with advancing(anchor_path(self.path), self.store_id, seq) as move_anchor:
                try:
                    connection.execute("COMMIT")
                except BaseException:  # an interrupt can come when all is committed
                    if not connection.in_transaction and head_of(connection)[1] == chain.head:
                        reads = []
                    raise
                reads = []
                move_anchor(Anchor(self.store_id, chain.seq, chain.head))
        except BaseException:
            try:
                self.reads.put_back(reads)
            finally:
                if connection.in_transaction and not within:
                    connection.execute("ROLLBACK")
            raise

    def _let_go(self) -> None:
        """End what blocks of this thread left when an interrupt kept them from their own end."""
        for known in getattr(self._local, "begun", ()):
            if (block := known()) is not None:
                block.close()
        while self._writing._is_owned():  # type: ignore[attr-defined]  # as Condition asks it
            self._writing.release()

    def _add_reads(self, transition: Transition, reads: list[Read]) -> None:
        transition.connection.executemany(
            "INSERT OR IGNORE INTO traces (id, record) VALUES (?, ?)",
            [(read.trace_id, read.trace) for read in reads],
        )
        blank = blanks_among(transition, reads)
        for read in reads:
            transition.rows.append(
                transition.chain.seal(
                    Operation.READ.value,
                    (read.trace_id,),
                    after=blank.get(read.trace_id, read.trace_digest),
                    at=read.at,
                    actor=read.actor,
                )
            )
        blank_late_reads(transition, [read.trace_id for read in reads])


def _close_at_exit(store: weakref.ref[Store]) -> None:
    open_store = store()
    if open_store is not None:
        with suppress(CmaError):  # the disk may be gone by now, and there is nobody to tell
            open_store.close()

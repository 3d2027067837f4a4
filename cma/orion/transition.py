"""A transition in the making: one transaction, the present, and a growing audit chain."""

from __future__ import annotations

from datetime import datetime

import apsw

from cma.orion.audit import ChainWriter, Operation, Row
from cma.orion.opening import AUDIT_INSERT


class Transition:
    """One transaction in the making: a connection, the present, and a growing audit chain."""

    def __init__(
        self, connection: apsw.Connection, chain: ChainWriter, at: datetime, actor: str
    ) -> None:
        """Begin at the chain's head. actor: the name of the caller whose transition this is."""
        self.connection = connection
        self.actor = actor
        self.chain = chain
        self.at = at
        self.rows: list[Row] = []
        self._changed = False

    def change(self) -> int:
        """Declare that authoritative memory changes; return the generation it will have."""
        if not self._changed:
            self._changed = True
            self.chain.generation += 1
        return self.chain.generation

    def record(
        self,
        operation: Operation,
        subjects: tuple[str, ...],
        *,
        before: str | None = None,
        after: str | None = None,
        policy: str | None = None,
        reason: str | None = None,
        detail: str | None = None,
    ) -> None:
        """Add an audit record to this transition."""
        self.rows.append(
            self.chain.seal(
                operation.value,
                subjects,
                before=before,
                after=after,
                policy=policy,
                reason=reason,
                detail=detail,
            )
        )

    def flush(self) -> None:
        """Hand the audit records so far to the database; they stay part of this transaction."""
        self.connection.executemany(AUDIT_INSERT, self.rows)
        self.rows.clear()

"""One tree of errors. Every rejection carries a stable reason code for scripts and reports.

An error says what is wrong (`message`), where (`field`), with which value (shortened to a
readable length) and what to do about it (`remedy`).
"""

from __future__ import annotations

from enum import StrEnum
from typing import Any

SHOWN_VALUE_LENGTH = 80


class Reason(StrEnum):
    """Stable reason codes. A code is never renamed and never reused for another meaning."""

    FIELD_INVALID = "field-invalid"
    """A field of a value breaks its rule."""
    KIND_UNKNOWN = "kind-unknown"
    """The name is none of the four memory kinds or the seven link kinds."""
    TIME_NAIVE = "time-naive"
    """A timestamp came without a zone."""
    CONTENT_EMPTY = "content-empty"
    """The text holds nothing but blanks or invisible characters."""
    CONTENT_TOO_LARGE = "content-too-large"
    """The text is over the documented cap; it is never truncated."""
    METADATA_MISMATCH = "metadata-mismatch"
    """The metadata is not that of the cell's kind."""
    NOT_CANONICAL = "not-canonical"
    """Bytes or values have no canonical form, or are not in it."""
    CELL_NOT_FOUND = "cell-not-found"
    """No cell of that id is visible from this scope."""
    REVISION_NOT_FOUND = "revision-not-found"
    """The cell exists, the revision does not."""
    TRACE_NOT_FOUND = "trace-not-found"
    """No recorded recall has that id."""
    APPROVAL_REQUIRED = "approval-required"
    """Semantic and procedural cells enter only through an approved transition."""
    WITNESSED_CONTENT = "witnessed-content"
    """The content of a witnessed event cannot be edited."""
    CELL_ERASED = "cell-erased"
    """The cell was erased: its id, kind and times are all that is left of it."""
    ERASURE_QUOTES = "erasure-quotes"
    """The note on an erasure shares a word with what is to be erased, and would keep it."""
    CELL_INACTIVE = "cell-inactive"
    """The cell has expired or was retired and takes no more changes."""
    NOTHING_TO_UPDATE = "nothing-to-update"
    """An update named no field, or changed none."""
    GLOBAL_FROM_SESSION = "global-from-session"
    """A session sees the global cells and cannot change them."""
    WORKING_GLOBAL = "working-global"
    """A working cell belongs to a session and cannot be global."""
    EXPIRY_PAST = "expiry-past"
    """An expiry would lie at or before the present."""
    LINK_ENDPOINT_MISSING = "link-endpoint-missing"
    """A link names a cell that is not there."""
    LINK_TO_ITSELF = "link-to-itself"
    """A cell cannot link to itself."""
    LINK_ACROSS_SESSIONS = "link-across-sessions"
    """The cells of two sessions cannot be linked."""
    LINK_DIFFERS = "link-differs"
    """The same link exists with another weight or evidence."""
    LINK_BACKWARD_IN_TIME = "link-backward-in-time"
    """A temporal link must run forward in time."""
    QUERY_EMPTY = "query-empty"
    """A query without a single term matches nothing; it never matches everything."""
    LIMIT_INVALID = "limit-invalid"
    """A limit is a whole number of at least one; nothing means unlimited."""
    STORE_NOT_FOUND = "store-not-found"
    """There is no store file at that path."""
    STORE_NOT_CMA = "store-not-cma"
    """The file is not a CMA store."""
    STORE_NEWER = "store-newer"
    """A later version of CMA wrote this store."""
    STORE_DAMAGED = "store-damaged"
    """The database itself reports damage or cannot be read."""
    STORE_BUSY = "store-busy"
    """Another process kept the store locked for longer than the bounded wait."""
    STORE_IO = "store-io"
    """The disk refused a read, a write or a sync; nothing was acknowledged."""
    STORE_CLOSED = "store-closed"
    """The store was closed."""
    STORE_FORKED = "store-forked"
    """A store opened before a fork is used in the child process."""
    ANCHOR_MISSING = "anchor-missing"
    """The anchor file beside the store is gone or unreadable."""
    ANCHOR_DISAGREES = "anchor-disagrees"
    """Store and anchor tell different histories."""
    CHAIN_BROKEN = "chain-broken"
    """An audit record was altered, dropped, added or moved."""
    STATE_DISAGREES = "state-disagrees"
    """A stored record is not what the audit chain says was stored."""
    INDEX_DISAGREES = "index-disagrees"
    """An index kept beside the store is damaged or of another history."""
    REFERENCE_MISSING = "reference-missing"
    """A stored record names another that is not there."""

    SOURCE_MISSING = "source-missing"
    """A source cell is not there, or not visible from this scope."""
    SOURCE_KIND = "source-kind"
    """A source is of a kind that cannot witness this."""
    SOURCE_ERASED = "source-erased"
    """A source was erased; what was derived from it is quarantined until it is approved anew."""
    SOURCE_INACTIVE = "source-inactive"
    """A source was retired and is no evidence any more."""
    SOURCES_DISORDERED = "sources-disordered"
    """The sources of a frame do not stand in observed order; they are not sorted in silence."""
    INTERVAL_TOO_NARROW = "interval-too-narrow"
    """The interval of a frame does not cover its sources."""
    FRAME_NOT_FOUND = "frame-not-found"
    """No episode frame of that id is visible from this scope."""
    REPLAY_INCOMPLETE = "replay-incomplete"
    """A frame was not replayed completely: a source is missing, altered or out of order."""
    FRAMES_TOO_FEW = "frames-too-few"
    """Fewer episode frames than the policy asks for."""
    SIGNATURES_MIXED = "signatures-mixed"
    """The frames do not share one signature."""
    EVIDENCE_SHARED = "evidence-shared"
    """One source would be counted twice."""
    EVIDENCE_NOT_NEW = "evidence-not-new"
    """A recalled memory that was written back is no new evidence."""

    PROPOSAL_NOT_FOUND = "proposal-not-found"
    """No proposal of that id is visible from this scope."""
    RECORD_ERASED = "record-erased"
    """What the record said was erased together with a cell; it is not used or filed again."""
    PROPOSAL_DECIDED = "proposal-decided"
    """The proposal was approved or rejected before."""
    KINDS_INCOMPATIBLE = "kinds-incompatible"
    """The candidate and its evidence are not of kinds that fit together."""
    EVIDENCE_INCOMPLETE = "evidence-incomplete"
    """The evidence of a proposal is not, or no longer, complete."""
    APPROVAL_MISMATCH = "approval-mismatch"
    """The approval is bound to another proposal."""
    APPROVAL_EXPIRED = "approval-expired"
    """The approval has expired."""
    POLICY_UNAUTHORISED = "policy-unauthorised"
    """The policy does not let this approver approve."""

    EXECUTION_NOT_FOUND = "execution-not-found"
    """No execution trace of that id is visible from this scope."""
    EXECUTIONS_MIXED = "executions-mixed"
    """The execution traces are not of one task with the same steps."""
    EXECUTION_OMITTED = "execution-omitted"
    """A skill candidate leaves out an execution of the same skill, such as a failure."""
    EXECUTIONS_TOO_FEW = "executions-too-few"
    """Fewer executions than the policy asks for."""
    SUCCESS_MISSING = "success-missing"
    """A skill needs at least one execution that succeeded."""
    CONFLICT_NOT_FOUND = "conflict-not-found"
    """No conflict link of that id is visible from this scope."""

    BUDGET_INVALID = "budget-invalid"
    """A budget is a whole number of at least one; nothing means unlimited."""
    PACKET_STALE = "packet-stale"
    """Memory has changed since the packet was built."""
    PACKET_ALTERED = "packet-altered"
    """The packet is not what its digest says."""
    RECEIPT_NOT_FOUND = "receipt-not-found"
    """No delivery of that id was recorded in this scope."""
    NODE_NOT_FOUND = "node-not-found"
    """The graph has no such node that is visible from this scope."""
    GRAPH_CELL_MISSING = "graph-cell-missing"
    """A node of the graph rests on a record that is not there; no part of the graph is given."""

    SNAPSHOT_NOT_FOUND = "snapshot-not-found"
    """There is no plain file of that name."""
    SNAPSHOT_TARGET_EXISTS = "snapshot-target-exists"
    """A file of that name is there already; it is not overwritten."""
    SNAPSHOT_NEWER = "snapshot-newer"
    """A later version of CMA wrote this snapshot."""
    SNAPSHOT_ENVELOPE = "snapshot-envelope"
    """The envelope is not whole, or not what its own digest says."""
    SNAPSHOT_HASH = "snapshot-hash"
    """The records are not those of which the envelope holds the digest."""
    SNAPSHOT_RECORD = "snapshot-record"
    """A line is not a canonical record in its place."""
    SNAPSHOT_COUNTS = "snapshot-counts"
    """The records are not as many as the envelope says."""
    SNAPSHOT_IDENTITY = "snapshot-identity"
    """An id is not that of its content."""
    SNAPSHOT_TOPOLOGY = "snapshot-topology"
    """A record names another that is not there, or derivation runs in a circle."""
    SNAPSHOT_CHAIN = "snapshot-chain"
    """The audit chain of the snapshot is broken, or does not tell of what it holds."""
    PACKET_EMPTY = "packet-empty"
    """A packet that serves nothing cannot reach a model."""
    MODEL_NOT_FOUND = "model-not-found"
    """Neither a folder of that name holds a model, nor can one be fetched."""
    MODEL_FAMILY_UNKNOWN = "model-family-unknown"
    """It is not described where a model of this type keeps its decoder layers."""
    MODEL_COMPILED = "model-compiled"
    """A compiled model may skip the hooks without a word."""
    MODEL_ATTACHED = "model-attached"
    """An adapter is attached already; two would add up."""
    SITE_MISSING = "site-missing"
    """The model has no such layer."""
    SITE_NOT_CALLED = "site-not-called"
    """The model ran without passing a traced layer; that is no zero."""
    BASE_TRAINABLE = "base-trainable"
    """A parameter of the frozen model is trainable, or has a gradient."""
    BASE_CHANGED = "base-changed"
    """The frozen model's weights are not those that were frozen."""
    VECTORS_SHAPE = "vectors-shape"
    """Context vectors are not batch x slots x hidden of this model and batch."""
    VECTORS_MASK = "vectors-mask"
    """The mask is not batch x slots of true and false."""
    VECTORS_NOT_FINITE = "vectors-not-finite"
    """A context vector holds NaN or infinity."""
    VECTORS_DTYPE = "vectors-dtype"
    """The context vectors' numbers are of another type than the runtime's."""
    VECTORS_DEVICE = "vectors-device"
    """The context vectors lie on another device than the model."""
    VECTORS_ZERO = "vectors-zero"
    """A context vector that should carry memory is zero."""


class CmaError(Exception):
    """Root of all errors that CMA raises on purpose."""

    def __init__(
        self,
        reason: Reason,
        message: str,
        *,
        field: str | None = None,
        value: Any = None,
        remedy: str | None = None,
        subjects: tuple[str, ...] = (),
        policy: str | None = None,
    ) -> None:
        """Keep the parts; `str()` joins those that are there.

        subjects and policy: ids of what was refused, and under which policy, for the failure
        record; a message does not repeat them. made_up: how many letters at the field's end are the
        caller's own words, which the record leaves out.
        """
        self.made_up = 0
        self.subjects = subjects
        self.policy = policy
        self.reason = reason
        self.code = str(reason)
        self.message = message
        self.field = field
        self.value = value
        self.remedy = remedy
        super().__init__(message)

    def __reduce__(self) -> tuple[Any, ...]:
        """Travel between processes; a value that may not is sent as the line that shows it."""
        plain = self.value is None or isinstance(self.value, str | int | float)
        value = self.value if plain else shown(self.value)
        more = (self.remedy, self.subjects, self.policy)
        return _rebuilt, (type(self), self.reason, self.message, self.field, value, *more)

    def __str__(self) -> str:
        """One line: code, field, message, value, remedy."""
        parts = [f"[{self.code}]"]
        if self.field:
            parts.append(f"{self.field}:")
        parts.append(self.message)
        if self.value is not None:
            parts.append(f"(got {shown(self.value)})")
        if self.remedy:
            parts.append(f"- {self.remedy}")
        return " ".join(parts)


class InvalidValueError(CmaError, ValueError):
    """A value breaks the rule of its field."""


class NotFoundError(CmaError, LookupError):
    """Something named by id is not there, or not visible from this scope."""


class TransitionRejectedError(CmaError):
    """A change of authoritative memory was refused; memory is as it was."""


class StoreRefusedError(CmaError):
    """A store file, its anchor or its audit chain cannot be trusted or used."""


class SnapshotRejectedError(CmaError):
    """A snapshot disagrees with itself and is refused whole; nothing was written."""


class ModelRefusedError(CmaError):
    """A model, or what should reach it, cannot be used; nothing ran."""


class StoreUnavailableError(CmaError, OSError):
    """The store cannot answer now: locked for too long, closed, forked, or a failing disk."""


def shown(value: object) -> str:
    """Return a value as one short line for a message."""
    try:
        text = repr(value)
    except Exception:  # whole numbers of over 4,300 digits, and what callers define themselves
        text = f"a {type(value).__name__} that cannot be shown"
    return text if len(text) <= SHOWN_VALUE_LENGTH else text[: SHOWN_VALUE_LENGTH - 3] + "..."


def _rebuilt(
    kind: type[CmaError],
    reason: Reason,
    message: str,
    field: str | None,
    value: Any,
    remedy: str | None,
    subjects: tuple[str, ...],
    policy: str | None,
) -> CmaError:
    return kind(
        reason,
        message,
        field=field,
        value=value,
        remedy=remedy,
        subjects=subjects,
        policy=policy,
    )

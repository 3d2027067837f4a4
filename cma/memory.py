"""Memory: the one object through which an agent uses CMA.

A memory is a store seen by a caller from a scope. `within` gives the same memory seen from
another scope. Each method is one transition or one read; a refused transition leaves memory as it
was, adds one failure record, and raises a CmaError with a stable reason code.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cma import review
from cma.eagle.decisions import Decision, conflicts_seen, decide_conflict, decisions_seen
from cma.eagle.executions import ExecutionTrace, record_execution
from cma.eagle.skills import propose_skill
from cma.erasure import Erasure, erase
from cma.lagoon.approvals import Approval
from cma.lagoon.candidates import read_candidate
from cma.lagoon.claims import propose_claim
from cma.lagoon.policy import Policy
from cma.lagoon.standing import Proposal, proposal_of, proposals
from cma.orion.audit import AuditRecord
from cma.orion.cells import Authority, Caller, Cell, CellDraft
from cma.orion.connection import database_errors
from cma.orion.indexes import Indexes
from cma.orion.linking import add_links
from cma.orion.links import Link, LinkDraft
from cma.orion.looking import failures, read_cell, read_links
from cma.orion.recall import recall
from cma.orion.revising import sweep, update_cell
from cma.orion.scopes import GLOBAL, checked_scope
from cma.orion.store import Store
from cma.orion.traces import RecallTrace, Recollection, Retrieval
from cma.orion.verification import Verification, verify_store
from cma.orion.writing import BatchReceipt, batch_of, write_cells
from cma.rosette.delivery import DeliveryReceipt, check_for_model, deliver_packet
from cma.rosette.explaining import RequestExplanation, explain_request
from cma.rosette.graph import GraphView, graph_view
from cma.rosette.packets import ContextPacket
from cma.rosette.packing import build_packet
from cma.rosette.reaching import model_part
from cma.rosette.restoring import restore_snapshot
from cma.rosette.snapshotting import SnapshotReceipt, write_snapshot
from cma.rosette.tokens import PLAIN, TokenCounter
from cma.rosette.topology import check_topology
from cma.rosette.traversal import Traversal, traverse
from cma.trifid.binding import bind_frame
from cma.trifid.frames import EpisodeFrame, all_frames, read_frame
from cma.trifid.replaying import ReplayEvidence, replay_frame
from cma.values.clock import Clock, SystemClock
from cma.values.errors import InvalidValueError
from cma.values.validation import Model, validated

if TYPE_CHECKING:  # torch is an extra, and a memory without a model needs none
    from cma.sun.path import ModelPath

DEFAULT_CALLER = Caller(name="agent", authority=Authority.MODEL)


class Memory:
    """Governed memory in one file. Open it with `Memory.open`, best as a context manager."""

    def __init__(
        self,
        store: Store,
        *,
        caller: Caller,
        retrieval: Retrieval,
        scope: str,
        indexes: Indexes,
        policy: Policy | None = None,
    ) -> None:
        """Hold an open store; `Memory.open` is the way in."""
        self.store = store
        self.caller = caller
        self.retrieval = retrieval
        self.scope = scope
        self.policy = policy or Policy()
        self._indexes = indexes

    @classmethod
    def open(
        cls,
        path: str | os.PathLike[str],
        *,
        caller: Caller = DEFAULT_CALLER,
        clock: Clock | None = None,
        retrieval: Retrieval | None = None,
        store_id: str | None = None,
        policy: Policy | None = None,
        threads: int = 1,
    ) -> Memory:
        """Open the memory in a file, or begin one where no file is.

        caller: its name goes into the audit, its authority into the source of what it writes.
        clock: where time comes from (the machine's by default). retrieval: how to recall unless a
        call says otherwise. store_id: the name of a new store (random by default). policy: how much
        evidence derived memory needs and who may approve it. threads: how many share the work of
        one recall, 1 to 256; the answer is the same, and only stores of many cells gain.

        Raises StoreRefusedError when the file cannot be trusted; nothing is changed then.
        """
        caller = _valid(Caller, caller)
        retrieval = _valid(Retrieval, retrieval or Retrieval())
        policy = _valid(Policy, policy or Policy())
        indexes = Indexes(threads)
        store = Store.open(path, clock=clock, store_id=store_id)
        return cls(
            store,
            caller=caller,
            retrieval=retrieval,
            scope=GLOBAL,
            indexes=indexes,
            policy=policy,
        )

    def within(self, scope: str) -> Memory:
        """Return the same memory seen from another scope: `global` or `session:<id>`."""
        return self._view(scope=checked_scope(scope), caller=self.caller)

    def acting_as(self, caller: Caller) -> Memory:
        """Return the same memory used by another caller, such as the person who approves."""
        return self._view(scope=self.scope, caller=_valid(Caller, caller))

    def __enter__(self) -> Memory:
        """Return the memory itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close the store."""
        self.close()

    def close(self) -> None:
        """Record the reads that wait and close the store, for all its scopes."""
        self.store.close()

    def write(
        self,
        content: str,
        *,
        kind: str,
        origin: str,
        summary: str = "",
        confidence: float = 1.0,
        importance: float = 0.5,
        observed_at: datetime | str | None = None,
        metadata: Mapping[str, Any] | None = None,
    ) -> Cell:
        """Write one working or episodic cell and return it (paper: typed cells, Orion).

        origin: where it came from, in your own terms. confidence, importance: shares from 0 to 1.
        observed_at: when it happened, with a zone; an episodic cell needs it. metadata: that of
        the kind; a working cell needs `ttl_seconds`. A cell that is there already is returned as
        it is and recorded as a duplicate.
        """
        fields = {
            "kind": kind,
            "content": content,
            "origin": origin,
            "summary": summary,
            "confidence": confidence,
            "importance": importance,
            "observed_at": observed_at,
            "metadata": metadata,
        }
        receipt = write_cells(self.store, [fields], scope=self.scope, caller=self.caller)
        return self.get(receipt.ids[0])

    def write_many(self, drafts: Iterable[CellDraft | Mapping[str, Any]]) -> BatchReceipt:
        """Write a batch in one transition: all of it or, when one draft is bad, none.

        The error names the bad draft, as in `drafts[56].confidence`.
        """
        return write_cells(self.store, self._batch(drafts), scope=self.scope, caller=self.caller)

    def link(
        self,
        kind: str,
        source_id: str,
        target_id: str,
        *,
        weight: float | None = None,
        evidence: str | None = None,
    ) -> Link:
        """Link two cells. kind: one of the seven. weight: a share from 0 to 1."""
        fields = {
            "kind": kind,
            "source_id": source_id,
            "target_id": target_id,
            "weight": weight,
            "evidence": evidence,
        }
        links, _ = add_links(self.store, [fields], viewer=self.scope, caller=self.caller)
        return links[0]

    def link_many(self, drafts: Iterable[LinkDraft | Mapping[str, Any]]) -> BatchReceipt:
        """Add a batch of links in one transition: all of it or none."""
        return add_links(self.store, self._batch(drafts), viewer=self.scope, caller=self.caller)[1]

    def links_of(self, cell_id: str, *, kind: str | None = None) -> tuple[Link, ...]:
        """Return the links of a visible cell, seen from either end, ordered by id.

        Links to cells that this scope does not see are left out.
        """
        return read_links(self.store, cell_id, kind=kind, viewer=self.scope)

    def update(self, cell_id: str, **changes: Any) -> Cell:
        """Make a new revision of an active cell; the earlier ones stay readable.

        content, summary, confidence, importance, metadata and lifecycle (`superseded`,
        `retracted`) can change; the content of a witnessed event cannot.
        """
        return update_cell(self.store, cell_id, changes, viewer=self.scope, caller=self.caller)

    def get(self, cell_id: str, *, revision: int | None = None) -> Cell:
        """Return a cell at its latest or a given revision, expired or not.

        Raises NotFoundError (`cell-not-found`, `revision-not-found`).
        """
        return read_cell(self.store, cell_id, revision=revision, viewer=self.scope)

    def erase(self, cell_id: str, *, reason: str) -> Erasure:
        """Erase a cell for good: its words leave the store, its id and times stay.

        reason: `person-request`, `retention-ended`, `written-in-error`, `legal-order`, or a short
        note in words of its own. What names or quotes the cell loses its text too; what was derived
        from it is quarantined and can be proposed and approved anew. Who may approve under the
        memory's policy may erase.
        """
        erasure = erase(
            self.store,
            cell_id,
            reason=reason,
            viewer=self.scope,
            caller=self.caller,
            policy=self.policy,
        )
        self._indexes.forget()
        return erasure

    def keep_index(self, analyser: str | None = None) -> Path:
        """Write the index of an analyser (the memory's own by default) beside the store.

        Returns the file. The next process that opens the store maps it in place of building it.
        Without one, or after it is removed, the index is built from the store. Raises
        InvalidValueError for an analyser that there is not, StoreRefusedError as `recall` does.
        """
        how = _valid(Retrieval, {"analyser": analyser or self.retrieval.analyser})
        with database_errors(self.store.path):
            return self._indexes.keep(self.store, how.analyser)

    def recall(
        self,
        query: str,
        *,
        limit: int = 10,
        retrieval: Retrieval | None = None,
        include_inactive: bool = False,
    ) -> Recollection:
        """Return the cells that best match a query, best first, and the recorded trace.

        limit: at least 1. retrieval: other settings than the memory's own. include_inactive:
        serve expired and retired cells too. Session cells and global ones are served, others'
        never.
        """
        with database_errors(self.store.path):
            return recall(
                self.store,
                self._indexes,
                query,
                limit=limit,
                retrieval=_valid(Retrieval, retrieval or self.retrieval),
                viewer=self.scope,
                include_inactive=include_inactive,
                caller=self.caller,
            )

    def bind(
        self,
        *,
        scene: str,
        sources: Sequence[str],
        entities: Sequence[str] = (),
        goals: Sequence[str] = (),
        actions: Sequence[str] = (),
        outcome: str = "",
        cues: Sequence[str] = (),
        start: datetime | str | None = None,
        end: datetime | str | None = None,
    ) -> EpisodeFrame:
        """Bind episodic cells, in observed order, into an episode frame; no fact is made by it.

        start and end: when the episode lasted, the time of its first and last source by default.
        """
        fields = {
            "scene": scene,
            "sources": sources,
            "entities": entities,
            "goals": goals,
            "actions": actions,
            "outcome": outcome,
            "cues": cues,
            "start": start,
            "end": end,
        }
        return bind_frame(self.store, fields, viewer=self.scope, caller=self.caller)

    def frame(self, frame_id: str) -> EpisodeFrame:
        """Return a frame. Raises NotFoundError (`frame-not-found`)."""
        with database_errors(self.store.path):
            return read_frame(self.store.connection, frame_id, viewer=self.scope)

    def frames(self) -> tuple[EpisodeFrame, ...]:
        """Return the frames that this scope sees, in the order of binding."""
        with database_errors(self.store.path):
            return all_frames(self.store, viewer=self.scope)

    def replay(self, frame_id: str, *, sequence: Sequence[str] | None = None) -> ReplayEvidence:
        """Go through an episode again and record what is seen; an incomplete replay is no error.

        sequence: the cells in the order in which they were gone through, the frame's by default.
        """
        return replay_frame(
            self.store, frame_id, sequence=sequence, viewer=self.scope, caller=self.caller
        )

    def propose(
        self,
        *,
        frames: Sequence[str],
        content: str,
        subject: str,
        predicate: str,
        object: str,
        summary: str = "",
        confidence: float = 1.0,
        importance: float = 0.5,
        scope: str | None = None,
    ) -> Proposal:
        """Propose a semantic cell from replayed episode frames of one signature.

        scope: `global` to propose memory for every session (this scope by default). Memory stays
        as it is until the proposal is approved.
        """
        fields = {
            "frames": frames,
            "content": content,
            "subject": subject,
            "predicate": predicate,
            "object": object,
            "summary": summary,
            "confidence": confidence,
            "importance": importance,
            "scope": scope,
        }
        candidate = propose_claim(
            self.store, fields, viewer=self.scope, caller=self.caller, policy=self.policy
        )
        return self.proposal(candidate.id)

    def execute(
        self, *, task: str, steps: Sequence[str], outcome: str, sources: Sequence[str]
    ) -> ExecutionTrace:
        """Record that a task was carried out by these steps, and its `success` or `failure`."""
        fields = {"task": task, "steps": steps, "outcome": outcome, "sources": sources}
        return record_execution(self.store, fields, viewer=self.scope, caller=self.caller)

    def propose_skill(
        self,
        *,
        executions: Sequence[str],
        content: str | None = None,
        summary: str = "",
        importance: float = 0.5,
        scope: str | None = None,
    ) -> Proposal:
        """Propose a procedural cell from every execution of one skill, failures included."""
        fields = {
            "executions": executions,
            "content": content,
            "summary": summary,
            "importance": importance,
            "scope": scope,
        }
        candidate = propose_skill(
            self.store, fields, viewer=self.scope, caller=self.caller, policy=self.policy
        )
        return self.proposal(candidate.id)

    def proposals(self, status: str | None = None) -> tuple[Proposal, ...]:
        """Return the proposals of this scope, oldest first. status: pending, approved, rejected."""
        with database_errors(self.store.path):
            return proposals(self.store.connection, viewer=self.scope, status=status)

    def proposal(self, candidate_id: str) -> Proposal:
        """Return a proposal and how it stands. Raises NotFoundError (`proposal-not-found`)."""
        with database_errors(self.store.path):
            connection = self.store.connection
            return proposal_of(
                connection, read_candidate(connection, candidate_id, viewer=self.scope)
            )

    def grant(
        self, candidate_id: str, *, approval_id: str, expires_at: datetime | str | None = None
    ) -> Approval:
        """Put an approval by this caller on record, bound to one proposal."""
        return review.grant(
            self.store,
            candidate_id,
            approval_id=approval_id,
            expires_at=expires_at,
            viewer=self.scope,
            caller=self.caller,
            policy=self.policy,
        )

    def admit(self, candidate_id: str, *, approval_id: str | None) -> Cell:
        """Admit a proposal under an approval on record: the one guarded transition."""
        return review.admit(
            self.store,
            candidate_id,
            approval_id=approval_id,
            viewer=self.scope,
            caller=self.caller,
            policy=self.policy,
        )

    def approve(
        self,
        candidate_id: str,
        *,
        approval_id: str | None,
        expires_at: datetime | str | None = None,
    ) -> Cell:
        """Grant an approval and admit the proposal, in one transition."""
        return self._approve([candidate_id], approval_id, expires_at)[0]

    def approve_many(
        self,
        candidate_ids: Sequence[str],
        *,
        approval_id: str | None,
        expires_at: datetime | str | None = None,
    ) -> tuple[Cell, ...]:
        """Approve several proposals in one transition, as `<approval_id>/1`, `/2`, in order."""
        return self._approve(self._batch(candidate_ids), approval_id, expires_at)

    def reject(self, candidate_id: str, *, reason: str) -> Proposal:
        """Reject a proposal and say why; memory stays as it is."""
        return self.reject_many([candidate_id], reason=reason)[0]

    def reject_many(self, candidate_ids: Sequence[str], *, reason: str) -> tuple[Proposal, ...]:
        """Reject several proposals in one transition."""
        return review.reject(
            self.store,
            self._batch(candidate_ids),
            reason=reason,
            viewer=self.scope,
            caller=self.caller,
        )

    def regenerate(self, candidate_id: str) -> Proposal:
        """Propose the same again from the evidence that stands now; memory stays as it is."""
        return review.regenerate(
            self.store,
            candidate_id,
            viewer=self.scope,
            caller=self.caller,
            policy=self.policy,
        )

    def conflicts(self) -> tuple[Link, ...]:
        """Return the conflict links of which this scope sees both ends, ordered by id."""
        with database_errors(self.store.path):
            return conflicts_seen(self.store.connection, viewer=self.scope)

    def decide(self, link_id: str, *, handling: str, policy: str | None = None) -> Decision:
        """Record how a conflict is to be handled. A decision is control; both sides stay.

        handling: preserve_both, prefer_recent, prefer_confident or defer.
        """
        return decide_conflict(
            self.store,
            link_id,
            handling=handling,
            policy=self.policy.name if policy is None else policy,
            viewer=self.scope,
            caller=self.caller,
        )

    def decisions(self, link_id: str | None = None) -> tuple[Decision, ...]:
        """Return the decisions on conflicts that this scope sees, oldest first."""
        with database_errors(self.store.path):
            return decisions_seen(self.store.connection, viewer=self.scope, link_id=link_id)

    def failures(self) -> tuple[AuditRecord, ...]:
        """Return the failure records of the store: one for each transition that was refused."""
        return failures(self.store)

    def sweep(self) -> tuple[str, ...]:
        """Record every expiry that has come, once; return the ids of the cells that expired.

        Upkeep of the whole store, whatever scope it is called from.
        """
        return sweep(self.store, caller=self.caller)

    def verify(self) -> Verification:
        """Recompute the audit chain and hold every stored record against it.

        Raises StoreRefusedError that names the first thing that is wrong.
        """
        found = verify_store(self.store)
        with database_errors(self.store.path), self.store.reading() as connection:
            check_topology(connection)
        return found

    def packet(
        self,
        recollection: Recollection | RecallTrace,
        *,
        budget: int,
        counter: TokenCounter = PLAIN,
    ) -> ContextPacket:
        """Return what a request would be told: whole fact groups within a token budget.

        budget: tokens of the whole text, headings and sources included. A view; nothing changes.
        """
        trace = recollection.trace if isinstance(recollection, Recollection) else recollection
        trace = _valid(RecallTrace, trace)
        with database_errors(self.store.path):
            return build_packet(
                self.store, trace, viewer=self.scope, budget=budget, counter=counter
            )

    def deliver(
        self,
        packet: ContextPacket,
        runtime: ModelPath | None = None,
        *,
        prompt: str | None = None,
        recipient: str = "model",
        counter: TokenCounter = PLAIN,
    ) -> DeliveryReceipt:
        """Record that a packet goes to a recipient; the receipt proves what was in it.

        runtime: a model path of `cma.sun`; the packet's cells then reach that model as context
        vectors while it reads the prompt (without one: the packet's query), and the receipt says
        with what effect. Refused when memory would fill the packet otherwise by now
        (`packet-stale`), and for a model when nothing is served, a cell is inactive, or a derived
        one was not admitted; the model does not run then.
        """
        to: dict[str, Any] = {
            "viewer": self.scope,
            "caller": self.caller,
            "recipient": recipient,
            "counter": counter,
        }
        if runtime is None:
            return deliver_packet(self.store, packet, **to)
        check_for_model(self.store, packet, **to)
        reached = runtime.run(
            [cell.content for cell in packet.cells],
            labels=[cell.id for cell in packet.cells],
            prompt=packet.query if prompt is None else prompt,
        )
        part = model_part(reached.model_dump())
        return deliver_packet(self.store, packet, model=part, **to)

    def graph(self) -> GraphView:
        """Return the graph of frames, derived cells and decisions that this scope sees."""
        with database_errors(self.store.path):
            return graph_view(self.store, viewer=self.scope)

    def traverse(
        self,
        start: str,
        *,
        scales: Iterable[str] | None = None,
        adjacencies: Iterable[str] | None = None,
        depth: int | None = None,
        budget: int = 64,
    ) -> Traversal:
        """Visit the graph's nodes from one of them, breadth first, within the given bounds."""
        return traverse(
            self.graph(),
            start,
            scales=scales,
            adjacencies=adjacencies,
            depth=depth,
            budget=budget,
        )

    def snapshot(self, path: str | os.PathLike[str]) -> SnapshotReceipt:
        """Write the whole store, checked, to a new file `*.cma.jsonl`."""
        return write_snapshot(self.store, path, caller=self.caller)

    @classmethod
    def restore(
        cls,
        snapshot: str | os.PathLike[str],
        path: str | os.PathLike[str],
        *,
        caller: Caller = DEFAULT_CALLER,
        clock: Clock | None = None,
        retrieval: Retrieval | None = None,
        policy: Policy | None = None,
    ) -> Memory:
        """Build a store from a snapshot and open it; a snapshot in doubt is refused whole."""
        caller = _valid(Caller, caller)
        retrieval = _valid(Retrieval, retrieval or Retrieval())
        policy = _valid(Policy, policy or Policy())
        restore_snapshot(snapshot, path, caller=caller, clock=clock or SystemClock())
        return cls.open(path, caller=caller, clock=clock, retrieval=retrieval, policy=policy)

    def explain(self, request: str) -> RequestExplanation:
        """Tell a request backwards, each step verified against the audit chain.

        request: the id of a delivery's receipt or of a recall's trace.
        """
        with database_errors(self.store.path):
            return explain_request(self.store, request, viewer=self.scope)

    def digest(self) -> str:
        """Return the digest of authoritative memory: cells with their revisions, and links."""
        return self.store.digest()

    @property
    def generation(self) -> int:
        """The generation of memory: raised by each committed change of it."""
        return self.store.generation()

    def _view(self, *, scope: str, caller: Caller) -> Memory:
        return Memory(
            self.store,
            caller=caller,
            retrieval=self.retrieval,
            scope=scope,
            indexes=self._indexes,
            policy=self.policy,
        )

    def _approve(
        self, ids: Sequence[str], approval_id: str | None, expires_at: datetime | str | None
    ) -> tuple[Cell, ...]:
        return review.approve(
            self.store,
            ids,
            approval_id=approval_id,
            expires_at=expires_at,
            viewer=self.scope,
            caller=self.caller,
            policy=self.policy,
        )

    def _batch(self, drafts: object) -> list[Any]:
        try:
            return batch_of(drafts)
        except InvalidValueError as error:
            self.store.record_rejection(self.caller.name, error)
            raise


def _valid(model: type[Model], value: Model | Mapping[str, Any]) -> Model:
    """Return a value, or the value that a mapping describes; refuse anything else.

    A value is looked at too: `model_copy` and `model_construct` make what nobody has validated.
    """
    return validated(lambda: model.model_validate(value))

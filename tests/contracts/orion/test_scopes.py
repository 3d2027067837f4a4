"""Scopes: O27 to O31."""

from __future__ import annotations

import pytest

from cma import CmaError, LinkDraft, Reason

SEVEN = ("temporal", "similarity", "causal", "task", "procedure", "replay", "conflict")


def served(view, query="tea", **options):
    return {hit.cell.id for hit in view.recall(query, **options).hits}


def reads_refused(reason, *reads):
    for read in reads:
        with pytest.raises(LookupError) as info:
            read()
        assert isinstance(info.value, CmaError)
        assert info.value.reason is reason


@pytest.mark.contract("O27")
def test_a_session_is_closed_to_others(memory, ann, bob, remember, hold, refused):
    """A session's cell is invisible to another session."""
    secret, note = remember(ann, "tea is Ann's secret"), hold(ann, "tea note")
    shared, mine = remember(memory, "tea for all", minutes=-1), remember(bob, "Bob has tea")
    kept = ann.link("temporal", shared.id, secret.id, evidence="Ann said so")
    inner = ann.link("causal", secret.id, note.id)
    mine_too = bob.link("causal", shared.id, mine.id)
    trace = ann.recall("secret").trace
    cy = memory.within("session:ann2")
    for view, visible in ((bob, {shared.id, mine.id}), (memory, {shared.id}), (cy, {shared.id})):
        for cell in (secret, note):
            reads_refused(
                Reason.CELL_NOT_FOUND,
                lambda view=view, cell=cell: view.get(cell.id),
                lambda view=view, cell=cell: view.get(cell.id, revision=1),
                lambda view=view, cell=cell: view.links_of(cell.id),
            )
            with refused(memory, Reason.CELL_NOT_FOUND) as caught:
                view.update(cell.id, confidence=0.1)
            with pytest.raises(CmaError) as info:
                view.update("cell-" + "0" * 40, confidence=0.1)
            assert caught[0].message == info.value.message  # hidden and missing look the same
        for option in ({}, {"include_inactive": True}):
            recollection = view.recall("tea secret note", **option)
            assert {hit.cell.id for hit in recollection.hits} == visible
            told = recollection.trace.model_dump_json()
            assert secret.id not in told
            assert note.id not in told
        reads_refused(Reason.TRACE_NOT_FOUND, lambda view=view: view.explain(trace.id))
        assert kept not in view.links_of(shared.id)
    with refused(memory, Reason.LINK_ENDPOINT_MISSING):  # both in one session, asked from outside
        memory.link("causal", note.id, secret.id)
    with refused(memory, Reason.LINK_ENDPOINT_MISSING):
        bob.link("causal", shared.id, secret.id)
    with refused(memory, Reason.LINK_ENDPOINT_MISSING):
        bob.link("causal", secret.id, shared.id)
    assert bob.links_of(shared.id) == (mine_too,)
    assert ann.links_of(shared.id) == (kept,)
    assert set(ann.links_of(secret.id)) == {kept, inner}
    assert (ann.get(secret.id), ann.get(note.id)) == (secret, note)
    assert ann.explain(trace.id).trace == trace


@pytest.mark.contract("O28")
def test_a_global_cell_is_visible_everywhere(memory, ann, bob, remember, refused):
    """A global cell is visible to every session."""
    shared = remember(memory, "tea for all")
    assert shared.scope == "global"
    for view in (memory, ann, bob, memory.within("session:never heard of"), ann.within("global")):
        assert view.get(shared.id) == shared
        (hit,) = view.recall("tea").hits
        assert hit.cell == shared
        own = remember(view, f"{view.scope} {view.scope[::-1]}", minutes=1)
        link = view.link("causal", shared.id, own.id)
        assert link in view.links_of(shared.id)
    with refused(memory, Reason.GLOBAL_FROM_SESSION):
        ann.update(shared.id, importance=0.9)
    changed = memory.update(shared.id, importance=0.9)
    assert (bob.get(shared.id), changed.scope) == (changed, "global")
    assert memory.recall("tea").hits[0].cell == changed


@pytest.mark.contract("O29")
def test_a_working_cell_belongs_to_a_session(memory, ann, hold, refused, remember, start):
    """A working cell cannot be global."""
    fields = {"content": "n", "kind": "working", "origin": "t", "metadata": {"ttl_seconds": 9}}
    for view in (memory, ann.within("global")):
        with refused(memory, Reason.WORKING_GLOBAL) as caught:
            view.write(**fields)
        assert caught[0].remedy
        event = fields | {"kind": "episodic", "observed_at": start, "metadata": {}}
        with refused(memory, Reason.WORKING_GLOBAL) as caught:
            view.write_many([event, fields])
        assert caught[0].field == "drafts[1].scope"
    assert hold(ann, "n").scope == "session:ann"
    assert remember(memory, "an event can be global").scope == "global"
    for scope in ("", "Global", "session:", "session: ", "session", "ann", "session:a\nb", None):
        with pytest.raises(CmaError) as info:
            memory.within(scope)
        assert info.value.field == "scope"


@pytest.mark.contract("O30")
def test_recall_sees_its_session_and_the_global_cells(open_memory, remember, hold, weighing):
    """Recall in a session sees its own cells and the global ones, nothing else."""
    memory = open_memory()
    ann, bob = memory.within("session:ann"), memory.within("session:bob")
    own = {view.scope: set() for view in (memory, ann, bob)}
    for view in (bob, ann, memory, bob, ann, memory):
        for place in range(3):
            text = f"tea {view.scope} {len(own[view.scope])}"
            cell = hold(view, text) if place == 0 and view is not memory else remember(view, text)
            own[view.scope].add(cell.id)
    shared = own["global"]
    for view, seen in (
        (memory, shared),
        (ann, own["session:ann"] | shared),
        (bob, own["session:bob"] | shared),
        (memory.within("session:cy"), shared),
    ):
        assert served(view, limit=100) == seen
        trace = view.recall("tea", limit=1).trace
        assert {item.cell for item in trace.exclusions} | {trace.hits[0].cell} == seen
        assert trace.excluded == {"below_limit": len(seen) - 1}
        assert trace.scope == view.scope
    # What another session holds has no weight in the scores either.
    alone = open_memory("alone.cma")
    for view in (alone, alone.within("session:ann")):
        source = memory.within(view.scope)
        for cell_id in sorted(own[view.scope]):
            cell = source.get(cell_id)
            if cell.kind == "working":
                hold(view, cell.content)
            else:
                remember(view, cell.content)
    secret = remember(bob, "session ann 2 2 2 as told by Bob", minutes=1)
    for cell_id in shared:
        bob.link("temporal", cell_id, secret.id)
    for lexical in ("overlap", "idf_overlap", "jaccard", "bm25"):
        settings = weighing(lexical_by=lexical, lexical=1.0, link=0.5)
        one, other = (
            view.within("session:ann").recall("tea session ann 1 2", retrieval=settings).hits
            for view in (memory, alone)
        )
        assert [(hit.cell.id, hit.score, hit.parts) for hit in one] == [
            (hit.cell.id, hit.score, hit.parts) for hit in other
        ]


@pytest.mark.contract("O31")
def test_two_sessions_are_not_linked(memory, ann, bob, remember, refused):
    """Two sessions' cells cannot be linked."""
    hers, his = remember(ann, "hers"), remember(bob, "his")
    shared = remember(memory, "shared")
    for kind in SEVEN:
        for view in (ann, bob, memory):
            for source, target in ((hers, his), (his, hers)):
                with refused(memory, Reason.LINK_ACROSS_SESSIONS):
                    view.link(kind, source.id, target.id)
        good = LinkDraft(kind=kind, source_id=hers.id, target_id=shared.id)
        bad = LinkDraft(kind=kind, source_id=hers.id, target_id=his.id)
        with refused(memory, Reason.LINK_ACROSS_SESSIONS):
            ann.link_many([good, bad])
        assert ann.links_of(hers.id, kind=kind) == ()
        assert ann.link(kind, hers.id, shared.id)
        assert bob.link(kind, shared.id, his.id)
    assert len(ann.links_of(hers.id)) == len(bob.links_of(his.id)) == 7

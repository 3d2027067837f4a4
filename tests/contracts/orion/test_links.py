"""Links: O15 to O20."""

from __future__ import annotations

from datetime import timedelta

import pytest

from cma import CmaError, LinkDraft, LinkKind, Reason

SEVEN = ("temporal", "similarity", "causal", "task", "procedure", "replay", "conflict")
WITHOUT_DIRECTION = ("similarity", "conflict")


@pytest.mark.contract("O15")
def test_the_seven_link_kinds_are_the_only_ones(memory, remember, refused):
    """The seven link kinds are the only ones."""
    one, two = remember(memory, "one"), remember(memory, "two", minutes=1)
    assert sorted(kind.value for kind in LinkKind) == sorted(SEVEN)
    links = [memory.link(kind, one.id, two.id) for kind in SEVEN]
    assert [link.kind.value for link in links] == list(SEVEN)
    assert len({link.id for link in links}) == 7
    assert set(memory.links_of(one.id)) == set(links)
    for link in links:
        assert memory.links_of(one.id, kind=link.kind.value) == (link,)
    for name in ("related", "Causal", "causal ", ""):
        with refused(memory, Reason.KIND_UNKNOWN) as caught:
            memory.link(name, one.id, two.id)
        assert (caught[0].field, caught[0].value) == ("kind", name)
        good = LinkDraft(kind="causal", source_id=two.id, target_id=one.id)
        with refused(memory, Reason.KIND_UNKNOWN) as caught:
            memory.link_many([good, {"kind": name, "source_id": one.id, "target_id": two.id}])
        assert caught[0].field == "drafts[1].kind"
        with pytest.raises(CmaError) as info:
            memory.links_of(one.id, kind=name)
        assert info.value.reason is Reason.KIND_UNKNOWN


@pytest.mark.contract("O16")
def test_a_link_needs_both_cells(memory, remember, refused):
    """A link to a missing cell is rejected."""
    here = remember(memory, "here")
    missing = "cell-" + "0" * 40
    for kind in SEVEN:
        for source, target, field in (
            (here.id, missing, "target_id"),
            (missing, here.id, "source_id"),
        ):
            with refused(memory, Reason.LINK_ENDPOINT_MISSING) as caught:
                memory.link(kind, source, target)
            assert caught[0].value == missing
            assert missing in str(caught[0])
            if kind not in WITHOUT_DIRECTION:  # those have their ends in order of id
                assert caught[0].field == field
    assert memory.links_of(here.id) == ()


@pytest.mark.contract("O17")
def test_a_cell_does_not_link_to_itself(memory, ann, remember, hold, refused):
    """A cell cannot link to itself."""
    for view, cell in ((memory, remember(memory, "tea")), (ann, hold(ann, "note"))):
        for kind in SEVEN:
            with refused(memory, Reason.LINK_TO_ITSELF) as caught:
                view.link(kind, cell.id, cell.id)
            assert caught[0].value == cell.id
        assert view.links_of(cell.id) == ()


@pytest.mark.contract("O18")
def test_the_same_link_twice_is_one_link(memory, remember, audit, refused, clock):
    """The same link twice is one link."""
    one, two = remember(memory, "one"), remember(memory, "two")
    for kind in SEVEN:
        first = memory.link(kind, one.id, two.id, weight=0.5, evidence="seen")
        clock.advance(timedelta(hours=1))
        digest, generation, known = memory.digest(), memory.generation, len(audit(memory))
        assert memory.link(kind, one.id, two.id, weight=0.5, evidence="seen") == first
        draft = LinkDraft(
            kind=kind, source_id=one.id, target_id=two.id, weight=0.5, evidence="seen"
        )
        receipt = memory.link_many([draft, draft])
        assert (receipt.ids, receipt.created, receipt.duplicates) == ((first.id,) * 2, 0, 2)
        assert (memory.digest(), memory.generation) == (digest, generation)
        added = audit(memory)[known:]
        assert [item["reason"] for item in added] == ["duplicate"] * 3
        assert all(item["before"] == item["after"] is not None for item in added)
        assert memory.links_of(one.id, kind=kind) == (first,)
        for changes in ({"weight": 0.4, "evidence": "seen"}, {"weight": 0.5}, {}):
            with refused(memory, Reason.LINK_DIFFERS):
                memory.link(kind, one.id, two.id, **changes)
        back = memory.link(kind, two.id, one.id, weight=0.5, evidence="seen")
        if kind in WITHOUT_DIRECTION:
            assert back == first
        else:
            assert (back.source_id, back.target_id) == (two.id, one.id)
            assert back.id != first.id
        assert len(memory.links_of(one.id, kind=kind)) == (1 if kind in WITHOUT_DIRECTION else 2)
    three = remember(memory, "three")
    draft = LinkDraft(kind="causal", source_id=one.id, target_id=three.id)
    receipt = memory.link_many([draft, draft])
    assert (receipt.created, receipt.duplicates) == (1, 1)
    assert memory.verify().links == 13


@pytest.mark.contract("O19")
def test_a_temporal_link_runs_forward(memory, ann, remember, hold, refused, clock):
    """A temporal link runs forward in time."""
    late = remember(memory, "late", minutes=1)
    clock.advance(timedelta(days=1))
    early = remember(memory, "early")
    soon = remember(memory, "soon after", minutes=1 / 60_000_000)
    with refused(memory, Reason.LINK_BACKWARD_IN_TIME) as caught:
        memory.link("temporal", late.id, early.id)
    assert caught[0].remedy
    with refused(memory, Reason.LINK_BACKWARD_IN_TIME):
        memory.link("temporal", soon.id, early.id)
    assert memory.links_of(early.id) == ()
    link = memory.link("temporal", early.id, late.id)
    assert (link.source_id, link.target_id) == (early.id, late.id)
    assert memory.link("temporal", early.id, soon.id)
    twin = remember(memory, "at the same instant")
    assert memory.link("temporal", early.id, twin.id)
    assert memory.link("temporal", twin.id, early.id)
    for kind in set(SEVEN) - {"temporal"}:
        assert memory.link(kind, late.id, early.id)
    note = hold(ann, "a note has no time but that of its writing")
    with refused(memory, Reason.LINK_BACKWARD_IN_TIME):
        ann.link("temporal", note.id, late.id)
    assert ann.link("temporal", late.id, note.id)


@pytest.mark.contract("O20")
def test_a_conflict_is_seen_from_both_ends(memory, ann, remember, audit):
    """A conflict link is seen from both ends."""
    for view in (memory, ann):
        cells = [remember(view, f"{view.scope} {word}") for word in ("tea", "coffee", "milk")]
        one, two, third = sorted(cells, key=lambda cell: cell.id)
        for first, second in ((one, two), (third, one)):
            link = view.link("conflict", first.id, second.id)
            assert audit(memory)[-1]["operation"] == "conflict"
            assert set(audit(memory)[-1]["subjects"]) == {link.id, first.id, second.id}
            assert {link.source_id, link.target_id} == {first.id, second.id}
            for cell, other in ((first, second), (second, first)):
                assert link in view.links_of(cell.id)
                assert link in view.links_of(cell.id, kind="conflict")
                assert link.other_end(cell.id) == other.id
        assert len(view.links_of(one.id)) == 2
        assert len(view.links_of(two.id)) == len(view.links_of(third.id)) == 1
        assert [view.get(cell.id) for cell in cells] == cells

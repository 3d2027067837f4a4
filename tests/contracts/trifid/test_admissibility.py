"""Signatures and admissible sets of frames: T16 to T20."""

from __future__ import annotations

import pytest

from cma import Caller, CellDraft, Policy, Reason

MODEL = Caller(name="model", authority="model")


@pytest.mark.contract("T16")
def test_a_signature_ignores_how_it_is_written(ann, events, start):
    """The signature ignores case, spacing and Unicode form, and nothing else of what is shared."""
    [cell] = events(ann, 1)

    def signature(**parts):
        whole = {"entities": ["Café Zoë", "Ann"], "actions": ["buys tea", "pays"], **parts}
        whole.setdefault("scene", f"scene {parts}")
        return ann.bind(sources=[cell], **whole).signature

    plain = signature()
    assert signature(entities=["CAFÉ  ZOË".replace("É", "É"), " ann"]) == plain
    assert signature(entities=["Ann", "Café Zoë"]) == plain
    assert signature(actions=["Buys   Tea", "PAYS"]) == plain
    assert signature(scene="elsewhere", cues=["rain"]) == plain
    assert signature(actions=["ｂｕｙｓ tea", "pays"]) == plain
    assert signature(goals=["warmth", "rest"]) == signature(goals=["Rest", "warmth"], cues=["sun"])
    others = [
        signature(actions=["pays", "buys tea"]),
        signature(entities=["Ann"]),
        signature(goals=["warmth"]),
        signature(outcome="tea"),
        signature(entities=["Cafe Zoë", "Ann"]),
    ]
    assert len({plain, *others}) == 6


@pytest.mark.contract("T17")
def test_too_few_frames_are_inadmissible(memory, open_memory, ann, episodes, claim, refused):
    """Fewer frames than configured are inadmissible; one frame replayed often is one frame."""
    [frame] = episodes(ann, 1)
    for _ in range(3):
        ann.replay(frame.id)
    for frames in ([frame], [frame, frame, frame]):
        with refused(memory, Reason.FRAMES_TOO_FEW):
            claim(ann, frames)
    strict = open_memory("strict.cma", policy=Policy(frames=3)).within("session:ann")
    frames = episodes(strict, 3)
    with refused(strict, Reason.FRAMES_TOO_FEW) as caught:
        claim(strict, frames[:2])
    assert set(caught[0].subjects) == {frame.id for frame in frames[:2]}
    assert claim(strict, frames).status == "pending"
    single = open_memory("single.cma", policy=Policy(frames=1)).within("session:ann")
    assert claim(single, episodes(single, 1)).status == "pending"


@pytest.mark.contract("T18")
def test_enough_replayed_frames_are_admissible(memory, ann, bob, episodes, claim, refused):
    """Enough frames of one signature, each completely replayed, are admissible."""
    replayed, other = episodes(ann, 2), episodes(ann, 1, first=50, replay=False)
    with refused(memory, Reason.REPLAY_INCOMPLETE) as caught:
        claim(ann, [replayed[0], *other])
    assert caught[0].value == other[0].id
    ann.replay(other[0].id, sequence=other[0].cells[::-1])
    with refused(memory, Reason.REPLAY_INCOMPLETE):
        claim(ann, [replayed[0], *other])
    proposal = claim(ann, replayed)
    assert proposal.status == "pending"
    assert set(proposal.candidate.frames) == {frame.id for frame in replayed}
    assert {name for name, _ in proposal.candidate.evidence} == set(proposal.candidate.frames)
    with refused(memory, Reason.FRAME_NOT_FOUND):
        claim(bob, replayed)


@pytest.mark.contract("T19")
def test_mixed_signatures_are_inadmissible(memory, ann, episodes, claim, refused):
    """Frames of mixed signatures are inadmissible."""
    frames, others = episodes(ann, 2), episodes(ann, 2, first=50, entities=["Bob"])
    with refused(memory, Reason.SIGNATURES_MIXED):
        claim(ann, [frames[0], others[0]])
    with refused(memory, Reason.SIGNATURES_MIXED):
        claim(ann, [*frames, others[0]])
    assert claim(ann, frames).status == claim(ann, others).status == "pending"


@pytest.mark.contract("T20")
def test_an_inadmissible_set_writes_nothing(memory, ann, episodes, remember, claim, refused):
    """An inadmissible set writes nothing and says why; no evidence counts twice."""
    frames = episodes(ann, 2)
    shared = ann.bind(
        scene="again",
        sources=[frames[0].cells[0]],
        entities=["Ann"],
        actions=["drinks tea"],
    )
    ann.replay(shared.id)
    with refused(memory, Reason.EVIDENCE_SHARED) as caught:
        claim(ann, [frames[0], shared])
    assert caught[0].value == frames[0].cells[0]
    back = ann.write_many(
        [
            CellDraft(
                kind="episodic",
                content="as recalled",
                origin="recalled",
                observed_at=ann.get(frames[1].cells[1]).observed_at,
                derived_from=(frames[0].cells[0],),
            )
        ]
    ).ids
    parts = {"entities": ["Ann"], "actions": ["drinks tea"]}
    written_back = ann.bind(scene="echo", sources=back, **parts)
    ann.replay(written_back.id)
    with refused(memory, Reason.EVIDENCE_NOT_NEW) as caught:
        claim(ann, [frames[0], written_back])
    assert caught[0].value == written_back.id
    words = ann.get(frames[0].cells[1]).content.upper()
    for number in range(4):  # whichever id comes first
        told = remember(ann.acting_as(MODEL), f"{words} ", minutes=70 + number)
        repeated = ann.bind(scene="told", sources=[told.id], **parts)
        ann.replay(repeated.id)
        with refused(memory, Reason.EVIDENCE_NOT_NEW) as caught:
            claim(ann, [frames[0], repeated])
        assert caught[0].value == repeated.id
    heard = remember(ann, words, minutes=80)
    agreeing = ann.bind(scene="heard", sources=[heard.id], **parts)
    ann.replay(agreeing.id)
    ann.update(frames[1].cells[0], lifecycle="retracted")
    with refused(memory, Reason.REPLAY_INCOMPLETE) as caught:
        claim(ann, frames)
    assert caught[0].value == frames[1].cells[0]
    assert ann.proposals() == ()
    assert [failure.reason for failure in memory.failures()] == [
        "evidence-shared",
        *["evidence-not-new"] * 5,
        "replay-incomplete",
    ]
    assert claim(ann, [frames[0], agreeing]).status == "pending"

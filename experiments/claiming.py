"""A rule that proposes claims from a conversation, without any language model.

A speaker who says a word in several sessions, yet not in many, is claimed to mention it. Each of
these sessions gives a frame of its own: the speaker's turns that hold the word. The frames are
bound, replayed, proposed from and approved through the public interface, as any claim is; nobody
looks at a proposal, so a claim here is worth as much as its rule.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from cma import Caller, Memory
from cma.lagoon.policy import Policy
from cma.orion.analysis import ANALYSERS
from cma.orion.cells import Authority, Cell
from experiments.data.conversations import Conversation, Turn
from experiments.failures import ExperimentError
from experiments.settings import LadderSettings

PREDICATE = "mentions"
SHORTEST = 4
"""Letters of the shortest word that is worth a claim."""
REVIEWER = Caller(name="rule", authority=Authority.USER)
_stem = ANALYSERS["english"]
_words = ANALYSERS["unicode"]


@dataclass(frozen=True, slots=True)
class Mention:
    """A word that a speaker repeats, and the turns that hold it, a group a session."""

    speaker: str
    word: str
    episodes: tuple[tuple[str, ...], ...]

    @property
    def turns(self) -> int:
        """How many turns hold the word."""
        return sum(map(len, self.episodes))


@dataclass(frozen=True, slots=True)
class Claimed:
    """What became of the mentions of one conversation."""

    cells: tuple[Cell, ...]
    proposals: int
    frames: int


def policy_of(asked: LadderSettings) -> Policy:
    """Return the declared policy: so many frames a claim; a speaker mentions many things."""
    return Policy(name="ladder", frames=asked.frames, many_valued=(PREDICATE,))


def mentions(conversation: Conversation, asked: LadderSettings) -> list[Mention]:
    """Return the repeated words of each speaker, those of most turns first, then by word.

    Words count as one by their stem; the form said most often names it. Speakers' own names and
    short words are no mentions.
    """
    names = {stem for turn in conversation.turns for stem in _stem(turn.speaker)}
    found: dict[tuple[str, str], dict[int, dict[str, None]]] = {}
    forms: dict[str, Counter[str]] = {}
    for turn in conversation.turns:
        for word, stem in _stems(turn):
            if len(word) < SHORTEST or stem in names:
                continue
            forms.setdefault(stem, Counter())[word] += 1
            sessions = found.setdefault((turn.speaker, stem), {})
            sessions.setdefault(turn.session, {})[turn.id] = None
    by_speaker: dict[str, list[Mention]] = {}
    for (speaker, stem), sessions in found.items():
        if asked.frames <= len(sessions) <= asked.sessions:
            word = min(forms[stem].items(), key=lambda each: (-each[1], each[0]))[0]
            episodes = tuple(tuple(turns) for turns in sessions.values())
            by_speaker.setdefault(speaker, []).append(Mention(speaker, word, episodes))
    chosen: list[Mention] = []
    for speaker in sorted(by_speaker):
        ranked = sorted(by_speaker[speaker], key=lambda each: (-each.turns, each.word))
        chosen += ranked[: asked.claims]
    return chosen


def claim(memory: Memory, found: Iterable[Mention], cell_of_turn: Mapping[str, str]) -> Claimed:
    """Bind, replay, propose and approve every mention; return the claims that were admitted."""
    proposals = []
    bound = 0
    for mention in found:
        frames = []
        for episode in mention.episodes:
            frame = memory.bind(
                scene=f"{mention.speaker} on {mention.word}",
                sources=[cell_of_turn[turn] for turn in episode],
                entities=[mention.speaker],
                actions=[f"{PREDICATE} {mention.word}"],
            )
            if not memory.replay(frame.id).complete:
                raise ExperimentError(f"the replay of {frame.scene} is not complete")
            frames.append(frame.id)
        bound += len(frames)
        proposed = memory.propose(
            frames=frames,
            content=f"{mention.speaker} {PREDICATE} {mention.word}",
            subject=mention.speaker,
            predicate=PREDICATE,
            object=mention.word,
        )
        proposals.append(proposed.candidate.id)
    if not proposals:
        return Claimed((), 0, bound)
    reviewer = memory.acting_as(REVIEWER)
    cells = reviewer.approve_many(proposals, approval_id="CR-1")
    return Claimed(tuple({cell.id: cell for cell in cells}.values()), len(proposals), bound)


def _stems(turn: Turn) -> list[tuple[str, str]]:
    pairs = []
    for word in _words(f"{turn.words} {turn.caption}"):
        pairs += [(word, stem) for stem in _stem(word)]
    return pairs

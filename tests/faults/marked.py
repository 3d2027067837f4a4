"""A cell with something of every kind around it, each text marked by a word of its own."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import orjson

from cma import Memory, Retrieval
from cma.orion.analysis import ANALYSERS
from cma.rosette.delivery import deliver_packet
from cma.rosette.reaching import ModelPart
from tests.faults.injection import remember

WHY = "person-request"
CONTENT = 'Mrs Quagmarkings said "żółwmark\\9" on the ☎marktel 0123 line\nand jumpmarkers ran'
SUMMARY = "sumquag of what was said"
WORDS = (
    "quagmark", "żółwmark", "marktel", "jumpmark", "sumquag", "originquag", "speakerquag",
    "sessionquag", "turnquag", "attrquag", "keyquag", "linkquag", "sceneQuag", "entityQuag",
    "goalquag", "actionquag", "outcomequag", "cuequag", "queryquag", "objectquag", "pendingquag",
    "rejectquag", "answerquag", "taskquag", "stepquag",
)  # fmt: skip
"""Written in any case; searched for in any case, as UTF-8, JSON-escaped and stemmed."""


def forms(word: str) -> set[bytes]:
    """Return the bytes under which a word may be stored: as it is, escaped, and as a term."""
    terms = {term for name in ANALYSERS for term in ANALYSERS[name](word)}
    found = set()
    for text in {word, word.lower(), *terms}:
        found |= {text.encode(), orjson.dumps(text)[1:-1], text.encode("utf-16-le")}
        found.add(text.encode("ascii", "backslashreplace"))
    return found


def found_in(folder: Path, words: tuple[str, ...] = WORDS) -> set[tuple[str, str]]:
    """Return the words that lie in any file of a folder, in any case, with the file's name."""
    seen = set()
    for file in folder.rglob("*"):
        data = file.read_bytes().lower() if file.is_file() else b""
        seen |= {(w, file.name) for w in words if any(f.lower() in data for f in forms(w))}
    return seen


def part(answer: str) -> ModelPart:
    numbers: dict[str, Any] = {"slots": 1, "hidden": 4, "sites": ()}
    names = set(ModelPart.model_fields) - {*numbers, "answer"}
    return ModelPart(**dict.fromkeys(names, "x"), **numbers, answer=answer)


def told(ann: Memory) -> SimpleNamespace:
    """Write the cell with something of every kind around it; each text has a marked word."""
    cell = remember(
        ann,
        CONTENT,
        summary=SUMMARY,
        origin="call originquag",
        metadata={
            "speaker": "Speakerquag",
            "session": "sessionquag",
            "turn": "turnquag",
            "attributes": {"keyquag": "attrquag"},
        },
    )
    other = remember(ann, "an innocent remark", minutes=1)
    third = remember(ann, "a plain remark", minutes=2)
    ann.update(cell.id, summary=f"{SUMMARY}, once more", importance=0.9)
    ann.link("task", cell.id, other.id, evidence="linkquag: he wrote it down")
    frames = []
    for number, sources in enumerate(([cell.id, other.id], [third.id])):
        own = {"cues": ["cuequag"]} if number == 0 else {}
        frames.append(
            ann.bind(
                scene=f"SceneQuag {number}" if number == 0 else "a room",
                sources=sources,
                entities=["EntityQuag" if number == 0 else "Ann"],
                goals=["goalquag"] if number == 0 else [],
                actions=["actionquag"] if number == 0 else [],
                outcome="outcomequag" if number == 0 else "",
                **own,
            )
        )
        ann.replay(frames[-1].id)
    ann.policy = ann.policy.model_copy(update={"frames": 1})
    claim = {"subject": "Ann", "predicate": "knows"}
    pending = ann.propose(
        frames=[frames[0].id], content="pendingquag of hers", object="objectquag", **claim
    )
    rejected = ann.propose(frames=[frames[0].id], content="no", object="nothing", **claim)
    ann.reject(rejected.id, reason="rejectquag is hearsay")
    run = ann.execute(task="taskquag", steps=["stepquag"], outcome="success", sources=[cell.id])
    recalled = [
        ann.recall("queryquag quagmarkings jumping", retrieval=Retrieval(analyser=name))
        for name in ("unicode", "english")
    ]
    elsewhere = ann.within("session:bob").recall(CONTENT, limit=1).trace
    packet = ann.packet(recalled[0], budget=2_000)
    receipt = deliver_packet(
        ann.store,
        packet,
        viewer=ann.scope,
        caller=ann.caller,
        recipient="model",
        model=part("answerquag, said the model"),
    )
    ann.store.flush_reads()
    return SimpleNamespace(
        cell=cell.id, other=other.id, frame=frames[0].id, pending=pending.id, run=run.id,
        trace=recalled[0].trace.id, elsewhere=elsewhere.id, receipt=receipt.id, packet=packet.id,
    )  # fmt: skip

"""Files as input: canonical records, data sets, claims, and the results of runs."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

import yaml

from cma.values.identity import canonical, parse_canonical
from experiments.data import beir, cranfield
from experiments.data.conversations import DataRecord
from experiments.data.documents import corpus_of
from experiments.data.locomo import read_locomo
from experiments.fuzzing import growing
from experiments.fuzzing.mutating import changed_bytes, changed_value
from experiments.fuzzing.target import BrokenPromiseError, Read
from reproductions.claims import load_claims
from reproductions.results import choose, read_runs

SEPARATOR = b"\n=====\n"
"""Between the files of an input that is several files."""
LOCOMO: list[dict[str, Any]] = [
    {
        "sample_id": "conv-1",
        "conversation": {
            "session_1_date_time": "1:56 pm on 8 May, 2023",
            "session_1": [
                {"dia_id": "D1:1", "speaker": "Ann", "text": "tea?", "blip_caption": "a cup"},
                {"dia_id": "D1:2", "speaker": "Bob", "text": "mate"},
            ],
            "session_2_date_time": "9:05 am on 9 May, 2023",
            "session_2": [{"dia_id": "D2:1", "speaker": "Ann", "text": "both"}],
        },
        "qa": [
            {"question": "what?", "category": 1, "evidence": ["D1:1", "D1:2; D2:1", "D9:9"]},
            {"question": "when?", "category": 5, "evidence": None},
        ],
    }
]
CRANFIELD = (
    (
        b"<doc>\n<docno> 1 </docno>\n<title> flow </title>\n<author> a </author>\n<bib> b </bib>\n"
        b"<text> flow past a wing </text>\n</doc>\n<doc>\n<docno>2</docno>\n<title>heat</title>\n"
        b"<author></author>\n<bib></bib>\n<text>heat in slabs</text>\n</doc>\n"
    ),
    (
        b"<top>\n<num> 1</num><title>\nwhat of wings\n</title>\n</top>\n"
        b"<top>\n<num> 4</num><title>\nwhat of heat\n</title>\n</top>\n"
    ),
    b"1 0 1 2\n2 0 2 1\n1 0 2 -1\n",
)
BEIR = (
    b'{"_id":"d1","title":"tea","text":"green tea"}\n{"_id":"d2","title":"","text":"mate"}\n',
    b'{"_id":"q1","text":"which tea"}\n{"_id":"q2","text":"which mate"}\n',
    b"query-id\tcorpus-id\tscore\nq1\td1\t1\nq2\td2\t2\n",
)
CLAIMS: dict[str, Any] = {
    "format": "cma.claims/1",
    "source": "a summary",
    "claims": [
        {
            "id": "forty",
            "statement": "forty tests pass",
            "section": "Orion",
            "value": 40,
            "judge": "exact",
            "experiment": "contract_tally",
            "figures": ["contracts.orion"],
            "of": 40,
        },
        {
            "id": "zero",
            "statement": "nothing changes",
            "section": "Sun",
            "judge": "structural",
            "experiment": "delta_norm",
            "holds": {"delta.none": "zero", "delta.all": 1.5},
            "contracts": ["O01"],
        },
        {
            "id": "size",
            "statement": "as large as that",
            "section": "Sun",
            "judge": "not_comparable",
            "why": "unpublished weights",
        },
    ],
}
RESULT: dict[str, Any] = {
    "format": "cma.result/1",
    "experiment": "recovery",
    "run_id": "0123456789abcdef",
    "seed": 7,
    "status": "ok",
    "error": None,
    "data": [{"name": "d", "sha256": "00", "licence": "l", "origin": "config"}],
    "figures": {"a.b": {"value": 1.5, "unit": "u", "n": 3, "interval": [1, 2], "control": 0}},
    "tables": ["t.csv"],
    "notes": ["n"],
}
MACHINE: dict[str, Any] = {
    "finished_at": "2026-07-01T10:00:00+00:00",
    "seconds": 1.5,
    "packages": {"numpy": "2"},
    "overrides": ["seed=3"],
    "git_dirty": True,
}
CONFIG = b"experiment: recovery\ndata:\n  name: generated\n"
TABLE = b"a,b\n1,2\n"
RECORDS: tuple[Any, ...] = (
    {"a": [1, None, True], "b": {"c": "x"}},
    {"format": "cma.snapshot", "version": 1},
    [],
)


def make_canonical(chance: random.Random) -> bytes:
    """Return a record grown from nothing, or a canonical one with changed bytes."""
    if chance.random() < 0.5:
        return growing.text(chance)
    return changed_bytes(chance, canonical(chance.choice(RECORDS)))


@contextmanager
def canonical_reader(_: Path) -> Iterator[Read]:
    """Read each input as canonical; what is accepted is written again as it was."""

    def read(data: bytes) -> None:
        if canonical(parse_canonical(data)) != data:
            raise BrokenPromiseError("accepted, and written otherwise")

    yield read


def make_locomo(chance: random.Random) -> bytes:
    """Return a conversation with changed values or bytes."""
    return _json_of(chance, LOCOMO)


def make_claims(chance: random.Random) -> bytes:
    """Return a list of claims with changed values or bytes, as YAML or as JSON, which is YAML."""
    if chance.random() < 0.4:
        return changed_bytes(chance, yaml.safe_dump(CLAIMS).encode())
    return _json_of(chance, CLAIMS)


def make_cranfield(chance: random.Random) -> bytes:
    """Return documents, queries and judgements, one of them changed."""
    return _one_changed(chance, CRANFIELD)


def make_beir(chance: random.Random) -> bytes:
    """Return corpus, queries and judgements, one of them changed."""
    return _one_changed(chance, BEIR)


def make_run(chance: random.Random) -> bytes:
    """Return result, machine, settings and table of a run, one of them changed."""
    files = [json.dumps(RESULT).encode(), json.dumps(MACHINE).encode(), CONFIG, TABLE]
    place = chance.randrange(len(files))
    if place < 2 and chance.random() < 0.6:
        files[place] = _json_of(chance, (RESULT, MACHINE)[place])
    else:
        files[place] = changed_bytes(chance, files[place])
    return SEPARATOR.join(files)


def _one_changed(chance: random.Random, files: tuple[bytes, ...]) -> bytes:
    changed = list(files)
    place = chance.randrange(len(changed))
    changed[place] = changed_bytes(chance, changed[place])
    return SEPARATOR.join(changed)


def _json_of(chance: random.Random, given: Any) -> bytes:
    if chance.random() < 0.5:
        return changed_bytes(chance, json.dumps(given).encode())
    return json.dumps(changed_value(chance, given)).encode()


def reader_of(
    names: tuple[str, ...], use: Callable[[Path], object]
) -> Callable[[Path], AbstractContextManager[Read]]:
    """Return a reader that writes an input as files of these names and uses their folder."""

    @contextmanager
    def opened(folder: Path) -> Iterator[Read]:
        places = [folder / name for name in names]
        for place in places:
            place.parent.mkdir(parents=True, exist_ok=True)

        def read(data: bytes) -> None:
            parts = data.split(SEPARATOR, len(names) - 1)
            for place, part in zip(places, [*parts, *[b""] * len(names)], strict=False):
                place.write_bytes(part)
            use(folder)

        yield read

    return opened


def use_locomo(folder: Path) -> None:
    """Read conversations, and look at every turn's text."""
    conversations, _ = read_locomo(folder / "locomo.json")
    for conversation in conversations:
        for turn in conversation.turns:
            turn.text.encode()
        list(conversation.sessions())


def use_cranfield(folder: Path) -> None:
    """Read a collection and put it together."""
    corpus_of(
        "cranfield",
        cranfield.read_documents(folder / "documents.xml"),
        cranfield.read_queries(folder / "queries.xml"),
        cranfield.read_judgements(folder / "judgements.txt"),
        (DataRecord("cranfield", "", "", "config"),),
    )


def use_beir(folder: Path) -> None:
    """Read a folder of a collection."""
    beir.read_beir(folder, licence="none")


def use_claims(folder: Path) -> None:
    """Read claims."""
    load_claims(folder / "claims.yaml")


def use_runs(folder: Path) -> None:
    """Read runs, choose those that speak, and read their tables."""
    runs = read_runs(folder)
    choose(runs)
    for run in runs:
        for name in (*run.result.tables, "t.csv"):
            run.table(name)
        [each.number for each in run.result.figures.values()]
        str(run.data_set)

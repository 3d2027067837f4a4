"""A folder in the form of the BEIR benchmark: `corpus.jsonl`, `queries.jsonl`, `qrels/SPLIT.tsv`.

A line of the corpus is a JSON object with `_id`, `text` and perhaps `title`; one of the queries has
`_id` and `text`. Qrels are lines of query, document and grade between tabs, under a header or not.
Asked are the queries that the qrels judge. Whatever does not have this form is refused by file and
line; blank lines say nothing and are passed over.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from experiments.data.conversations import Corpus, DataRecord
from experiments.data.cranfield import grades_note
from experiments.data.documents import Judgement, Written, corpus_of, titled
from experiments.failures import DataError

CORPUS, QUERIES, QRELS = "corpus.jsonl", "queries.jsonl", "qrels"
USUAL_SPLIT = "test"
_HEADER = ["query-id", "corpus-id", "score"]
_GRADE = re.compile(r"-?\d{1,6}")
_UNFIT = re.compile(r"[^a-z0-9_-]+")


def read_beir(
    folder: Path, *, split: str | None = None, title: str | None = None, licence: str
) -> Corpus:
    """Read a folder. Raises DataError, naming file and line, for what is not as it should be."""
    if not folder.is_dir():
        raise DataError(
            f"data.path: no folder is there; give one that holds {CORPUS}, {QUERIES} and {QRELS}/"
        )
    qrels = _qrels(folder, split)
    documents = [
        Written(_word(entry, "_id", place), titled(*_title_and_text(entry, place)), place)
        for place, entry in _objects(folder / CORPUS)
    ]
    every_query = [
        Written(_word(entry, "_id", place), _word(entry, "text", place).strip(), place)
        for place, entry in _objects(folder / QUERIES)
    ]
    judgements = list(_judgements(qrels))
    judged = {each.query for each in judgements}
    known = {query.id for query in every_query}
    queries = [query for query in every_query if query.id in judged]
    if len(known) != len(every_query) or not judged <= known:
        queries = every_query  # what is wrong with them is said below
    name = f"beir-{_name(title or folder.resolve().name)}"
    files = (folder / CORPUS, folder / QUERIES, qrels)
    return corpus_of(
        name,
        documents,
        queries,
        judgements,
        (DataRecord(name, _digest(files), licence, "config"),),
        notes=(
            f"{len(judged):,} of {len(every_query):,} queries are judged in {QRELS}/{qrels.name}.",
            grades_note(judgements),
        ),
    )


def _qrels(folder: Path, split: str | None) -> Path:
    there = sorted(each.stem for each in (folder / QRELS).glob("*.tsv"))
    if not there:
        raise DataError(f"data.path: the folder holds no {QRELS}/*.tsv; put the judgements there")
    wanted = split or (USUAL_SPLIT if USUAL_SPLIT in there else there[0])
    if split is None and USUAL_SPLIT not in there and len(there) > 1:
        raise DataError(f"{QRELS}/ holds {', '.join(there)}; choose with data.split={there[0]}")
    if wanted not in there:
        raise DataError(f"data.split={wanted}: {QRELS}/ holds only {', '.join(there)}")
    return folder / QRELS / f"{wanted}.tsv"


def _lines(path: Path, name: str = "") -> Iterator[tuple[str, str]]:
    """Yield where each line that is not blank stands, and the line."""
    try:
        content = path.read_bytes()
    except OSError as error:
        packed = " (unpack the .gz beside it)" if path.with_name(f"{path.name}.gz").exists() else ""
        raise DataError(f"{path.name} cannot be read: {error.strerror}{packed}") from error
    for number, raw in enumerate(content.split(b"\n"), start=1):
        place = f"{name or path.name}, line {number}"
        try:
            line = raw.decode("utf-8")
        except UnicodeDecodeError as error:
            raise DataError(f"{place}: not UTF-8: {error.reason}") from error
        if line.strip():
            yield place, line


def _objects(path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    found = False
    for place, line in _lines(path):
        try:
            entry = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise DataError(f"{place}: not JSON: {error}") from error
        if not isinstance(entry, dict):
            raise DataError(f"{place}: a JSON object is expected, not {line.strip()[:40]!r}")
        found = True
        yield place, entry
    if not found:
        raise DataError(f"{path.name} is empty")


def _word(entry: dict[str, Any], key: str, place: str) -> str:
    value = entry.get(key)
    if not isinstance(value, str):
        lack = f"{key!r} is {type(value).__name__} and not text" if key in entry else f"no {key!r}"
        raise DataError(f"{place}: {lack}")
    return value


def _title_and_text(entry: dict[str, Any], place: str) -> tuple[str, str]:
    title = "" if entry.get("title") is None else _word(entry, "title", place)
    return title, _word(entry, "text", place)


def _judgements(path: Path) -> Iterator[Judgement]:
    found = False
    for place, line in _lines(path, f"{QRELS}/{path.name}"):
        columns = line.rstrip("\r").split("\t")
        if columns == _HEADER and not found:
            continue
        if len(columns) != 3:
            raise DataError(
                f"{place}: {len(columns)} columns; "
                "three are expected, between tabs: query, document, grade"
            )
        query, document, grade = columns
        if not _GRADE.fullmatch(grade):
            raise DataError(f"{place}: the grade {grade[:40]!r} is no whole number")
        found = True
        yield Judgement(query, document, int(grade), place)
    if not found:
        raise DataError(f"{QRELS}/{path.name} holds no judgement")


def _name(given: str) -> str:
    """Return a name that can stand in a figure's key and a file's name."""
    return _UNFIT.sub("-", given.lower()).strip("-")[:60] or "folder"


def _digest(files: tuple[Path, ...]) -> str:
    digest = hashlib.sha256()
    for file in files:
        digest.update(f"{file.name}\0{hashlib.sha256(file.read_bytes()).hexdigest()}\n".encode())
    return digest.hexdigest()

"""A collection of documents with queries and judgements, as one corpus.

Every document becomes a turn without a speaker. Nothing is known of when it was written, so all
have one moment: recency orders nothing, and no link joins them. What cannot be used (a document
without words, a judged document that is not there) is left out and listed as a problem.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from cma import CmaError, Reason
from cma.orion.cells import checked_content
from cma.orion.recall import MAX_QUERY_LENGTH
from cma.values.identity import is_normal
from experiments.data.conversations import (
    Conversation,
    Corpus,
    DataRecord,
    EvidenceProblem,
    Question,
    Turn,
)
from experiments.failures import DataError

MOMENT = datetime(2000, 1, 1, tzinfo=UTC)
"""Of every document: its own is not known."""
ID_LENGTH = 200
"""Longest id: it stands in a cell's origin together with the data set's name."""


@dataclass(frozen=True, slots=True)
class Written:
    """A document or query as its file has it, and where it stood there."""

    id: str
    text: str
    place: str


@dataclass(frozen=True, slots=True)
class Judgement:
    """How relevant one document is to one query; below 1 it is not."""

    query: str
    document: str
    grade: int
    place: str


def titled(title: str, text: str) -> str:
    """Return title and text, the title once: many collections repeat it as the first words."""
    title, text = " ".join(title.split()), " ".join(text.split())
    return text if text.startswith(title) else f"{title} {text}".strip()


def corpus_of(
    name: str,
    documents: Sequence[Written],
    queries: Sequence[Written],
    judgements: Iterable[Judgement],
    records: tuple[DataRecord, ...],
    notes: Sequence[str] = (),
) -> Corpus:
    """Return the corpus; queries are asked in their order, relevant documents stand in theirs.

    Raises DataError, naming file and line, for an id used twice or no id at all, text that no cell
    can hold, a judgement given twice or of an unknown query, and where nothing is left to judge.
    """
    by_id = _distinct(documents, "document")
    asked = _distinct(queries, "query")
    problems: list[EvidenceProblem] = []
    turns: list[Turn] = []
    for document in documents:
        if _blank(document):
            problems.append(
                EvidenceProblem(name, "", document.id, "empty", "document without words; left out")
            )
            continue
        turns.append(
            Turn(
                id=document.id,
                session=len(turns) + 1,
                speaker="",
                words=document.text,
                caption="",
                observed_at=MOMENT,
            )
        )
    if not turns:
        raise DataError(f"{name}: no document has any words")
    graded = _graded(name, judgements, asked, by_id, {turn.id for turn in turns}, problems)
    questions = []
    for query in queries:
        if _blank(query):
            problems.append(EvidenceProblem(name, query.id, "", "empty", "query without words"))
        elif len(query.text) > MAX_QUERY_LENGTH:
            raise DataError(
                f"{query.place}: query {query.id!r} has {len(query.text):,} characters; "
                f"a query has at most {MAX_QUERY_LENGTH:,}"
            )
        else:
            grades = graded.get(query.id, {})
            found = tuple(grades)
            alike = set(grades.values()) <= {1}
            questions.append(
                Question(
                    id=query.id,
                    text=query.text,
                    category=None,
                    evidence=found,
                    corrected=found,
                    grades=() if alike else tuple(grades.values()),
                )
            )
    if not any(question.evidence for question in questions):
        raise DataError(f"{name}: no query has a relevant document, so nothing can be judged")
    return Corpus(
        name=name,
        conversations=(Conversation(name, tuple(turns), tuple(questions)),),
        records=records,
        problems=tuple(problems),
        notes=tuple(notes),
        documents=True,
    )


def _distinct(written: Sequence[Written], what: str) -> Mapping[str, Written]:
    found: dict[str, Written] = {}
    for each in written:
        if not each.id or len(each.id) > ID_LENGTH or not is_normal(each.id):
            raise DataError(
                f"{each.place}: {each.id[:40]!r} is no id of a {what}; give 1 to {ID_LENGTH} "
                "characters in Unicode NFC without control characters"
            )
        if each.id in found:
            raise DataError(
                f"{each.place}: the id {each.id!r} was given to a {what} before, "
                f"in {found[each.id].place}"
            )
        found[each.id] = each
    return found


def _blank(written: Written) -> bool:
    """Tell whether there are no words; raises DataError for text that no cell can hold."""
    if not written.text.strip():
        return True
    try:
        checked_content(written.text)
    except (CmaError, ValueError) as error:
        if isinstance(error, CmaError) and error.reason is Reason.CONTENT_EMPTY:
            return True
        raise DataError(f"{written.place}: the text of {written.id!r}: {error}") from error
    return False


def _graded(
    name: str,
    judgements: Iterable[Judgement],
    queries: Mapping[str, Written],
    documents: Mapping[str, Written],
    usable: set[str],
    problems: list[EvidenceProblem],
) -> Mapping[str, Mapping[str, int]]:
    """Return, for each query, the grades of its relevant documents, in the order of judgement."""
    graded: dict[str, dict[str, int]] = {}
    places: dict[tuple[str, str], str] = {}
    for each in judgements:
        if each.query not in queries:
            raise DataError(f"{each.place}: no query has the id {each.query!r}")
        before = places.setdefault((each.query, each.document), each.place)
        if before != each.place:
            raise DataError(
                f"{each.place}: query {each.query!r} and document {each.document!r} were judged "
                f"before, in {before}"
            )
        if each.grade < 1:
            continue
        if each.document in usable:
            graded.setdefault(each.query, {})[each.document] = each.grade
            continue
        why = "has no words" if each.document in documents else "is not there"
        problems.append(
            EvidenceProblem(
                name, each.query, each.document, "unresolvable", f"the document {why}; left out"
            )
        )
    return graded

"""Loads the corpus that the settings ask for, and no other in its place."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from experiments import ranges
from experiments.data import cranfield
from experiments.data.audit import apply_corrections, read_corrections
from experiments.data.beir import read_beir
from experiments.data.conversations import Corpus, DataRecord
from experiments.data.documents import corpus_of
from experiments.data.generated import generate
from experiments.data.locomo import read_locomo
from experiments.data.sources import Found, Missing, find
from experiments.failures import MissingDataError, UsageError
from experiments.settings import DataSettings, PinnedFile

CONVERSATIONS_LIMIT = 1_000_000
_log = logging.getLogger(__name__)


def load(settings: DataSettings) -> tuple[Corpus, DataSettings]:
    """Return the corpus and the settings that describe it.

    A BEIR-style folder's settings come back under its data set's name. Raises MissingDataError
    where LoCoMo or Cranfield is asked for and nowhere to be found; the message says how to provide
    it, and which data need none.
    """
    if settings.max_conversations is not None:
        ranges.whole("data.max_conversations", settings.max_conversations, 1, CONVERSATIONS_LIMIT)
    ranges.above("data.timeout_seconds", settings.timeout_seconds, 0.0, ranges.PATIENCE_LIMIT)
    try:
        loader = LOADERS[settings.name]
    except KeyError:
        raise UsageError(
            f"data.name={settings.name!r} is unknown; there are: {', '.join(LOADERS)}"
        ) from None
    corpus, used = loader(settings)
    if settings.max_conversations is not None:
        corpus = _first(corpus, settings.max_conversations)
    return corpus, used


def _first(corpus: Corpus, count: int) -> Corpus:
    kept = corpus.conversations[:count]
    names = {conversation.id for conversation in kept}
    return replace(
        corpus,
        conversations=kept,
        problems=tuple(each for each in corpus.problems if each.conversation in names),
        corrections=tuple(each for each in corpus.corrections if each.conversation in names),
        notes=(*corpus.notes, f"Only the first {len(kept)} conversations were used."),
    )


def _locomo(settings: DataSettings) -> tuple[Corpus, DataSettings]:
    found = find(settings.conversations, settings)
    if isinstance(found, Missing):
        raise _missing("LoCoMo", found, settings.conversations)
    conversations, problems = read_locomo(found.path)
    pinned = settings.conversations
    records = [DataRecord("locomo", pinned.sha256, pinned.licence, found.origin)]
    corpus = Corpus("locomo", conversations, tuple(records), problems)
    audit = find(settings.corrections, settings, optional=True)
    if isinstance(audit, Missing):
        missing = "The audit's corrections were not found: labels as published only."
        _log.warning("%s (%s)", missing, "; ".join(audit.tried))
        return replace(corpus, notes=(missing,)), settings
    conversations, corrections = apply_corrections(conversations, read_corrections(audit.path))
    pinned = settings.corrections
    records.append(DataRecord("locomo-audit", pinned.sha256, pinned.licence, audit.origin))
    return (
        replace(
            corpus,
            conversations=conversations,
            records=tuple(records),
            corrections=corrections,
            corrected_labels=True,
        ),
        settings,
    )


def _missing(title: str, missing: Missing, pinned: PinnedFile) -> MissingDataError:
    return MissingDataError(
        title,
        f"{title} was not found ({'; '.join(missing.tried)}). Give data.path=FOLDER or set "
        f"CMA_DATA_DIR to a folder that holds {pinned.path}; or run on generated conversations, "
        "which need no data: data=generated",
    )


def _cranfield(settings: DataSettings) -> tuple[Corpus, DataSettings]:
    files: list[Path] = []
    records: list[DataRecord] = []
    for part, pinned in (
        ("documents", settings.documents),
        ("queries", settings.queries),
        ("judgements", settings.judgements),
    ):
        found: Found | Missing = find(pinned, settings)
        if isinstance(found, Missing):
            raise _missing("Cranfield", found, pinned)
        files.append(found.path)
        name = "cranfield" if part == "documents" else f"cranfield-{part}"
        records.append(DataRecord(name, pinned.sha256, pinned.licence, found.origin))
    judgements = cranfield.read_judgements(files[2])
    return (
        corpus_of(
            "cranfield",
            cranfield.read_documents(files[0]),
            cranfield.read_queries(files[1]),
            judgements,
            tuple(records),
            notes=(cranfield.grades_note(judgements),),
        ),
        settings,
    )


def _beir(settings: DataSettings) -> tuple[Corpus, DataSettings]:
    if settings.path is None:
        raise UsageError(
            "data=beir needs data.path=FOLDER, one that holds corpus.jsonl, queries.jsonl "
            "and qrels/"
        )
    corpus = read_beir(
        Path(settings.path).expanduser(),
        split=settings.split,
        title=settings.title,
        licence=settings.licence,
    )
    return corpus, replace(settings, name=corpus.name)


def _generated(settings: DataSettings) -> tuple[Corpus, DataSettings]:
    return generate(settings.generated), settings


LOADERS: dict[str, Callable[[DataSettings], tuple[Corpus, DataSettings]]] = {
    "locomo": _locomo,
    "cranfield": _cranfield,
    "beir": _beir,
    "generated": _generated,
}

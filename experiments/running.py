"""Runs one experiment from typed settings: checks, resumes, runs, writes. Hydra is not here."""

from __future__ import annotations

import logging
import sys
import traceback
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

from experiments import leftovers, machine, models, not_run, ranges, runs
from experiments.data.conversations import Corpus
from experiments.data.loading import load
from experiments.disclosure import scrub
from experiments.dispatch import Experiment, lookup
from experiments.failures import MissingDataError, RunFailedError
from experiments.headline import headline
from experiments.progress import begins
from experiments.settings import Settings

VOLATILE = {
    "data": ("path", "download", "timeout_seconds", "missing"),
    "tally": ("timeout_seconds",),
    "model": ("place",),
    "sweep": ("threads",),
}
"""Settings that say where and how patiently, never what: no part of run id or `config.yaml`."""

MISSING = ("refuse", "skip")
"""What `data.missing` can be."""

_log = logging.getLogger("experiments")
_file_log = logging.getLogger("experiments.file_only")
_file_log.propagate = False


@dataclass(frozen=True, slots=True)
class Outcome:
    """Where a run lies, and whether it was there before."""

    place: Path
    reused: bool


@dataclass(frozen=True, slots=True)
class Skipped:
    """A run that was not made for want of its data, as `data.missing=skip` asks."""

    experiment: str
    data: str
    title: str


class Asked(NamedTuple):
    """What one request comes to: its settings with the data found, and the identity of its run."""

    settings: Settings
    experiment: Experiment
    corpus: Corpus | None
    identity: runs.Identity

    @property
    def place(self) -> Path:
        """Where the run lies, or would."""
        return self.identity.place(Path(self.settings.paths.runs).expanduser())

    def is_finished(self) -> bool:
        """Tell whether the run is there, whole and unchanged."""
        return runs.finished(self.place, self.identity) and self.experiment.whole(self.place)


def run(settings: Settings, overrides: Sequence[str] = ()) -> Outcome | Skipped:
    """Run the experiment that the settings name, or find its finished run.

    Wrong settings and wrong data raise UsageError or DataError and write nothing. An experiment
    that fails is written as a failed run, and raises RunFailedError.
    """
    root = Path(settings.paths.runs).expanduser()
    try:
        asked = known(settings)
    except MissingDataError as error:
        if settings.data.missing != "skip":
            raise
        not_run.note(root, settings.experiment, settings.data.name, error.title)
        return Skipped(settings.experiment, settings.data.name, error.title)
    settings, experiment, corpus, identity = asked
    place = asked.place
    for name in leftovers.remove(place.parent):
        _log.warning("removed what a killed run had left: %s", place.parent / name)
    if settings.resume and asked.is_finished():
        return Outcome(place, reused=True)
    if settings.resume and runs.tampered(place):
        _log.warning("%s was changed after its run, so it runs again", place / "result.json")
    begins(settings.experiment + (f" on {settings.data.name}" if corpus else ""))
    started = datetime.now(UTC)
    failure: Exception | None = None
    measured: dict[str, Any] = {"figures": {}, "table_digests": {}}
    with runs.prepared(place) as folder:
        with _logged(folder):
            _log.info("experiment=%s run=%s", settings.experiment, identity.run_id)
            try:
                result = experiment.run(settings, corpus, folder)
                runs.write_result(folder, identity, result)
                measured = runs.write_measured(folder, result)
            except Exception as error:
                failure = error
                trace = "".join(traceback.format_exception(error))
                _file_log.error("%s", runs.writable(trace))
                runs.write_failure(folder, identity, error)
        finished = datetime.now(UTC)
        device = settings.model.device if "model" in experiment.sections else "cpu"
        described = machine.describe(runs.ROOT, started, finished, device=device)
        described["overrides"] = [each for each in overrides if not _names_a_place(each)]
        runs.write_json(folder / "machine.json", described | measured)
    if failure is not None:
        raise RunFailedError(
            f"{settings.experiment} failed: {type(failure).__name__}: {failure} "
            f"(see {place}/result.json and log.txt)"
        ) from failure
    if corpus is not None:
        not_run.clear(root, settings.experiment, settings.data.name)
    return Outcome(place, reused=False)


def known(settings: Settings) -> Asked:
    """Check what is asked and return what its run is known by; nothing is written.

    Raises UsageError and DataError.
    """
    experiment = lookup(settings.experiment)
    experiment.check(settings)
    corpus: Corpus | None = None
    if experiment.needs_corpus:
        ranges.names("data.missing", [settings.data.missing], MISSING)
        corpus, used = load(settings.data)
        settings = replace(settings, data=used)
    if "model" in experiment.sections:
        settings = replace(settings, model=models.settled(settings.model))
        # Weights in a folder may be others by now, and their place is no part of a run's id.
        settings = replace(settings, resume=settings.resume and settings.model.place is None)
    identity = runs.Identity(
        experiment=settings.experiment,
        config=resolved(settings, experiment.sections) | experiment.inputs(settings),
        seed=settings.seed,
        source_digest=runs.source_digest(),
        data=corpus.records if corpus else (),
    )
    return Asked(settings, experiment, corpus, identity)


def resolved(settings: Settings, sections: Sequence[str]) -> dict[str, Any]:
    """Return the settings that can change the experiment's result, as plain values."""
    everything = asdict(settings)
    config: dict[str, Any] = {"experiment": settings.experiment, "seed": settings.seed}
    for section in sections:
        skipped = VOLATILE.get(section, ())
        config[section] = {
            key: value for key, value in everything[section].items() if key not in skipped
        }
    return config


def _names_a_place(override: str) -> bool:
    key = override.lstrip("+~").partition("=")[0]
    return key.startswith(("paths", "data.path", "model.place", "hydra")) or "/" in override


class _Scrubbed(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        return scrub(super().format(record), runs.ROOT)


@contextmanager
def _logged(folder: Path) -> Iterator[None]:
    """Keep a log of the run beside its result; tracebacks go there and not to the terminal."""
    handler = logging.FileHandler(folder / "log.txt", encoding="utf-8", errors="backslashreplace")
    handler.setFormatter(_Scrubbed("%(asctime)s %(levelname)s %(message)s"))
    level = _log.level
    _log.setLevel(logging.INFO)
    for logger in (_log, _file_log):
        logger.addHandler(handler)
    try:
        yield
    finally:
        for logger in (_log, _file_log):
            logger.removeHandler(handler)
        _log.setLevel(level)
        handler.close()


def announce(outcome: Outcome | Skipped) -> None:
    """Tell on standard output what was found, in one line, and where the result lies."""
    if isinstance(outcome, Skipped):
        sys.stdout.write(
            f"not run here: no data for {outcome.experiment} ({outcome.title} was not found)\n"
        )
        sys.stdout.flush()
        return
    found = headline(outcome.place)
    if found is not None:
        sys.stdout.write(found + "\n")
    if outcome.reused:
        sys.stdout.write(f"already done: {outcome.place}; resume=false to run anew\n")
    else:
        sys.stdout.write(f"done: {outcome.place}\n")
    sys.stdout.flush()

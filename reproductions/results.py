"""Reading run directories, and choosing which run speaks for an experiment.

Rules kept here:

* nothing is guessed: a result file that cannot be read is an error that names the file;
* only a run with status `ok` can be chosen, the newest of its experiment and data set; a run with
  settings of its own (a small trial, a point of a sweep) speaks only where there is no other;
* a newer run that failed after the sources changed makes the older one stale: it no longer speaks;
* a run of other sources than the newest run of all is outdated: shown, yet no claim rests on it;
* a table, settings or a `result.json` whose digest is not the recorded one are refused; a result
  from before there was a `result_digest` need not have one;
* reading a run changes nothing on disk.
"""

from __future__ import annotations

import csv
import hashlib
import io
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from reproductions.inputs import (
    CorruptInputError,
    finite,
    first_problem,
    read_json,
    read_yaml,
)

RESULT_FORMAT = "cma.result/1"
UNKNOWN_DEVICE = "not recorded"
PLAIN = frozenset(
    {
        "experiment",
        "data",
        "data.download",
        "data.timeout_seconds",
        "data.missing",
        "store",
        "resume",
        "progress",
    }
)
"""Keys of overrides that leave a run one with the settings of the repository."""


class _Loose(BaseModel):
    """Fields of later versions are ignored, so that newer result files still load."""

    model_config = ConfigDict(extra="ignore", frozen=True)


class Figure(_Loose):
    """One measured number as written; `value` is unchecked here: judging it is the point."""

    value: Any
    unit: str = ""
    n: Any = None
    interval: list[Any] | None = None
    control: Any = None

    @property
    def number(self) -> float | int | None:
        """The value where it is a finite number, else None (text, NaN and booleans are none)."""
        return finite(self.value)


class DataSource(_Loose):
    """One data file that a run read, pinned by digest."""

    name: str
    sha256: str = ""
    licence: str = ""
    origin: str = ""


class Failure(_Loose):
    """Why a run failed."""

    type: str = ""
    message: str = ""


class Result(_Loose):
    """`result.json`: what a run found, the same on every machine."""

    format: Literal["cma.result/1"]
    experiment: str
    run_id: str
    config_hash: str = ""
    source_digest: str = ""
    seed: int | None = None
    status: Literal["ok", "failed"]
    error: Failure | None = None
    data: list[DataSource] = Field(default_factory=list)
    figures: dict[str, Figure] = Field(default_factory=dict)
    tables: list[str] = Field(default_factory=list)
    table_digests: dict[str, str] = Field(default_factory=dict)
    notes: list[str] = Field(default_factory=list)


class Machine(_Loose):
    """`machine.json`: what may differ between two machines or moments."""

    started_at: str = ""
    finished_at: str = ""
    seconds: float | None = None
    python: str = ""
    platform: str = ""
    cpu_count: int | None = None
    device: str = UNKNOWN_DEVICE
    git_revision: str | None = None
    git_dirty: bool | None = None
    packages: dict[str, str] = Field(default_factory=dict)
    overrides: tuple[str, ...] = ()
    figures: dict[str, Figure] = Field(default_factory=dict)
    """Figures of the machine and the moment, such as seconds."""
    table_digests: dict[str, str] = Field(default_factory=dict)
    """Of the tables of such figures."""

    @property
    def as_configured(self) -> bool:
        """Whether the run had the settings of the repository, apart from which data it is on."""
        return not self.other_settings

    @property
    def other_settings(self) -> tuple[str, ...]:
        """Overrides that set more than which experiment, on which data, and how it is kept."""
        return tuple(
            given for given in self.overrides if given.split("=")[0].lstrip("+~") not in PLAIN
        )


@dataclass(frozen=True)
class Run:
    """One run directory."""

    folder: Path
    result: Result
    machine: Machine
    config: Mapping[str, Any] = field(default_factory=dict)

    @property
    def data_set(self) -> str:
        """Name of the data set that the run used, empty for an experiment without one."""
        data = self.config.get("data")
        if isinstance(data, Mapping) and isinstance(data.get("name"), str):
            return str(data["name"])
        return self.result.data[0].name if self.result.data else ""

    @property
    def moment(self) -> tuple[str, str]:
        """Sort key: when it finished (ISO 8601 text sorts by time), then its id."""
        return (self.machine.finished_at or self.machine.started_at, self.result.run_id)

    def table(self, name: str) -> list[dict[str, str]] | None:
        """Rows of one of the run's CSV tables, None where the run has no such table."""
        path = self.folder / name
        try:
            if name != Path(name).name or not path.is_file():
                return None
            content = path.read_bytes()
        except OSError as error:  # such as a name that no file can have
            raise CorruptInputError(f"{path}: cannot be read: {error.strerror}") from error
        digest = (self.result.table_digests | self.machine.table_digests).get(name)
        if digest is not None and hashlib.sha256(content).hexdigest() != digest:
            raise CorruptInputError(
                f"{path}: changed after the run that wrote it; "
                f"run: python -m experiments experiment={self.result.experiment}"
            )
        try:
            return list(csv.DictReader(io.StringIO(content.decode("utf-8"), newline="")))
        except (UnicodeDecodeError, csv.Error) as error:
            raise CorruptInputError(f"{path}: not a CSV table: {error}") from error

    def needed(self, name: str, kind: str) -> list[dict[str, str]]:
        """Rows of a table that every run of its kind has. kind: what such a run is called.

        Raises CorruptInputError where the run has no such table, or no row in it.
        """
        rows = self.table(name)
        if not rows:
            raise CorruptInputError(
                f"{self.folder}: {kind} without {name}; "
                f"run: python -m experiments experiment={self.result.experiment} resume=false"
            )
        return rows


@dataclass(frozen=True)
class Choice:
    """The run that speaks for one experiment and data set, or why none does."""

    experiment: str
    data_set: str
    run: Run | None
    failed: Run | None
    """The newest failed run, where it is newer than `run` or there is no other."""
    stale: bool
    """True where `run` was superseded by a failure of changed sources: it no longer speaks."""
    outdated: bool = False
    """True where the newest run of all was made from other sources than `run`."""


def read_run(folder: Path) -> Run:
    """Return one run directory; a missing machine or config file leaves those parts empty."""
    path = folder / "result.json"
    try:
        content = read_json(path)
        result = Result.model_validate(content)
        machine_path = folder / "machine.json"
        machine = Machine.model_validate(read_json(machine_path) if machine_path.is_file() else {})
    except ValidationError as error:
        raise CorruptInputError(
            f"{folder}: not a run of format {RESULT_FORMAT}: {first_problem(error)}"
        ) from error
    if content.get("result_digest", _digest_of_rest(content)) != _digest_of_rest(content):
        raise CorruptInputError(
            f"{path}: changed after the run that wrote it; "
            f"run: python -m experiments experiment={result.experiment}"
        )
    config_path = folder / "config.yaml"
    config = read_yaml(config_path) if config_path.is_file() else {}
    if config and result.config_hash and _digest(config) != result.config_hash:
        raise CorruptInputError(
            f"{config_path}: changed after the run that wrote it; "
            f"run: python -m experiments experiment={result.experiment} resume=false"
        )
    return Run(folder, result, machine, config if isinstance(config, Mapping) else {})


def _digest_of_rest(content: Mapping[str, Any]) -> str:
    """Return the SHA-256 over all of a result but the digest itself, as its run computed it."""
    return _digest({key: value for key, value in content.items() if key != "result_digest"})


def _digest(content: Any) -> str:
    canonical = json.dumps(content, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(canonical.encode()).hexdigest()


def read_runs(root: Path) -> list[Run]:
    """Return every finished run under `root`, oldest first; hidden folders are unfinished ones."""
    found = [
        read_run(folder)
        for folder in sorted(root.glob("*/*"))
        if not any(part.startswith(".") for part in folder.relative_to(root).parts)
        and (folder / "result.json").is_file()
    ]
    return sorted(found, key=lambda run: run.moment)


def choose(runs: Iterable[Run]) -> dict[tuple[str, str], Choice]:
    """Return the speaking run of each (experiment, data set); `runs` need no order."""
    groups: dict[tuple[str, str], list[Run]] = {}
    ordered = sorted(runs, key=lambda run: run.moment)
    sources = ordered[-1].result.source_digest if ordered else ""
    for run in ordered:
        groups.setdefault((run.result.experiment, run.data_set), []).append(run)
    choices = {}
    for (experiment, data_set), group in sorted(groups.items()):
        good = [run for run in group if run.result.status == "ok"]
        bad = [run for run in group if run.result.status == "failed"]
        as_configured = [run for run in good if run.machine.as_configured]
        newest = next(reversed(as_configured or good), None)
        failed = bad[-1] if bad and (newest is None or bad[-1].moment > newest.moment) else None
        stale = (
            newest is not None
            and failed is not None
            and failed.result.source_digest != newest.result.source_digest
        )
        outdated = newest is not None and newest.result.source_digest != sources
        choices[experiment, data_set] = Choice(
            experiment, data_set, newest, failed, stale, outdated
        )
    return choices


def of_experiment(choices: Mapping[tuple[str, str], Choice], experiment: str) -> Iterator[Choice]:
    """Yield the choices of one experiment, one a data set."""
    return (choice for choice in choices.values() if choice.experiment == experiment)

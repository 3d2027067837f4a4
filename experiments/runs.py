"""The run directory `<runs>/<experiment>/<run_id>/`: written whole or not at all.

Rules:
- The run id is derived from experiment, settings, sources and data: the same question has one
  place.
- `result.json`, `config.yaml` and the tables that it lists are deterministic; `machine.json`, the
  tables that it lists, and `log.txt` hold what is not. None holds a host name, a user name or an
  absolute path.
- A run is prepared in a hidden folder beside its place and renamed into it, failed runs too.
- Only a run whose result says `ok` and which, tables and `result.json` itself, still has the
  recorded digests is reused; results of before there was a `result_digest` need not have one.
- A folder being prepared is locked, so that what a killed run left can be told apart.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import pandas as pd
import yaml

from experiments import leftovers
from experiments.data.conversations import DataRecord
from experiments.disclosure import scrub
from experiments.failures import UsageError
from experiments.result import DIGITS, Result

FORMAT = "cma.result/1"
ROOT = Path(__file__).resolve().parent.parent
SOURCES = (
    "cma/**/*.py",
    "cma/**/*.sql",
    "experiments/**/*.py",
    "experiments/**/*.yaml",
    "tests/contracts/**/*.py",
    "constraints.txt",
)
ID_LENGTH = 16


@dataclass(frozen=True, slots=True)
class Identity:
    """Which run this is: all that its id is derived from."""

    experiment: str
    config: Mapping[str, Any]
    """Resolved settings that can change the result; no paths."""
    seed: int
    source_digest: str
    data: tuple[DataRecord, ...] = ()

    @property
    def config_hash(self) -> str:
        """SHA-256 over the settings."""
        return _digest(self.config)

    @property
    def run_id(self) -> str:
        """The first 16 hexadecimal digits over everything."""
        return _digest(
            {
                "experiment": self.experiment,
                "config": self.config,
                "source_digest": self.source_digest,
                "data": [[record.name, record.sha256] for record in self.data],
            }
        )[:ID_LENGTH]

    def place(self, runs: Path) -> Path:
        """Return the run's directory."""
        return runs / self.experiment / self.run_id


def source_digest(root: Path = ROOT) -> str:
    """Return the SHA-256 over the sources that can change a result, by path and content."""
    paths = sorted({path for pattern in SOURCES for path in root.glob(pattern)})
    digest = hashlib.sha256()
    for path in paths:
        name = path.relative_to(root).as_posix()
        content = hashlib.sha256(path.read_bytes()).hexdigest()
        digest.update(f"{name}\0{content}\n".encode())
    return digest.hexdigest()


def finished(place: Path, identity: Identity) -> bool:
    """Tell whether `place` holds a whole, successful run of exactly this identity."""
    try:
        result = json.loads((place / "result.json").read_bytes())
        machine = json.loads((place / "machine.json").read_bytes())
        digests = {**result["table_digests"], **machine.get("table_digests", {})}
        return (
            result["format"] == FORMAT
            and result["status"] == "ok"
            and result["run_id"] == identity.run_id
            and result["config_hash"] == identity.config_hash
            and intact(result)
            and all(_file_digest(place / name) == digest for name, digest in digests.items())
        )
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return False


def tampered(place: Path) -> bool:
    """Tell whether `place` holds a result that is not what its run wrote."""
    try:
        return not intact(json.loads((place / "result.json").read_bytes()))
    except (OSError, ValueError, AttributeError, RecursionError):
        return False


def intact(result: Mapping[str, Any]) -> bool:
    """Tell whether a result has the digest that it records over all the rest of itself."""
    rest = {key: value for key, value in result.items() if key != "result_digest"}
    return "result_digest" not in result or result["result_digest"] == _digest(rest)


@contextmanager
def prepared(place: Path) -> Iterator[Path]:
    """Yield an empty folder that takes `place` when the block ends, or vanishes if it raises."""
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        folder = Path(tempfile.mkdtemp(prefix=f".{place.name}-", dir=place.parent))
    except OSError as error:
        raise _unwritable(place.parent, error) from error
    try:
        folder.chmod(0o755)
        with leftovers.locked(folder):
            yield folder
            _replace(folder, place)
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise


def check_writable(runs: Path) -> None:
    """Raise UsageError where nothing can be written below `runs`; leaves nothing behind."""
    there = runs.absolute()
    try:
        while not there.exists():
            there = there.parent
        os.rmdir(tempfile.mkdtemp(prefix=".writable-", dir=there))
    except OSError as error:
        raise _unwritable(runs, error) from error


def _unwritable(folder: Path, error: OSError) -> UsageError:
    return UsageError(
        f"nothing can be written to {folder} ({error.strerror}); "
        "give another place for results: paths.runs=FOLDER"
    )


def write_result(folder: Path, identity: Identity, result: Result) -> None:
    """Write a successful run's files, `result.json` last."""
    digests = _tables(folder, result.tables)
    _write(
        folder,
        identity,
        status="ok",
        error=None,
        figures={key: figure.as_dict() for key, figure in sorted(result.figures.items())},
        table_digests=digests,
        data=[asdict(record) for record in result.data],
        notes=list(result.notes),
    )


def write_measured(folder: Path, result: Result) -> dict[str, Any]:
    """Write the tables of what this machine took; return what `machine.json` says of it all."""
    return {
        "figures": {key: each.as_dict() for key, each in sorted(result.measured.items())},
        "table_digests": _tables(folder, result.measured_tables),
    }


def write_failure(folder: Path, identity: Identity, error: BaseException) -> None:
    """Write a failed run: what was asked, and the error without anything of this machine."""
    _write(
        folder,
        identity,
        status="failed",
        error={"type": type(error).__name__, "message": writable(scrub(str(error), ROOT))},
        figures={},
        table_digests={},
        data=[asdict(record) for record in identity.data],
        notes=[],
    )


def write_json(path: Path, content: Mapping[str, Any]) -> None:
    """Write indented JSON with a final newline."""
    text = json.dumps(content, indent=2, ensure_ascii=False, allow_nan=False) + "\n"
    path.write_text(text, encoding="utf-8")


def writable(text: str) -> str:
    """Return the text with what UTF-8 cannot hold (halves of surrogate pairs) written out."""
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


def _write(
    folder: Path,
    identity: Identity,
    *,
    status: str,
    error: Mapping[str, str] | None,
    figures: Mapping[str, Any],
    table_digests: Mapping[str, str],
    data: list[dict[str, Any]],
    notes: list[str],
) -> None:
    (folder / "config.yaml").write_text(yaml.safe_dump(dict(identity.config), sort_keys=True))
    content = {
        "format": FORMAT,
        "experiment": identity.experiment,
        "run_id": identity.run_id,
        "config_hash": identity.config_hash,
        "source_digest": identity.source_digest,
        "seed": identity.seed,
        "status": status,
        "error": error,
        "data": data,
        "figures": figures,
        "tables": sorted(table_digests),
        "table_digests": dict(sorted(table_digests.items())),
        "notes": notes,
    }
    write_json(folder / "result.json", content | {"result_digest": _digest(content)})


def _tables(folder: Path, tables: Mapping[str, pd.DataFrame]) -> dict[str, str]:
    """Write tables as CSV; return the digest of each file by its name."""
    digests: dict[str, str] = {}
    for name, table in tables.items():
        file = folder / f"{name}.csv"
        table.round(DIGITS).to_csv(file, index=False, lineterminator="\n")
        digests[file.name] = _file_digest(file)
    return digests


def _replace(folder: Path, place: Path) -> None:
    """Rename `folder` to `place`, moving aside what lies there: no directory is overwritten."""
    try:
        os.rename(folder, place)
    except OSError:
        if not place.exists():
            raise
        aside = Path(tempfile.mkdtemp(prefix=f".{place.name}-old-", dir=place.parent))
        try:
            os.rename(place, aside / "run")
            os.rename(folder, place)
        finally:
            if not place.exists() and (aside / "run").exists():
                os.rename(aside / "run", place)
            shutil.rmtree(aside, ignore_errors=True)


def _digest(content: Any) -> str:
    canonical = json.dumps(content, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(canonical.encode()).hexdigest()


def _file_digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()

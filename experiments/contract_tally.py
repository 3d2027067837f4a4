"""Runs the contract tests in a child process and tallies them by contract id.

A contract is passed only if every test that names it ran and passed; skipped or absent is missing.
A failed contract is a finding, so the experiment itself is done; tests that cannot be collected are
no finding at all, so then it fails.
"""

from __future__ import annotations

import json
import logging
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any, Literal

import pandas as pd
import yaml

from experiments import ranges
from experiments.failures import ExperimentError, UsageError
from experiments.result import Figure, Result
from experiments.runs import ROOT
from experiments.settings import Settings

Outcome = Literal["passed", "failed", "missing"]
_COMPLETED = (0, 1)
_TAIL_LINES = 15
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Version:
    """One version of the architecture: its contracts by id, and the paper's count of tests."""

    name: str
    contracts: Mapping[str, str]
    paper_tests: int


def catalogue() -> tuple[Version, ...]:
    """Read the contracts that there should be."""
    text = resources.files("experiments").joinpath("contracts.yaml").read_text(encoding="utf-8")
    return tuple(
        Version(name, entry["contracts"], entry["paper_tests"])
        for name, entry in yaml.safe_load(text).items()
    )


def check(settings: Settings) -> None:
    """Refuse a suite that is not there."""
    if not (ROOT / settings.tally.suite).exists():
        raise UsageError(
            f"tally.suite={settings.tally.suite} does not exist; give a folder or file of contract "
            "tests below the checkout, for example tests/contracts"
        )
    ranges.whole("seed", settings.seed, 0, ranges.SEED_LIMIT)
    patience = settings.tally.timeout_seconds
    ranges.above("tally.timeout_seconds", patience, 0.0, ranges.PATIENCE_LIMIT)


def run(settings: Settings, folder: Path) -> Result:  # noqa: ARG001
    """Run the suite and return its tally."""
    lines = run_suite(settings.tally.suite, settings.tally.timeout_seconds)
    return tally(catalogue(), lines)


def run_suite(suite: str, timeout: float, root: Path = ROOT) -> list[dict[str, Any]]:
    """Run pytest on the suite in a child process and return its report, one entry a test."""
    with tempfile.TemporaryDirectory() as temporary:
        report = Path(temporary) / "contracts.jsonl"
        command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"]
        command += ["-p", "experiments.contract_report", f"--contract-report={report}", suite]
        environment = {**os.environ, "PYTHONPATH": _search_path()}
        environment.pop("PYTEST_ADDOPTS", None)
        try:
            done = subprocess.run(
                command,
                cwd=root,
                env=environment,
                capture_output=True,
                text=True,
                timeout=timeout,
                check=False,
            )
        except subprocess.TimeoutExpired as error:
            raise ExperimentError(
                f"the contract tests did not end within {timeout:.0f} s (tally.timeout_seconds)"
            ) from error
        tail = "\n".join((done.stdout + done.stderr).strip().splitlines()[-_TAIL_LINES:])
        _log.info("%s", tail)
        if done.returncode not in _COMPLETED or not report.exists():
            raise ExperimentError(f"pytest ended with status {done.returncode}:\n{tail}")
        return [json.loads(line) for line in report.read_text().splitlines()]


def tally(versions: Iterable[Version], lines: Iterable[Mapping[str, Any]]) -> Result:
    """Count, for each version, the contracts that passed, failed or are missing."""
    versions = tuple(versions)
    outcomes, notes = _by_contract(versions, lines)
    contracts: list[dict[str, Any]] = []
    counts: list[dict[str, Any]] = []
    figures: dict[str, Figure] = {}
    for version in versions:
        judged = {name: _judge(outcomes.get(name, [])) for name in version.contracts}
        contracts.extend(
            {
                "version": version.name,
                "contract": name,
                "title": title,
                "outcome": judged[name],
            }
            for name, title in version.contracts.items()
        )
        passed = sum(outcome == "passed" for outcome in judged.values())
        total = sum(bool(outcomes.get(name)) for name in version.contracts)
        counts.append(
            {
                "version": version.name,
                "passed": passed,
                "total": total,
                "expected": version.paper_tests,
                "state": "run" if total else "not run",
            }
        )
        if total:
            figures[f"contracts.{version.name}"] = Figure(
                passed, "contracts passed", len(version.contracts)
            )
    notes.append(
        "The paper's tests are unpublished: the contracts are reconstructed from its text. It "
        "counts 29 for Lagoon, Eagle and Rosette together; 9, 9 and 11 is the catalogue's split."
    )
    return Result(
        figures=figures,
        tables={"contracts": pd.DataFrame(contracts), "tally": pd.DataFrame(counts)},
        notes=tuple(notes),
    )


def _by_contract(
    versions: tuple[Version, ...], lines: Iterable[Mapping[str, Any]]
) -> tuple[dict[str, list[str]], list[str]]:
    known = {name for version in versions for name in version.contracts}
    outcomes: dict[str, list[str]] = {}
    notes: list[str] = []
    for line in lines:
        for name in line["contracts"] or [""]:
            if name in known:
                outcomes.setdefault(name, []).append(line["outcome"])
            elif name:
                notes.append(f"{line['test']} names {name}, which is no contract of the catalogue.")
            else:
                notes.append(f"{line['test']} names no contract and counts for none.")
        if len(line["contracts"]) > 1:
            notes.append(f"{line['test']} names several contracts: {' '.join(line['contracts'])}.")
    for name, seen in sorted(outcomes.items()):
        if _judge(seen) == "missing":
            notes.append(f"{name} has a test that was {' and '.join(sorted(set(seen)))}.")
    return outcomes, notes


def _judge(seen: list[str]) -> Outcome:
    if "failed" in seen:
        return "failed"
    return "passed" if seen and set(seen) == {"passed"} else "missing"


def _search_path() -> str:
    """Let the child find this checkout's packages, wherever it runs."""
    before = os.environ.get("PYTHONPATH")
    return f"{ROOT}{os.pathsep}{before}" if before else str(ROOT)

"""The files around the results: what the runs came to, the claims, the environment, the machine."""

from __future__ import annotations

import re
import tomllib
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

from reproductions.claims import ClaimsFile
from reproductions.judge import Choices, Verdict, judge_all
from reproductions.results import Run
from reproductions.staging import forms

OWN = "stage150"
_RUN_ID = re.compile(r"\brun [0-9a-f]{16}\b")
_PIN = re.compile(r"([\w.-]+)==([\w.+!-]+)")


def run_file(run: Run) -> forms.RunFile:
    """Return what a run came to; its id, place and times are not in it."""
    result = run.result
    error = None if result.error is None else f"{result.error.type}: {result.error.message}"
    return forms.RunFile(
        experiment=result.experiment,
        status=result.status,
        error=error,
        as_configured=run.machine.as_configured,
        seed=result.seed,
        config_hash=result.config_hash,
        source_digest=result.source_digest,
        figures={
            key: forms.Figure.model_validate(figure.model_dump())
            for key, figure in result.figures.items()
        },
        tables=result.table_digests,
        notes=result.notes,
    )


def claims_file(claims: ClaimsFile, choices: Choices) -> forms.ClaimsTable:
    """Return the claims judged over the runs; what asks for the tree itself is not judged yet."""
    others = {key: choice for key, choice in choices.items() if key[0] != OWN}
    judged = judge_all(claims.claims, others)
    counts = Counter(row.verdict for row in judged)
    return forms.ClaimsTable(
        source=claims.source,
        judged_without=[OWN],
        verdicts={str(verdict): counts[verdict] for verdict in Verdict},
        claims=[
            forms.ClaimRow.model_validate(
                row.model_dump(exclude={"run", "device"}, mode="json")
                | {"why": _RUN_ID.sub("the run", row.why)}
            )
            for row in judged
        ],
    )


def environment_file(root: Path, source_digest: str) -> forms.Environment:
    """Return what the tree is made from: the project, its sources, the pinned releases."""
    project = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    pins = (root / "constraints.txt").read_text(encoding="utf-8").splitlines()
    return forms.Environment(
        project=project["name"],
        version=project["version"],
        licence=project["license"],
        python=project["requires-python"],
        source_digest=source_digest,
        packages=_pinned(pins),
    )


def machine_file(runs: Iterable[Run]) -> forms.MachineFile:
    """Return where and when the runs were made."""
    return forms.MachineFile(
        runs=[
            forms.MachineRun.model_validate(
                {"experiment": run.result.experiment, "run_id": run.result.run_id}
                | run.machine.model_dump(
                    include=set(forms.MachineRun.model_fields) - {"experiment", "run_id"}
                )
            )
            for run in sorted(runs, key=lambda run: run.result.experiment)
        ]
    )


def _pinned(lines: Iterable[str]) -> dict[str, str]:
    found = (_PIN.match(line) for line in lines)
    return {match[1]: match[2] for match in found if match is not None}

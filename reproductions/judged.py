"""`claims.json`: the judged claims as one file, written whole or not at all.

It is a function of `claims.yaml` and the chosen runs alone: judging the same files twice writes the
same bytes. `run` of its figures names the judged state, so that two files can be told apart.
"""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, ValidationError

from reproductions.claims import CLAIMS_FILE, load_claims
from reproductions.inputs import CorruptInputError, first_problem, read_json
from reproductions.judge import Judgement, Verdict, judge_all
from reproductions.results import choose, read_runs


class ClaimFigure(BaseModel):
    """One count of claims."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    value: int
    unit: str
    n: int
    run: str


class JudgedClaims(BaseModel):
    """The whole of `claims.json`."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    format: Literal["cma.judged-claims/1"]
    source: str
    claims: list[Judgement]
    figures: dict[str, ClaimFigure]


def judge_runs(runs: Path, claims_path: Path = CLAIMS_FILE) -> JudgedClaims:
    """Judge every claim against the runs under `runs`; a folder that is not there has no runs."""
    claims = load_claims(claims_path)
    rows = judge_all(claims.claims, choose(read_runs(runs)))
    state = json.dumps([row.model_dump(mode="json") for row in rows], sort_keys=True)
    run = "claims-" + hashlib.sha256(state.encode()).hexdigest()[:16]
    counts = {
        "claims.total": len(rows),
        "claims.failed": sum(row.verdict is Verdict.FAILED for row in rows),
        "claims.not_run": sum(row.verdict is Verdict.NOT_RUN for row in rows),
    }
    figures = {
        key: ClaimFigure(value=value, unit="claims", n=len(rows), run=run)
        for key, value in counts.items()
    }
    return JudgedClaims(
        format="cma.judged-claims/1", source=claims.source, claims=rows, figures=figures
    )


def write_judged(judged: JudgedClaims, path: Path) -> None:
    """Write the file by rename, so that a reader sees the old one or the new one."""
    path.parent.mkdir(parents=True, exist_ok=True)
    text = json.dumps(judged.model_dump(mode="json"), indent=2, ensure_ascii=False) + "\n"
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    draft.write_text(text, encoding="utf-8")
    draft.replace(path)


def read_judged(path: Path) -> JudgedClaims | None:
    """Return the judged claims, None where they were not made yet."""
    if not path.is_file():
        return None
    try:
        return JudgedClaims.model_validate(read_json(path))
    except ValidationError as error:
        raise CorruptInputError(
            f"{path}: not a judged claims file ({first_problem(error)}); "
            "make it again: python -m reproductions"
        ) from error


def shown_value(value: bool | int | float | str | None, unit: str = "") -> str:
    """Return what the paper reports as text, with its unit; whole numbers stay whole."""
    if value is None:
        return "-"
    text = f"{value:g}" if isinstance(value, float) else str(value)
    return f"{text} {unit}" if unit else text


def shown_measured(row: Judgement) -> str:
    """Return the measured value with its denominator where it has one."""
    if row.measured is None:
        return "-"
    if isinstance(row.measured, str):
        return row.measured
    value = f"{row.measured:.4g}" if isinstance(row.measured, float) else str(row.measured)
    return f"{value} of {row.denominator:g}" if row.denominator is not None else value

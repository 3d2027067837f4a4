"""The files that come from the tables of runs: contracts, failures, graph, diagnostic."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence

from experiments.failures import DataError
from reproductions.results import Run
from reproductions.staging import evidence
from reproductions.staging.parts import File

Rows = Sequence[Mapping[str, str]]
_ARTIFACT = re.compile(r"audit (?P<seq>\d+) reject (?P<reason>\S+) (?P<hash>[0-9a-f]{64})")


def files_of(run: Run) -> list[File]:
    """Return the files that a successful run gives; raises DataError for tables that are others."""
    try:
        return list(_COLLECTORS[run.result.experiment](run))
    except (KeyError, ValueError, AttributeError) as error:
        raise DataError(
            f"run {run.result.run_id} of {run.result.experiment} has tables that do not fit "
            f"({error}); run: python -m experiments experiment={run.result.experiment} resume=false"
        ) from error


def _contracts(run: Run) -> Iterator[File]:
    for row in _table(run, "contracts"):
        yield evidence.Contract.model_validate(
            {"contract": row["contract"], "version": row["version"], "title": row["title"],
             "outcome": row["outcome"]}
        )  # fmt: skip


def _failures(run: Run) -> Iterator[File]:
    for row in _table(run, "failures"):
        artifacts = [_artifact(each) for each in row["artifact"].split("; ") if each]
        plain = ("case", "group", "injected", "required", "observed", "digest_before",
                 "digest_after", "fell_short")  # fmt: skip
        yield evidence.Failure.model_validate(
            {name: row[name] for name in plain}
            | {
                "reasons": row["reason"].split(),
                "artifacts": artifacts,
                "passed": _yes(row["passed"]),
            }
        )


def _artifact(text: str) -> dict[str, object]:
    found = _ARTIFACT.fullmatch(text)
    if found is None:
        raise ValueError(f"{text!r} is no failure record")
    return {"audit_seq": int(found["seq"]), "reason": found["reason"], "hash": found["hash"]}


def _graph(run: Run) -> Iterator[File]:
    """Labels are left out: they say what the cells of a session hold."""
    nodes = [
        evidence.Node(name=row["name"], scale=row["scale"], q=int(row["q"]), r=int(row["r"]),
                   reached=int(row["reached"]), id=row["id"])
        for row in _table(run, "nodes")
    ]  # fmt: skip
    edges = [
        evidence.Edge(adjacency=row["adjacency"], source=row["source"], target=row["target"])
        for row in _table(run, "edges")
    ]
    ways = [
        evidence.Way(way=row["way"], digest=row["digest"], starts=int(row["starts"]))
        for row in _table(run, "ways")
    ]
    yield evidence.Graph(nodes=nodes, edges=edges, ways=ways)
    rows: dict[tuple[str, str], list[Mapping[str, str]]] = {}
    for row in _table(run, "traversal"):
        rows.setdefault((row["bounds"], row["start"]), []).append(row)
    traversals = [
        evidence.Traversal(
            bounds=bounds,
            start=start,
            order=[row["node"] for row in group if row["place"]],
            cut=[evidence.Cut(node=row["node"], reason=row["cut"]) for row in group if row["cut"]],
        )
        for (bounds, start), group in rows.items()
    ]
    yield evidence.Traversals(traversals=traversals)


def _diagnostic(run: Run) -> Iterator[File]:
    by_condition: dict[str, list[evidence.Site]] = {}
    for row in _table(run, "norms"):
        by_condition.setdefault(row["condition"], []).append(_site(row))
    for name, sites in by_condition.items():
        yield evidence.Condition(condition=name, sites=sites)
    for row in _table(run, "checks"):
        yield evidence.Checks(
            dtype=row["dtype"],
            model=row["model"],
            weights=row["weights"],
            context=[int(each) for each in row["context"].split(" x ")],
            parameters=int(row["parameters"]),
            trainable=int(row["trainable"]),
            gradients=int(row["gradients"]),
            weights_unchanged=_yes(row["weights_unchanged"]),
            logits_equal_without_memory=_yes(row["logits_equal_without_memory"]),
            logits_differ_with_memory=_yes(row["logits_differ_with_memory"]),
            fingerprint=row["fingerprint"],
            receipt=row["receipt"],
        )


def _site(row: Mapping[str, str]) -> evidence.Site:
    return evidence.Site(
        dtype=row["dtype"],
        place=int(row["place"]),
        site=row["site"],
        delta_norm=_norm(row["delta_norm"]),
        applied_norm=_norm(row["applied_norm"]),
        mean_token_norm=_norm(row["mean_token_norm"]),
        tokens=_whole(row["tokens"]),
        slots=_whole(row["slots"]),
        calls=int(row["calls"]),
        finite=_yes(row["finite"]) if row["finite"] else None,
        logits_equal=_yes(row["logits_equal"]),
    )


def _table(run: Run, name: str) -> Rows:
    rows = run.table(f"{name}.csv")
    if rows is None:
        raise KeyError(f"no {name}.csv")
    return rows


def _yes(text: str) -> bool:
    return {"True": True, "False": False}[text]


def _norm(text: str) -> float | None:
    return float(text) if text else None


def _whole(text: str) -> int | None:
    return int(text) if text else None


_COLLECTORS: Mapping[str, Callable[[Run], Iterator[File]]] = {
    "contract_tally": _contracts,
    "failure_matrix": _failures,
    "graph_fixture": _graph,
    "delta_norm": _diagnostic,
}

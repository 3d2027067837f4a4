"""The gates that are about results, each computed from the files of the tree and nothing else.

A gate is passed only if each of its checks is. What is not there is no pass: its check says null.
The last gate, of the tree itself, is in `integrity`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from reproductions.staging.catalogue import (
    ENVIRONMENT,
    GRAPH,
    TRAVERSALS,
    catalogue,
    gate_place,
    run_place,
)
from reproductions.staging.forms import Check, Gate

Files = Mapping[str, Any]
"""Content by path; a file that is not there has no key."""

NODES, SCALES, ADJACENCIES, WAYS = 5, 3, 3, 4
WIDTH, SITES = 1024, 2
SILENT = ("no_memory", "masked", "zero_vectors", "adapter_off")
"""Conditions under which the model must answer as if there were no memory."""


def check(what: str, observed: Any, required: Any) -> Check:
    """Return a check that is passed where what was observed is what is required."""
    same = observed == required and isinstance(observed, bool) == isinstance(required, bool)
    return Check(what=what, required=required, observed=observed, passed=same)


def gate(name: str, checks: Iterable[Check]) -> Gate:
    """Return a gate of these checks; one without any is not passed."""
    found = list(checks)
    passed = bool(found) and all(each.passed for each in found)
    title = catalogue().files[gate_place(name)].about
    return Gate(gate=name, title=title, passed=passed, checks=found)


def result_gates(files: Files) -> list[Gate]:
    """Return the six gates about results."""
    return [gate(name, checks(files)) for name, checks in _CHECKS.items()]


def _of_run(files: Files, experiment: str) -> list[Check]:
    """A gate rests on a run that succeeded, of the tree's sources and the repository's settings."""
    run = files.get(run_place(experiment), {})
    sources = files.get(ENVIRONMENT, {}).get("source_digest", "not told")
    return [
        check(f"run of {experiment}", run.get("status", "missing"), "ok"),
        check(f"settings of {experiment} as configured", run.get("as_configured"), True),
        check(f"sources of {experiment}", run.get("source_digest"), sources),
    ]


def _figure(files: Files, experiment: str, key: str) -> Any:
    return files.get(run_place(experiment), {}).get("figures", {}).get(key, {}).get("value")


def _tally(*versions: str) -> Callable[[Files], list[Check]]:
    def checks(files: Files) -> list[Check]:
        found = _of_run(files, "contract_tally")
        for version in versions:
            paths = catalogue().contracts(version)
            passed = sum(
                files.get(path, {}).get("outcome") == "passed"
                and files[path].get("version") == version
                for path in paths
            )
            key = f"contracts.{version}"
            figure = _figure(files, "contract_tally", key)
            found += [
                check(f"{version} contracts passed", passed, len(paths)),
                check(f"{key} of the run", figure, len(paths)),
            ]
        return found

    return checks


def _failures(files: Files) -> list[Check]:
    paths = list(catalogue().of_kind("failure"))
    rows = [files[path] for path in paths if path in files]
    closed = [row for row in rows if row["required"] == "fail_closed"]
    refused = [row for row in rows if row["required"] in ("reject", "fail_closed")]
    return [
        *_of_run(files, "failure_matrix"),
        check("rows as required", sum(row["passed"] for row in rows), len(paths)),
        check("rows that fell short", sum(row["fell_short"] != "" for row in rows), 0),
        check("refusals with a reason", sum(bool(row["reasons"]) for row in refused), len(refused)),
        check(
            "closed failures with the digest unchanged",
            sum(row["digest_before"] == row["digest_after"] != "" for row in closed),
            len(closed),
        ),
        check("failures.rows of the run", _figure(files, "failure_matrix", "failures.rows"),
              len(paths)),
        check("failures.passed of the run", _figure(files, "failure_matrix", "failures.passed"),
              len(paths)),
    ]  # fmt: skip


def _graph(files: Files) -> list[Check]:
    view = files.get(GRAPH, {"nodes": [], "edges": [], "ways": []})
    names = {node["name"] for node in view["nodes"]}
    joined = {frozenset((edge["source"], edge["target"])) for edge in view["edges"]}
    orders = {
        each["start"]: each["order"]
        for each in files.get(TRAVERSALS, {}).get("traversals", [])
        if each["bounds"] == "none"
    }
    reached = [
        len(set(orders.get(name, ())) & names) if _walks(orders.get(name, []), name, joined) else 0
        for name in sorted(names)
    ]
    return [
        *_of_run(files, "graph_fixture"),
        check("nodes", len(names), NODES),
        check("scales", len({node["scale"] for node in view["nodes"]}), SCALES),
        check("adjacencies", len({edge["adjacency"] for edge in view["edges"]}), ADJACENCIES),
        check("edges that end at a node", sum(pair <= names for pair in joined), len(joined)),
        check("nodes reached from the worst start", min(reached, default=0), NODES),
        check("ways of seeing it", len(view["ways"]), WAYS),
        check("graphs seen", len({way["digest"] for way in view["ways"]}), 1),
        check("graph.nodes_reached of the run",
              _figure(files, "graph_fixture", "graph.nodes_reached"), NODES),
    ]  # fmt: skip


def _walks(order: list[str], start: str, joined: set[frozenset[str]]) -> bool:
    """Tell whether an order begins at its start and goes on along edges, never twice to a node."""
    if order[:1] != [start] or len(set(order)) != len(order):
        return False
    return all(
        any(frozenset((seen, name)) in joined for seen in order[:place])
        for place, name in enumerate(order)
        if place
    )


def _frozen(files: Files) -> list[Check]:
    conditions = {
        each["condition"]: each["sites"]
        for path in catalogue().of_kind("condition")
        if (each := files.get(path)) is not None
    }
    told = [files[path] for path in catalogue().of_kind("checks") if path in files]
    full = [site["delta_norm"] for site in conditions.get("full", [])]
    without = [site["delta_norm"] for site in conditions.get("no_memory", [])]
    silent = [site for name in SILENT for site in conditions.get(name, [])]
    loud = [site for name in conditions if name not in SILENT for site in conditions[name]]
    wanted = len(catalogue().of_kind("checks"))
    places = SITES * wanted
    run = "delta_norm"
    return [
        *_of_run(files, run),
        check("conditions", len(conditions), len(catalogue().of_kind("condition"))),
        check("norms above zero with memory", sum(bool(norm) and norm > 0 for norm in full),
              places),
        check("norms of exactly zero without", sum(norm == 0 for norm in without), places),
        check("silent conditions that leave the answer",
              sum(site["logits_equal"] for site in silent), len(silent) or None),
        check("other conditions that change it",
              sum(not site["logits_equal"] for site in loud), len(loud) or None),
        check("vectors of shape 1 x 1 x 1024",
              sum(each["context"] == [1, 1, WIDTH] for each in told), wanted),
        check("trainable parameters", sum(each["trainable"] for each in told), 0),
        check("gradients", sum(each["gradients"] for each in told), 0),
        check("weights unchanged", sum(each["weights_unchanged"] for each in told), wanted),
        check("finite vectors of the run", _figure(files, run, "delta.context.finite"), 1),
        check("true masks of the run", _figure(files, run, "delta.context.mask_true"), 1),
    ]  # fmt: skip


_CHECKS: Mapping[str, Callable[[Files], list[Check]]] = {
    "orion_tally": _tally("orion"),
    "trifid_tally": _tally("trifid"),
    "lagoon_eagle_rosette_tally": _tally("lagoon", "eagle", "rosette"),
    "failure_matrix": _failures,
    "graph_fixture": _graph,
    "frozen_model": _frozen,
}

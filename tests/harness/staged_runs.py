"""Runs of the four experiments that a Stage150 tree is made of, and the tree."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from experiments.staging.building import Tree, build, collected
from reproductions.claims import load_claims
from reproductions.disclosing import NOTHING, Known
from reproductions.results import choose, read_runs
from reproductions.staging.catalogue import VERSIONS, catalogue
from reproductions.staging.gates import result_gates
from tests.harness.sample_runs import figure, write_run

ROOT = Path(__file__).resolve().parents[2]
SOURCES = "ab" * 32
CLAIMS = load_claims()
NODES = (
    ("C1", "control"),
    ("S1", "schema"),
    ("S2", "schema"),
    ("E1", "episode"),
    ("E2", "episode"),
)
EDGES = (
    ("derivation", "S1", "E1"), ("derivation", "S2", "E2"), ("governance", "C1", "S1"),
    ("governance", "C1", "S2"), ("temporal", "E1", "E2"),
)  # fmt: skip
ORDERS = {
    "C1": ["C1", "S1", "S2", "E1", "E2"], "S1": ["S1", "E1", "C1", "E2", "S2"],
    "S2": ["S2", "E2", "C1", "E1", "S1"], "E1": ["E1", "S1", "E2", "C1", "S2"],
    "E2": ["E2", "S2", "E1", "C1", "S1"],
}  # fmt: skip
SILENT = ("no_memory", "masked", "zero_vectors")
DTYPES = ("float32", "bfloat16")
Tables = dict[str, list[dict[str, Any]]]
Spoil = Callable[[Tables, dict[str, Any]], None]


def contract_tally() -> tuple[Tables, dict[str, Any]]:
    rows = [
        {"version": version, "contract": Path(path).stem, "title": catalogue().files[path].about,
         "outcome": "passed"}
        for version in VERSIONS
        for path in catalogue().contracts(version)
    ]  # fmt: skip
    figures = {
        f"contracts.{version}": figure(len(catalogue().contracts(version)), "contracts passed")
        for version in VERSIONS
    }
    return {"contracts.csv": rows}, figures


def failure_matrix() -> tuple[Tables, dict[str, Any]]:
    rows = []
    for path, declared in catalogue().of_kind("failure").items():
        required = {"mutated_snapshot": "fail_closed", "naive_time": "reject"}
        answer = required.get(Path(path).stem, "preserve")
        refused = answer != "preserve"
        rows.append(
            {"group": "documented", "case": Path(path).stem, "injected": declared.about,
             "required": answer, "observed": "as required", "reason": "time-naive" * refused,
             "digest_before": "cd" * 32, "digest_after": "cd" * 32,
             "artifact": f"audit 9 reject time-naive {'ef' * 32}" if answer == "reject" else "",
             "passed": True, "fell_short": ""}
        )  # fmt: skip
    count = len(rows)
    figures = {f"failures.{key}": figure(count, "rows") for key in ("rows", "passed")}
    return {"failures.csv": rows}, figures


def graph_fixture() -> tuple[Tables, dict[str, Any]]:
    nodes = [
        {"name": name, "scale": scale, "label": "what a session says", "q": 0, "r": -place,
         "reached": 5, "id": f"record-{place}"}
        for place, (name, scale) in enumerate(NODES)
    ]  # fmt: skip
    edges = [{"adjacency": kind, "source": one, "target": two} for kind, one, two in EDGES]
    ways = [
        {"way": way, "same": True, "starts": 5, "digest": "12" * 32}
        for way in ("built", "asked again", "restored from a snapshot", "another process")
    ]
    visits = [
        {"bounds": "none", "start": start, "place": place, "node": node, "cut": ""}
        for start, order in ORDERS.items()
        for place, node in enumerate(order, 1)
    ]
    visits.append({"bounds": "budget=1", "start": "C1", "place": 1, "node": "C1", "cut": ""})
    visits.append({"bounds": "budget=1", "start": "C1", "place": "", "node": "S1", "cut": "budget"})
    tables = {"nodes.csv": nodes, "edges.csv": edges, "ways.csv": ways, "traversal.csv": visits}
    figures = {"graph.nodes": figure(5), "graph.scales": figure(3), "graph.adjacencies": figure(3)}
    return tables, figures | {"graph.nodes_reached": figure(5)}


def delta_norm() -> tuple[Tables, dict[str, Any]]:
    norms, checks = [], []
    for dtype in DTYPES:
        common = {"model": "tiny", "weights": "seeded", "device": "cpu", "dtype": dtype}
        for path in catalogue().of_kind("condition"):
            name = Path(path).stem
            places = {"site_1_only": [1], "site_2_only": [2], "adapter_off": [0]}.get(name, [1, 2])
            for place in places:
                norm: Any = 0.0 if name in SILENT else 5.25
                numbers: dict[str, Any] = dict.fromkeys(
                    ("delta_norm", "applied_norm", "mean_token_norm"), norm if place else ""
                )
                norms.append(
                    {**common, "condition": name, "place": place,
                     "site": f"model.layers.{place}" if place else "none", **numbers,
                     "tokens": 9 if place else "", "slots": 1 if place else "",
                     "calls": min(place, 1), "finite": True if place else "",
                     "logits_equal": name in (*SILENT, "adapter_off")}
                )  # fmt: skip
        checks.append(
            {**common, "context": "1 x 1 x 1024", "parameters": 100, "trainable": 0, "gradients": 0,
             "weights_unchanged": True, "logits_equal_without_memory": True,
             "logits_differ_with_memory": True, "fingerprint": "34" * 32, "receipt": "receipt-1"}
        )  # fmt: skip
    figures = {
        "delta.context.vectors": figure(1), "delta.context.width": figure(1024, n=1),
        "delta.context.finite": figure(1), "delta.context.mask_true": figure(1),
        "delta.full.location1": figure(5.25, "norm", 1),
        "delta.full.location2": figure(5.25, "norm", 1),
        "delta.no_memory.max": figure(0.0, "norm", 2),
        "delta.trainable_base_parameters": figure(0, n=100),
        "delta.base_gradients": figure(0, "tensors", 9),
        "delta.fingerprint_unchanged": figure(1, "boolean", 1),
    }  # fmt: skip
    return {"norms.csv": norms, "checks.csv": checks}, figures


MAKERS = {
    "contract_tally": contract_tally, "failure_matrix": failure_matrix,
    "graph_fixture": graph_fixture, "delta_norm": delta_norm,
}  # fmt: skip


def write_staged(
    root: Path,
    *,
    leave_out: Iterable[str] = (),
    spoil: Mapping[str, Spoil] | None = None,
    **options: Any,
) -> None:
    """Write a run of each experiment; `spoil` changes the tables and figures of one by name.

    options: of `write_run`, or by experiment's name a mapping of them.
    """
    for experiment, make in MAKERS.items():
        if experiment in leave_out:
            continue
        tables, figures = make()
        (spoil or {}).get(experiment, lambda *_: None)(tables, figures)
        given = {key: value for key, value in options.items() if key not in MAKERS}
        given |= options.get(experiment, {})
        write_run(root, experiment, tables=tables, figures=figures,
                  **{"source_digest": SOURCES, **given})  # fmt: skip


def tree_of(root: Path, known: Known = NOTHING, source_digest: str = SOURCES) -> Tree:
    """Return the tree of the runs under a folder."""
    choices = choose(read_runs(root))
    return build(choices, CLAIMS, root=ROOT, source_digest=source_digest, known=known)


def failed_results(root: Path) -> list[str]:
    """Return the gates about results that fail on the runs under a folder; quicker than a tree."""
    files = collected(choose(read_runs(root)), CLAIMS, root=ROOT, source_digest=SOURCES)
    gates = result_gates({path: json.loads(data) for path, data in files.items()})
    return [gate.gate for gate in gates if not gate.passed]

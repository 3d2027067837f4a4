"""The graph view: evidence, abstractions and control at three scales, joined by three adjacencies.

Episode nodes are frames, schema nodes are semantic and procedural cells, control nodes are
decisions. Temporal edges join frames that follow each other in one scope; derivation joins a schema
to each frame that shares a source with it; governance joins a decision to what its conflict is
about: each end that is a schema, and the frames and schemas that rest on an end that is evidence.
The view is built for one viewer at one generation and is no authority. It is whole or refused: what
a node rests on must be there (a frame's sources; a schema's sources and all that its admission
names; a decision's link and both ends), and so must the cell of every admission.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from enum import StrEnum
from itertools import pairwise

import apsw
import orjson

from cma.eagle.decisions import DECISION, decision_of
from cma.lagoon.claims import ADMISSION
from cma.orion.cells import DERIVED_KINDS, Cell
from cma.orion.governed import Shelf, records_of_kind
from cma.orion.links import link_of_record
from cma.orion.records import cell_of_record, record_of
from cma.orion.scopes import is_visible, visible_scopes
from cma.orion.store import Store
from cma.rosette.honeycomb import hexes
from cma.trifid.frames import FRAME, EpisodeFrame, frame_of
from cma.values.errors import Reason, StoreRefusedError
from cma.values.identity import canonical, digest
from cma.values.validation import Value

GRAPH_DOMAIN = "cma:graph:1"
SCOPE = "SELECT scope FROM cells WHERE id = ? LIMIT 1"


class Scale(StrEnum):
    """Where a node stands."""

    CONTROL = "control"
    SCHEMA = "schema"
    EPISODE = "episode"


class Adjacency(StrEnum):
    """What an edge says."""

    DERIVATION = "derivation"
    GOVERNANCE = "governance"
    TEMPORAL = "temporal"


class Node(Value):
    """A node: the record that it stands for, and its place in the honeycomb (axial q, r)."""

    id: str
    scale: Scale
    label: str
    q: int
    r: int


class Edge(Value):
    """An edge from one node to another."""

    source: str
    target: str
    adjacency: Adjacency


class GraphView(Value):
    """A graph for one viewer (paper: honeycomb-style projection, Rosette)."""

    scope: str
    generation: int
    nodes: tuple[Node, ...]
    edges: tuple[Edge, ...]

    @property
    def digest(self) -> str:
        """SHA-256 of nodes, edges and places; the generation is not part of it."""
        told = {
            "edges": [[edge.source, edge.target, edge.adjacency.value] for edge in self.edges],
            "nodes": [
                [node.id, node.scale.value, node.label, node.q, node.r] for node in self.nodes
            ],
            "scope": self.scope,
        }
        return digest(GRAPH_DOMAIN, canonical(told))


def graph_view(store: Store, *, viewer: str) -> GraphView:
    """Return the graph of what the viewer sees, nodes and edges in one order.

    Raises StoreRefusedError (`graph-cell-missing`) when a node rests on a record that is not
    there; no part of the graph is given then.
    """
    at = store.now()
    with store.reading() as connection:
        generation = store.head()[2]
        scopes = visible_scopes(viewer)
        frames = [
            frame_of(filed)
            for filed in records_of_kind(connection, Shelf.GOVERNED, FRAME, scopes=scopes)
            if not filed.erased
        ]
        schemas = [cell for cell in _schemas(connection, scopes) if cell.is_active(at)]
        rests: list[_Needs] = [(frame.id, frame.cells) for frame in frames]
        rests += [(cell.id, cell.derived_from) for cell in schemas]
        rests += _admitted(connection, scopes, {cell.id for cell in schemas})
        _check_present(connection, rests)
        decisions = _decisions(connection, viewer)
    labels = {frame.id: (Scale.EPISODE, frame.scene) for frame in frames}
    labels |= {cell.id: (Scale.SCHEMA, cell.content) for cell in schemas}
    labels |= {name: (Scale.CONTROL, handling) for name, handling, _ in decisions}
    edges = {*_temporal(frames), *_derivation(frames, schemas)}
    edges |= set(_governance(decisions, frames, schemas))
    places = hexes({name: scale.value for name, (scale, _) in labels.items()}, list(Scale))
    nodes = tuple(
        Node(id=name, scale=labels[name][0], label=labels[name][1], q=q, r=r)
        for name, (q, r) in places.items()
    )
    ordered = sorted(edges, key=lambda edge: (edge[2], edge[0], edge[1]))
    return GraphView(
        scope=viewer,
        generation=generation,
        nodes=nodes,
        edges=tuple(
            Edge(source=source, target=target, adjacency=adjacency)
            for source, target, adjacency in ordered
        ),
    )


_EdgeParts = tuple[str, str, Adjacency]
_Needs = tuple[str, Sequence[str]]
"""A node, and the ids of what it rests on."""


def _schemas(connection: apsw.Connection, scopes: Sequence[str]) -> list[Cell]:
    rows = connection.execute(
        "SELECT record FROM cells c WHERE scope IN (SELECT value FROM json_each(?))"
        " AND json_extract(CAST(record AS TEXT), '$.kind') IN (SELECT value FROM json_each(?))"
        " AND NOT EXISTS (SELECT 1 FROM cells n WHERE n.id = c.id AND n.revision > c.revision)"
        " ORDER BY id",
        (_listed(scopes), _listed(sorted(DERIVED_KINDS))),
    )
    return [cell_of_record(record_of(data)) for (data,) in rows]


def _admitted(
    connection: apsw.Connection, scopes: Sequence[str], shown: set[str]
) -> Iterator[_Needs]:
    """Yield what the admissions of shown cells name, and each admitted cell itself.

    A cell whose rows are gone is found by its admission alone.
    """
    for filed in records_of_kind(connection, Shelf.GOVERNED, ADMISSION, scopes=scopes):
        cell = filed.details["cell"]
        yield cell, filed.refs if cell in shown else (cell,)


def _decisions(connection: apsw.Connection, viewer: str) -> list[tuple[str, str, tuple[str, str]]]:
    """Return id, handling and conflict ends of each decision that the viewer sees.

    One that leads to an end of another scope is not seen, whatever else of it is missing.
    """
    scopes, found = visible_scopes(viewer), []
    for filed in records_of_kind(connection, Shelf.GOVERNED, DECISION, scopes=scopes):
        decision = decision_of(filed)
        row = connection.execute(
            "SELECT record FROM links WHERE id = ?", (decision.link,)
        ).fetchone()
        if row is None:
            raise _missing(decision.id, decision.link)
        link = link_of_record(record_of(row[0]))
        ends = (link.source_id, link.target_id)
        owners = {end: scope for end in ends for (scope,) in connection.execute(SCOPE, (end,))}
        if not all(is_visible(scope, viewer=viewer) for scope in owners.values()):
            continue
        for end in ends:
            if end not in owners:
                raise _missing(decision.id, end)
        found.append((decision.id, decision.handling.value, ends))
    return found


def _check_present(connection: apsw.Connection, rests: Sequence[_Needs]) -> None:
    """Refuse the first node, in order, that rests on a record which no table holds."""
    rows = connection.execute(
        "SELECT value FROM json_each(?) WHERE NOT EXISTS (SELECT 1 FROM cells WHERE id = value)"
        " AND NOT EXISTS (SELECT 1 FROM governed WHERE id = value)"
        " AND NOT EXISTS (SELECT 1 FROM attendant WHERE id = value)",
        (_listed(sorted({name for _, names in rests for name in names})),),
    )
    gone = {name for (name,) in rows}
    if gone:
        raise _missing(
            *next((node, name) for node, names in rests for name in names if name in gone)
        )


def _listed(names: Sequence[str]) -> str:
    return orjson.dumps(names).decode()


def _missing(node: str, name: str) -> StoreRefusedError:
    return StoreRefusedError(
        Reason.GRAPH_CELL_MISSING,
        "a node of the graph rests on a record that is not there",
        field=node,
        value=name,
        remedy="see what `cma verify` says; keep the file and go back to a backup",
    )


def _temporal(frames: list[EpisodeFrame]) -> Iterable[_EdgeParts]:
    of_scope: dict[str, list[EpisodeFrame]] = defaultdict(list)
    for frame in frames:
        of_scope[frame.scope].append(frame)
    for own in of_scope.values():
        own.sort(key=lambda frame: (frame.start, frame.end, frame.id))
        for earlier, later in pairwise(own):
            yield earlier.id, later.id, Adjacency.TEMPORAL


def _holders(frames: list[EpisodeFrame]) -> dict[str, list[str]]:
    """Return the frames that hold each source cell."""
    holders: dict[str, list[str]] = defaultdict(list)
    for frame in frames:
        for cell in frame.cells:
            holders[cell].append(frame.id)
    return holders


def _derivation(frames: list[EpisodeFrame], schemas: list[Cell]) -> Iterable[_EdgeParts]:
    holders = _holders(frames)
    for cell in schemas:
        for source in cell.derived_from:
            for frame in holders.get(source, ()):
                yield cell.id, frame, Adjacency.DERIVATION


def _governance(
    decisions: list[tuple[str, str, tuple[str, str]]],
    frames: list[EpisodeFrame],
    schemas: list[Cell],
) -> Iterable[_EdgeParts]:
    holders = _holders(frames)
    derived: dict[str, list[str]] = defaultdict(list)
    for cell in schemas:
        for source in cell.derived_from:
            derived[source].append(cell.id)
    known = {cell.id for cell in schemas}
    for name, _, ends in decisions:
        for end in ends:
            governed = [end] if end in known else [*holders.get(end, ()), *derived.get(end, ())]
            for target in governed:
                yield name, target, Adjacency.GOVERNANCE

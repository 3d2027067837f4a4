"""From models to JSON Schemas: the same models give the same bytes."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import BaseModel
from pydantic.json_schema import JsonSchemaMode, models_json_schema

from cma.eagle.decisions import Decision
from cma.eagle.executions import ExecutionTrace
from cma.lagoon.approvals import Approval
from cma.lagoon.candidates import Candidate
from cma.lagoon.standing import Proposal
from cma.orion.audit import AuditRecord
from cma.orion.cells import Cell
from cma.orion.links import Link
from cma.orion.traces import RecallTrace, Recollection
from cma.orion.verification import Verification
from cma.rosette.delivery import DeliveryReceipt
from cma.rosette.explaining import RequestExplanation
from cma.rosette.graph import GraphView
from cma.rosette.packets import ContextPacket
from cma.rosette.snapshot_form import Envelope
from cma.rosette.snapshotting import SnapshotReceipt
from cma.rosette.traversal import Traversal
from cma.schemas.stored import attendant, governed, lines, orion
from cma.trifid.frames import EpisodeFrame
from cma.trifid.replaying import ReplayEvidence

DIALECT = "https://json-schema.org/draft/2020-12/schema"
FOLDER = Path(__file__).parent
STORED = "stored"
MODELS: Mapping[str, type[BaseModel]] = {
    "values/cell": Cell,
    "values/link": Link,
    "values/trace": RecallTrace,
    "values/recollection": Recollection,
    "values/verification": Verification,
    "values/audit_record": AuditRecord,
    "values/frame": EpisodeFrame,
    "values/replay": ReplayEvidence,
    "values/candidate": Candidate,
    "values/proposal": Proposal,
    "values/approval": Approval,
    "values/execution": ExecutionTrace,
    "values/decision": Decision,
    "values/packet": ContextPacket,
    "values/receipt": DeliveryReceipt,
    "values/request_explanation": RequestExplanation,
    "values/graph": GraphView,
    "values/traversal": Traversal,
    "values/snapshot_receipt": SnapshotReceipt,
    "stored/snapshot_envelope": Envelope,
    "stored/snapshot_line": lines.SnapshotLine,
    "stored/cell": orion.CellRecord,
    "stored/link": orion.LinkRecord,
    "stored/trace": orion.TraceRecord,
    "stored/audit_record": orion.AuditedRecord,
    "stored/frame": governed.FrameRecord,
    "stored/replay": attendant.ReplayRecord,
    "stored/candidate": attendant.CandidateRecord,
    "stored/approval": governed.ApprovalRecord,
    "stored/admission": governed.AdmissionRecord,
    "stored/rejection": attendant.RejectionRecord,
    "stored/repeat": attendant.RepeatRecord,
    "stored/execution": governed.ExecutionRecord,
    "stored/decision": governed.DecisionRecord,
    "stored/packet": attendant.PacketRecord,
    "stored/receipt": attendant.ReceiptRecord,
}
"""Every format by the name of its schema."""


def schema_of(name: str) -> dict[str, Any]:
    """Return the JSON Schema that the model of a format gives."""
    # What a record may leave out it may; a printed value always has every field.
    mode: JsonSchemaMode = "validation" if name.startswith(STORED) else "serialization"
    model = MODELS[name]
    _, made = models_json_schema([(model, mode)], ref_template="#/$defs/{model}")
    definitions = dict(made["$defs"])
    body = definitions.pop(model.__name__)
    if isinstance(getattr(model, "verified", None), property):  # printed though no field
        body["properties"]["verified"] = {"title": "Verified", "type": "boolean"}
        body["required"].append("verified")
    identity = {"$schema": DIALECT, "$id": f"urn:cma:{name.replace('/', ':')}:1"}
    return {**identity, **body, **({"$defs": definitions} if definitions else {})}


def written_form(schema: Mapping[str, Any]) -> str:
    """Return a schema as its committed file holds it."""
    return json.dumps(schema, indent=2, sort_keys=True, ensure_ascii=False) + "\n"


def place(name: str) -> Path:
    """Return where the schema of a format is committed."""
    return FOLDER / f"{name}.json"


def outdated() -> list[str]:
    """Return the formats whose committed schema is not what their model gives, and strays."""
    stray = [
        path.relative_to(FOLDER).with_suffix("").as_posix()
        for path in sorted(FOLDER.glob("*/*.json"))
    ]
    return [
        name
        for name in dict.fromkeys([*MODELS, *stray])
        if name not in MODELS
        or not place(name).is_file()
        or place(name).read_text(encoding="utf-8") != written_form(schema_of(name))
    ]

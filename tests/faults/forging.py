"""Forging snapshots: a lie, with every id, digest and hash made anew around it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from cma.orion.audit import record_hash
from cma.orion.governed import record_digest, record_id
from cma.orion.linking import LINK_DOMAIN
from cma.orion.records import IDENTIFYING_FIELDS, revision_digest
from cma.orion.traces import TRACE_DOMAIN
from cma.rosette.snapshot_form import TYPES, envelope_line
from cma.values.identity import canonical, digest, identifier

Line = dict[str, Any]
SHELVES = ("attendant", "governed")
DOMAINS = {"link": LINK_DOMAIN, "trace": TRACE_DOMAIN}


def _named(line: Line) -> str | None:
    """Return the id that a line's content has; audit records and later revisions have none."""
    kind, record = line["type"], line["record"]
    if kind == "cell" and record["revision"] == 1:
        return identifier("cell", canonical({field: record[field] for field in IDENTIFYING_FIELDS}))
    if kind == "link":
        ends = {field: record[field] for field in ("kind", "source_id", "target_id")}
        return identifier("link", canonical(ends))
    if kind == "trace":
        return identifier("trace", canonical(record))
    return record_id(record["kind"], record["identity"]) if kind in SHELVES else None


def _sealed(line: Line) -> str:
    data = canonical(line["record"])
    if line["type"] in SHELVES:
        return record_digest(data)
    return revision_digest(data) if line["type"] == "cell" else digest(DOMAINS[line["type"]], data)


def forged(source: Path, target: Path, lie: Callable[[list[Line]], None]) -> None:
    """Write a snapshot that tells a lie, with every id, digest and hash made anew around it."""
    lines = [json.loads(line) for line in source.read_bytes().splitlines()]
    envelope, records = lines[0], lines[1:]
    kept = [place for place, each in enumerate(records) if each["type"] != "audit"]
    before = [_sealed(records[place]) for place in kept]
    names = [_named(records[place]) for place in kept]
    lie(records)
    for _ in range(100):  # an id that changes may change the ids of those that name it
        now = [_named(records[place]) for place in kept]
        changed = [(old, new) for old, new in zip(names, now, strict=True) if old != new]
        if not changed:
            break
        old, new = changed[0]
        records = json.loads(json.dumps(records).replace(str(old), str(new)))
        names = [new if name == old else name for name in names]
    for each in records:
        if each["type"] in SHELVES:
            each["record"]["refs"] = sorted(set(each["record"]["refs"]))
    after = dict(zip(before, (_sealed(records[place]) for place in kept), strict=True))
    told = [each for each in records if each["type"] != "audit"]
    head, generation = bytes(32), 0
    for seq, each in enumerate((each for each in records if each["type"] == "audit"), 1):
        record = each["record"]
        record |= {side: after.get(record[side], record[side]) for side in ("before", "after")}
        record["previous_hash"], generation = head.hex(), record["generation"]
        head = record_hash(envelope["store_id"], seq, head, canonical(record))
        told.append({**each, "hash": head.hex()})
    told.sort(
        key=lambda each: (
            (
                each["type"],
                each["record"]["seq"] if each["type"] == "audit" else 0,
                each["record"].get("id")
                or each["record"].get("erased")  # the id of a trace that was erased
                or identifier("trace", canonical(each["record"])),
                each["record"].get("revision", 1),
            )
            if each["type"] != "audit"
            else (each["type"], each["record"]["seq"], "", 1)
        )
    )
    store = hashlib.sha256(b"cma:store:1\0")
    for kind in ("cell", "link", "governed"):
        for each in told:
            if each["type"] == kind:
                data = canonical(each["record"])
                store.update(kind.encode() + len(data).to_bytes(8, "big") + data)
    body = b"".join(canonical(each) + b"\n" for each in told)
    fields = {name: value for name, value in envelope.items() if name != "envelope_sha256"}
    fields |= {
        "audit_head": head.hex(),
        "counts": {kind: sum(each["type"] == kind for each in told) for kind in TYPES},
        "generation": generation,
        "records_sha256": hashlib.sha256(body).hexdigest(),
        "store_digest": store.hexdigest(),
    }
    target.write_bytes(envelope_line(fields) + body)


def _place(line: Line) -> tuple[str, int, str, int]:
    record = line["record"]
    if line["type"] == "audit":
        return line["type"], record["seq"], "", 0
    name = record.get("id") or str(_named(line))
    return line["type"], 0, name, record.get("revision", 1)

"""The store as the rules say it is, in plain Python: ids, records, digests, scores, story."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import Any

START = datetime(2026, 3, 1, 12, tzinfo=UTC)
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
PARTS = ("lexical", "confidence", "importance", "recency", "link")
Record = dict[str, Any]


def canonical(value: Any) -> bytes:
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()


def named(kind: str, value: Any) -> str:
    sealed = hashlib.sha256(f"cma:{kind}:1".encode() + bytes(1) + canonical(value))
    return f"{kind}-{sealed.hexdigest()[:40]}"


def text(at: datetime | None) -> str | None:
    return None if at is None else at.isoformat().replace("+00:00", "Z")


def instant(value: str) -> datetime:
    return datetime.fromisoformat(value)


def micros(value: str) -> int:
    return (instant(value) - EPOCH) // timedelta(microseconds=1)


class Refused(Exception):  # noqa: N818 (an answer of the model, not an error)
    def __init__(self, code: str) -> None:
        self.code = code
        super().__init__(code)


class Model:
    """What memory should be."""

    def __init__(self) -> None:
        self.now = START
        self.cells: dict[str, list[Record]] = {}
        self.links: dict[str, Record] = {}
        self.generation = 0
        self.story: list[tuple[str, str | None, str | None]] = [("create", None, None)]

    def digest(self) -> str:
        total = hashlib.sha256(b"cma:store:1\0")
        cells = [record for name in sorted(self.cells) for record in self.cells[name]]
        links = [self.links[name] for name in sorted(self.links)]
        for kind, records in ((b"cell", cells), (b"link", links)):
            for record in records:
                data = canonical(record)
                total.update(kind + len(data).to_bytes(8, "big") + data)
        return total.hexdigest()

    def latest(self, cell_id: str, viewer: str) -> Record:
        revisions = self.cells.get(cell_id)
        if revisions is None or revisions[0]["scope"] not in ("global", viewer):
            raise Refused("cell-not-found")
        return revisions[-1]

    def active(self, record: Record) -> bool:
        expires = record["expires_at"]
        return record["lifecycle"] == "active" and (expires is None or self.now < instant(expires))

    def write(self, drafts: Iterable[Record], scope: str) -> list[str]:
        new: dict[str, Record] = {}
        ids, story = [], []
        for draft in drafts:
            if draft["kind"] == "working" and scope == "global":
                raise Refused("working-global")
            if not 0 <= draft["confidence"] <= 1:
                raise Refused("field-invalid")
            identity = self._identity(draft, scope)
            cell_id = named("cell", identity)
            ids.append(cell_id)
            known = cell_id in self.cells or cell_id in new
            if cell_id in self.cells and not self.active(self.cells[cell_id][-1]):
                raise Refused("cell-inactive")
            story.append(("write", cell_id, "duplicate" if known else None))
            if not known:
                expires = None
                if draft["kind"] == "working":
                    ttl = draft["metadata"]["ttl_seconds"]
                    expires = self.now + timedelta(seconds=ttl)
                new[cell_id] = {
                    **identity,
                    "created_at": text(self.now),
                    "expires_at": text(expires),
                    "id": cell_id,
                    "lifecycle": "active",
                    "revision": 1,
                }
        self.cells |= {cell_id: [record] for cell_id, record in new.items()}
        self.generation += bool(new)
        self.story += story
        return ids

    def _identity(self, draft: Record, scope: str) -> Record:
        names = ("speaker", "session", "turn") if draft["kind"] == "episodic" else ("ttl_seconds",)
        metadata = draft["metadata"]
        return {
            "approval_id": None,
            "confidence": round(draft["confidence"] * 1_000_000),
            "content": draft["content"],
            "derived_from": [],
            "importance": round(draft["importance"] * 1_000_000),
            "kind": draft["kind"],
            "metadata": {
                "attributes": metadata.get("attributes", {}),
                **{name: metadata.get(name) for name in names},
            },
            "observed_at": text(draft["observed_at"]),
            "scope": scope,
            "source": {"authority": "user", "origin": draft["origin"]},
            "summary": "",
        }

    def update(self, cell_id: str, changes: Record, viewer: str) -> Record:
        before = self.latest(cell_id, viewer)
        if before["scope"] != viewer:
            raise Refused("global-from-session")
        if not self.active(before):
            raise Refused("cell-inactive")
        if (
            before["kind"] == "episodic"
            and changes.get("content", before["content"]) != (before["content"])
        ):
            raise Refused("witnessed-content")
        after = before | {
            name: round(value * 1_000_000) if name in ("confidence", "importance") else value
            for name, value in changes.items()
        }
        if "ttl_seconds" in changes:
            del after["ttl_seconds"]
            after["metadata"] = {"attributes": {}, "ttl_seconds": changes["ttl_seconds"]}
            expires = instant(before["created_at"]) + timedelta(seconds=changes["ttl_seconds"])
            if expires <= self.now:
                raise Refused("expiry-past")
            after["expires_at"] = text(expires)
        if after == before:
            raise Refused("nothing-to-update")
        after["revision"] += 1
        self.cells[cell_id].append(after)
        self.generation += 1
        self.story.append(("update", cell_id, None))
        return after

    def link(self, kind: str, source: str, target: str, weight: float | None, viewer: str) -> str:
        if kind in ("similarity", "conflict"):
            source, target = sorted((source, target))
        if source == target:
            raise Refused("link-to-itself")
        if source not in self.cells or target not in self.cells:
            raise Refused("link-endpoint-missing")
        ends = self.cells[source][-1], self.cells[target][-1]
        scopes = {end["scope"] for end in ends}
        if len(scopes - {"global"}) > 1:
            raise Refused("link-across-sessions")
        if not scopes <= {"global", viewer}:
            raise Refused("link-endpoint-missing")
        began = [instant(end["observed_at"] or end["created_at"]) for end in ends]
        if kind == "temporal" and began[0] > began[1]:
            raise Refused("link-backward-in-time")
        identity = {"kind": kind, "source_id": source, "target_id": target}
        link_id = named("link", identity)
        held = None if weight is None else round(weight * 1_000_000)
        operation = "conflict" if kind == "conflict" else "link"
        known = self.links.get(link_id)
        if known is not None:
            if known["weight"] != held:
                raise Refused("link-differs")
            self.story.append((operation, link_id, "duplicate"))
            return link_id
        self.links[link_id] = {
            **identity,
            "created_at": text(self.now),
            "evidence": None,
            "id": link_id,
            "weight": held,
        }
        self.generation += 1
        self.story.append((operation, link_id, None))
        return link_id

    def sweep(self) -> list[str]:
        due = [
            name
            for name, revisions in sorted(self.cells.items())
            if revisions[-1]["lifecycle"] == "active" and not self.active(revisions[-1])
        ]
        for name in due:
            last = self.cells[name][-1]
            self.cells[name].append(
                last | {"lifecycle": "expired", "revision": last["revision"] + 1}
            )
            self.story.append(("expire", name, None))
        self.generation += bool(due)
        return due

    def recall(
        self,
        query: list[str],
        viewer: str,
        limit: int,
        weights: Record,
        half_life: float,
        idle: bool,
    ) -> tuple[list[tuple[str, float, Record]], dict[str, int]]:
        asked = {word.lower() for word in query}
        seen = {
            name: revisions[-1]
            for name, revisions in self.cells.items()
            if revisions[0]["scope"] in ("global", viewer)
        }
        lexical = {
            name: len(asked & set(record["content"].lower().split())) / len(asked)
            for name, record in seen.items()
        }
        support = dict.fromkeys(seen, 0.0)
        for link in self.links.values():
            ends = link["source_id"], link["target_id"]
            if link["kind"] == "temporal":
                for one, other in (ends, ends[::-1]):
                    if one in seen and other in seen and (idle or self.active(seen[other])):
                        support[one] = max(support[one], lexical[other])
        found = []
        for name, record in seen.items():
            if not lexical[name] and not (support[name] and weights["link"] > 0):
                continue
            since = micros(record["observed_at"] or record["created_at"])
            age = max(0, micros(text(self.now) or "") - since)
            parts = {
                "lexical": lexical[name],
                "confidence": record["confidence"] / 1_000_000,
                "importance": record["importance"] / 1_000_000,
                "recency": round(2.0 ** -(age / (half_life * 1e6)) * 2**30) / 2**30,
                "link": support[name],
            }
            score = 0.0
            for part in PARTS:
                score += weights[part] * parts[part]
            found.append((name, score, parts))
        found.sort(key=lambda hit: (-hit[1], hit[0]))
        served = [hit for hit in found if idle or self.active(seen[hit[0]])]
        left = {"inactive": len(found) - len(served), "below_limit": max(0, len(served) - limit)}
        return served[:limit], {reason: count for reason, count in left.items() if count}

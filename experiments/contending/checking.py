"""The checker of a contest: `python -m experiments.contending.checking FOLDER`.

Reads a store that nobody has open, and the logs of those who worked on it, and prints what it
looked at and what is wrong. It imports nothing but the standard library, and runs in a process of
its own: the standard library's SQLite and the one that the library uses drop each other's locks.
"""

from __future__ import annotations

import json
import sqlite3
import sys
from collections import Counter, defaultdict
from contextlib import closing
from dataclasses import dataclass, field
from itertools import combinations
from pathlib import Path

from experiments.contending.chain import DOMAINS, History, Record, digest, history

STORE = "shared.cma"
KINDS = (
    "lost",
    "unacknowledged",
    "duplicate_approvals",
    "forks",
    "one_sided_conflicts",
    "disagreements",
)
"""What can be wrong: see `Findings`."""
UNANSWERED = ("store-busy", "store-io")
"""What is told where the store cannot answer in time; no fault of what it holds."""


@dataclass(slots=True)
class Findings:
    """What was looked at, by name and number, and what is wrong, by kind."""

    looked: Counter[str] = field(default_factory=Counter)
    wrong: dict[str, list[str]] = field(default_factory=lambda: {kind: [] for kind in KINDS})
    """lost: acknowledged and not there. unacknowledged: there, and nobody's. duplicate_approvals:
    a proposal, claim or approval decided twice. forks: heads that are no part of the chain.
    one_sided_conflicts: a contradiction that lost a side or its link. disagreements: tables that
    are not as the chain tells."""

    def see(self, name: str, good: object, kind: str, what: str) -> None:
        """Count one look of that name; note it as wrong unless it is good."""
        self.looked[name] += 1
        if not good:
            self.wrong[kind].append(what)


@dataclass(frozen=True, slots=True)
class Tables:
    """The store's tables as records by id; of cells, every revision."""

    cells: dict[tuple[str, int], Record]
    latest: dict[str, Record]
    links: dict[str, Record]
    filed: dict[str, Record]
    traces: set[str]


def check(folder: Path) -> Findings:
    """Return what is wrong with the store of a contest, held against its logs."""
    found = Findings()
    place = (folder / STORE).resolve().as_uri() + "?mode=ro"
    with closing(sqlite3.connect(place, uri=True)) as database:
        [(store_id,)] = database.execute("SELECT store_id FROM store").fetchall()
        told = history(database, store_id)
        tables = _tables(database, told, found)
    found.looked["audit records"] = len(told.heads)
    found.wrong["forks"] += told.wrong
    answers = [
        json.loads(line)
        for log in sorted(folder.glob("*.log"))
        for line in log.read_text(encoding="utf-8").splitlines()
    ]
    for answer in answers:
        if "said" in answer:
            _acknowledged(answer["by"], answer["said"], tables, told, found, folder)
    _revisions(answers, tables, found)
    _refusals(answers, told, found)
    _approvals(answers, tables, told, found)
    _conflicts(tables, found)
    return found


def _tables(database: sqlite3.Connection, told: History, found: Findings) -> Tables:
    """Read the tables, and hold every record against what the chain tells of it."""
    untold = dict(told.told)
    tables = Tables({}, {}, {}, {}, set())
    for table in DOMAINS:
        columns = "id, revision, record" if table == "cells" else "id, 0, record"
        for name, revision, data in database.execute(
            f"SELECT {columns} FROM {table} ORDER BY ordinal"  # noqa: S608 (a name of our own)
        ):
            place = f"{name}@{revision}" if revision else name
            good = untold.pop(place, None) == digest(table, data)
            found.see(table, good, "disagreements", f"{place} is not what the chain tells")
            record = json.loads(data)
            if table == "cells":
                tables.cells[name, revision] = record
                if revision >= tables.latest.get(name, {"revision": 0})["revision"]:
                    tables.latest[name] = record
            elif table == "links":
                tables.links[name] = record
            elif table == "traces":
                tables.traces.add(name)
            else:
                tables.filed[name] = record
    found.wrong["disagreements"] += [f"{place} is told of and not there" for place in untold]
    return tables


def _acknowledged(
    by: str, said: Record, tables: Tables, told: History, found: Findings, folder: Path
) -> None:
    """Hold one acknowledgement against tables and chain."""

    def lost(name: str, good: object, what: str) -> None:
        found.see(f"acknowledged {name}", good, "lost", f"{by}: {what}")

    for name, content, scope in said.get("cells", ()):
        cell = tables.cells.get((name, 1))
        there = cell is not None and (cell["content"], cell["scope"]) == (content, scope)
        lost("cells", there and (by, "write", name) in told.named, f"cell {name}")
    if "revision" in said:
        cell = tables.cells.get((said["cell"], said["revision"]))
        there = cell is not None and cell["summary"] == said["summary"]
        lost("updates", there, f"revision {said['revision']} of {said['cell']}")
    if "link" in said:
        link = tables.links.get(said["link"], {})
        there = [link.get("source_id"), link.get("target_id")] == said["ends"]
        operation = "conflict" if said["kind"] == "conflict" else "link"
        lost("links", there and (by, operation, said["link"]) in told.named, said["link"])
    if "trace" in said:
        lost("recalls", said["trace"] in tables.traces, said["trace"])
    if "record" in said:
        lost("records", said["record"] in tables.filed, said["record"])
    if "rejected_by" in said:
        lost(
            "rejections",
            any(_rejects(record, said["candidate"], by) for record in tables.filed.values()),
            f"rejection of {said['candidate']}",
        )
    for name in said.get("expired", ()):
        there = tables.latest.get(name, {}).get("lifecycle") == "expired"
        once = told.made["expire", name] == 1
        lost("expiries", there and once and (by, "expire", name) in told.named, f"expiry of {name}")
    if "head" in said:
        good = told.heads.get(said["records"]) == said["head"]
        found.see("heads seen", good, "forks", f"{by} verified another record {said['records']}")
    if "file" in said:
        lost("snapshots", ("snapshot", said["sha256"]) in told.details, said["file"])
        with (folder / said["file"]).open("rb") as file:
            envelope = json.loads(file.readline())
        good = told.heads.get(envelope["audit_count"]) == envelope["audit_head"]
        found.see("heads seen", good, "forks", f"{said['file']} holds another chain")


def _rejects(record: Record, candidate: str, by: str) -> bool:
    told = (record["kind"], record["by"], record["identity"].get("candidate"))
    return told == ("rejection", by, candidate)


def _revisions(answers: list[Record], tables: Tables, found: Findings) -> None:
    """Every stored revision was acknowledged; each later one to one contender alone."""
    to: Counter[tuple[str, int]] = Counter()
    for said in (answer["said"] for answer in answers if "said" in answer):
        to.update((name, 1) for name, *_ in said.get("cells", ()))
        if "revision" in said:
            to[said["cell"], said["revision"]] += 1
        for name in said.get("expired", ()):
            to[name, tables.latest.get(name, {"revision": 0})["revision"]] += 1
        if "admitted" in said:
            to[said["admitted"], 1] += 1
    unanswered = any(not answer.get("on_record", True) for answer in answers)
    for (name, revision), record in sorted(tables.cells.items()):
        times = to[name, revision]
        if revision > 1:
            found.see("revisions", times < 2, "lost", f"{name}@{revision} was promised twice")
        what = f"{name}@{revision} ({record['lifecycle']})"
        found.see("owners", times > 0 or unanswered, "unacknowledged", what)


def _refusals(answers: list[Record], told: History, found: Findings) -> None:
    """Every refusal is on record once, under the name of who was refused; no store was refused."""
    for answer in answers:
        if "refused" in answer and not answer["on_record"]:
            good = answer["refused"] in UNANSWERED
            what = f"{answer['by']} was told {answer['refused']}"
            found.see("answers without a record", good, "disagreements", what)
    expected = Counter(
        (answer["by"], answer["refused"]) for answer in answers if answer.get("on_record")
    )
    for key in sorted(expected.keys() | told.refused.keys()):
        good = told.refused[key] == expected[key]
        what = f"{key[0]}: {expected[key]} x {key[1]} told, {told.refused[key]} on record"
        found.see("refusals by code", good, "lost", what)


def _approvals(answers: list[Record], tables: Tables, told: History, found: Findings) -> None:
    """One admission a fingerprint, one proposal an approval, and no proposal decided both ways."""

    def once(good: object, what: str) -> None:
        found.see("approvals", good, "duplicate_approvals", what)

    admissions: dict[str, list[Record]] = defaultdict(list)
    approvals: dict[str, list[Record]] = defaultdict(list)
    repeats = set()
    for record in tables.filed.values():
        identity = record["identity"]
        if record["kind"] == "admission":
            admissions[identity["fingerprint"]].append(record)
        elif record["kind"] == "approval":
            approvals[identity["name"]].append(record)
        elif record["kind"] == "repeat":
            repeats.add((identity["approval"], identity["candidate"]))
    for name, records in sorted(approvals.items()):
        once(len(records) == 1, f"approval {name} is on record {len(records)} times")
    cells = Counter(record["details"]["cell"] for each in admissions.values() for record in each)
    for fingerprint, records in sorted(admissions.items()):
        once(len(records) == 1, f"{fingerprint[:12]} was admitted {len(records)} times")
        for record in records:
            details = record["details"]
            bound = approvals.get(details["approval"], [{"details": {"candidate": ""}}])[0]
            once(
                bound["details"]["candidate"] == details["candidate"]
                and tables.latest.get(details["cell"], {}).get("approval_id") == details["approval"]
                and cells[details["cell"]] == 1
                and told.made["consolidate", details["cell"]] == 1,
                f"{record['id']} and its approval {details['approval']} do not fit",
            )
    for name, cell in sorted(tables.latest.items()):
        if cell["kind"] in ("semantic", "procedural"):
            once(cells[name] == 1, f"{name} has {cells[name]} admissions")
    decided: dict[str, set[str]] = defaultdict(set)
    for said in (answer["said"] for answer in answers if "said" in answer):
        if "rejected_by" in said:
            decided[said["candidate"]].add(f"rejected by {said['rejected_by']}")
        if "admitted" in said:
            decided[said["candidate"]].add(f"admitted as {said['admitted']}")
            key = (said["approval"], said["candidate"])
            first = any(
                (record["details"]["approval"], record["details"]["candidate"]) == key
                for each in admissions.values()
                for record in each
            )
            found.see(
                "acknowledged approvals",
                (first or key in repeats) and said["admitted"] in cells,
                "lost",
                f"approval {key[0]} of {key[1]}",
            )
    for candidate, ways in sorted(decided.items()):
        once(len(ways) == 1, f"{candidate} was {' and '.join(sorted(ways))}")


def _conflicts(tables: Tables, found: Findings) -> None:
    """Two claims or outcomes that contradict each other are both there, and joined."""
    joined = defaultdict(set)
    for name, link in sorted(tables.links.items()):
        if link["kind"] == "conflict":
            one, other = link["source_id"], link["target_id"]
            joined[one].add(other)
            joined[other].add(one)
            both = one in tables.latest and other in tables.latest
            found.see("conflict links", both, "one_sided_conflicts", f"{name} has lost a side")
    claims = [cell for cell in tables.latest.values() if cell["kind"] == "semantic"]
    for one, other in combinations(claims, 2):
        mine, theirs = one["metadata"], other["metadata"]
        same = all(mine[part] == theirs[part] for part in ("subject", "predicate"))
        if same and mine["object"] != theirs["object"] and one["scope"] == other["scope"]:
            good = other["id"] in joined[one["id"]]
            what = f"{one['id']} and {other['id']} are not joined"
            found.see("contradicting claims", good, "one_sided_conflicts", what)
    outcomes: dict[tuple[str, ...], dict[str, set[str]]] = defaultdict(lambda: defaultdict(set))
    for record in tables.filed.values():  # in the order in which they were filed
        if record["kind"] == "execution":
            told = record["identity"]
            skill, cell = (told["scope"], told["task"], *told["steps"]), told["sources"][-1][0]
            other = outcomes[skill]["failure" if told["outcome"] == "success" else "success"]
            if other:
                what = f"{cell} of {skill[1]} is joined to none of the other outcome"
                found.see("opposite outcomes", joined[cell] & other, "one_sided_conflicts", what)
            outcomes[skill][told["outcome"]].add(cell)


if __name__ == "__main__":
    findings = check(Path(sys.argv[1]))
    sys.stdout.write(json.dumps({"looked": findings.looked, "wrong": findings.wrong}) + "\n")

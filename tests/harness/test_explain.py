"""One delivery told backwards: what the experiment tells and counts, and what its section shows."""

from __future__ import annotations

from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from cma import CmaError, FixedClock, Memory
from cma.orion.explanation import timeline
from experiments import explain
from experiments.dispatch import EXPERIMENTS
from experiments.failures import ExperimentError, UsageError
from experiments.overrides import composed
from experiments.result import Result
from experiments.telling import Step, steps_of
from reports import telling
from reports.__main__ import main
from reproductions.results import read_runs
from tests.harness.sample_runs import write_run

ROWS = [
    {"step": "1", "kind": "receipt", "id": "receipt-1", "told": "to <b>model", "verified": True,
     "audit_seq": "9"},
    {"step": "2", "kind": "packet", "id": "packet-1", "told": "9 of 10 tokens", "verified": True,
     "audit_seq": "8"},
    {"step": "2/1", "kind": "group (hit)", "id": "", "told": "1 cell", "verified": True,
     "audit_seq": ""},
    {"step": "2/1/1", "kind": "episodic", "id": "cell-1", "told": "one", "verified": False,
     "audit_seq": "2 3"},
]  # fmt: skip


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> Result:
    return explain.run(composed(["experiment=explain"]), tmp_path_factory.mktemp("run"))


def kinds(result: Result, depth: int) -> list[str]:
    rows = result.tables["steps"]
    return rows[rows["step"].str.count("/") == depth]["kind"].tolist()


def test_the_delivery_is_told_from_receipt_to_audit(found: Result) -> None:
    assert kinds(found, 0) == [
        "receipt", "packet", "decision", "lineage", "lineage", "recall", "audit chain",
    ]  # fmt: skip
    rows = found.tables["steps"]
    assert list(rows.columns) == list(explain.COLUMNS)
    in_packet = rows[rows["step"].str.startswith("2/")]["kind"].tolist()
    assert in_packet == ["group (conflict)", "semantic", "semantic", "left out (budget)"]
    for lineage in ("4", "5"):
        own = rows[rows["step"].str.startswith(f"{lineage}/")]["kind"].tolist()
        frame = ["frame", "source", "source"]
        assert own == ["approval", "candidate", *frame, *frame]
    assert kinds(found, 1).count("hit") == explain.LIMIT


def test_every_step_is_verified_and_carried_by_a_record(found: Result) -> None:
    rows = found.tables["steps"]
    total = len(rows)
    verified = found.figures["explain.verified"]
    assert found.figures["explain.steps"].value == total
    assert (verified.value, verified.n) == (total, total)
    without = set(rows[rows["audit_seq"] == ""]["kind"])
    assert without == {"group (conflict)", "left out (budget)", "lineage", "audit chain"}
    chain = rows[rows["step"].str.startswith("7/")]["audit_seq"].astype(int).tolist()
    assert chain == list(range(1, len(chain) + 1))
    assert rows.iloc[0]["audit_seq"] == str(len(chain))  # the receipt is what was last recorded


def test_it_is_the_same_on_every_run(found: Result, tmp_path: Path) -> None:
    again = explain.run(composed(["experiment=explain"]), tmp_path)
    assert again.tables["steps"].equals(found.tables["steps"])


def test_the_control_is_noticed_where_it_was_made_and_nowhere_else(found: Result) -> None:
    verified = found.figures["explain.verified"]
    assert verified.control == verified.n - 2
    [note] = found.notes
    assert "not verified then: lineage 5, source 5/3/2." in note
    rows = found.tables["steps"].set_index("step")
    assert explain.REWRITTEN[0] in rows.loc["5/3/2", "told"]


@pytest.mark.parametrize(
    ("shelf", "before", "after", "kind"),
    [
        ("attendant", '"recipient":"model"', '"recipient":"other"', "receipt"),
        ("attendant", '"budget":130', '"budget":131', "packet"),
        ("governed", '"approver":"ann"', '"approver":"eve"', "approval"),
        ("governed", "preserve_both", "prefer_recent", "decision"),
        ("governed", "the server in Oslo", "the server in Rome", "frame"),
        ("cells", "The server runs in Oslo", "The server runs in Rome", "semantic"),
        ("cells", "The server runs in Oslo", "The server runs in Rome", "group (conflict)"),
        ("cells", *explain.REWRITTEN, "source"),
    ],
)
def test_a_rewritten_record_is_told_as_not_verified(
    tmp_path: Path, shelf: str, before: str, after: str, kind: str
) -> None:
    path = tmp_path / "kept.cma"
    receipt = explain.build(path)
    with Memory.open(path, clock=FixedClock(explain.START)) as memory:
        memory.store.connection.execute(
            f"UPDATE {shelf} SET record = CAST(replace(CAST(record AS TEXT), ?, ?) AS BLOB)",
            (before, after),
        )
    spoiled = [step for step in explain.told_of(path, receipt) if not step.verified]
    assert kind in {step.kind for step in spoiled}


def test_a_step_without_an_audit_record_is_not_verified(tmp_path: Path) -> None:
    path = tmp_path / "kept.cma"
    receipt = explain.build(path)
    with Memory.open(path, clock=FixedClock(explain.START)) as memory:
        answer = memory.within(explain.SCOPE).explain(receipt)
        chain = timeline(memory.store, subject=None, last=100)
    agreeing = {receipt, answer.receipt.packet}
    whole = steps_of(answer, chain, agreeing)
    assert [step.verified for step in whole[:2]] == [True, True]
    bare = steps_of(answer.model_copy(update={"records": ()}), chain, agreeing)
    assert [step.verified for step in bare[:2]] == [False, False]


def test_a_rewritten_proposal_is_refused_rather_than_told(tmp_path: Path) -> None:
    path = tmp_path / "kept.cma"
    receipt = explain.build(path)
    with Memory.open(path, clock=FixedClock(explain.START)) as memory:
        memory.store.connection.execute(
            "UPDATE attendant SET record = CAST(replace(CAST(record AS TEXT), 'Oslo', 'Rome')"
            " AS BLOB) WHERE kind = 'candidate'"
        )
    with pytest.raises(CmaError, match="state-disagrees"):
        explain.told_of(path, receipt)


def test_a_step_that_lost_its_cell_is_no_longer_verified() -> None:
    kept = [Step((1,), "receipt", "receipt-1", "", True, (2,)), Step((2,), "cell", "c", "", True)]
    spoiled = [kept[0], Step((2,), "cell", "c", "", False)]
    result = explain.result_of(kept, spoiled)
    assert result.figures["explain.verified"].control == 1
    assert result.notes[0].endswith("not verified then: cell 2.")
    assert result.tables["steps"]["audit_seq"].tolist() == ["2", ""]


def test_what_was_not_delivered_is_no_telling(tmp_path: Path) -> None:
    path = tmp_path / "kept.cma"
    explain.build(path)
    with Memory.open(path) as memory:
        trace = memory.within(explain.SCOPE).recall("server").trace.id
    with pytest.raises(ExperimentError, match="nothing of a delivery"):
        explain.told_of(path, trace)


def test_the_experiment_is_in_the_table_and_its_seed_is_checked() -> None:
    assert EXPERIMENTS["explain"].run
    with pytest.raises(UsageError, match="seed"):
        EXPERIMENTS["explain"].check(composed(["experiment=explain", "seed=-1"]))


# ---- The section


class _Outline(HTMLParser):
    """Collects the lines of the telling with the number of lists that each lies within."""

    def __init__(self) -> None:
        super().__init__()
        self.depth = 0
        self.inside = False
        self.lines: list[tuple[int, str]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if ("class", "telling") in attrs:
            self.inside = True
        if tag == "ol" and self.inside:
            self.depth += 1
        if tag == "li" and self.inside and self.depth:
            self.lines.append((self.depth, ""))

    def handle_endtag(self, tag: str) -> None:
        if tag == "ol" and self.inside:
            self.depth -= 1
            self.inside = self.depth > 0

    def handle_data(self, data: str) -> None:
        if self.inside and self.depth and self.lines:
            depth, text = self.lines[-1]
            self.lines[-1] = (depth, " ".join(f"{text} {data}".split()))


def page_of(tmp_path: Path, rows: list[dict[str, Any]]) -> str:
    write_run(tmp_path / "runs", "explain", tables={"steps.csv": rows})
    assert main(["--runs", str(tmp_path / "runs"), "--out", str(tmp_path / "out")]) == 0
    return (tmp_path / "out" / "index.html").read_text()


def test_the_page_nests_the_steps_and_marks_each(tmp_path: Path) -> None:
    page = page_of(tmp_path, ROWS)
    outline = _Outline()
    outline.feed(page)
    assert [depth for depth, _ in outline.lines] == [1, 1, 2, 3]
    receipt, _, _, cell = (text for _, text in outline.lines)
    assert receipt == "1 ✓ verified receipt to <b>model audit record 9 receipt-1"
    assert cell == "2/1/1 ✕ not verified episodic one audit records 2, 3 cell-1"
    assert "<b>model" not in page
    telling_part = page.split('class="telling"')[1].split("</div>")[0]
    assert telling_part.count('class="verdict good"') == 3
    assert telling_part.count('class="verdict bad"') == 1
    assert "3 of 4 steps are verified" in page
    assert (tmp_path / "out" / "tables" / "explain-steps.csv").is_file()


def test_a_long_list_of_steps_is_folded(tmp_path: Path) -> None:
    records = [ROWS[0] | {"step": f"2/1/{place}"} for place in range(2, 2 + telling.FOLDED)]
    page = page_of(tmp_path, ROWS + records)
    assert page.count("<details open>") == 1  # the packet; the group holds too many
    outline = _Outline()
    outline.feed(page)
    assert len(outline.lines) == len(ROWS) + telling.FOLDED


def test_the_measured_run_is_shown_whole(found: Result, tmp_path: Path) -> None:
    rows = found.tables["steps"].to_dict("records")
    write_run(tmp_path, "explain", tables={"steps.csv": rows})
    [run] = read_runs(tmp_path)
    finding, (every,), steps = telling.build(run, "explain")
    assert finding.startswith(f"One delivery told backwards in {len(rows)} steps over 34 audit")
    assert len(every.frame) == len(rows)
    assert [step.kind for step in steps] == kinds(found, 0)
    assert [step.kind for step in steps[1].steps] == ["group (conflict)", "left out (budget)"]
    assert [step.number for step in steps[3].steps] == ["4/1", "4/2", "4/3", "4/4"]
    assert [step.folded for step in steps] == [False] * 6 + [True]


@pytest.mark.parametrize(
    "row",
    [
        {"step": "3/1"},
        {"step": "2"},
        {"step": "two"},
        {"step": "3", "verified": "maybe"},
        {"step": "/".join("1" * 9)},
    ],
)
def test_a_table_that_tells_nothing_is_status_two(
    tmp_path: Path, row: dict[str, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    write_run(tmp_path / "runs", "explain", tables={"steps.csv": [*ROWS, ROWS[0] | row]})
    assert main(["--runs", str(tmp_path / "runs"), "--out", str(tmp_path / "out")]) == 2
    assert "experiment=explain resume=false" in capsys.readouterr().err

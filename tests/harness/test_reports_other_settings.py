"""Runs with other settings: compared in a table of their own, never shown as if as configured."""

from __future__ import annotations

import csv
import html
import re
from pathlib import Path

from reports.__main__ import main
from tests.harness.sample_runs import write_retrieval

TRIAL = ["experiment=retrieval", "data=generated", "data.max_conversations=1"]


def said_by(out: Path) -> str:
    text = re.sub(r"<style>.*?</style>|<script>.*?</script>", "", (out / "index.html").read_text())
    return html.unescape(re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", text)))


def test_points_of_a_sweep_are_rows_of_one_table(tmp_path: Path) -> None:
    runs, out = tmp_path / "runs", tmp_path / "out"
    plain = ["experiment=retrieval", "data=generated"]
    write_retrieval(runs, data_set="generated", machine={"overrides": plain})
    for name, link in (("b", "0.3"), ("a", "0")):
        asked = [*plain, f"retrieval.coefficients.link={link}"]
        write_retrieval(runs, run_id=name * 16, data_set="generated", machine={"overrides": asked})
    write_retrieval(
        runs, run_id="c" * 16, data_set="generated", status="failed", machine={"overrides": TRIAL}
    )
    assert main(["--runs", str(runs), "--out", str(out)]) == 0
    with (out / "tables" / "retrieval-other-settings.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert [(row["Run"], row["Overrides"]) for row in rows] == [
        ("0123456789abcdef", "none"),
        ("a" * 16, "retrieval.coefficients.link=0"),
        ("b" * 16, "retrieval.coefficients.link=0.3"),
    ]
    assert {row["n"] for row in rows} == {"60"}
    assert rows[0]["Data"] == "generated conversations"
    assert rows[0]["hand set english"] == "0.480 [0.440, 0.520]"
    assert rows[0]["overlap unicode"] == "0.410 [0.370, 0.450]"
    assert rows[0]["overlap english"] == "0.460 [0.420, 0.500]"
    assert {path.suffix for path in (out / "tables").glob("retrieval-other-settings.*")} == {
        ".csv", ".md", ".tex",
    }  # fmt: skip
    said = said_by(out)
    assert said.count("Runs with other settings") == 2  # contents and heading
    assert "with other settings: " not in said.lower().replace("runs with other settings", "")


def test_without_such_runs_there_is_no_such_section(tmp_path: Path) -> None:
    runs, out = tmp_path / "runs", tmp_path / "out"
    asked = ["experiment=retrieval", "store=kept", "data.download=false"]
    write_retrieval(runs, machine={"overrides": asked})
    assert main(["--runs", str(runs), "--out", str(out)]) == 0
    assert "Runs with other settings" not in said_by(out)
    assert not list((out / "tables").glob("retrieval-other-settings.*"))


def test_a_trial_run_that_has_to_speak_says_its_settings_everywhere(tmp_path: Path) -> None:
    runs, out = tmp_path / "runs", tmp_path / "out"
    asked = [*TRIAL, "evaluation.analysers=[unicode, english]", "resume=false"]
    write_retrieval(runs, data_set="generated", machine={"overrides": asked})
    assert main(["--runs", str(runs), "--out", str(out)]) == 0
    said = said_by(out)
    other = "data.max_conversations=1 evaluation.analysers=[unicode, english]"
    assert f"generated conversations, 60 questions; with other settings: {other}" in said  # card
    assert f"[-18.0, -12.0]. With other settings: {other}." in said  # finding at the top
    assert f"This run was made with other settings: {other}." in said  # section
    assert f"Overrides {' '.join(asked)}" in said  # provenance
    assert (
        "Run it again python -m experiments experiment=retrieval data=generated "
        "data.max_conversations=1 'evaluation.analysers=[unicode, english]'"
    ) in said


def test_lexical_part_and_hand_set_score_are_told_apart(tmp_path: Path) -> None:
    runs, out = tmp_path / "runs", tmp_path / "out"
    folder = write_retrieval(runs)
    recall = folder / "recall.csv"
    recall.write_text(recall.read_text().replace("hand_set,english", "hand_set,unicode"))
    assert main(["--runs", str(runs), "--out", str(out)]) == 0
    said = said_by(out)
    assert "On LoCoMo the paper's lexical part alone (overlap, unicode analyser) finds" in said
    assert (
        "the whole hand-set score (our coefficients: the paper publishes none) finds "
        "48.0% [44.0, 52.0]"
    ) in said
    assert "The paper's lexical part alone (overlap), recall@10" in said
    assert "Paper's overlap" not in said

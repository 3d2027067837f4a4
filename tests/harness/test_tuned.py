"""The committed coefficients are those of the committed run, in the library and in the configs."""

from __future__ import annotations

import csv
import json
from dataclasses import asdict

import yaml

from cma import PAPER, TUNED
from cma.orion.scoring import EVERY_PART
from experiments.engines import retrieval_of
from experiments.overrides import composed
from experiments.runs import ROOT

EVIDENCE = ROOT / "reproductions" / "evidence" / "tuned"


def test_the_tuned_coefficients_are_those_that_the_run_chose() -> None:
    with (EVIDENCE / "folds.csv").open(newline="") as file:
        *_, everything = csv.DictReader(file)
    assert everything["fold"] == "all"
    chosen = {name: float(everything[name]) for name in EVERY_PART}
    assert TUNED.coefficients.model_dump() == chosen
    asked = yaml.safe_load((EVIDENCE / "config.yaml").read_text())["sweep"]
    assert (TUNED.analyser, TUNED.lexical) == (asked["analyser"], asked["lexical"])
    assert TUNED.half_life_seconds == asked["half_life_seconds"]
    result = json.loads((EVIDENCE / "result.json").read_text())
    assert result["status"] == "ok"
    assert result["figures"]["locomo.recall10.tuned"]["n"] > 0


def test_the_groups_of_the_harness_are_the_presets_of_the_library() -> None:
    for name, preset in (("tuned", TUNED), ("paper", PAPER)):
        group = composed(["experiment=retrieval", f"retrieval={name}"]).retrieval
        assert retrieval_of(group, group.analyser or "unicode") == preset
        assert set(asdict(group.coefficients)) == set(EVERY_PART)

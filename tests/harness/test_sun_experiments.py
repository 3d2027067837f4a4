"""The experiments of Sun on small models: what they count, and that a broken path is seen."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch

from cma.sun.adapter import SiteAdapter
from experiments import delta_norm, facts, model_transfer, models, task_gain
from experiments.dispatch import EXPERIMENTS
from experiments.failures import ExperimentError, UsageError
from experiments.overrides import composed
from experiments.result import Result
from experiments.running import run
from experiments.settings import Settings, TaskGainSettings
from reports.__main__ import main as report_main
from reproductions.__main__ import main as judge_main

TINY = ["experiment=delta_norm", "model=qwen3_tiny"]
SMALL_TASK = [
    "experiment=task_gain", "model=qwen3_tiny", "task_gain.base_steps=3",
    "task_gain.adapter_steps=2", "task_gain.seeds=2", "task_gain.questions=6",
    "task_gain.hidden=16", "task_gain.batch=4",
]  # fmt: skip


def values(result: Result) -> dict[str, float]:
    return {key: figure.value for key, figure in result.figures.items()}


@pytest.fixture(scope="module")
def found() -> Result:
    return delta_norm.run(composed(TINY))


def test_the_diagnostic_shows_the_papers_structure(found: Result) -> None:
    figures = values(found)
    assert figures["delta.context.vectors"] == 1
    assert figures["delta.context.width"] == 64
    assert figures["delta.context.finite"] == figures["delta.context.mask_true"] == 1
    assert figures["delta.full.location1"] > 0
    assert figures["delta.full.location2"] > 0
    assert figures["delta.no_memory.max"] == 0.0
    assert figures["delta.trainable_base_parameters"] == figures["delta.base_gradients"] == 0
    assert figures["delta.fingerprint_unchanged"] == figures["delta.silent_logits_equal"] == 1


def test_every_condition_stands_in_the_table(found: Result) -> None:
    norms = found.tables["norms"]
    assert norms.groupby("dtype")["condition"].nunique().to_dict() == {"float32": 9, "bfloat16": 9}
    silent = norms[norms["condition"].isin(["no_memory", "masked", "zero_vectors"])]
    assert (silent["delta_norm"] == 0).all()
    assert silent["logits_equal"].all()
    off = norms[norms["condition"] == "adapter_off"]
    assert off["delta_norm"].isna().all()  # nothing ran, and that is no zero
    single = norms[norms["condition"] == "site_2_only"]
    assert set(single["place"]) == {2}
    assert set(norms["device"]) == {"cpu"}
    assert found.tables["checks"]["context"].tolist() == ["1 x 1 x 64"] * 2


def test_the_diagnostic_says_the_same_again(found: Result) -> None:
    again = delta_norm.run(composed(TINY))
    pd.testing.assert_frame_equal(again.tables["norms"], found.tables["norms"])
    assert again.figures == found.figures


def test_a_leak_without_memory_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    honest = SiteAdapter.forward

    def leaking(self: SiteAdapter, states: torch.Tensor, vectors: Any) -> torch.Tensor:
        return honest(self, states, vectors) + 1e-3

    monkeypatch.setattr(SiteAdapter, "forward", leaking)
    # The path adds nothing where no slot counts, whatever an adapter says, so the norm tells.
    figures = values(delta_norm.run(composed([*TINY, "delta.dtypes=[float32]"])))
    assert figures["delta.no_memory.max"] > 0


def test_an_adapter_without_gradient_shows_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    honest = SiteAdapter.forward
    monkeypatch.setattr(
        SiteAdapter, "forward", lambda self, states, vectors: honest(self, states, vectors) * 0
    )
    with pytest.raises(ExperimentError, match="no gradient"):
        delta_norm.run(composed([*TINY, "delta.dtypes=[float32]"]))


def test_families_meet_the_demands() -> None:
    settings = composed(
        [
            "experiment=model_transfer",
            "transfer.families=[llama,gpt_neox]",
            "delta.dtypes=[float32]",
        ]
    )
    result = model_transfer.run(settings)
    assert values(result) == {"transfer.families": 2, "transfer.models": 2}
    assert result.tables["transfer"]["structure"].all()


@pytest.mark.parametrize(
    ("overrides", "said"),
    [
        ([*TINY, "model.device=tpu"], "model.device"),
        ([*TINY, "model.tokenizer=none"], "model.tokenizer"),
        ([*TINY, "delta.dtypes=[int8]"], "delta.dtypes"),
        ([*TINY, "delta.dtypes=[]"], "delta.dtypes"),
        ([*TINY, "delta.sites=1"], "delta.sites"),
        ([*TINY, "delta.object=' '"], "delta.object"),
        ([*TINY, "delta.gate=1e9"], "delta.gate"),
        (["experiment=model_transfer", "transfer.families=[nobody]"], "nobody"),
        (["experiment=model_transfer", "transfer.families=[]"], "transfer.families"),
        ([*SMALL_TASK, "task_gain.hidden=20"], "task_gain.hidden"),
        ([*SMALL_TASK, "task_gain.sites=3"], "task_gain.sites"),
        ([*SMALL_TASK, "task_gain.facts=0"], "task_gain.facts"),
    ],
)
def test_odd_settings_are_refused_by_name(overrides: list[str], said: str) -> None:
    settings = composed(overrides)
    with pytest.raises(UsageError, match=said):
        EXPERIMENTS[settings.experiment].check(settings)


def test_cuda_is_not_made_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    settings = composed([*TINY, "model.device=cuda"])
    with pytest.raises(UsageError, match="CUDA"):
        models.settled(settings.model)


def test_a_run_is_judged_and_shown(tmp_path: Path) -> None:
    settings = composed([*TINY, f"paths.runs={tmp_path / 'runs'}"])
    outcome = run(settings, TINY)
    machine = json.loads((outcome.place / "machine.json").read_text())
    assert machine["device"] == "cpu"
    assert machine["packages"]["torch"]
    config = (outcome.place / "config.yaml").read_text()
    assert "device: cpu" in config
    assert "place" not in config
    assert run(settings, TINY).reused
    judge_main(["--runs", str(tmp_path / "runs")])
    report_main(["--runs", str(tmp_path / "runs"), "--out", str(tmp_path / "out")])
    assert (tmp_path / "out" / "index.html").exists()


def test_a_given_checkpoint_leaves_its_place_out(tmp_path: Path) -> None:
    place = tmp_path / "somewhere" / "tiny"
    models.runtime_of(composed(TINY).model).model.save_pretrained(place)
    overrides = [*TINY, f"model.place={place}", "delta.dtypes=[float32]",
                 f"paths.runs={tmp_path / 'runs'}"]  # fmt: skip
    outcome = run(composed(overrides), overrides)
    for file in outcome.place.iterdir():
        assert "somewhere" not in file.read_text(), file.name
    assert "local" in (outcome.place / "norms.csv").read_text()
    assert not run(composed(overrides), overrides).reused  # the weights may be others by now


def test_no_held_out_fact_is_trained_on() -> None:
    pool, held = facts.split(np.random.default_rng(1))
    assert not (pool & held).any()
    assert held.any(axis=1).all()
    drawn = facts.sample(pool, 500, 3, np.random.default_rng(2))
    flat = drawn.shown.ravel()
    assert pool.ravel()[flat].all()
    assert set(np.unique(flat // len(facts.VALUES))) == set(range(facts.KEYS))
    keys = drawn.shown // len(facts.VALUES)
    assert all(len(set(row)) == 3 for row in keys.tolist())  # one fact a key
    assert all(fact in row for fact, row in zip(drawn.asked, drawn.shown.tolist(), strict=True))


def test_lessons_say_what_the_facts_say() -> None:
    tell = facts.TOKENIZER.decode
    drawn = facts.sample(facts.split(np.random.default_rng(1))[0], 1, 2, np.random.default_rng(3))
    shown = [facts.FACTS[fact] for fact in drawn.shown[0].tolist()]
    asked = facts.FACTS[drawn.asked[0]]
    prompt = tell(drawn.prompts(with_text=True)[0].tolist())
    assert prompt == f"{shown[0].text} {shown[1].text} {asked.question}"
    assert tell(drawn.lesson()[0].tolist()) == f"{asked.question} {asked.value}"
    lesson = tell(drawn.lessons(np.random.default_rng(4))[0].tolist())
    assert lesson.startswith(f"{shown[0].text} {shown[1].text} ?")
    assert all(f"{fact.question} {fact.value}" in lesson for fact in shown)


def test_what_is_served_is_what_was_stored() -> None:
    held = facts.split(np.random.default_rng(1))[1]
    drawn = facts.sample(held, 5, 3, np.random.default_rng(5))
    served = task_gain.served(drawn)
    pairs = zip(served.shown.tolist(), drawn.shown.tolist(), strict=True)
    assert all(set(told) <= set(stored) for told, stored in pairs)
    assert (served.shown[:, 0] == drawn.asked).all()  # recall ranks the asked fact first


def test_the_task_runs_the_same_twice() -> None:
    settings = composed(SMALL_TASK)
    one, other = task_gain.run(settings), task_gain.run(settings)
    pd.testing.assert_frame_equal(one.tables["answers"], other.tables["answers"])
    assert {"task_gain.full_minus_none", "task_gain.exact_match.text"} <= set(one.figures)
    assert len(one.tables["answers"]) == 2 * 5
    assert one.figures["task_gain.full_minus_none"].n == 12


def test_intervals_over_seeds_by_hand() -> None:
    rows = pd.DataFrame(
        [
            {"seed": seed, "condition": name, "exact_match": value, "log_likelihood": -1.0}
            for seed, full in ((1, 0.8), (2, 0.6))
            for name, value in {**dict.fromkeys(task_gain.CONDITIONS, 0.1), "full": full}.items()
        ]
    )
    figures = task_gain.figures_of(rows, TaskGainSettings(seeds=2, questions=10))
    gain = figures["task_gain.full_minus_none"]
    assert gain.value == pytest.approx(0.6)
    # mean 0.6, standard error 0.1, and Student's 12.706 at one degree of freedom
    assert gain.interval == pytest.approx((0.6 - 1.2706, 0.6 + 1.2706), abs=1e-3)
    single = task_gain.figures_of(rows[rows["seed"] == 1], TaskGainSettings(seeds=1, questions=10))
    assert single["task_gain.full_minus_none"].interval is None


def test_settings_know_their_experiments() -> None:
    assert Settings().task_gain.seeds > 1
    assert {"delta_norm", "model_transfer", "task_gain"} <= set(EXPERIMENTS)

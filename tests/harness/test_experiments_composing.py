"""Every config composes, and a wrong override is answered with the nearest right one."""

import re
from pathlib import Path

import pytest
from hydra import compose, initialize_config_module
from omegaconf import OmegaConf

from experiments import dispatch
from experiments.failures import UsageError
from experiments.overrides import composed, flattened, groups, problems, typed
from experiments.runs import ROOT
from experiments.settings import Settings
from experiments.teaching import EXAMPLES, help_text

CONFIGS = ROOT / "configs"


def options(group):
    return sorted(path.stem for path in (CONFIGS / group).glob("*.yaml"))


@pytest.mark.parametrize("experiment", options("experiment"))
def test_every_experiment_composes_and_is_in_the_table(experiment):
    settings = composed([f"experiment={experiment}"])
    assert isinstance(settings, Settings)
    assert settings.experiment == experiment
    dispatch.lookup(experiment).check(settings)


def test_every_experiment_of_the_table_has_a_config():
    assert sorted(dispatch.EXPERIMENTS) == options("experiment")


@pytest.mark.parametrize(
    ("group", "option"),
    [(group, option) for group in ("data", "retrieval", "store") for option in options(group)],
)
def test_every_option_of_every_group_composes(group, option):
    assert isinstance(composed(["experiment=retrieval", f"{group}={option}"]), Settings)


def test_groups_are_the_folders():
    assert groups() == {
        path.name: options(path.name)
        for path in sorted(CONFIGS.iterdir())
        if path.is_dir() and path.name != "__pycache__"
    }


def test_the_papers_coefficients_sum_to_one():
    weights = composed(["experiment=retrieval"]).retrieval.coefficients
    assert sum(vars(weights).values()) == pytest.approx(1.0)


@pytest.mark.parametrize(
    ("override", "words"),
    [
        ("experiment=retreival", "experiment=retrieval"),
        ("data=lokomo", "data=locomo"),
        ("retrieval=papr", "retrieval=paper"),
        ("evaluation.resample=10", "evaluation.resamples"),
        ("evalution.limit=10", "evaluation.limit"),
        ("limit=30", "evaluation.limit"),
        ("retrieval.coefficients.lexcal=1", "retrieval.coefficients.lexical"),
        ("+paths.run=x", "paths.runs"),
        ("zzzzqq=1", "--help"),
        ("seed=many", "seed"),
        ("evaluation.scorers=3", "scorers"),
        ("seed", "key=value"),
        ("data=locomo,lokomo", "data=locomo"),
    ],
)
def test_wrong_override_names_the_nearest(override, words):
    given = [override] if override.startswith("experiment") else ["experiment=retrieval", override]
    (problem, *_) = problems(given)
    assert words in problem


def test_missing_experiment_lists_those_there_are():
    (problem,) = problems([])
    for name in dispatch.EXPERIMENTS:
        assert name in problem


@pytest.mark.parametrize(
    "given",
    [
        ["experiment=retrieval"],
        ["experiment=retrieval,contract_tally"],
        ["experiment=retrieval", "seed=1,2,3"],
        ["experiment=retrieval", "hydra.verbose=true"],
        ["experiment=retrieval", "data.path=null", "evaluation.scorers=[bm25]"],
    ],
)
def test_right_overrides_have_no_problems(given):
    assert problems(given) == []


def test_what_was_left_open_is_named():
    with initialize_config_module("configs", version_base="1.3"):
        config = compose("config", overrides=["experiment=retrieval"])
    OmegaConf.update(config, "data.name", "???")
    with pytest.raises(UsageError, match=r"data\.name=\.\.\."):
        typed(config)


def test_help_teaches_by_examples_that_compose():
    text = help_text()
    assert all(f"{key}=" in text for key, value in flattened().items() if value is not None)
    commands = [line.split() for line in EXAMPLES.splitlines() if "-m experiments" in line]
    examples = [[word for word in words if "=" in word] for words in commands]
    tried = [given for given in examples if "experiment=NAME" not in given]
    assert len(tried) >= 6
    for given in tried:
        assert problems(given) == [], given


def test_configs_hold_no_path_of_a_machine():
    for path in Path(CONFIGS).rglob("*.yaml"):
        absolute = re.search(r"(?<![\w:/.}])/[a-z]+/[a-z]", path.read_text())
        assert absolute is None, path

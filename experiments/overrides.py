"""From overrides to typed settings; a wrong override is answered with the nearest valid one.

The check runs before Hydra composes, because Hydra's own message names no alternative.
"""

from __future__ import annotations

import difflib
import functools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from hydra import compose, initialize_config_module
from hydra.core.global_hydra import GlobalHydra
from hydra.core.object_type import ObjectType
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import Override
from hydra.errors import HydraException
from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException

from experiments.failures import UsageError
from experiments.settings import Settings, register

register()

CONFIG_MODULE = "configs"
CONFIG_NAME = "config"
_CLOSE_ENOUGH = 0.5


def composed(given: Sequence[str]) -> Settings:
    """Return the settings that these overrides ask for; raises UsageError for wrong ones."""
    wrong = problems(given)
    if wrong:
        raise UsageError("; ".join(wrong))
    with initialize_config_module(CONFIG_MODULE, version_base="1.3"):
        return typed(compose(CONFIG_NAME, overrides=list(given)))


def typed(config: DictConfig) -> Settings:
    """Return composed settings as dataclasses; raises UsageError for what was left open."""
    try:
        missing = sorted(OmegaConf.missing_keys(config))
        settings = None if missing else OmegaConf.to_object(config)
    except OmegaConfBaseException as error:  # an interpolation shows what it is when it is read
        raise UsageError(_words(error)) from error
    if missing:
        raise UsageError(f"give a value for: {', '.join(f'{key}=...' for key in missing)}")
    if not isinstance(settings, Settings):
        raise UsageError("the configuration is not that of an experiment")
    return settings


@functools.cache
def groups() -> Mapping[str, list[str]]:
    """Return every config group with its options."""
    with initialize_config_module(CONFIG_MODULE, version_base="1.3"):
        loader = GlobalHydra.instance().config_loader()
        return {
            group: loader.get_group_options(group, ObjectType.CONFIG)
            for group in loader.list_groups("")
            if group not in ("hydra", "schema")
        }


@functools.cache
def flattened() -> Mapping[str, Any]:
    """Return every key, dotted, with its default; sections have the value None."""
    options = groups()["experiment"]
    with initialize_config_module(CONFIG_MODULE, version_base="1.3"):
        config = compose(CONFIG_NAME, overrides=[f"experiment={options[0]}"])
    return dict(_flat(config))


def problems(overrides: Sequence[str]) -> list[str]:
    """Return what is wrong with the overrides, in words; nothing where all is well."""
    try:
        parsed = OverridesParser.create().parse_overrides(list(overrides))
    except HydraException as error:
        return [f"{_first_line(error)} (write key=value, for example seed=3)"]
    known_groups, known_keys = groups(), flattened()
    found = [
        problem
        for override in parsed
        if not override.key_or_group.startswith("hydra")
        for problem in _problems_of(override, known_groups, known_keys)
    ]
    if found or any(override.is_sweep_override() for override in parsed):
        return found
    return _composing_problem(overrides)


def listed(given: Sequence[str]) -> list[str]:
    """Return which right overrides give a key several values, as only a multirun takes them."""
    parsed = OverridesParser.create().parse_overrides(list(given))
    if any(override.key_or_group == "hydra.mode" for override in parsed):
        return []
    return [str(override.input_line) for override in parsed if override.is_sweep_override()]


def value_of(key: str, given: Sequence[str]) -> str:
    """Return what a key that is not swept gets from right overrides, else its default."""
    value = flattened()[key]
    for override in OverridesParser.create().parse_overrides(list(given)):
        if override.key_or_group == key and not override.is_sweep_override():
            value = override.value()
    return str(value)


def _composing_problem(overrides: Sequence[str]) -> list[str]:
    """Compose as Hydra will, to report a wrong type or a missing choice without a traceback."""
    try:
        with initialize_config_module(CONFIG_MODULE, version_base="1.3"):
            compose(CONFIG_NAME, overrides=list(overrides))
    except (HydraException, OmegaConfBaseException) as error:
        return [_words(error)]
    return []


def _problems_of(
    override: Override, known_groups: Mapping[str, list[str]], known_keys: Mapping[str, Any]
) -> Iterator[str]:
    key = override.key_or_group
    if key in known_groups:
        options = known_groups[key]
        for choice in _choices(override):
            if choice not in options:
                near = _nearest(choice, options)
                hint = f"did you mean {key}={near}? " if near else ""
                yield f"{key}={choice} is unknown; {hint}There are: {', '.join(options)}"
    elif key not in known_keys:
        near = _nearest(key, [*known_keys, *known_groups])
        hint = f"did you mean {near}?" if near else "see --help for all keys"
        yield f"key {key!r} is unknown; {hint}"


def _choices(override: Override) -> Iterable[str]:
    if override.is_sweep_override():
        return [str(value) for value in override.sweep_string_iterator()]
    value = override.value()
    return [str(each) for each in value] if isinstance(value, list) else [str(value)]


def _nearest(word: str, candidates: Sequence[str]) -> str | None:
    close = difflib.get_close_matches(word, candidates, n=1, cutoff=_CLOSE_ENOUGH)
    if close:
        return close[0]
    # A key given without, or with the wrong, section: compare last parts.
    last = {candidate.rpartition(".")[2]: candidate for candidate in candidates}
    close = difflib.get_close_matches(word.rpartition(".")[2], list(last), n=1, cutoff=0.7)
    return last[close[0]] if close else None


def _flat(config: DictConfig, prefix: str = "") -> Iterator[tuple[str, Any]]:
    for name in map(str, config):
        key = f"{prefix}{name}"
        if OmegaConf.is_missing(config, name):
            yield key, "???"
            continue
        value = config[name]
        if isinstance(value, DictConfig):
            yield key, None
            yield from _flat(value, f"{key}.")
        else:
            yield key, OmegaConf.to_container(value) if OmegaConf.is_config(value) else value


def _first_line(error: Exception) -> str:
    return str(error).strip().splitlines()[0]


def _words(error: Exception) -> str:
    causes = [str(each) for each in (error, error.__cause__) if each is not None]
    lines = [line.strip() for cause in causes for line in cause.strip().splitlines()]
    return "; ".join(line for line in lines if line and not line.startswith("object_type="))

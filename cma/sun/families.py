"""Where each model family keeps its decoder layers: the one thing that Sun knows of a family."""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

from torch import nn

from cma.values.errors import ModelRefusedError, Reason

LAYERS: Mapping[str, str] = {
    "gemma": "model.layers",
    "gemma2": "model.layers",
    "gpt2": "transformer.h",
    "gpt_neox": "gpt_neox.layers",
    "llama": "model.layers",
    "mistral": "model.layers",
    "olmo2": "model.layers",
    "phi": "model.layers",
    "qwen2": "model.layers",
    "qwen3": "model.layers",
}
"""The module path of the list of decoder layers, by the `model_type` of the configuration."""


def layers_path(model: nn.Module, *, layers: str | None = None) -> str:
    """Return the path of a model's decoder layers: the given one, else its family's.

    Raises ModelRefusedError: `model-family-unknown`, or `site-missing` when nothing is there.
    """
    family = getattr(getattr(model, "config", None), "model_type", type(model).__name__)
    path = layers or LAYERS.get(str(family))
    if path is None:
        raise ModelRefusedError(
            Reason.MODEL_FAMILY_UNKNOWN,
            "nobody has said where models of this family keep their decoder layers",
            field="model_type",
            value=str(family),
            remedy="name the path, such as layers='model.layers' (see model.named_modules()), or"
            f" add the family to cma/sun/families.py; known: {', '.join(LAYERS)}",
        )
    found = dict(model.named_modules()).get(path)
    if not isinstance(found, nn.ModuleList) or len(found) == 0:
        raise ModelRefusedError(
            Reason.SITE_MISSING,
            "no list of layers is there",
            field="layers",
            value=path,
            remedy="look for a ModuleList in model.named_modules()",
        )
    return path


def layer_at(model: nn.Module, site: str) -> nn.Module:
    """Return the module of a site, such as `model.layers.3`.

    Raises ModelRefusedError (`site-missing`).
    """
    try:
        return model.get_submodule(site)
    except (AttributeError, IndexError, ValueError) as error:
        raise ModelRefusedError(
            Reason.SITE_MISSING,
            "the model has no such layer",
            field="site",
            value=site,
            remedy="take one of runtime.sites",
        ) from error


def layer_sites(model: nn.Module, path: str) -> tuple[str, ...]:
    """Return the site of every decoder layer, in order."""
    layers = cast(nn.ModuleList, model.get_submodule(path))
    return tuple(f"{path}.{place}" for place in range(len(layers)))

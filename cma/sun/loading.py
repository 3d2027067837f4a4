"""Loading: seeded weights of a given shape, a local checkpoint, or one from the model hub."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from transformers import AutoConfig, AutoModelForCausalLM

from cma.sun.runtime import FrozenRuntime
from cma.sun.tokenizing import (
    ByteTokenizer,
    CheckpointTokenizer,
    QwenTokenizer,
    TextTokenizer,
)
from cma.values.errors import InvalidValueError, ModelRefusedError, Reason

_AUTO: Any = AutoModelForCausalLM
DTYPES: Mapping[str, torch.dtype] = {"float32": torch.float32, "bfloat16": torch.bfloat16}


def seeded(
    config: Mapping[str, Any],
    *,
    seed: int,
    dtype: str = "float32",
    device: str = "cpu",
    tokenizer: str = "qwen",
    name: str = "",
) -> FrozenRuntime:
    """Return a runtime with weights drawn from a seed, of the shape that `config` says.

    config: `model_type` and the fields of that family's configuration. The draw leaves torch's
    global generator as it was. Raises InvalidValueError for a config or dtype that is none.
    """
    fields = {key: value for key, value in config.items() if key != "model_type"}
    try:
        built = AutoConfig.for_model(str(config["model_type"]), **fields)
    except (KeyError, ValueError, TypeError) as error:
        raise InvalidValueError(
            Reason.FIELD_INVALID,
            f"no configuration of a model: {error}",
            field="config",
            value=config.get("model_type"),
            remedy="give model_type and that family's fields, such as hidden_size",
        ) from error
    chosen = dtype_of(dtype)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model: Any = _AUTO.from_config(built, dtype=chosen)
    return FrozenRuntime(
        model.to(device),
        _tokenizer(tokenizer),
        weights="seeded",
        name=name or str(config["model_type"]),
    )


def checkpoint(
    source: str,
    *,
    dtype: str = "float32",
    device: str = "cpu",
    tokenizer: str = "checkpoint",
    name: str = "",
) -> FrozenRuntime:
    """Return a runtime from a local folder, or else from the model hub by its id.

    Every weight must be in the checkpoint, as safetensors; no code that lies beside the weights is
    run. The folder's place is not kept, only its name. Raises
    ModelRefusedError (`model-not-found`) where there is none and none can be fetched, or where
    it lacks weights.
    """
    chosen = dtype_of(dtype)
    local = Path(source).is_dir()
    try:
        model, found = _AUTO.from_pretrained(
            source,
            dtype=chosen,
            local_files_only=local,
            use_safetensors=True,  # other formats unpickle, which runs code of the file's own
            trust_remote_code=False,
            output_loading_info=True,
        )
    except (OSError, ValueError, RuntimeError) as error:
        raise ModelRefusedError(
            Reason.MODEL_NOT_FOUND,
            "no folder of that name holds a model, and the hub gives none of that id"
            if not local
            else "the folder holds no model that can be loaded",
            field="source",
            value=source,
            remedy="give a folder that save_pretrained wrote, or go online for a hub id",
        ) from error
    lacking = sorted(str(key) for key in (*found["missing_keys"], *found["mismatched_keys"]))
    if lacking:
        raise ModelRefusedError(
            Reason.MODEL_NOT_FOUND,
            f"the checkpoint lacks {len(lacking)} of the model's weights",
            field="source",
            value=lacking[0],
            remedy="get the whole checkpoint; what is missing would be drawn at random",
        )
    return FrozenRuntime(
        model.to(device),
        _tokenizer(tokenizer, source, offline=local),
        weights="local" if local else "hub",
        name=name or Path(source).name,
    )


def dtype_of(name: str) -> torch.dtype:
    """Return the type of that name. Raises InvalidValueError."""
    if name not in DTYPES:
        raise InvalidValueError(
            Reason.FIELD_INVALID,
            "no such type of number",
            field="dtype",
            value=name,
            remedy=f"take {' or '.join(DTYPES)}",
        )
    return DTYPES[name]


def best_device() -> str:
    """Return `cuda` where there is one, else `cpu`."""
    return "cuda" if torch.cuda.is_available() else "cpu"


def _tokenizer(name: str, place: str = "", *, offline: bool = True) -> TextTokenizer:
    if name == "checkpoint" and place:
        return CheckpointTokenizer(place, offline=offline)
    if name not in ("qwen", "bytes"):
        raise InvalidValueError(
            Reason.FIELD_INVALID,
            "no such tokenizer",
            field="tokenizer",
            value=name,
            remedy="take qwen or bytes, or checkpoint where weights are loaded",
        )
    return QwenTokenizer() if name == "qwen" else ByteTokenizer()

"""Sun: where models come from, their families, their fingerprint, and what vectors may be."""

from __future__ import annotations

import json
import math
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import nn

from cma.sun.adapter import AdapterShape, MemoryAdapter, spread_sites
from cma.sun.attaching import attached
from cma.sun.families import LAYERS, layers_path
from cma.sun.fingerprint import weights_fingerprint
from cma.sun.interventions import Condition, Intervention, sites_for, vectors_for
from cma.sun.loading import best_device, checkpoint, seeded
from cma.sun.runtime import FrozenRuntime
from cma.sun.tokenizing import ByteTokenizer, QwenTokenizer
from cma.sun.vectors import ContextVectors, no_memory, shuffled, stacked
from cma.values.errors import InvalidValueError, ModelRefusedError, Reason
from tests.unit.sun_models import TINY

ROOT = Path(__file__).resolve().parents[2]
FAMILIES: dict[str, dict[str, Any]] = {
    "gemma": {},
    "gpt_neox": {},
    "llama": {},
    "mistral": {},
    "olmo2": {"head_dim": None},
    "phi": {"head_dim": None},
    "qwen2": {"head_dim": None},
    "qwen3": {},
}


@pytest.fixture(scope="module")
def tiny() -> FrozenRuntime:
    return seeded(TINY, seed=1, tokenizer="bytes")


def test_seeded_weights_are_the_same_in_another_process(tiny: FrozenRuntime) -> None:
    program = (
        "from cma.sun.loading import seeded; from tests.unit.sun_models import TINY;"
        "print(seeded(TINY, seed=1, tokenizer='bytes').fingerprint)"
    )
    told = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, cwd=ROOT
    )
    assert told.stdout.strip() == tiny.fingerprint
    assert seeded(TINY, seed=2, tokenizer="bytes").fingerprint != tiny.fingerprint


def test_drawing_weights_leaves_the_global_generator_alone() -> None:
    torch.manual_seed(7)
    wanted = torch.rand(3)
    torch.manual_seed(7)
    seeded(TINY, seed=1, tokenizer="bytes")
    assert torch.equal(torch.rand(3), wanted)


def test_a_checkpoint_comes_back_the_same(tiny: FrozenRuntime, tmp_path: Path) -> None:
    place = tmp_path / "tiny-qwen3"
    tiny.model.save_pretrained(place)
    assert list(place.glob("*.safetensors"))
    loaded = checkpoint(str(place), tokenizer="bytes")
    assert (loaded.fingerprint, loaded.weights) == (tiny.fingerprint, "local")
    assert loaded.name == "tiny-qwen3"  # and nothing of where it lies
    with pytest.raises(ModelRefusedError) as caught:
        checkpoint(str(place))
    assert (caught.value.reason, caught.value.field) == (Reason.MODEL_NOT_FOUND, "tokenizer")


def test_a_checkpoint_without_all_weights_is_refused(tiny: FrozenRuntime, tmp_path: Path) -> None:
    tiny.model.save_pretrained(tmp_path)
    [file] = tmp_path.glob("*.safetensors")
    tensors = load_file(file)
    gone = sorted(name for name in tensors if "layers.1" in name)[0]
    save_file({k: v for k, v in tensors.items() if k != gone}, file, metadata={"format": "pt"})
    with pytest.raises(ModelRefusedError) as caught:
        checkpoint(str(tmp_path), tokenizer="bytes")
    assert caught.value.reason is Reason.MODEL_NOT_FOUND
    assert caught.value.value == gone


@pytest.mark.parametrize("source", ["no-such-folder", "nobody/no-such-model"])
def test_no_model_is_a_clear_error(source: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)  # else it waits long
    with pytest.raises(ModelRefusedError) as caught:
        checkpoint(source)
    assert caught.value.reason is Reason.MODEL_NOT_FOUND
    assert "hub" in str(caught.value)


def test_a_damaged_checkpoint_is_a_clear_error(tiny: FrozenRuntime, tmp_path: Path) -> None:
    tiny.model.save_pretrained(tmp_path)
    (tmp_path / "config.json").write_text("{}")
    with pytest.raises(ModelRefusedError):
        checkpoint(str(tmp_path), tokenizer="bytes")


def test_weights_that_would_be_unpickled_are_refused(tiny: FrozenRuntime, tmp_path: Path) -> None:
    tiny.model.save_pretrained(tmp_path)
    [file] = tmp_path.glob("*.safetensors")
    torch.save(load_file(file), tmp_path / "pytorch_model.bin")
    file.unlink()
    with pytest.raises(ModelRefusedError) as caught:
        checkpoint(str(tmp_path), tokenizer="bytes")
    assert caught.value.reason is Reason.MODEL_NOT_FOUND


def test_code_beside_the_weights_is_not_run(tiny: FrozenRuntime, tmp_path: Path) -> None:
    tiny.model.save_pretrained(tmp_path)
    (tmp_path / "planted.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w').close()\n")
    config = json.loads((tmp_path / "config.json").read_text())
    named = {"AutoConfig": "planted.Planted", "AutoModelForCausalLM": "planted.Planted"}
    for model_type in (config["model_type"], "planted"):
        told = config | {"auto_map": named, "model_type": model_type}
        (tmp_path / "config.json").write_text(json.dumps(told))
        with suppress(ModelRefusedError):  # the known type is loaded by the library's own code
            checkpoint(str(tmp_path), tokenizer="bytes")
        assert not (tmp_path / "ran").exists()


def test_odd_settings_are_named() -> None:
    for change in ({"dtype": "int4"}, {"tokenizer": "none"}, {"tokenizer": "checkpoint"}):
        with pytest.raises(InvalidValueError) as caught:
            seeded(TINY, seed=1, **{"tokenizer": "bytes", **change})  # type: ignore[arg-type]
        assert caught.value.field in change
    with pytest.raises(InvalidValueError):
        seeded({**TINY, "model_type": "nothing"}, seed=1, tokenizer="bytes")
    assert best_device() in ("cpu", "cuda")


@pytest.mark.parametrize("family", FAMILIES)
def test_every_family_takes_memory_at_its_layers(family: str) -> None:
    shape = {**TINY, "model_type": family, **FAMILIES[family]}
    shape = {key: value for key, value in shape.items() if value is not None}
    own = seeded(shape, seed=5, tokenizer="bytes")
    adapter = MemoryAdapter(AdapterShape(own.hidden, spread_sites(own.sites, 2)))
    memory = own.encode(["Ann drinks tea"])
    ids, mask = own.ids(["who"])
    with torch.no_grad():
        base = own.model(input_ids=ids, attention_mask=mask).logits
        for intervention, same in ((Intervention.NO_MEMORY, True), (Intervention.FULL, False)):
            with attached(own, adapter, memory, Condition(intervention)) as running:
                out = own.model(input_ids=ids, attention_mask=mask).logits
            assert torch.equal(out, base) is same
            assert all((site.delta_norm == 0) is same for site in running.told().sites)


def test_an_unknown_family_says_how_to_add_one() -> None:
    class Odd(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.blocks = nn.ModuleList([nn.Linear(2, 2)])

    with pytest.raises(ModelRefusedError) as caught:
        layers_path(Odd())
    assert caught.value.reason is Reason.MODEL_FAMILY_UNKNOWN
    assert "families.py" in str(caught.value)
    assert layers_path(Odd(), layers="blocks") == "blocks"
    for path in ("nothing", "blocks.0"):
        with pytest.raises(ModelRefusedError) as caught:
            layers_path(Odd(), layers=path)
        assert caught.value.reason is Reason.SITE_MISSING
    assert len(LAYERS) >= 5


def test_the_fingerprint_sees_every_bit_and_every_name() -> None:
    def made() -> nn.Module:
        torch.manual_seed(1)
        return nn.Sequential(nn.Linear(3, 3), nn.BatchNorm1d(3))

    one = weights_fingerprint(made())
    assert weights_fingerprint(made()) == one
    for change in (
        lambda module: module[0].weight.data.neg_(),
        lambda module: module[1].running_mean.add_(1e-6),
        lambda module: module.to(torch.bfloat16),
        lambda module: module.add_module("more", nn.Linear(1, 1)),
    ):
        other = made()
        change(other)
        assert weights_fingerprint(other) != one
    zero, minus = nn.Linear(1, 1, bias=False), nn.Linear(1, 1, bias=False)
    zero.weight.data.zero_()
    minus.weight.data.zero_().neg_()
    assert weights_fingerprint(zero) != weights_fingerprint(minus)


ONES = torch.ones(1, 2, 4)
TRUE = torch.ones(1, 2, dtype=torch.bool)


@pytest.mark.parametrize(
    ("values", "mask", "reason"),
    [
        (ONES[0], TRUE, Reason.VECTORS_SHAPE),
        (ONES[:, :0], TRUE[:, :0], Reason.VECTORS_SHAPE),
        ([[1.0]], TRUE, Reason.VECTORS_SHAPE),
        (ONES.long(), TRUE, Reason.VECTORS_DTYPE),
        (ONES, TRUE[:, :1], Reason.VECTORS_MASK),
        (ONES, TRUE.float(), Reason.VECTORS_MASK),
        (ONES, None, Reason.VECTORS_MASK),
        (ONES * math.nan, TRUE, Reason.VECTORS_NOT_FINITE),
        (ONES * math.inf, TRUE, Reason.VECTORS_NOT_FINITE),
        (ONES, torch.ones(1, 2, dtype=torch.bool, device="meta"), Reason.VECTORS_DEVICE),
    ],
)
def test_odd_vectors_are_refused(values: Any, mask: Any, reason: Reason) -> None:
    with pytest.raises(InvalidValueError) as caught:
        ContextVectors(values, mask)
    assert caught.value.reason is reason


def test_vectors_that_do_not_fit_the_model_are_refused(tiny: FrozenRuntime) -> None:
    adapter = MemoryAdapter(AdapterShape(tiny.hidden, tiny.sites[:1]))
    good = tiny.encode(["tea"])
    for bad, reason in (
        (ContextVectors(good.values[..., :8], good.mask), Reason.VECTORS_SHAPE),
        (ContextVectors(good.values.double(), good.mask), Reason.VECTORS_DTYPE),
        (ContextVectors(good.values.bfloat16(), good.mask), Reason.VECTORS_DTYPE),
    ):
        with pytest.raises(InvalidValueError) as caught, attached(tiny, adapter, bad):
            pass
        assert caught.value.reason is reason
    zero = ContextVectors(torch.zeros_like(good.values), good.mask)
    with pytest.raises(InvalidValueError) as caught, attached(tiny, adapter, zero):
        pass
    assert caught.value.reason is Reason.VECTORS_ZERO
    other = MemoryAdapter(AdapterShape(8, tiny.sites[:1]))
    with pytest.raises(ModelRefusedError), attached(tiny, other, good):
        pass
    lost = MemoryAdapter(AdapterShape(tiny.hidden, ("model.layers.99",)))
    with pytest.raises(ModelRefusedError) as refused, attached(tiny, lost, good):
        pass
    assert refused.value.reason is Reason.SITE_MISSING
    assert not tiny.attached


def test_interventions_on_vectors() -> None:
    vectors = ContextVectors(torch.arange(8.0).reshape(1, 2, 4) + 1, TRUE, ("a", "b"))
    mixed = shuffled(vectors, seed=3)
    assert not torch.equal(mixed.values, vectors.values)
    assert torch.allclose(mixed.values.norm(dim=-1), vectors.values.norm(dim=-1))
    assert torch.equal(shuffled(vectors, seed=3).values, mixed.values)
    assert no_memory(vectors).slots == 0
    assert stacked(vectors, 3).values.shape == (3, 2, 4)
    with pytest.raises(InvalidValueError):
        stacked(stacked(vectors, 2), 2)
    with pytest.raises(InvalidValueError):
        ContextVectors(vectors.values, TRUE, ("a",))
    with pytest.raises(InvalidValueError) as caught:
        vectors_for(Condition(Intervention.OTHER_MEMORY), vectors)
    assert caught.value.field == "other"


def test_conditions_and_sites_are_checked() -> None:
    with pytest.raises(InvalidValueError):
        Condition(Intervention.FULL, site=0)
    with pytest.raises(InvalidValueError):
        Condition(Intervention.SINGLE_SITE)
    with pytest.raises(InvalidValueError):
        sites_for(Condition(Intervention.SINGLE_SITE, site=2), ("a", "b"))
    for bad in ((), ("a", "a")):
        with pytest.raises(InvalidValueError):
            MemoryAdapter(AdapterShape(8, bad))
    with pytest.raises(ModelRefusedError):
        MemoryAdapter(AdapterShape(8, ("a",))).site("b")
    layers = tuple(f"layers.{place}" for place in range(28))
    assert spread_sites(layers, 2) == ("layers.9", "layers.18")
    with pytest.raises(InvalidValueError):
        spread_sites(layers, 28)


def test_texts_become_ids(tiny: FrozenRuntime) -> None:
    ids, mask = tiny.ids(["ab", "a"])
    assert ids.tolist() == [[97, 98], [0, 97]]
    assert mask.tolist() == [[1, 1], [0, 1]]
    for bad in ([], [""], ["tea", ""]):
        with pytest.raises(InvalidValueError):
            tiny.ids(bad)
    assert ByteTokenizer().decode([*ByteTokenizer().encode("tea 茶"), 259]) == "tea 茶"
    qwen = QwenTokenizer()
    assert qwen.decode(qwen.encode("tea 茶")) == "tea 茶"
    with pytest.raises(InvalidValueError):  # ids of a large vocabulary in a small model
        FrozenRuntime(tiny.model, qwen, weights="seeded").ids(["Ann drinks tea"])

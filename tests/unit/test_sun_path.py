"""Sun: what the adapter does to a frozen model, and what it leaves exactly as it was."""

from __future__ import annotations

import copy
from collections.abc import Iterator

import pytest
import torch

from cma.sun.adapter import AdapterShape, MemoryAdapter, spread_sites
from cma.sun.attaching import attached
from cma.sun.interventions import CONDITIONS, Condition, Intervention
from cma.sun.loading import seeded
from cma.sun.runtime import FrozenRuntime
from cma.sun.tracing import SiteTrace
from cma.sun.vectors import ContextVectors, stacked
from cma.values.errors import InvalidValueError, ModelRefusedError, Reason
from tests.unit.sun_models import TINY

FULL = Condition()
SILENT = [Intervention.NO_MEMORY, Intervention.MASKED, Intervention.ZERO_VECTORS]
PROMPTS = ["who drinks tea, and when?", "x"]


@pytest.fixture(scope="module")
def frozen() -> FrozenRuntime:
    return seeded(TINY, seed=1, tokenizer="bytes")


@pytest.fixture
def runtime(frozen: FrozenRuntime) -> Iterator[FrozenRuntime]:
    yield frozen
    frozen.check_untrained()
    frozen.check_unchanged()
    assert not frozen.attached
    assert not any(module._forward_hooks for module in frozen.model.modules())
    assert not any(module._forward_pre_hooks for module in frozen.model.modules())


@pytest.fixture
def adapter(runtime: FrozenRuntime) -> MemoryAdapter:
    return MemoryAdapter(AdapterShape(runtime.hidden, spread_sites(runtime.sites, 2)))


@pytest.fixture
def memory(runtime: FrozenRuntime) -> ContextVectors:
    return runtime.encode(["Ann drinks tea"], labels=["cell-1"])


def logits(runtime: FrozenRuntime, prompts: list[str] = PROMPTS) -> torch.Tensor:
    ids, mask = runtime.ids(prompts)
    with torch.no_grad():
        return runtime.model(input_ids=ids, attention_mask=mask).logits


def generated(runtime: FrozenRuntime, rows: int = 2, **more: object) -> torch.Tensor:
    ids, mask = runtime.ids(PROMPTS[:rows])
    return runtime.model.generate(
        input_ids=ids,
        attention_mask=mask,
        max_new_tokens=6,
        do_sample=False,
        pad_token_id=0,
        return_dict_in_generate=True,
        output_logits=True,
        **more,
    )


def run(
    runtime: FrozenRuntime,
    adapter: MemoryAdapter,
    memory: ContextVectors,
    condition: Condition = FULL,
    prompts: list[str] = PROMPTS,
) -> tuple[torch.Tensor, tuple[SiteTrace, ...]]:
    other = stacked(runtime.encode(["Bob drinks mate"]), len(prompts))
    context = stacked(memory, len(prompts))
    with attached(runtime, adapter, context, condition, other=other) as running:
        out = logits(runtime, prompts)
    return out, running.told().sites


def test_one_cell_is_one_finite_vector_under_a_true_mask(
    runtime: FrozenRuntime, memory: ContextVectors
) -> None:
    assert memory.values.shape == (1, 1, runtime.hidden)
    assert memory.values.dtype is torch.float32
    assert memory.mask.tolist() == [[True]]
    assert bool(torch.isfinite(memory.values).all())
    assert torch.equal(memory.values, runtime.encode(["Ann drinks tea"]).values)
    assert not torch.equal(memory.values, runtime.encode(["Bob drinks tea"]).values)


def test_a_text_is_encoded_alike_alone_and_beside_a_longer_one(runtime: FrozenRuntime) -> None:
    together = runtime.encode(["tea", "Ann drinks a cup of tea each morning"]).values
    assert torch.allclose(together[0, 0], runtime.encode(["tea"]).values[0, 0], atol=1e-5)


@pytest.mark.parametrize("condition", CONDITIONS, ids=lambda condition: condition.name)
def test_conditions_change_the_logits_or_leave_them_exactly(
    runtime: FrozenRuntime, adapter: MemoryAdapter, memory: ContextVectors, condition: Condition
) -> None:
    base = logits(runtime)
    out, sites = run(runtime, adapter, memory, condition)
    silent = condition.intervention in (*SILENT, Intervention.ADAPTER_OFF)
    assert torch.equal(out, base) is silent
    for site in sites:
        assert site.finite
        assert site.calls == 1
        assert (site.delta_norm == 0.0) is silent
        assert (site.applied_norm == 0.0) is silent
        assert (site.slots == 0) is (condition.intervention in SILENT[:2])
    expected = {Intervention.ADAPTER_OFF: 0, Intervention.SINGLE_SITE: 1}
    assert len(sites) == expected.get(condition.intervention, 2)
    assert torch.equal(logits(runtime), base)  # and after it nothing is left


@pytest.mark.parametrize("attention", ["sdpa", "eager"])
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_without_memory_the_bytes_are_the_untouched_ones(dtype: str, attention: str) -> None:
    config = {**TINY, "attn_implementation": attention}
    own = seeded(config, seed=2, dtype=dtype, tokenizer="bytes")
    adapter = MemoryAdapter(AdapterShape(own.hidden, own.sites[:2]))
    memory = own.encode(["tea"])
    base = logits(own)
    out, sites = run(own, adapter, memory, Condition(Intervention.NO_MEMORY))
    assert torch.equal(out.view(torch.uint8), base.view(torch.uint8))  # -0.0 stays -0.0
    assert [site.dtype for site in sites] == [dtype, dtype]
    full, sites = run(own, adapter, memory)
    assert not torch.equal(full, base)
    assert all(site.applied_norm > 0 for site in sites)


def test_generation_with_a_cache(
    runtime: FrozenRuntime, adapter: MemoryAdapter, memory: ContextVectors
) -> None:
    base = generated(runtime)
    for intervention in SILENT:
        with attached(runtime, adapter, stacked(memory, 2), Condition(intervention)) as running:
            out = generated(runtime)
        assert torch.equal(out.sequences, base.sequences)
        assert all(map(torch.equal, out.logits, base.logits))
        assert [site.calls for site in running.told().sites] == [6, 6]
    with attached(runtime, adapter, stacked(memory, 2)) as running:
        out = generated(runtime)
    assert not all(map(torch.equal, out.logits, base.logits))
    ids, mask = runtime.ids(PROMPTS)
    # the prompt's real tokens once, then one a step and row
    assert {site.tokens for site in running.told().sites} == {int(mask.sum()) + 5 * 2}
    again = generated(runtime)
    assert all(map(torch.equal, again.logits, base.logits))
    assert ids.shape == mask.shape


def test_padding_counts_for_nothing(
    runtime: FrozenRuntime, adapter: MemoryAdapter, memory: ContextVectors
) -> None:
    _, both = run(runtime, adapter, memory, prompts=PROMPTS)
    ones = [run(runtime, adapter, memory, prompts=[prompt])[1] for prompt in PROMPTS]
    for place, site in enumerate(both):
        assert site.tokens == sum(one[place].tokens for one in ones)
        alone = sum(one[place].delta_norm ** 2 for one in ones) ** 0.5
        assert site.delta_norm == pytest.approx(alone, rel=1e-4)


def test_nan_in_a_slot_that_does_not_count_harms_nothing(
    runtime: FrozenRuntime, adapter: MemoryAdapter, memory: ContextVectors
) -> None:
    values = torch.cat([memory.values, torch.full_like(memory.values, float("nan"))], dim=1)
    mixed = ContextVectors(values, torch.tensor([[True, False]]))
    out, sites = run(runtime, adapter, mixed)
    plain, _ = run(runtime, adapter, memory)
    assert torch.allclose(out, plain, atol=1e-6)
    assert all(site.finite and site.slots == 2 for site in sites)  # one slot in each of two rows
    adapter.zero_grad()
    with attached(runtime, adapter, stacked(mixed, 2)):
        ids, mask = runtime.ids(PROMPTS)
        runtime.model(input_ids=ids, attention_mask=mask).logits.float().sum().backward()
    assert all(bool(torch.isfinite(each.grad).all()) for each in adapter.parameters())
    adapter.zero_grad()


def test_gradients_reach_the_adapter_and_no_base_parameter(
    runtime: FrozenRuntime, adapter: MemoryAdapter, memory: ContextVectors
) -> None:
    optimiser = torch.optim.Adam(adapter.parameters(), lr=1e-2)
    before = [each.detach().clone() for each in adapter.parameters()]
    ids, mask = runtime.ids(PROMPTS)
    with attached(runtime, adapter, stacked(memory, 2)):
        loss = runtime.model(input_ids=ids, attention_mask=mask, labels=ids).loss
        loss.backward()
    assert all(each.grad is not None for each in adapter.parameters())
    # The key and the query learn nothing while there is one slot to attend to.
    assert sum(bool((each.grad != 0).any()) for each in adapter.parameters()) == 2 * 3
    optimiser.step()
    runtime.check_untrained()
    runtime.check_unchanged()
    changed = zip(before, adapter.parameters(), strict=True)
    assert sum(not torch.equal(old, new) for old, new in changed) == 2 * 3


def test_without_memory_gradients_are_exactly_zero(
    runtime: FrozenRuntime, adapter: MemoryAdapter, memory: ContextVectors
) -> None:
    ids, mask = runtime.ids(PROMPTS)
    condition = Condition(Intervention.NO_MEMORY)
    with attached(runtime, adapter, stacked(memory, 2), condition):
        runtime.model(input_ids=ids, attention_mask=mask, labels=ids).loss.backward()
    assert all(float(each.grad.abs().max()) == 0.0 for each in adapter.parameters())


def test_an_exception_leaves_the_model_untouched(
    runtime: FrozenRuntime, adapter: MemoryAdapter, memory: ContextVectors
) -> None:
    base = logits(runtime)

    def fail() -> None:
        with attached(runtime, adapter, stacked(memory, 2)):
            logits(runtime)
            raise KeyError("inside")

    with pytest.raises(KeyError):
        fail()
    assert torch.equal(logits(runtime), base)


def test_a_site_that_was_not_passed_is_no_zero(
    runtime: FrozenRuntime, adapter: MemoryAdapter, memory: ContextVectors
) -> None:
    with attached(runtime, adapter, memory) as running:
        pass
    with pytest.raises(ModelRefusedError) as caught:
        running.told()
    assert caught.value.reason is Reason.SITE_NOT_CALLED


def test_attaching_twice_is_refused(
    runtime: FrozenRuntime, adapter: MemoryAdapter, memory: ContextVectors
) -> None:
    with (
        attached(runtime, adapter, memory),
        pytest.raises(ModelRefusedError) as caught,
        attached(runtime, adapter, memory),
    ):
        pass
    assert caught.value.reason is Reason.MODEL_ATTACHED


def test_a_copy_made_inside_the_block_does_not_run(
    runtime: FrozenRuntime, adapter: MemoryAdapter, memory: ContextVectors
) -> None:
    ids, mask = runtime.ids(["x"])
    with attached(runtime, adapter, memory):
        twin = copy.deepcopy(runtime.model)
        runtime.model(input_ids=ids, attention_mask=mask)
    with pytest.raises(ModelRefusedError) as caught:
        twin(input_ids=ids, attention_mask=mask)
    assert caught.value.reason is Reason.MODEL_ATTACHED


@pytest.mark.parametrize("rows", [1, 3])
def test_context_of_another_batch_is_refused_before_the_model_runs(
    runtime: FrozenRuntime, adapter: MemoryAdapter, memory: ContextVectors, rows: int
) -> None:
    with (
        attached(runtime, adapter, stacked(memory, rows)) as running,
        pytest.raises(InvalidValueError) as caught,
    ):
        logits(runtime)
    assert caught.value.reason is Reason.VECTORS_SHAPE
    assert all(record.calls == 0 for record in running.records)


def test_beams_are_rows(
    runtime: FrozenRuntime, adapter: MemoryAdapter, memory: ContextVectors
) -> None:
    with attached(runtime, adapter, memory), pytest.raises(InvalidValueError) as caught:
        generated(runtime, rows=1, num_beams=2)
    assert caught.value.reason is Reason.VECTORS_SHAPE


def test_a_training_base_is_refused(
    runtime: FrozenRuntime, adapter: MemoryAdapter, memory: ContextVectors
) -> None:
    parameter = next(runtime.model.parameters())
    parameter.requires_grad_(True)
    try:
        with pytest.raises(ModelRefusedError) as caught, attached(runtime, adapter, memory):
            pass
        assert caught.value.reason is Reason.BASE_TRAINABLE
    finally:
        parameter.requires_grad_(False)
    with pytest.raises(ModelRefusedError) as caught, attached(runtime, adapter, memory):
        parameter.requires_grad_(True)
    parameter.requires_grad_(False)
    assert caught.value.reason is Reason.BASE_TRAINABLE


def test_changed_weights_are_found() -> None:
    own = seeded(TINY, seed=3, tokenizer="bytes")
    adapter = MemoryAdapter(AdapterShape(own.hidden, own.sites[:1]))
    memory = own.encode(["tea"])
    parameter = next(own.model.parameters())

    def inside() -> None:
        with attached(own, adapter, memory):
            parameter.add_(1e-3)

    with torch.no_grad(), pytest.raises(ModelRefusedError) as caught:
        inside()
    assert caught.value.reason is Reason.BASE_CHANGED
    parameter.data[0, 0] += 1.0  # which version counters do not see
    with pytest.raises(ModelRefusedError):
        own.check_unchanged()


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_compiled_models_are_refused(memory: ContextVectors) -> None:
    own = seeded(TINY, seed=4, tokenizer="bytes")
    with pytest.raises(ModelRefusedError) as caught:
        FrozenRuntime(torch.compile(own.model), own.tokenizer, weights="seeded")
    assert caught.value.reason is Reason.MODEL_COMPILED
    adapter = MemoryAdapter(AdapterShape(own.hidden, own.sites[:1]))
    own.model.model.layers[0].compile()
    with pytest.raises(ModelRefusedError) as caught, attached(own, adapter, memory):
        pass
    assert caught.value.reason is Reason.MODEL_COMPILED


def test_the_same_shape_is_the_same_adapter(adapter: MemoryAdapter) -> None:
    twin = MemoryAdapter(adapter.shape)
    assert all(map(torch.equal, adapter.parameters(), twin.parameters()))
    assert all(each.dtype is torch.float32 for each in adapter.parameters())

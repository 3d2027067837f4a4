"""Delivering a packet to a model: checked before it runs, and on record with what it did."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from cma import CmaError, FixedClock, Memory, Reason
from cma.sun.adapter import AdapterShape, MemoryAdapter, spread_sites
from cma.sun.interventions import Condition, Intervention
from cma.sun.loading import seeded
from cma.sun.path import ModelPath
from cma.values.errors import InvalidValueError
from tests.faults.injection import CALLER, ROOT, START, hold, remember
from tests.unit.sun_models import TINY


@pytest.fixture(scope="module")
def path() -> ModelPath:
    runtime = seeded(TINY, seed=1, tokenizer="bytes", name="tiny")
    adapter = MemoryAdapter(AdapterShape(runtime.hidden, spread_sites(runtime.sites, 2)))
    return ModelPath(runtime, adapter)


@pytest.fixture
def clock() -> FixedClock:
    return FixedClock(START)


@pytest.fixture
def ann(tmp_path: Path, clock: FixedClock) -> Iterator[Memory]:
    with Memory.open(tmp_path / "m.cma", caller=CALLER, clock=clock) as memory:
        yield memory.within("session:ann")


class Watched(ModelPath):
    """A model path that must not be run."""

    def run(self, *_: object, **__: object) -> None:  # type: ignore[override]
        raise AssertionError("the model ran")


def test_the_receipt_says_what_reached_the_model(ann: Memory, path: ModelPath) -> None:
    cells = [remember(ann, text, minutes=n).id for n, text in enumerate(("tea", "green tea"))]
    packet = ann.packet(ann.recall("tea"), budget=512)
    digest = ann.digest()
    receipt = ann.deliver(packet, path, prompt="What does Ann drink?")
    model = receipt.model
    assert model is not None
    assert (model.model, model.weights, model.condition) == ("tiny", "seeded", "full")
    assert model.fingerprint == path.runtime.fingerprint
    assert (model.slots, model.hidden) == (2, 64)
    assert [site.site for site in model.sites] == list(path.adapter.shape.sites)
    assert all(float(site.delta_norm) > 0 and site.slots == 2 for site in model.sites)
    assert {name for name, _, _ in receipt.cells} == set(cells)
    assert ann.digest() == digest
    told = ann.explain(receipt.id)
    assert told.verified
    assert told.receipt == receipt
    again = ann.deliver(packet, path, prompt="What does Ann drink?")
    assert again.model == model


def test_an_answer_is_kept_with_the_receipt(ann: Memory, path: ModelPath) -> None:
    remember(ann, "tea")
    packet = ann.packet(ann.recall("tea"), budget=512)
    receipt = ann.deliver(packet, replace(path, max_new_tokens=3))
    assert receipt.model is not None
    assert receipt.model.answer
    assert {site.calls for site in receipt.model.sites} == {3}
    single = Condition(Intervention.SINGLE_SITE, site=1)
    receipt = ann.deliver(packet, replace(path, condition=single))
    assert receipt.model is not None
    assert receipt.model.condition == "site_2_only"
    assert len(receipt.model.sites) == 1


def test_a_restored_store_still_tells_it(ann: Memory, path: ModelPath, tmp_path: Path) -> None:
    remember(ann, "tea")
    receipt = ann.deliver(ann.packet(ann.recall("tea"), budget=512), path)
    ann.snapshot(tmp_path / "s.cma.jsonl")
    with Memory.restore(tmp_path / "s.cma.jsonl", tmp_path / "again.cma") as again:
        told = again.within("session:ann").explain(receipt.id)
        assert told.receipt == receipt
        assert told.verified


def delivered(memory: Memory) -> int:
    [(count,)] = memory.store.connection.execute(
        "SELECT count(*) FROM audit WHERE operation = 'deliver'"
    ).fetchall()
    return int(count)


def refused(ann: Memory, path: ModelPath, packet: object, reason: Reason) -> None:
    digest, before = ann.digest(), delivered(ann)
    failures = len(ann.failures())
    watched = Watched(path.runtime, path.adapter)
    with pytest.raises(CmaError) as caught:
        ann.deliver(packet, watched)  # type: ignore[arg-type]
    assert caught.value.reason is reason
    assert ann.digest() == digest
    assert (len(ann.failures()), delivered(ann)) == (failures + 1, before)


def test_what_may_not_reach_a_model_does_not(
    ann: Memory, path: ModelPath, clock: FixedClock, tmp_path: Path
) -> None:
    hold(ann, "the kettle is on")
    packet = ann.packet(ann.recall("kettle"), budget=512)
    clock.advance(timedelta(days=2))
    late = ann.packet(ann.recall("kettle", include_inactive=True), budget=512)
    refused(ann, path, late, Reason.CELL_INACTIVE)
    refused(ann, path, ann.packet(ann.recall("nothing here"), budget=512), Reason.PACKET_EMPTY)
    refused(ann.within("session:bob"), path, late, Reason.PACKET_ALTERED)
    altered = packet.model_copy(update={"groups": (), "used": 0})
    refused(ann, path, altered, Reason.PACKET_ALTERED)
    cell = remember(ann, "the tea is green", minutes=1)
    stale = ann.packet(ann.recall("green"), budget=512)
    ann.update(cell.id, summary="changed")
    refused(ann, path, stale, Reason.PACKET_STALE)


def test_an_unapproved_claim_does_not_reach_a_model(ann: Memory, path: ModelPath) -> None:
    frames = []
    for number in range(2):
        cell = remember(ann, f"Ann drinks tea, cup {number}", minutes=number)
        frames.append(ann.bind(scene=f"{number}", sources=[cell.id], actions=["tea"]).id)
        ann.replay(frames[-1])
    claim = ann.propose(
        frames=frames, content="Ann loves tea", subject="Ann", predicate="loves", object="tea"
    )
    ann.approve(claim.id, approval_id="CR-1")
    packet = ann.packet(ann.recall("loves"), budget=512)
    ann.deliver(packet, path)
    # Behind the store's back, since no call of ours can do this.
    ann.store.connection.execute("DELETE FROM refs WHERE kind = 'admission'")
    refused(ann, path, packet, Reason.APPROVAL_REQUIRED)


def test_a_prompt_that_cannot_be_read_leaves_no_receipt(ann: Memory, path: ModelPath) -> None:
    remember(ann, "tea")
    packet = ann.packet(ann.recall("tea"), budget=512)
    with pytest.raises(InvalidValueError) as caught:
        ann.deliver(packet, path, prompt="")
    assert caught.value.field == "texts"
    assert delivered(ann) == 0


def test_controls_deliver_nothing(path: ModelPath) -> None:
    for intervention in (Intervention.NO_MEMORY, Intervention.MASKED, Intervention.ADAPTER_OFF):
        with pytest.raises(InvalidValueError) as caught:
            replace(path, condition=Condition(intervention))
        assert caught.value.field == "condition"


def test_a_memory_needs_no_torch() -> None:
    program = "import sys, cma; sys.exit('torch' in sys.modules or 'transformers' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program], cwd=ROOT, check=False).returncode == 0

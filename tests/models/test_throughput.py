"""Step time of hand-made steps: what must hold whatever was fitted."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planner.models.hardware.catalogue import gpu, gpus
from planner.models.precision import PRECISIONS, PrecisionUnsupported
from planner.models.step_price import card_costs
from planner.models.throughput import (
    ImpossibleForecast,
    StepEstimate,
    StepRequest,
    estimate_step,
    estimate_steps,
)
from planner.models.tracing.adapter_spec import USUAL_ADAPTER
from planner.models.tracing.step_trace import ZERO, Affine, TraceVariant
from planner.models.tracing.summary import ClassWork, StepSummary
from planner.models.workloads import zoo
from tests.models.throughput_cases import matmul_step, step, transformer_step

BERT = transformer_step()
CARDS = ("rtx-4090-24gb", "a100-sxm4-40gb", "l4-24gb", "gtx-1080-ti-11gb", "h100-sxm5-80gb", "mi210-64gb")


def seconds(summary: StepSummary, card: str, precision: str = "fp16-amp", batch: int = 16) -> float:
    return estimate_step(summary, gpu(card), precision=precision, micro_batch=batch).step_seconds


def test_c24_a_matmul_job_ranks_the_4090_first_in_fp32_and_the_a100_first_in_tf32() -> None:
    """C24: matmuls default to plain fp32 since torch 1.12; the ranking must flip with --precision tf32."""
    job = matmul_step()
    assert seconds(job, "rtx-4090-24gb", "fp32") < seconds(job, "a100-sxm4-40gb", "fp32") / 2
    assert seconds(job, "a100-sxm4-40gb", "tf32") < seconds(job, "rtx-4090-24gb", "tf32")


def test_every_catalogue_card_is_priced_in_every_precision_it_has() -> None:
    for card in gpus():
        priced = 0
        for precision in PRECISIONS:
            try:
                found = estimate_step(BERT, card, precision=precision, micro_batch=8)
            except PrecisionUnsupported:
                continue
            priced += 1
            assert 0 < found.low_seconds < found.step_seconds < found.high_seconds < math.inf
            assert 0 < found.mfu < 1
            assert 0 <= found.launch_share <= 1
        assert priced >= 3, card.id


@settings(deadline=None, max_examples=60)
@given(
    card=st.sampled_from(CARDS),
    precision=st.sampled_from(["fp32", "tf32", "fp16-amp", "fp16"]),
    batch=st.integers(1, 512),
    accumulation=st.integers(1, 64),
)
def test_the_breakdown_adds_up_and_samples_follow(
    card: str, precision: str, batch: int, accumulation: int
) -> None:
    found = estimate_step(BERT, gpu(card), precision=precision, micro_batch=batch, accumulation=accumulation)
    assert sum(row[2] for row in found.breakdown) == pytest.approx(found.step_seconds, rel=1e-9)
    assert all(row[2] >= 0 for row in found.breakdown)
    assert found.samples_per_second * found.step_seconds == pytest.approx(batch * accumulation)


@settings(deadline=None, max_examples=60)
@given(card=st.sampled_from(CARDS), batch=st.integers(1, 256))
def test_a_larger_batch_takes_longer_and_twice_the_batch_at_most_twice_as_long(card: str, batch: int) -> None:
    one, two = seconds(BERT, card, batch=batch), seconds(BERT, card, batch=2 * batch)
    assert one < two <= 2 * one * (1 + 1e-9)


@settings(deadline=None, max_examples=40)
@given(card=st.sampled_from(CARDS), more=st.floats(1.001, 50))
def test_more_work_is_never_faster(card: str, more: float) -> None:
    harder = replace(
        BERT,
        work=tuple(
            replace(w, flops=Affine(w.flops.constant, w.flops.per_sample * more))
            if w.op_class == "gemm"
            else w
            for w in BERT.work
        ),
    )
    assert seconds(harder, card) >= seconds(BERT, card)


def test_accumulation_repeats_the_micro_step_and_not_the_update() -> None:
    card = gpu("a100-sxm4-40gb")
    once = estimate_step(BERT, card, precision="bf16-amp", micro_batch=8)
    four = estimate_step(BERT, card, precision="bf16-amp", micro_batch=8, accumulation=4)
    assert 3 * once.step_seconds < four.step_seconds < 4 * once.step_seconds
    assert four.samples_per_second > once.samples_per_second


def test_c25_two_4090_without_peer_access_can_be_slower_than_one() -> None:
    """C25: a small step that sends much over a slow link loses by going parallel."""
    job = transformer_step(tokens=128, width=1024, layers=24, parameters=335_141_888)
    card = gpu("rtx-4090-24gb")
    one = estimate_step(job, card, precision="fp16-amp", micro_batch=2)
    two = estimate_step(job, card, precision="fp16-amp", micro_batch=2, gpu_count=2, link="pcie4-no-p2p")
    assert two.samples_per_second < one.samples_per_second
    assert two.communication_seconds > 0
    assert ("communication", "backward", two.communication_seconds) in two.breakdown


def test_the_same_job_scales_on_nvswitch() -> None:
    card = gpu("a100-sxm4-40gb")
    one = estimate_step(BERT, card, precision="bf16-amp", micro_batch=32)
    eight = estimate_step(BERT, card, precision="bf16-amp", micro_batch=32, gpu_count=8, link="nvswitch-a100")
    assert 5 < eight.samples_per_second / one.samples_per_second < 8


def test_fsdp_shards_the_update_and_sends_more_than_ddp() -> None:
    card = gpu("h100-sxm5-80gb")
    asked = {"precision": "bf16-amp", "micro_batch": 4, "gpu_count": 8, "link": "nvswitch-h100"}
    ddp = estimate_step(BERT, card, strategy="ddp", **asked)  # type: ignore[arg-type]
    fsdp = estimate_step(BERT, card, strategy="fsdp", **asked)  # type: ignore[arg-type]
    update = {
        name: sum(r[2] for r in e.breakdown if r[1] == "optimizer") for name, e in (("d", ddp), ("f", fsdp))
    }
    assert update["f"] < update["d"] / 4


def test_a_power_limit_slows_the_matrix_units_and_is_said() -> None:
    card = gpu("rtx-4090-24gb")
    full = estimate_step(matmul_step(), card, precision="fp16-amp", micro_batch=4)
    held = estimate_step(matmul_step(), card, precision="fp16-amp", micro_batch=4, power_limit_watts=225)
    assert held.step_seconds > full.step_seconds
    assert "225 W" in held.notes[0]


def test_the_band_is_wider_for_a_card_nobody_measured() -> None:
    seen = estimate_step(BERT, gpu("a100-sxm4-40gb"), precision="bf16-amp", micro_batch=64)
    other = estimate_step(BERT, gpu("mi300x-192gb"), precision="bf16-amp", micro_batch=64)
    assert (seen.tier, other.tier) == ("measured_card", "datasheet")
    assert other.high_seconds / other.step_seconds > seen.high_seconds / seen.step_seconds


def test_c23_a_forecast_above_the_peak_is_refused() -> None:
    """C23: any forecast implying more than 100 % MFU is refused."""
    free = step(ClassWork("conv", "forward", Affine(0, 1e15), ZERO, 1))
    costs = card_costs(gpu("a100-sxm4-40gb"), "tf32")
    if costs.per_flop.min() * costs.peak_flops > 1:
        pytest.skip("no class of this fit is cheaper than the datasheet's peak")
    with pytest.raises(ImpossibleForecast, match="% of the card's peak"):
        estimate_step(free, gpu("a100-sxm4-40gb"), precision="tf32", micro_batch=1)


def test_counts_below_one_are_refused() -> None:
    with pytest.raises(ValueError, match="accumulation must be at least 1, got 0"):
        estimate_step(BERT, gpu("a100-sxm4-40gb"), precision="bf16", micro_batch=1, accumulation=0)


def test_the_batched_form_answers_the_same() -> None:
    requests = [
        StepRequest(BERT, gpu("rtx-4090-24gb"), "bf16-amp", 8),
        StepRequest(BERT, gpu("rtx-4090-24gb"), "bf16-amp", 8, gpu_count=2, link="pcie4-no-p2p"),
    ]
    one, two = estimate_steps(requests)
    assert one == estimate_step(BERT, gpu("rtx-4090-24gb"), precision="bf16-amp", micro_batch=8)
    assert two.samples_per_second != one.samples_per_second


def test_a_packed_base_is_unpacked_for_each_product_and_that_is_a_row_of_its_own() -> None:
    llama = zoo.workload("llama-2-7b")

    def priced(adapter: str) -> StepEstimate:
        variant = TraceVariant("half", "flash", True, "adamw-foreach", 512, adapter)
        return estimate_step(
            zoo.summary(llama, variant), gpu("a100-sxm4-80gb"), precision="bf16", micro_batch=4
        )

    full, lora, qlora = (priced(a) for a in ("", USUAL_ADAPTER, f"{USUAL_ADAPTER}-nf4-dq"))
    # Frozen weights have no gradients and hardly any update; unpacking costs time again.
    assert lora.step_seconds < qlora.step_seconds < full.step_seconds
    assert any(name == "dequantisation" and seconds > 0 for name, _, seconds in qlora.breakdown)
    assert sum(seconds for *_, seconds in qlora.breakdown) == pytest.approx(qlora.step_seconds)
    assert any("packed as nf4-dq" in said for said in qlora.assumptions)

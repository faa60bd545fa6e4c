"""Levers on hand-made summaries: what each saves, and the fewest that are enough."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from planner.models.errors import TraceUnavailable
from planner.models.levers import (
    Setting,
    cheapest_combination,
    checkpointing_alone,
    levers,
    part_that_fits,
)
from planner.models.tracing.adapter_spec import USUAL_ADAPTER
from planner.models.tracing.step_trace import TraceVariant
from planner.models.tracing.summary import StepSummary

GIB = 2**30

Make = Callable[..., StepSummary]


@dataclass(frozen=True)
class TrainingCard:
    """An RTX 4090 as levers see it."""

    id: str = "rtx-4090-24gb"
    architecture: str = "Ada"
    memory_bytes: int = 24 * GIB
    memory_total_bytes: int | None = None
    torch_total_bytes: int | None = int(23.65 * GIB)
    dense_flops: dict[str, float | None] = field(default_factory=lambda: {"bf16": 165.2e12})

    def attention_kernel(self, precision: str) -> str:
        return "efficient" if precision in ("fp32", "tf32") else "flash"


@pytest.fixture
def summary_of(hand_made_summary: Make) -> Callable[[TraceVariant], StepSummary]:
    """States of 12 GiB; 2 GiB a sample, half under autocast, a quarter checkpointed; foreach adds 3 GiB."""

    def make(variant: TraceVariant) -> StepSummary:
        per_sample = 2 * GIB
        per_sample //= 2 if variant.precision_policy == "amp" else 1
        per_sample //= 4 if variant.activation_checkpointing else 1
        transient = 3 * GIB if variant.optimizer == "adamw-foreach" else 0
        return hand_made_summary(
            states_bytes=12 * GIB,
            bytes_per_sample=per_sample,
            optimizer_transient_bytes=transient,
            variant=variant,
        )

    return make


def test_each_lever_alone_has_its_new_peak_and_those_that_fit_come_first(summary_of: Any) -> None:
    found = levers(summary_of, TrainingCard(), Setting("fp32", micro_batch=8))
    by_name = {lever.names[0]: lever for lever in found}
    assert set(by_name) == {
        *("mixed precision", "smaller micro-batch", "activation checkpointing"),
        *("optimizer state in host memory", "sharded over 8 GPUs (FSDP)"),
    }
    assert [lever.fits for lever in found] == sorted((lever.fits for lever in found), reverse=True)
    checkpointed = by_name["activation checkpointing"]
    assert checkpointed.fits
    assert checkpointed.estimate.breakdown["activations"] == 4 * GIB
    assert 11 * GIB < checkpointed.saved_bytes < 13 * GIB
    assert by_name["mixed precision"].setting.precision == "bf16-amp"
    smaller = by_name["smaller micro-batch"].setting
    assert (smaller.micro_batch, smaller.accumulation) == (4, 2)
    assert by_name["sharded over 8 GPUs (FSDP)"].setting.gpu_count == 8
    assert by_name["optimizer state in host memory"].saved_bytes > 3 * GIB


def test_a_fused_optimizer_is_a_lever_where_the_peak_is_in_the_optimizer(summary_of: Any) -> None:
    found = levers(summary_of, TrainingCard(), Setting("fp32", micro_batch=1))
    fused = next(lever for lever in found if lever.names == ("fused optimizer",))
    assert fused.setting.optimizer == "adamw-fused"
    assert fused.estimate.allocated_bytes.p50 < 15 * GIB


def test_the_cheapest_combination_fits_and_no_single_lever_does(hand_made_summary: Make) -> None:
    def summary_of(variant: TraceVariant) -> StepSummary:
        per_sample = 40 * GIB // (2 if variant.precision_policy == "amp" else 1)
        per_sample //= 4 if variant.activation_checkpointing else 1
        return hand_made_summary(states_bytes=16 * GIB, bytes_per_sample=per_sample, variant=variant)

    setting = Setting("fp32", micro_batch=1, optimizer="sgd-foreach")
    assert not any(lever.fits for lever in levers(summary_of, TrainingCard(), setting))
    together = cheapest_combination(summary_of, TrainingCard(), setting)
    assert together is not None
    assert together.fits
    assert together.names == ("mixed precision", "activation checkpointing")
    assert together.setting == replace(setting, precision="bf16-amp", activation_checkpointing=True)


def test_where_nothing_is_enough_there_is_no_combination(hand_made_summary: Make) -> None:
    def summary_of(variant: TraceVariant) -> StepSummary:
        return hand_made_summary(states_bytes=GIB, bytes_per_sample=300 * GIB, variant=variant)

    assert cheapest_combination(summary_of, TrainingCard(), Setting("fp32", micro_batch=1)) is None


def test_a_variant_that_cannot_be_had_is_no_lever(summary_of: Any) -> None:
    def without_checkpointing(variant: TraceVariant) -> StepSummary:
        if variant.activation_checkpointing:
            raise TraceUnavailable("does not ship")
        return summary_of(variant)

    found = levers(without_checkpointing, TrainingCard(), Setting("fp32", micro_batch=8))
    assert "activation checkpointing" not in {name for lever in found for name in lever.names}


def test_a_workload_without_checkpointing_is_not_offered_it(summary_of: Any) -> None:
    def plain(variant: TraceVariant) -> StepSummary:
        return summary_of(replace(variant, activation_checkpointing=False))

    found = levers(plain, TrainingCard(), Setting("fp32", micro_batch=8))
    assert "activation checkpointing" not in {name for lever in found for name in lever.names}


def test_every_lever_keeps_the_samples_of_one_optimizer_step(summary_of: Any) -> None:
    setting = Setting("fp32", micro_batch=12, accumulation=3)
    for lever in levers(summary_of, TrainingCard(), setting):
        assert lever.setting.micro_batch * lever.setting.accumulation == 36
        assert lever.to_json()["process_bytes"]["p95"] == lever.estimate.process_bytes.p95


def test_what_fits_already_needs_no_combination(summary_of: Any) -> None:
    assert cheapest_combination(summary_of, TrainingCard(), Setting("fp32", micro_batch=1)) is None


def test_levers_of_a_shipped_workload_trace_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Llama-2-7B on an RTX 4090: sharding over GPUs is the only way, whatever else is changed."""
    from planner.models.hardware.catalogue import gpu
    from planner.models.levers import summaries_of
    from planner.models.workloads import store
    from planner.models.workloads.zoo import workload

    def refuse(*_: Any) -> Any:
        raise AssertionError("traced")

    monkeypatch.setattr(store, "trace_now", refuse)
    card, setting = gpu("rtx-4090-24gb"), Setting("bf16-amp", micro_batch=1)
    summary_of = summaries_of(workload("llama-2-7b"), card, setting)
    found = levers(summary_of, card, setting)
    assert found[0].setting.strategy == "fsdp"
    assert cheapest_combination(summary_of, card, setting) is None
    together = cheapest_combination(summary_of, card, setting, more_gpus=True)
    assert together is not None
    assert any(name.startswith("sharded over") for name in together.names)
    assert together.fits


def _llama_like(hand_made_summary: Make) -> Callable[[TraceVariant], StepSummary]:
    """States of 50 GiB whole, 13 GiB frozen, 4 GiB frozen and packed; 1 GiB a sample."""

    def summary_of(variant: TraceVariant) -> StepSummary:
        states = 50 * GIB if not variant.adapter else 4 * GIB if "nf4" in variant.adapter else 13 * GIB
        return hand_made_summary(states_bytes=states, bytes_per_sample=GIB, variant=variant)

    return summary_of


def test_adapters_are_levers_and_a_packed_base_saves_most(hand_made_summary: Make) -> None:
    setting = Setting("bf16", micro_batch=4, optimizer="adamw-fused")
    found = {
        lever.names[0]: lever for lever in levers(_llama_like(hand_made_summary), TrainingCard(), setting)
    }
    lora, qlora = (next(lever for name, lever in found.items() if name.startswith(kind)) for kind in KINDS)
    assert lora.fits
    assert qlora.saved_bytes > lora.saved_bytes > 30 * GIB
    assert qlora.to_json()["adapter"] == "lora-r16-q_proj+v_proj-fp32-nf4-dq"


def test_on_the_same_gpus_the_combination_trains_adapters_and_does_not_shard(
    hand_made_summary: Make,
) -> None:
    setting = Setting("bf16", micro_batch=16, optimizer="adamw-fused")
    summary_of = _llama_like(hand_made_summary)
    whole = cheapest_combination(summary_of, TrainingCard(), setting)
    assert whole is None or not whole.setting.adapter
    alone = cheapest_combination(summary_of, TrainingCard(), setting, adapter=USUAL_ADAPTER)
    assert alone is not None
    assert alone.setting.gpu_count == 1
    assert alone.setting.adapter


def test_the_cheapest_combination_is_the_fastest_that_fits_not_the_shortest(summary_of: Any) -> None:
    """Checkpointing alone would do; mixed precision with a smaller micro-batch takes half the time."""

    def price(setting: Setting) -> float:
        seconds = 4.0 if setting.precision == "fp32" else 2.0
        return seconds * (1.3 if setting.activation_checkpointing else 1.0)

    setting = Setting("fp32", micro_batch=12)
    fewest = cheapest_combination(summary_of, TrainingCard(), setting)
    assert fewest is not None
    assert len(fewest.names) == 1
    cheapest = cheapest_combination(summary_of, TrainingCard(), setting, price)
    assert cheapest is not None
    assert cheapest.names == ("mixed precision", "smaller micro-batch")
    assert cheapest.time_factor == 0.5
    assert cheapest.fits


def test_a_combination_without_a_price_comes_only_where_nothing_priced_fits(hand_made_summary: Make) -> None:
    """States of 28 GiB: only moving the optimizer's to the host leaves room, and that has no price."""

    def summary_of(variant: TraceVariant) -> StepSummary:
        if variant.optimizer != "sgd-momentum-foreach":
            raise TraceUnavailable("does not ship")
        return hand_made_summary(states_bytes=28 * GIB, bytes_per_sample=GIB, variant=variant)

    setting = Setting("fp32", micro_batch=1, optimizer="sgd-momentum-foreach")
    found = cheapest_combination(
        summary_of, TrainingCard(), setting, lambda changed: None if changed.offload != "none" else 1.0
    )
    assert found is not None
    assert found.setting.offload == "optimizer"
    assert found.time_factor is None
    assert found.to_json()["time_factor"] is None


def test_an_accumulated_batch_is_cut_into_fewer_parts_where_room_is_left(hand_made_summary: Make) -> None:
    def summary_of(variant: TraceVariant) -> StepSummary:
        states = 100 * GIB if not variant.adapter else 4 * GIB
        return hand_made_summary(states_bytes=states, bytes_per_sample=GIB, variant=variant)

    asked = part_that_fits(summary_of, TrainingCard(), Setting("bf16", micro_batch=32, optimizer="none"))
    assert (asked.micro_batch, asked.accumulation) == (1, 32)  # not one sample fits
    found = cheapest_combination(summary_of, TrainingCard(), asked, adapter=USUAL_ADAPTER)
    assert found is not None
    assert (found.setting.micro_batch, found.setting.accumulation) == (16, 2)


def test_what_checkpointing_trades_is_told_where_it_saves_nothing(hand_made_summary: Make) -> None:
    def summary_of(variant: TraceVariant) -> StepSummary:
        return hand_made_summary(states_bytes=40 * GIB, optimizer_transient_bytes=10 * GIB, variant=variant)

    trade = checkpointing_alone(summary_of, TrainingCard(), Setting("fp32", micro_batch=1), lambda _: 1.0)
    assert trade is not None
    assert (trade.saved_bytes, trade.time_factor) == (0, 1.0)


KINDS = ("LoRA", "QLoRA")

"""Four memory figures of one step on one card, on summaries that can be added up in the head."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from planner.models.errors import BadData, UnknownName
from planner.models.memory_peak import peak_at
from planner.models.sharding import CannotOffload, model_states, zero_model_state_bytes
from planner.models.strategies import STRATEGIES
from planner.models.tracing.step_trace import Affine
from planner.models.tracing.summary import ClassWork, StepSummary
from planner.models.vram import MemoryEstimate, WrongSummary, estimate_memory, largest, max_micro_batch

GIB = 2**30
MIB = 2**20

Make = Callable[..., StepSummary]
in_fixture = settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


def estimate(summary: StepSummary, card: Any, micro_batch: int, **rest: Any) -> MemoryEstimate:
    return estimate_memory(summary, card, micro_batch=micro_batch, **{"precision": "fp32", **rest})


@given(
    micro_batch=st.integers(1, 200),
    gpu_count=st.integers(1, 64),
    strategy=st.sampled_from(sorted(STRATEGIES)),
)
@in_fixture
def test_the_breakdown_adds_up_to_the_process_figure(
    hand_made_summary: Make, rtx_4090: Any, micro_batch: int, gpu_count: int, strategy: str
) -> None:
    result = estimate(hand_made_summary(), rtx_4090, micro_batch, gpu_count=gpu_count, strategy=strategy)
    assert sum(result.breakdown.values()) == result.process_bytes.p50
    assert min(result.breakdown.values()) >= 0
    figures = (result.allocated_bytes, result.reserved_bytes, result.process_bytes)
    assert all(figure.p50 <= figure.p95 for figure in figures)
    assert result.allocated_bytes.p50 <= result.reserved_bytes.p50 <= result.process_bytes.p50
    assert result.headroom_bytes == result.capacity_bytes - result.process_bytes.p95
    assert (result.fits == "yes") == (result.process_bytes.p95 <= result.capacity_bytes)
    assert (result.fits == "no") == (result.process_bytes.p50 > result.capacity_bytes)


def test_c17_total_is_affine_in_the_micro_batch_and_accumulation_adds_only_the_gradient_buffer(
    hand_made_summary: Make, rtx_4090: Any
) -> None:
    one, two, four = (estimate(hand_made_summary(), rtx_4090, n) for n in (1, 2, 4))
    totals = [result.process_bytes.p50 for result in (one, two, four)]
    assert totals[2] - totals[1] == pytest.approx(2 * (totals[1] - totals[0]), rel=0.01)
    assert totals[1] > totals[0]
    for state in ("weights", "gradients", "optimizer_state"):
        assert one.breakdown[state] == four.breakdown[state] > 0
    assert {"weights", "gradients", "optimizer_state", "activations", "cuda_context"} <= set(one.breakdown)
    accumulated = estimate(hand_made_summary(), rtx_4090, 4, accumulation=32)
    buffer = accumulated.breakdown["temporaries"]
    assert accumulated.allocated_bytes.p50 - four.allocated_bytes.p50 == buffer
    assert estimate(hand_made_summary(), rtx_4090, 4, accumulation=2) == accumulated


def test_c22_tensors_of_23_8_gib_do_not_fit_an_rtx_4090_and_21_gib_do_with_headroom(
    hand_made_summary: Make, rtx_4090: Any
) -> None:
    def with_tensors(gib: float) -> MemoryEstimate:
        tensors = int(gib * GIB)
        return estimate(hand_made_summary(states_bytes=tensors - GIB, batches=(1,)), rtx_4090, 1)

    too_large = with_tensors(23.8)
    assert too_large.fits == "no"
    assert too_large.headroom_bytes < 0
    fits = with_tensors(21.0)
    assert fits.fits == "yes"
    assert fits.headroom_bytes >= 0
    # Capacity, context and slack are separate figures, each with where it comes from.
    assert fits.capacity_bytes == int(23.65 * GIB) < 24564 * MIB
    assert fits.breakdown["cuda_context"] > 200 * MIB
    assert fits.breakdown["allocator_slack"] > 0
    assert any("torch reports 23.65 GiB" in line for line in fits.assumptions)
    assert any("CUDA context" in line for line in fits.assumptions)


def test_a_case_between_p50_and_p95_is_too_close_to_call(hand_made_summary: Make, rtx_4090: Any) -> None:
    verdicts = [
        estimate(hand_made_summary(bytes_per_sample=GIB // 16), rtx_4090, batch).fits
        for batch in range(200, 400)
    ]
    assert list(dict.fromkeys(verdicts)) == ["yes", "too_close", "no"]


def test_cached_segments_go_back_before_a_batch_is_said_not_to_fit(
    hand_made_summary: Make, rtx_4090: Any
) -> None:
    """Unlimited replay of ResNet-50 at 512 reserves 25.6 GiB, and it ran on a 24 GB card."""
    summary = hand_made_summary(states_bytes=4 * GIB, bytes_per_sample=GIB, slack=0.25)
    result = estimate(summary, rtx_4090, 16)
    assert peak_at(summary, 16, accumulating=False).reserved_p50 > result.capacity_bytes
    assert result.fits == "yes"
    assert result.process_bytes.p50 == result.capacity_bytes


@given(micro_batch=st.integers(1, 500))
@in_fixture
def test_more_samples_never_need_less(hand_made_summary: Make, rtx_4090: Any, micro_batch: int) -> None:
    summary = hand_made_summary(optimizer_transient_bytes=3 * GIB)
    less = estimate(summary, rtx_4090, micro_batch)
    more = estimate(summary, rtx_4090, micro_batch + 1)
    assert more.process_bytes.p50 >= less.process_bytes.p50
    assert more.process_bytes.p95 >= less.process_bytes.p95


def test_between_grid_points_the_chord_lies_above_the_convex_peak(hand_made_summary: Make) -> None:
    """The optimizer rules up to 5 samples, activations from there; the chord from 4 to 8 covers the kink."""
    summary = hand_made_summary(optimizer_transient_bytes=5 * GIB)
    at_six = peak_at(summary, 6, accumulating=False)
    assert at_six.allocated_p50 >= 4 * GIB + 6 * GIB
    assert sum(at_six.parts.values()) == at_six.allocated_p50


def test_past_the_grid_the_last_slope_goes_on(hand_made_summary: Make) -> None:
    assert peak_at(hand_made_summary(), 100, accumulating=False).allocated_p50 == 104 * GIB


@pytest.mark.parametrize("gpu_count", [1, 2, 8])
@pytest.mark.parametrize("strategy", ["ddp", "fsdp"])
def test_the_largest_micro_batch_fits_and_the_next_does_not(
    hand_made_summary: Make, rtx_4090: Any, gpu_count: int, strategy: str
) -> None:
    summary = hand_made_summary()
    shape = {"gpu_count": gpu_count, "strategy": strategy}
    batch = max_micro_batch(summary, rtx_4090, precision="fp32", **shape)
    assert batch > 0
    assert estimate(summary, rtx_4090, batch, **shape).fits == "yes"
    assert estimate(summary, rtx_4090, batch + 1, **shape).fits != "yes"


def test_where_not_one_sample_fits_the_largest_micro_batch_is_zero(
    hand_made_summary: Make, rtx_4090: Any
) -> None:
    assert max_micro_batch(hand_made_summary(states_bytes=30 * GIB), rtx_4090, precision="fp32") == 0


@given(st.integers(0, 5000))
def test_bisection_finds_any_threshold(threshold: int) -> None:
    assert largest(lambda batch: batch <= threshold) == threshold


def test_ddp_adds_one_copy_of_the_gradients_and_the_communicator(
    hand_made_summary: Make, rtx_4090: Any
) -> None:
    alone = estimate(hand_made_summary(), rtx_4090, 4)
    pair = estimate(hand_made_summary(), rtx_4090, 4, gpu_count=2)
    assert pair.breakdown["ddp_buckets"] == GIB
    assert pair.allocated_bytes.p50 - alone.allocated_bytes.p50 == GIB
    assert pair.breakdown["communicator"] > 0
    assert "communicator" not in alone.breakdown


def test_fsdp_shards_the_states_and_never_the_activations(hand_made_summary: Make, rtx_4090: Any) -> None:
    summary = hand_made_summary(states_bytes=32 * GIB)
    sharded = estimate(summary, rtx_4090, 4, gpu_count=8, strategy="fsdp")
    assert sharded.breakdown["optimizer_state"] == 2 * GIB
    assert sharded.breakdown["weights"] == sharded.breakdown["gradients"] == GIB
    assert sharded.breakdown["activations"] == 4 * GIB
    assert sharded.breakdown["gathered_parameters"] > 0
    assert estimate(summary, rtx_4090, 4).fits == "no"
    assert sharded.fits == "yes"


def test_fsdp_of_a_step_that_peaks_in_the_optimizer_still_counts_its_activations(
    hand_made_summary: Make, rtx_4090: Any
) -> None:
    summary = hand_made_summary(states_bytes=16 * GIB, optimizer_transient_bytes=8 * GIB)
    assert estimate(summary, rtx_4090, 4).peak_phase == "optimizer"
    sharded = estimate(summary, rtx_4090, 4, gpu_count=16, strategy="fsdp")
    assert sharded.peak_phase == "backward"
    assert sharded.breakdown["activations"] == 4 * GIB


@pytest.mark.parametrize(("stage", "gigabytes"), [(0, 120.0), (1, 31.4), (2, 16.6), (3, 1.9)])
def test_c16_zero_stages_match_the_papers_example(stage: int, gigabytes: float) -> None:
    parameters, gpu_count = 7_500_000_000, 64
    states = zero_model_state_bytes(parameters, stage, gpu_count)
    assert round(states / 1e9, 1) == gigabytes
    formula = [16, 4 + 12 / gpu_count, 2 + 14 / gpu_count, 16 / gpu_count][stage] * parameters
    assert states == pytest.approx(formula)


def test_c16_fp32_gradients_are_a_labelled_variant() -> None:
    assert zero_model_state_bytes(10**9, 2, 4, fp32_gradients=True) == pytest.approx(10**9 * (2 + 18 / 4))


@pytest.mark.parametrize(
    ("strategy", "gigabytes"),
    [("ddp", 120.0), ("zero1", 31.4), ("zero2", 16.6), ("zero3", 1.9), ("fsdp", 1.9)],
)
def test_c16_an_estimates_states_are_those_of_the_paper(
    hand_made_summary: Make, rtx_4090: Any, strategy: str, gigabytes: float
) -> None:
    """7.5e9 parameters on 64 GPUs; accumulating, so that gradients are alive wherever the peak is."""
    summary = hand_made_summary(states_bytes=16 * 7_500_000_000, policy="amp")
    result = estimate(
        *(summary, rtx_4090, 1), precision="bf16-amp", gpu_count=64, strategy=strategy, accumulation=2
    )
    assert round(model_states(result.breakdown) / 1e9, 1) == gigabytes
    assert sum(result.breakdown.values()) == result.process_bytes.p50


@given(gpu_count=st.integers(2, 64), micro_batch=st.integers(1, 32), policy=st.sampled_from(("fp32", "amp")))
@in_fixture
def test_each_zero_stage_and_each_gpu_more_keeps_less_of_the_states(
    hand_made_summary: Make, rtx_4090: Any, gpu_count: int, micro_batch: int, policy: str
) -> None:
    summary = hand_made_summary(policy=policy, optimizer_transient_bytes=GIB)
    rest = {"precision": "fp32" if policy == "fp32" else "bf16-amp", "accumulation": 2}

    def states(strategy: str, count: int) -> int:
        result = estimate(summary, rtx_4090, micro_batch, gpu_count=count, strategy=strategy, **rest)
        assert result.breakdown.get("activations", 0) in (0, micro_batch * GIB)
        return model_states(result.breakdown)

    kept = [states(name, gpu_count) for name in ("ddp", "zero1", "zero2", "zero3")]
    assert kept == sorted(kept, reverse=True)
    for strategy in ("zero1", "zero2", "zero3", "fsdp"):
        assert states(strategy, 2 * gpu_count) <= states(strategy, gpu_count)


def test_an_offloaded_optimizer_leaves_weights_and_gradients_on_the_card(
    hand_made_summary: Make, rtx_4090: Any
) -> None:
    summary = hand_made_summary(states_bytes=16 * GIB, optimizer_transient_bytes=2 * GIB)
    kept, moved = (estimate(summary, rtx_4090, 4, offload=offload) for offload in ("none", "optimizer"))
    assert "optimizer_state" not in moved.breakdown
    assert moved.breakdown["weights"] == moved.breakdown["gradients"] == 4 * GIB
    assert moved.host_bytes == kept.breakdown["optimizer_state"] == 8 * GIB
    assert kept.process_bytes.p50 - moved.process_bytes.p50 == pytest.approx(8 * GIB, rel=0.06)
    assert any("8.00 GiB for each process" in line for line in moved.assumptions)


def test_offloaded_parameters_leave_gathered_units_and_activations(
    hand_made_summary: Make, rtx_4090: Any
) -> None:
    summary = hand_made_summary(states_bytes=64 * GIB)
    for gpu_count in (1, 8):
        result = estimate(summary, rtx_4090, 4, gpu_count=gpu_count, strategy="fsdp", offload="parameters")
        assert model_states(result.breakdown) == 0
        assert result.breakdown["activations"] == 4 * GIB
        assert 0 < result.breakdown["gathered_parameters"] < 16 * GIB
        assert result.host_bytes == 64 * GIB // gpu_count
        assert result.fits == "yes"


def test_only_what_is_sharded_can_have_its_parameters_offloaded(
    hand_made_summary: Make, rtx_4090: Any
) -> None:
    with pytest.raises(CannotOffload, match="ddp keeps every weight on the GPU"):
        estimate(hand_made_summary(), rtx_4090, 1, offload="parameters")
    with pytest.raises(CannotOffload, match='no offload "disk"'):
        estimate(hand_made_summary(), rtx_4090, 1, offload="disk")


def test_a_summary_of_another_policy_is_refused(hand_made_summary: Make, rtx_4090: Any) -> None:
    with pytest.raises(WrongSummary, match=r'policy fp32, but precision "bf16-amp" runs under amp'):
        estimate(hand_made_summary(), rtx_4090, 1, precision="bf16-amp")


def test_an_unknown_strategy_names_the_nearest(hand_made_summary: Make, rtx_4090: Any) -> None:
    with pytest.raises(UnknownName, match='Did you mean "fsdp"'):
        estimate(hand_made_summary(), rtx_4090, 1, strategy="fsdp2")


@pytest.mark.parametrize("wrong", [{"micro_batch": 0}, {"gpu_count": 0}, {"accumulation": 0}])
def test_counts_below_one_are_refused(hand_made_summary: Make, rtx_4090: Any, wrong: dict[str, int]) -> None:
    with pytest.raises(ValueError, match="at least 1"):
        estimate(hand_made_summary(), rtx_4090, **{"micro_batch": 1, **wrong})


def test_a_summary_without_memory_points_is_refused(hand_made_summary: Make, rtx_4090: Any) -> None:
    with pytest.raises(BadData, match="no memory points"):
        estimate(replace(hand_made_summary(), memory=()), rtx_4090, 1)


def test_a_summary_without_accumulating_points_adds_the_gradients_and_says_so(
    hand_made_summary: Make, rtx_4090: Any
) -> None:
    summary = hand_made_summary()
    plain = replace(summary, memory=tuple(p for p in summary.memory if not p.accumulating))
    bound = estimate(plain, rtx_4090, 4, accumulation=2)
    assert bound.allocated_bytes.p50 - estimate(plain, rtx_4090, 4).allocated_bytes.p50 == GIB
    assert any("upper bound" in line for line in bound.assumptions)


def test_fsdp_gathers_less_at_a_time_the_more_layers_there_are(
    hand_made_summary: Make, rtx_4090: Any
) -> None:
    def gathered(layers: int) -> int:
        work = ClassWork("attention_fused", "forward", Affine(0, 1), Affine(0, 1), layers)
        summary = replace(hand_made_summary(), work=(work,))
        result = estimate(summary, rtx_4090, 4, gpu_count=8, strategy="fsdp")
        return result.breakdown["gathered_parameters"]

    assert gathered(80) < gathered(32) < gathered(12)


def test_the_p50_search_allows_at_least_what_the_p95_search_does(
    hand_made_summary: Make, rtx_4090: Any
) -> None:
    summary = hand_made_summary(bytes_per_sample=GIB // 8)
    central = max_micro_batch(summary, rtx_4090, precision="fp32", quantile="p50")
    safe = max_micro_batch(summary, rtx_4090, precision="fp32")
    assert 0 < safe < central
    assert estimate(summary, rtx_4090, central).fits == "too_close"


def test_between_grid_points_a_replay_allocates_hardly_more_than_the_chord() -> None:
    """On shipped traces: unsplit blocks go with alignment, which powers of two have and 3 or 100 do not."""
    from planner.models.allocator import replay
    from planner.models.workloads import store
    from planner.models.workloads.zoo import workload

    bert = workload("bert-base")
    variant = store.shipped_variants(bert)[0]
    summary, trace = store.summary(bert, variant), store.trace(bert, variant)
    for batch in (3, 7, 12, 24, 100, 300):
        chord = peak_at(summary, batch, accumulating=False)
        replayed = replay(trace, batch)
        assert chord.allocated_p50 >= 0.98 * replayed.allocated_peak_bytes
        assert chord.reserved_p50 >= 0.94 * replayed.reserved_peak_bytes
    for point in summary.memory[:6]:
        assert replay(trace, point.batch).allocated_peak_bytes == point.allocated_bytes

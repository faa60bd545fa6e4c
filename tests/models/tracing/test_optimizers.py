"""What each optimizer keeps, what it needs for a moment, and how many kernels it launches."""

from __future__ import annotations

from typing import Any

import pytest

from planner.models.tracing.optimizers import OPTIMIZERS
from planner.models.tracing.step_trace import StepTrace, TraceVariant
from planner.models.tracing.tracer import trace_task

torch = pytest.importorskip("torch")

LAYERS = 8
PARAMETERS = LAYERS * (64 * 64 + 64)


def _traced(lab: Any, optimizer: str) -> StepTrace:
    def build() -> Any:
        return torch.nn.Sequential(*(torch.nn.Linear(64, 64) for _ in range(LAYERS)))

    return trace_task(lab.module_task(build, (64,)), TraceVariant("fp32", "none", optimizer=optimizer))


def _bytes(trace: StepTrace, category: str) -> float:
    return sum(storage.bytes.at(1) for storage in trace.storages if storage.category == category)


@pytest.mark.parametrize(
    ("optimizer", "bytes_per_parameter"),
    [
        ("adamw-foreach", 8),
        ("adamw-loop", 8),
        ("adam-foreach", 8),
        ("sgd-foreach", 0),
        ("sgd-momentum-foreach", 4),
        ("lamb-fused", 8),
        ("none", 0),
    ],
)
def test_state_is_so_many_bytes_a_parameter(lab: Any, optimizer: str, bytes_per_parameter: int) -> None:
    assert _bytes(_traced(lab, optimizer), "optimizer_state") == bytes_per_parameter * PARAMETERS


def test_fused_adamw_keeps_its_step_counters_on_the_card(lab: Any) -> None:
    counters = 4 * 2 * LAYERS  # one float for each parameter tensor
    assert _bytes(_traced(lab, "adamw-fused"), "optimizer_state") == 8 * PARAMETERS + counters


@pytest.mark.parametrize(
    ("optimizer", "bytes_per_weight"),
    [
        ("adamw-8bit", 2 + 2 * 4 / 2048),
        ("adamw-paged-8bit", 2 * 4 / 2048),  # the scales stay on the card
        ("adamw-paged-32bit", 0),
    ],
)
def test_paged_moments_of_large_tensors_are_not_on_the_card(
    lab: Any, optimizer: str, bytes_per_weight: float
) -> None:
    """bitsandbytes: managed memory from 100,000 values on; the bias is small and keeps fp32 moments."""
    weights, bias = 512 * 512, 512
    variant = TraceVariant("fp32", "none", optimizer=optimizer)
    trace = trace_task(lab.module_task(lambda: torch.nn.Linear(512, 512), (512,)), variant)
    assert _bytes(trace, "optimizer_state") == bytes_per_weight * weights + 8 * bias


def test_only_foreach_needs_a_second_copy_of_the_parameters_for_a_moment(lab: Any) -> None:
    def peak(optimizer: str) -> int:
        peak_bytes: int = lab.allocated_peak(_traced(lab, optimizer), 1)
        return peak_bytes

    assert _bytes(_traced(lab, "adamw-foreach"), "optimizer_transient") >= 4 * PARAMETERS
    assert peak("adamw-foreach") > peak("adamw-loop") > peak("adamw-fused")


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
def test_every_optimizer_traces_and_its_work_is_in_its_own_class(lab: Any, optimizer: str) -> None:
    rows = [row for row in _traced(lab, optimizer).ops if row.phase == "optimizer"]
    assert bool(rows) == (optimizer != "none")
    assert {row.op_class for row in rows} <= {"optimizer"}
    if optimizer != "adafactor":  # multiplies its row and column factors
        assert all(row.flops.at(1) == 0 for row in rows)


def test_the_loop_launches_a_kernel_per_tensor_and_fused_one_for_all(lab: Any) -> None:
    def launches(optimizer: str) -> int:
        return sum(row.count for row in _traced(lab, optimizer).ops if row.phase == "optimizer")

    assert launches("adamw-loop") > launches("adamw-foreach") > launches("adamw-fused")


def test_fused_adamw_moves_weights_gradients_and_moments_once(lab: Any) -> None:
    rows = [row for row in _traced(lab, "adamw-fused").ops if "_fused_adamw_" in row.op]
    moved = sum(row.bytes_read.at(1) + row.bytes_written.at(1) for row in rows)
    assert moved == pytest.approx((16 + 12) * PARAMETERS, rel=0.2)

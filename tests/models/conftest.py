"""Hand-made cards and summaries whose memory can be added up in the head."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import pytest

from planner.models.tracing.step_trace import PrecisionPolicy, TraceVariant
from planner.models.tracing.summary import MemoryPoint, StepSummary

GIB = 2**30
MIB = 2**20


@dataclass(frozen=True)
class Card:
    """As much of a Gpu as memory asks for; an RTX 4090 unless told otherwise."""

    id: str = "rtx-4090-24gb"
    architecture: str = "Ada"
    memory_bytes: int = 24 * GIB
    memory_total_bytes: int | None = 24564 * MIB
    torch_total_bytes: int | None = int(23.65 * GIB)


def make_summary(
    *,
    states_bytes: int = 4 * GIB,
    bytes_per_sample: int = GIB,
    batches: tuple[int, ...] = (1, 2, 4, 8, 16, 32),
    slack: float = 0.05,
    variant: TraceVariant | None = None,
    policy: PrecisionPolicy = "fp32",
    optimizer_transient_bytes: int = 0,
) -> StepSummary:
    """Weights, gradients and two moments share `states_bytes`; activations are proportional to the batch."""
    quarter = states_bytes // 4
    points = []
    for accumulating in (False, True):
        for batch in batches:
            activations = batch * bytes_per_sample
            in_backward = activations >= optimizer_transient_bytes
            parts = {
                "weights": quarter,
                "gradients": quarter,
                "optimizer_state": states_bytes - 2 * quarter,
                "activations" if in_backward else "optimizer_transient": max(
                    activations, optimizer_transient_bytes
                ),
            }
            if accumulating:
                parts["temporaries"] = 64 * MIB
            total = sum(parts.values())
            points.append(
                MemoryPoint(
                    batch=batch,
                    accumulating=accumulating,
                    allocated_bytes=total,
                    reserved_bytes=int(total * (1 + slack)),
                    breakdown=parts,
                    phase="backward" if in_backward else "optimizer",
                    op="aten::mm",
                )
            )
    return StepSummary(
        workload="hand-made",
        variant=variant or TraceVariant(precision_policy=policy),
        parameters=quarter // 4,
        trainable_parameters=quarter // 4,
        gradient_bytes=quarter,
        work=(),
        memory=tuple(points),
        trace_hash="0" * 64,
        rewrites=(),
        notes=(),
    )


@pytest.fixture
def make_card() -> Callable[..., Card]:
    return Card


@pytest.fixture
def rtx_4090() -> Card:
    return Card()


@pytest.fixture
def hand_made_summary() -> Callable[..., StepSummary]:
    return make_summary

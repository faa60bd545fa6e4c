"""Hand-made steps whose work can be added up in the head."""

from __future__ import annotations

from planner.models.tracing.step_trace import ZERO, Affine, TraceVariant
from planner.models.tracing.summary import ClassWork, StepSummary


def step(*work: ClassWork, parameters: int = 100_000_000, workload: str = "made-up") -> StepSummary:
    """A summary of that work; gradients in fp32."""
    return StepSummary(
        workload, TraceVariant(), parameters, parameters, 4 * parameters, work, (), "none", (), ()
    )


def matmul_step(flops_per_sample: float = 1e13) -> StepSummary:
    """Products so large that nothing else counts."""
    return step(
        ClassWork("gemm", "forward", Affine(0, flops_per_sample), ZERO, 10),
        ClassWork("gemm", "backward", Affine(0, 2 * flops_per_sample), ZERO, 20),
    )


def transformer_step(
    tokens: int = 384, width: int = 768, layers: int = 12, parameters: int = 110_000_000
) -> StepSummary:
    """About a BERT: products, fused attention, norms, elementwise, an AdamW update."""
    gemm, map_flops = 24.0 * tokens * width**2 * layers, 4.0 * tokens**2 * width * layers
    moved = 2.0 * tokens * width * layers
    return step(
        ClassWork("gemm", "forward", Affine(0, gemm), Affine(2.0 * parameters, 20 * moved), 6 * layers),
        ClassWork("gemm", "backward", Affine(0, 2 * gemm), Affine(4.0 * parameters, 40 * moved), 12 * layers),
        ClassWork("attention_fused", "forward", Affine(0, map_flops), Affine(0, 4 * moved), layers),
        ClassWork("attention_fused", "backward", Affine(0, 2.5 * map_flops), Affine(0, 8 * moved), layers),
        ClassWork("norm", "forward", ZERO, Affine(0, 4 * moved), 2 * layers),
        ClassWork("elementwise", "forward", ZERO, Affine(6.0 * parameters, 30 * moved), 10 * layers),
        ClassWork("elementwise", "backward", ZERO, Affine(0, 30 * moved), 10 * layers),
        ClassWork("optimizer", "optimizer", ZERO, Affine(28.0 * parameters, 0), 10),
        parameters=parameters,
    )

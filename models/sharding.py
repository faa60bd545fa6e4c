"""What more than one GPU adds to, and takes from, each process: DDP's buckets, ZeRO's shards.

ZeRO: Rajbhandari et al., "ZeRO: Memory Optimizations Toward Training Trillion Parameter Models",
arXiv 1910.02054, figure 1. FSDP's full shard is ZeRO stage 3.
"""

from __future__ import annotations

from dataclasses import replace

from . import memory_terms
from .memory_peak import Peak
from .tracing.summary import MemoryPoint, StepSummary

STRATEGIES = ("ddp", "fsdp")

# Shared out over the GPUs under FSDP; the rest of a breakdown belongs to the samples of one GPU.
STATES = ("weights", "gradients", "optimizer_state", "optimizer_transient")
_PER_SAMPLE = ("activations", "temporaries", "inputs")


def zero_model_state_bytes(
    parameters: int, stage: int, gpu_count: int, *, fp32_gradients: bool = False
) -> float:
    """Weights, gradients and Adam state per GPU in 16-bit mixed precision. [B]

    stage: 0 replicates all; 1 shards the optimizer's 12 B per parameter (fp32 weights and two moments);
        2 the gradients as well; 3 the 16-bit weights too.
    fp32_gradients: stage 2 as DeepSpeed's own estimator counts it: gradients held in 4 B on top, sharded.

    Leaves out activations, gather buffers and fragmentation: states are not the whole.

    >>> [round(zero_model_state_bytes(7_500_000_000, stage, 64) / 1e9, 1) for stage in range(4)]
    [120.0, 31.4, 16.6, 1.9]
    """
    if stage not in (0, 1, 2, 3):
        raise ValueError(f"ZeRO stage is 0, 1, 2 or 3, not {stage}")
    if gpu_count < 1:
        raise ValueError(f"gpu_count must be at least 1, not {gpu_count}")
    weights, gradients, optimizer = 2.0, 2.0, 12.0
    if fp32_gradients:
        optimizer += 4.0
    if stage >= 1:
        optimizer /= gpu_count
    if stage >= 2:
        gradients /= gpu_count
    if stage >= 3:
        weights /= gpu_count
    return parameters * (weights + gradients + optimizer)


def shard(
    peak: Peak, summary: StepSummary, micro_batch: int, gpu_count: int, strategy: str, *, accumulating: bool
) -> Peak:
    """`peak` of one GPU's step as each of `gpu_count` processes sees it."""
    if strategy == "fsdp":
        return _fully_sharded(peak, summary, micro_batch, gpu_count, accumulating)
    copies, text = memory_terms.bucket_copies()
    return peak.plus("ddp_buckets", copies * summary.gradient_bytes, text=text)


def _fully_sharded(
    peak: Peak, summary: StepSummary, micro_batch: int, gpu_count: int, accumulating: bool
) -> Peak:
    """The larger of two peaks: in the optimizer, and in backward with units gathered.

    A small batch peaks in the optimizer and so says nothing of its activations; those are scaled down from
    the largest micro-batch of the grid, where they rule.
    """
    rules = memory_terms.sharding()
    weights = peak.parts.get("weights", 0)
    # Units are gathered, and their gradients scattered, in the type of the products: 2 B under autocast,
    # as FSDP's MixedPrecision does; so no low-precision copies outlive their unit.
    gathered_weights = weights / 2 if summary.variant.precision_policy == "amp" else weights
    units = rules.gathered_units + 1  # and one unit's whole gradient
    usual, large = _unit_shares(summary, rules)
    gathered = int(gathered_weights * min(1.0, units * usual))
    wider = int(gathered_weights * min(1.0, units * large))
    kept = {name: -(-size // gpu_count) if name in STATES else size for name, size in peak.parts.items()}
    kept.pop("low_precision_copies", None)
    backward = {name: size for name, size in kept.items() if name != "optimizer_transient"}
    backward["gradients"] = -(-summary.gradient_bytes // gpu_count)
    for name, size in _activations(summary, micro_batch, accumulating).items():
        backward[name] = max(size, kept.get(name, 0))
    backward["gathered_parameters"] = gathered
    in_backward = sum(backward.values()) >= sum(kept.values())
    parts = backward if in_backward else kept
    allocated = sum(parts.values())
    slack = (peak.reserved_p50 - peak.allocated_p50) / peak.allocated_p50
    return replace(
        peak,
        allocated_p50=allocated,
        allocated_p95=max(allocated, sum(backward.values()) - gathered + wider),
        reserved_p50=int(allocated * (1 + slack)),
        parts=parts,
        phase="backward" if in_backward else peak.phase,
        texts=(*peak.texts, rules.text),
    )


def _unit_shares(summary: StepSummary, rules: memory_terms.Sharding) -> tuple[float, float]:
    """Share of the weights in the largest wrapped unit, P50 and P95; layers counted by their attention."""
    layers = 0
    for work in summary.work:
        if work.phase == "forward" and work.op_class == "attention_fused":
            layers += work.launches
        elif work.phase == "forward" and work.op_class == "attention_unfused":
            layers += work.launches // 2  # two batched products around each score matrix
    if not layers:
        return rules.unit_fraction_p50, rules.unit_fraction_p95
    return (
        min(rules.unit_layers_p50 / layers, rules.unit_fraction_p95),
        min(rules.unit_layers_p95 / layers, 2 * rules.unit_fraction_p95),
    )


def _activations(summary: StepSummary, micro_batch: int, accumulating: bool) -> dict[str, int]:
    points = [point for point in summary.memory if point.accumulating is accumulating] or list(summary.memory)
    largest: MemoryPoint = max(points, key=lambda point: point.batch)
    return {
        name: int(largest.breakdown[name] * micro_batch / largest.batch)
        for name in _PER_SAMPLE
        if name in largest.breakdown
    }

"""What several GPUs, or the host's memory, add to and take from a process: buckets, shards, offload.

ZeRO: Rajbhandari et al., "ZeRO: Memory Optimizations Toward Training Trillion Parameter Models",
arXiv 1910.02054, figure 1; offload: Ren et al., arXiv 2101.06840. FSDP's full shard is ZeRO stage 3.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal

from . import memory_terms, strategies
from .errors import ModelsError
from .memory_peak import Peak
from .tracing.summary import MemoryPoint, StepSummary

Offload = Literal["none", "optimizer", "parameters"]
OFFLOADS: tuple[Offload, ...] = ("none", "optimizer", "parameters")

# What strategies share out over the GPUs; the rest of a breakdown belongs to the samples of one GPU.
STATES = ("weights", "gradients", "optimizer_state", "optimizer_transient")
_PER_SAMPLE = ("activations", "temporaries", "inputs")


class CannotOffload(ModelsError):
    """An offload that the strategy does not have."""


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


def check_offload(offload: str, strategy: str) -> None:
    """Raises CannotOffload for an unknown kind, or parameters of a strategy that keeps them whole."""
    if offload not in OFFLOADS:
        raise CannotOffload(f'no offload "{offload}"; it is {", ".join(OFFLOADS)}')
    if offload == "parameters" and strategies.strategy(strategy).zero_stage < 3:
        raise CannotOffload(
            f"{strategy} keeps every weight on the GPU: parameters go to the host under fsdp or zero3 only; "
            'offload "optimizer" works with every strategy'
        )


def shard(
    peak: Peak,
    summary: StepSummary,
    micro_batch: int,
    gpu_count: int,
    strategy: str,
    *,
    accumulating: bool,
    offload: Offload = "none",
) -> Peak:
    """`peak` of one GPU's step as each of `gpu_count` processes sees it.

    The larger of two peaks: in backward, and in the optimizer. A small batch peaks in the optimizer and so
    says nothing of its activations; those are scaled down from the largest micro-batch of the grid.
    """
    stage = strategies.strategy(strategy).zero_stage
    if stage == 0 and offload == "none":
        return _with_buckets(peak, summary, gpu_count)
    held = _states(summary, strategy, gpu_count, offload)
    rest = {name: size for name, size in peak.parts.items() if name not in STATES}
    if stage >= 1 and (stage == 3 or held.in_half):
        rest.pop("low_precision_copies", None)
    largest = _largest(summary, accumulating)
    for name in _PER_SAMPLE:
        scaled = int(largest.breakdown.get(name, 0) * micro_batch / largest.batch)
        if scaled or name in rest:
            rest[name] = max(scaled, rest.get(name, 0))
    buffers, wider, texts = _buffers(summary, strategy, gpu_count, offload)
    backward = {
        **rest,
        "weights": held.weights,
        "gradients": held.gradients_in_backward(peak, largest, whole=stage < 2, accumulating=accumulating),
        "optimizer_state": held.optimizer_state,
        **buffers,
    }
    # Nothing of the samples is alive when the optimizer runs but the inputs.
    update = {
        **{name: size for name, size in rest.items() if name not in ("activations", "temporaries")},
        "weights": held.weights,
        "gradients": held.gradients,
        "optimizer_state": held.optimizer_state,
        "optimizer_transient": held.optimizer_transient,
    }
    in_backward = sum(backward.values()) >= sum(update.values())
    parts = {name: size for name, size in (backward if in_backward else update).items() if size}
    allocated = sum(parts.values())
    slack = (peak.reserved_p50 - peak.allocated_p50) / peak.allocated_p50
    made = replace(
        peak,
        allocated_p50=allocated,
        allocated_p95=max(allocated, sum(backward.values()) + wider),
        reserved_p50=int(allocated * (1 + slack)),
        parts=parts,
        phase="backward" if in_backward else "optimizer",
        op=_op(peak, largest, summary, in_backward),
        texts=(*peak.texts, *texts, *held.texts),
        host_bytes=held.host_bytes,
    )
    return _with_buckets(made, summary, gpu_count) if stage == 0 else made


def _op(peak: Peak, largest: MemoryPoint, summary: StepSummary, in_backward: bool) -> str:
    """Where the peak lies, which need not be where it lay on one GPU."""
    if in_backward:
        return largest.op if peak.phase == "optimizer" else peak.op
    seen = (point.op for point in summary.memory if point.phase == "optimizer")
    return next(seen, "optimizer step")


@dataclass(frozen=True, slots=True)
class _States:
    """What each process keeps of the states, and what the host keeps for it. [B]"""

    weights: int
    gradients: int
    optimizer_state: int
    optimizer_transient: int
    host_bytes: int
    in_half: bool
    texts: tuple[str, ...]

    def gradients_in_backward(
        self, peak: Peak, largest: MemoryPoint, *, whole: bool, accumulating: bool
    ) -> int:
        """A shard counts in full; unsharded ones as far as they are made when activations peak."""
        if not whole or accumulating:
            return self.gradients
        seen = peak.parts if peak.phase != "optimizer" else largest.breakdown
        made = seen.get("gradients", 0) // (2 if self.in_half else 1)
        return min(self.gradients, made)


def _states(summary: StepSummary, strategy: str, gpu_count: int, offload: Offload) -> _States:
    stage = strategies.strategy(strategy).zero_stage
    whole = {name: max((p.breakdown.get(name, 0) for p in summary.memory), default=0) for name in STATES}
    weights, gradients = whole["weights"], summary.gradient_bytes
    state, transient = whole["optimizer_state"], whole["optimizer_transient"]
    texts = []
    in_half = strategy.startswith("zero") and summary.variant.precision_policy == "amp"
    if in_half:
        # DeepSpeed trains a 16-bit model; its fp32 weights are the optimizer's and shared out with it.
        weights, gradients = weights // 2, gradients // 2
        state += 4 * summary.trainable_parameters
        texts.append(
            "ZeRO keeps weights and gradients in 16 bits and fp32 master weights with the optimizer "
            "(arXiv 1910.02054)"
        )
    if stage >= 1:
        state, transient = -(-state // gpu_count), -(-transient // gpu_count)
    if stage >= 2:
        gradients = -(-gradients // gpu_count)
    if stage >= 3:
        weights = -(-weights // gpu_count)
    host = 0
    if offload != "none":
        host, state, transient = state, 0, 0
        if stage >= 2:  # each reduced bucket goes to the host at once
            host, gradients = host + gradients, 0
        if offload == "parameters":
            host, weights = host + weights, 0
        moved = "optimizer state" if offload == "optimizer" else "weights, gradients and optimizer state"
        texts.append(f"{moved} lie in the host's memory: {host / 2**30:.2f} GiB for each process")
    return _States(weights, gradients, state, transient, host, in_half, tuple(texts))


def _buffers(
    summary: StepSummary, strategy: str, gpu_count: int, offload: Offload
) -> tuple[dict[str, int], int, tuple[str, ...]]:
    """Communication buffers alive in backward, what P95 adds to them [B], and what was assumed."""
    stage = strategies.strategy(strategy).zero_stage
    if stage == 0 or (gpu_count == 1 and offload == "none"):
        return {}, 0, ()
    if stage < 3:
        bucket, text = memory_terms.zero_bucket_bytes(summary.trainable_parameters)
        return {"zero_buckets": bucket}, 0, (text,)
    rules = memory_terms.sharding()
    weights = max((p.breakdown.get("weights", 0) for p in summary.memory), default=0)
    # Units are gathered, and their gradients scattered, in the type of the products: 2 B under autocast,
    # as FSDP's MixedPrecision does; so no low-precision copies outlive their unit.
    gathered_weights = weights / 2 if summary.variant.precision_policy == "amp" else weights
    units = rules.gathered_units + 1  # and one unit's whole gradient
    usual, large = _unit_shares(summary, rules)
    gathered = int(gathered_weights * min(1.0, units * usual))
    wider = int(gathered_weights * min(1.0, units * large))
    return {"gathered_parameters": gathered}, wider - gathered, (rules.text,)


def _with_buckets(peak: Peak, summary: StepSummary, gpu_count: int) -> Peak:
    if gpu_count == 1:
        return peak
    copies, text = memory_terms.bucket_copies()
    return peak.plus("ddp_buckets", copies * summary.gradient_bytes, text=text)


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


def _largest(summary: StepSummary, accumulating: bool) -> MemoryPoint:
    """The point of the grid where activations rule."""
    points = [point for point in summary.memory if point.accumulating is accumulating] or list(summary.memory)
    return max(points, key=lambda point: point.batch)


def model_states(breakdown: Mapping[str, int]) -> int:
    """Weights, gradients and optimizer state of a breakdown, as ZeRO's tables count them. [B]"""
    return sum(breakdown.get(name, 0) for name in ("weights", "gradients", "optimizer_state"))

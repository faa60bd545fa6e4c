"""Memory of one tensor-parallel rank: what t GPUs share of a replica, and what each keeps whole.

Matrices, their gradients, moments and logits are cut into t parts. Of a block's activations the inputs of
norms and the residual stream stay whole on every rank, without sequence parallelism: 10 of 34 bytes a value
in GPT with dropout (Korthikanti et al., arXiv 2205.05198, section 4); 36 % in a Llama in 16 bits, 45 % under
autocast and 28 % in fp32, by traces of what one rank of it runs. Under activation checkpointing what is kept,
the blocks' inputs, is whole on every rank.
"""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache

from .model_parallel import Blocks, CannotSplit, Split
from .tracing.step_trace import PrecisionPolicy
from .tracing.summary import MemoryPoint, StepSummary

# Share of the activations of all blocks that every rank keeps whole, by policy.
WHOLE_SHARE: dict[PrecisionPolicy, float] = {"half": 0.36, "amp": 0.45, "fp32": 0.28}
# Under activation checkpointing one block is alive at a time, recomputed: bytes for each value of the
# residual stream that its backward needs whole, and that t ranks share. Of traces of Llama-2-7B's ranks.
BLOCK_BYTES: dict[PrecisionPolicy, tuple[int, int]] = {"half": (30, 29), "amp": (32, 31), "fp32": (28, 72)}
_STREAM_BYTES: dict[PrecisionPolicy, int] = {"half": 2, "amp": 4, "fp32": 4}
# Residual-stream tensors of four bytes alive in a norm's backward, which no rank is spared.
WHOLE_TEMPORARIES = 5
# What the rule above misses of traced ranks, two to eight of them: up to 6 %.
P95_SPLIT = 1.08

_SHARED = ("weights", "gradients", "optimizer_state", "optimizer_transient", "low_precision_copies")
TEXT = (
    "tensor parallel {t}: matrices and logits shared, norms and the residual stream whole on each rank "
    "(arXiv 2205.05198, no sequence parallelism)"
)


def rank_summary(summary: StepSummary, split: Split) -> StepSummary:
    """`summary` as one of `split.tensor` ranks of a replica sees it.

    split: checked. Raises CannotSplit for pipeline stages and adapters, which are not estimated.
    """
    if split.tensor == 1 and split.pipeline == 1:
        return summary
    if split.pipeline > 1:
        raise CannotSplit(
            "the memory of pipeline stages is not estimated; use tensor_parallel, fsdp or zero3"
        )
    if summary.variant.adapter:
        raise CannotSplit("the memory of adapters under tensor parallelism is not estimated; use ddp or fsdp")
    assert split.blocks is not None  # Split.checked refuses what has none
    return _rank_summary(_ById(summary), split.tensor, split.blocks)


class _ById:
    """Hashes a large frozen value by identity, and keeps it alive while it is a key."""

    __slots__ = ("value",)

    def __init__(self, value: StepSummary) -> None:
        self.value = value

    def __hash__(self) -> int:
        return id(self.value)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _ById) and self.value is other.value


@lru_cache(maxsize=64)
def _rank_summary(key: _ById, ranks: int, blocks: Blocks) -> StepSummary:
    summary = key.value
    return replace(
        summary,
        parameters=-(-summary.parameters // ranks),
        trainable_parameters=-(-summary.trainable_parameters // ranks),
        gradient_bytes=-(-summary.gradient_bytes // ranks),
        memory=tuple(_point(summary, point, ranks, blocks) for point in summary.memory),
        rewrites=(*summary.rewrites, TEXT.format(t=ranks)),
    )


def _point(summary: StepSummary, point: MemoryPoint, ranks: int, blocks: Blocks) -> MemoryPoint:
    found = _parts(summary, point, point.batch, ranks, blocks)
    phase, op = point.phase, point.op
    if phase == "optimizer":
        # The states shrink more than the activations do, so the peak may move into backward.
        same = [other for other in summary.memory if other.accumulating is point.accumulating]
        largest = max(same, key=lambda other: other.batch)
        backward = _parts(summary, largest, point.batch, ranks, blocks)
        if sum(backward.values()) > sum(found.values()):
            found, phase, op = backward, largest.phase, largest.op
    if summary.variant.activation_checkpointing:
        in_block = _in_a_block(summary, point.batch, ranks, blocks)
        if sum(in_block.values()) > sum(found.values()):
            found, phase, op = in_block, "backward", "a recomputed block"
    allocated = sum(found.values())
    slack = (point.reserved_bytes - point.allocated_bytes) / point.allocated_bytes
    return replace(
        point,
        allocated_bytes=allocated,
        reserved_bytes=int(allocated * (1 + slack)),
        breakdown=found,
        phase=phase,
        op=op,
    )


def _in_a_block(summary: StepSummary, batch: int, ranks: int, blocks: Blocks) -> dict[str, int]:
    """The breakdown while the backward of a recomputed block runs, the peak where logits are shared. [B]

    It is the first to run back: its own gradient is made, and the inputs of all blocks are still kept.
    """
    policy = summary.variant.precision_policy
    stream = blocks.tokens * blocks.width * batch
    whole, shared = BLOCK_BYTES[policy]
    found = {
        name: max(point.breakdown.get(name, 0) for point in summary.memory) // ranks
        for name in ("weights", "optimizer_state", "low_precision_copies")
    }
    found["gradients"] = summary.gradient_bytes // ranks // blocks.layers
    found["activations"] = blocks.layers * _STREAM_BYTES[policy] * stream
    found["temporaries"] = int(stream * (whole + shared / ranks))
    return {name: size for name, size in found.items() if size}


def _parts(
    summary: StepSummary, point: MemoryPoint, batch: int, ranks: int, blocks: Blocks
) -> dict[str, int]:
    """The breakdown of `point`, its samples scaled to `batch`, on one rank. [B]"""
    policy = summary.variant.precision_policy
    scale = batch / point.batch
    stream = blocks.tokens * blocks.width * batch  # values of the residual stream
    found = {name: -(-point.breakdown[name] // ranks) for name in _SHARED if name in point.breakdown}
    for name in ("allocation_rounding", "inputs"):
        if name in point.breakdown:
            found[name] = int(point.breakdown[name] * scale)
    activations = int(point.breakdown.get("activations", 0) * scale)
    logits = 4 * (blocks.vocabulary or 0) * blocks.tokens * batch if blocks.predicts_tokens else 0
    logits = min(logits, activations)
    rest = activations - logits
    whole = 1.0 if summary.variant.activation_checkpointing else WHOLE_SHARE[policy]
    if activations:
        found["activations"] = int(rest * (whole + (1 - whole) / ranks)) + logits // ranks
    temporaries = int(point.breakdown.get("temporaries", 0) * scale)
    if temporaries:
        found["temporaries"] = max(temporaries // ranks, min(temporaries, WHOLE_TEMPORARIES * 4 * stream))
    return found

"""What one aten call costs: its class, FLOPs, bytes read and written. Pure functions of shapes.

A FLOP is one multiply or one add: a multiply-add counts 2. Bytes are what a CUDA kernel must move once:
expanded (stride 0) dimensions count once, views nothing, a gather only the rows it touches. Causal
attention counts the full square, and says so in its rule ("… causal"): about half of it is executed.

Rules are checked against torch.utils.flop_counter where that is right; it is not for the backward of grouped
convolutions, over-counted (1 + groups) / 2 times, and for fused attention on CPU, counted 0 (torch 2.13.0).
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any, NamedTuple

from ..errors import BadConfig
from . import op_tables as tables

Shape = tuple[int, ...]


class Operand(NamedTuple):
    """A tensor as a kernel sees it. bytes: its memory, expanded dimensions once. [B]"""

    shape: Shape
    bytes: int


class Call(NamedTuple):
    """One aten call. `arguments` are the non-tensor positional arguments, None where a tensor stood."""

    op: str
    inputs: Sequence[Operand]
    outputs: Sequence[Operand]
    mutated: Sequence[Operand]
    arguments: Sequence[Any]


class Cost(NamedTuple):
    """flops [FLOP], bytes [B], kernel launches, and the rule that said so."""

    flops: int
    bytes_read: int
    bytes_written: int
    launches: int
    rule: str


def base_name(op: str) -> str:
    """`_foreach_add_` -> `add`: the name rules are filed under. `__or__`-like names keep theirs."""
    name = op.removeprefix("_foreach_")
    return name[:-1] if name.endswith("_") and not name.endswith("__") else name


def op_class(op: str, call: Call) -> str:
    """The class of an op by name and shapes; score matrices are found later (`touches_map`)."""
    name = base_name(op)
    if name in tables.GEMM:
        return "gemm"
    if name in tables.FUSED_ATTENTION:
        return "attention_fused"
    if name in tables.CONVOLUTION:
        return convolution_class(call)
    if name in tables.BATCH_NORM:
        return "batch_norm"
    if name in tables.NORM:
        return "norm"
    if name in tables.EMBEDDING:
        return "embedding"
    return "elementwise"


def convolution_class(call: Call) -> str:
    """Kernel 1 is a matmul; few input channels starve tensor cores; groups starve everything."""
    weight = _weight(call)
    if _groups(call) > 1:
        return "conv_grouped"
    if weight[1] <= 4 and not _transposed(call):
        return "conv_stem"
    return "conv_1x1" if prod(weight[2:]) == 1 else "conv"


def cost(call: Call) -> Cost:
    """FLOPs and bytes of one call. Raises BadConfig for a FLOP-bearing op that would count nothing."""
    name = base_name(call.op)
    flops, rule = _flops(name, call)
    read, written, byte_rule = _bytes(name, call)
    launches = _launches(call) if call.op.startswith("_foreach_") else 1
    return Cost(flops, read, written, launches, rule or byte_rule)


def _flops(name: str, call: Call) -> tuple[int, str]:
    if name in tables.GEMM:
        flops, rule = gemm_flops(name, call), name
    elif name in tables.CONVOLUTION:
        flops, rule = convolution_flops(call), name
    elif name in tables.FUSED_ATTENTION:
        flops, rule = attention_flops(call)
    else:
        return 0, ""
    if flops <= 0 and all(prod(operand.shape) for operand in call.inputs):
        shapes = ", ".join(str(operand.shape) for operand in call.inputs)
        raise BadConfig(
            f"aten::{call.op} on {shapes} counts no FLOPs; models/tracing/op_rules.py lacks its rule"
        )
    return flops, rule


def gemm_flops(name: str, call: Call) -> int:
    """2 m n k, times the batch. `addmm` and kin: the bias comes first and is not counted."""
    a, b = (call.inputs[1], call.inputs[2]) if name.startswith(("add", "badd", "_addmm")) else call.inputs[:2]
    if name == "_grouped_mm":
        # Every row of the ragged operand meets one group's matrix: (T, K) x (E, K, N), or K ragged in both.
        return 2 * prod(a.shape) * b.shape[-1]
    if name in ("mv", "addmv", "dot"):
        return 2 * prod(a.shape)
    return 2 * prod(a.shape) * b.shape[-1]


def convolution_flops(call: Call) -> int:
    """2 x kernel x input channels per group, for each output element; each gradient costs as much again."""
    backward = "backward" in call.op
    weight = _weight(call)
    if _transposed(call):
        positions = call.inputs[1 if backward else 0].shape  # every input element meets the kernel once
        forward = 2 * prod(positions) * prod(weight[1:])
    else:
        positions = call.inputs[0].shape if backward else call.outputs[0].shape
        forward = 2 * prod(positions) * prod(weight[1:])
    if not backward:
        return forward
    input_needed, weight_needed, _ = call.arguments[-1]
    return forward * (int(input_needed) + int(weight_needed))


def attention_flops(call: Call) -> tuple[int, str]:
    """Forward: two products over (queries x keys); backward: five, for it recomputes the scores."""
    backward = "backward" in call.op
    query, key, value = (operand.shape for operand in call.inputs[int(backward) : int(backward) + 3])
    pairs = prod(query[:-1]) * key[-2]  # batch x heads x queries x keys
    head, value_head = query[-1], value[-1]
    # Forward QK', PV. Backward: QK' again, dQ, dK over the head; dP, dV over the value head.
    flops = 2 * pairs * ((3 * head + 2 * value_head) if backward else (head + value_head))
    causal = any(argument is True for argument in _causal_slot(call))
    return flops, "fused attention, causal" if causal else "fused attention"


def _causal_slot(call: Call) -> Sequence[Any]:
    """The is_causal argument. Its place differs by op; compute_log_sumexp is the other flag nearby."""
    places = {
        "_scaled_dot_product_flash_attention": 4,
        "_scaled_dot_product_efficient_attention": 6,
        "_scaled_dot_product_flash_attention_backward": 11,
        "_scaled_dot_product_efficient_attention_backward": 11,
    }
    place = places.get(call.op)
    return () if place is None else call.arguments[place : place + 1]


def _weight(call: Call) -> Shape:
    return call.inputs[2 if "backward" in call.op else 1].shape


def _transposed(call: Call) -> bool:
    return bool(call.arguments[7 if "backward" in call.op else 6])


def _groups(call: Call) -> int:
    return int(call.arguments[9 if "backward" in call.op else 8])


def _bytes(name: str, call: Call) -> tuple[int, int, str]:
    """(read, written, rule) for any op. In-place: the mutated tensor is read and written."""
    read = sum(operand.bytes for operand in call.inputs)
    written = sum(operand.bytes for operand in call.outputs) + sum(operand.bytes for operand in call.mutated)
    if name in tables.WRITE_ONLY:
        return read - sum(operand.bytes for operand in call.mutated), written, "writes only"
    if name in tables.GATHERS and call.inputs:
        rows = written
        return rows + sum(operand.bytes for operand in call.inputs[1:]), written, "rows touched"
    if name in tables.SCATTERS and call.mutated:
        rows = max((operand.bytes for operand in call.inputs[1:]), default=0)
        return read - call.mutated[0].bytes + rows, rows, "rows touched"
    if name == "nll_loss_forward":
        rows = sum(operand.bytes for operand in call.inputs[1:])
        return 2 * rows, written, "rows touched"
    if name == "nll_loss_backward":
        return sum(operand.bytes for operand in call.inputs[2:]), written, "rows touched"
    known = name in tables.ELEMENTWISE or name in tables.NORM or name in tables.BATCH_NORM
    known = known or name in tables.EMBEDDING or call.op.startswith(("_foreach_", "_fused_adam"))
    return read, written, "each tensor once" if known else "default"


def _launches(call: Call) -> int:
    """Kernel launches of a foreach op: lists are cut by tensors and by chunks per launch."""
    tensors = call.mutated or call.outputs
    lists = max(1, round((len(call.inputs) + len(call.outputs)) / max(1, len(tensors))))
    per_launch = tables.FOREACH_TENSORS_PER_LAUNCH[min(lists, len(tables.FOREACH_TENSORS_PER_LAUNCH)) - 1]
    chunks = sum(-(-prod(operand.shape) // tables.FOREACH_CHUNK_ELEMENTS) for operand in tensors)
    return max(1, -(-len(tensors) // per_launch), -(-chunks // tables.FOREACH_CHUNKS_PER_LAUNCH))


def score_map(shape: Shape) -> tuple[int, int, int] | None:
    """(leading, rows, columns) of a tensor that could be a score matrix: at least three dimensions."""
    return (prod(shape[:-2]), shape[-2], shape[-1]) if len(shape) >= 3 else None


def touches_map(shapes: Sequence[Shape], maps: frozenset[tuple[int, int, int]]) -> bool:
    """Whether any of the tensors is one of the materialised score matrices `maps` (or its transpose)."""
    for shape in shapes:
        found = score_map(shape)
        if found and (found in maps or (found[0], found[2], found[1]) in maps):
            return True
    return False

"""Fused attention as torch chooses it here, forward and backward. The unfused form is bmm and softmax."""

from __future__ import annotations

from collections.abc import Iterator

from .operands import torch_name
from .registry import Call, Case, Operands, Target, Work, suite

# (batch, heads, sequence, head size)
SIZES = ((1, 10, 112, 64), (1, 10, 224, 64), (2, 10, 160, 64), (3, 8, 300, 48), (1, 8, 448, 80))
FORWARD, BACKWARD = "_scaled_dot_product_attention", "_scaled_dot_product_attention_backward"


@suite("attention")
def attention(target: Target) -> Iterator[Case]:
    sizes = SIZES[:2] if target.tiny else SIZES
    for dtype in target.dtypes:
        for batch, heads, sequence, head in sizes:
            for causal in (False, True) if target.kind == "cuda" else (False,):
                b = batch * target.scale
                yield attention_case(b, heads, sequence, head, causal, dtype, backward=False)
                yield attention_case(b, heads, sequence, head, causal, dtype, backward=True)


def attention_case(
    batch: int, heads: int, sequence: int, head: int, causal: bool, dtype: str, *, backward: bool
) -> Case:
    """FLOPs and bytes by the tracer's rule: the full square, also where causal."""
    shape = (batch, heads, sequence, head)
    pairs = batch * heads * sequence * sequence
    tensor_bytes = batch * heads * sequence * head * (4 if torch_name(dtype) == "float32" else 2)

    def make(take: Operands) -> Call:
        import torch
        from torch.nn.functional import scaled_dot_product_attention as attend

        query, key, value = (take.floats(*shape) for _ in range(3))
        if not backward:
            return lambda: attend(query, key, value, is_causal=causal)
        leaves = [tensor.detach().requires_grad_() for tensor in (query, key, value)]
        with torch.enable_grad():
            out = attend(leaves[0], leaves[1], leaves[2], is_causal=causal)
        gradient = take.floats(*shape)
        return lambda: torch.autograd.grad(out, leaves, gradient, retain_graph=True)

    name = BACKWARD if backward else FORWARD
    work = Work(
        op=name,
        op_class="attention_fused",
        shapes=(shape, shape, shape),
        flops=2.0 * pairs * head * (5 if backward else 2),
        bytes_read=tensor_bytes * (5 if backward else 3),
        bytes_written=tensor_bytes * (3 if backward else 1),
    )
    form = "x".join(map(str, shape))
    layout = "causal" if causal else "full"
    return Case(f"{name}/{form}/{layout}/{dtype}", "attention", dtype, layout, make, work)

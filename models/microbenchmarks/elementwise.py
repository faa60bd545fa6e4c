"""Elementwise ops, each its own curve in bytes: neither exponential nor transposing copy is an addition."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from .operands import torch_name
from .registry import Call, Case, Operands, Target, suite

if TYPE_CHECKING:
    from torch import Tensor

# Elements at scale 1; the largest is 16 MB, as large as an activation of a small step gets.
SIZES = (4_096, 40_000, 300_000, 1_300_000, 4_200_000)
_SIDE = 64  # last dimension of a transposed copy, as of attention heads


def _unary(name: str) -> Callable[[Operands, int], Call]:
    def make(take: Operands, elements: int) -> Call:
        import torch

        call, x = getattr(torch.ops.aten, name), take.floats(elements)
        return lambda: call(x)

    return make


def _binary(name: str) -> Callable[[Operands, int], Call]:
    def make(take: Operands, elements: int) -> Call:
        import torch

        call, x, y = getattr(torch.ops.aten, name), take.floats(elements), take.floats(elements)
        return lambda: call(x, y)

    return make


def _own(take: Operands, elements: int) -> Tensor:
    """A tensor that may be written: not the pool, which others read."""
    import torch

    return torch.ones(elements, device=take.device, dtype=getattr(torch, torch_name(take.dtype)))


def _add_in_place(take: Operands, elements: int) -> Call:
    x, y = _own(take, elements), take.floats(elements)
    return lambda: x.add_(y)


def _scale(take: Operands, elements: int) -> Call:
    import torch

    x = take.floats(elements)
    return lambda: torch.ops.aten.mul.Tensor(x, 0.125)


def _divide_in_place(take: Operands, elements: int) -> Call:
    x = _own(take, elements)
    return lambda: x.div_(1.0)


def _bernoulli(take: Operands, elements: int) -> Call:
    x = _own(take, elements)
    return lambda: x.bernoulli_(0.9)


def _bernoulli_half(take: Operands, elements: int) -> Call:
    """On a CPU a coin takes twice as long as a rare event: its branch cannot be foreseen (16 and 8 ns)."""
    x = _own(take, elements)
    return lambda: x.bernoulli_(0.5)


def _native_dropout(take: Operands, elements: int) -> Call:
    import torch

    x = take.floats(elements)
    return lambda: torch.ops.aten.native_dropout(x, 0.1, True)


def _transposed(take: Operands, elements: int) -> Call:
    import torch

    rows = max(1, elements // _SIDE // 8)
    x = take.floats(8, rows, _SIDE).transpose(0, 1)
    return lambda: torch.ops.aten.clone(x, memory_format=torch.contiguous_format)


def _power(take: Operands, elements: int) -> Call:
    x = take.floats(elements)
    return lambda: x.pow(3.0)


def _threshold(take: Operands, elements: int) -> Call:
    import torch

    gradient, x = take.floats(elements), take.floats(elements)
    return lambda: torch.ops.aten.threshold_backward(gradient, x, 0)


def _where(take: Operands, elements: int) -> Call:
    import torch

    x, y = take.floats(elements), take.floats(elements)
    chosen = torch.ones(elements, dtype=torch.bool, device=take.device)
    return lambda: torch.where(chosen, x, y)


def _masked_fill(take: Operands, elements: int) -> Call:
    import torch

    x, hidden = take.floats(elements), torch.ones(elements, dtype=torch.bool, device=take.device)
    return lambda: torch.ops.aten.masked_fill(x, hidden, 0.0)


def _fill_zero(take: Operands, elements: int) -> Call:
    x = _own(take, elements)
    return lambda: x.fill_(0.0)


def _cat(take: Operands, elements: int) -> Call:
    import torch

    parts = [take.floats(max(1, elements // 3)) for _ in range(3)]
    return lambda: torch.cat(parts)


def _to_half(take: Operands, elements: int) -> Call:
    import torch

    x = take.floats(elements)
    return lambda: torch.ops.aten._to_copy(x, dtype=torch.bfloat16)


OPS: dict[str, Callable[[Operands, int], Call]] = {
    "add": _binary("add"),
    "add_": _add_in_place,
    "mul": _binary("mul"),
    "mul scalar": _scale,
    "div_": _divide_in_place,
    "bernoulli_": _bernoulli,
    "bernoulli_ half": _bernoulli_half,
    "native_dropout": _native_dropout,
    "clone transposed": _transposed,
    "gelu": _unary("gelu"),
    "gelu_backward": _binary("gelu_backward"),
    "relu": _unary("relu"),
    "threshold_backward": _threshold,
    "tanh": _unary("tanh"),
    "tanh_backward": _binary("tanh_backward"),
    "pow": _power,
    "where": _where,
    "masked_fill": _masked_fill,
    "fill_": _fill_zero,
    "silu": _unary("silu"),
    "cat": _cat,
    "_to_copy": _to_half,
}
# The CPU has no fused dropout kernel.
_CUDA_ONLY = ("native_dropout",)


@suite("elementwise")
def elementwise(target: Target) -> Iterator[Case]:
    for name in OPS:
        if name in _CUDA_ONLY and target.kind != "cuda":
            continue
        for elements in SIZES[::3] if target.tiny else SIZES:
            yield elementwise_case(name, elements * target.scale)


def elementwise_case(name: str, elements: int) -> Case:
    """name: a key of OPS; what follows a space keeps two forms of one aten op apart for people."""
    build = OPS[name]

    def make(take: Operands) -> Call:
        return build(take, elements)

    return Case(f"{name}/{elements}", "elementwise", "float32", name.partition(" ")[2], make)

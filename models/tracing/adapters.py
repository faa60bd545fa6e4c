"""Adapters on a frozen base: which modules they replace and what autograd then saves.

A frozen weight gets no gradient, so its input is not saved for one; the gradient of the input still flows
through it. Quantised weights are unpacked for each product, forward and backward. Imports torch: imported
inside functions only.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from ..errors import BadConfig
from .adapter_spec import AdapterSpec, packed_bytes

_DTYPES = {"fp32": torch.float32, "bf16": torch.bfloat16}
# LoRA's usual dropout; without one the input of A is saved itself, with one its dropped copy and the mask.
DROPOUT = 0.05


class _UnpackedProduct(torch.autograd.Function):
    """x times a packed weight, unpacked on the spot. Source: bitsandbytes autograd, MatMul4Bit."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, packed: Tensor, layer: QuantisedLinear) -> Tensor:
        ctx.layer = layer
        if layer.keeps_input:
            ctx.kept = x if ctx.needs_input_grad[0] else None
        return functional.linear(x, layer.unpacked(x.dtype), layer.bias)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Any, ...]:
        (gradient,) = gradients
        layer: QuantisedLinear = ctx.layer
        return gradient @ layer.unpacked(gradient.dtype), None, None


class QuantisedLinear(nn.Module):
    """A frozen linear layer whose weights are stored packed.

    keeps_input: bitsandbytes before 0.43 holds on to the input although nothing needs it.
    packed_from: the type it had, to which it is unpacked before it is cast; None: that of the product.
    """

    def __init__(
        self,
        inputs: int,
        outputs: int,
        quantisation: str,
        bias: Tensor | None,
        *,
        keeps_input: bool = False,
        packed_from: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        self.in_features, self.out_features = inputs, outputs
        self.packed_parameters = inputs * outputs
        self.keeps_input = keeps_input
        self.packed_from = packed_from
        weights = packed_bytes(inputs * outputs, quantisation)
        scales = 4 * outputs if quantisation == "int8" else 0
        # Bytes as such, so that casting the model leaves them alone.
        self.register_buffer("packed", torch.empty(weights + scales, dtype=torch.uint8, device="meta"))
        self.bias = None if bias is None else nn.Parameter(bias, requires_grad=False)

    def unpacked(self, dtype: torch.dtype) -> Tensor:
        """The weight as the product takes it: a temporary of its full size."""
        shape = (self.out_features, self.in_features)
        packed: Tensor = self.get_buffer("packed")
        return packed.new_zeros(shape, dtype=self.packed_from or dtype).to(dtype)

    def forward(self, x: Tensor) -> Tensor:
        product: Tensor = _UnpackedProduct.apply(x, self.packed, self)  # type: ignore[no-untyped-call]
        return product


class LoraLinear(nn.Module):
    """The frozen layer's output plus B(A(dropout(x))), scaled. Source: peft.tuners.lora.layer.Linear."""

    def __init__(self, base: nn.Module, rank: int, dtype: torch.dtype) -> None:
        super().__init__()
        inputs, outputs = _features(base)
        self.base = base
        self.dropout = nn.Dropout(DROPOUT)
        self.down = nn.Linear(inputs, rank, bias=False, dtype=dtype, device="meta")
        self.up = nn.Linear(rank, outputs, bias=False, dtype=dtype, device="meta")

    def forward(self, x: Tensor) -> Tensor:
        result: Tensor = self.base(x)
        added: Tensor = self.up(self.down(self.dropout(x.to(self.down.weight.dtype)))) * 2.0
        return (result + added).to(result.dtype)


def apply(model: nn.Module, spec: AdapterSpec) -> None:
    """Freeze `model`, pack its linear layers as asked, and put adapters on the targets; in place.

    Raises BadConfig where no layer bears a target's name.
    """
    for parameter in model.parameters():
        parameter.requires_grad_(False)
    if spec.quantisation:
        pack(model, spec.quantisation, _kept_whole(model))
    found = [
        (parent, name)
        for parent, name, child in _children(model)
        if name in spec.targets and _has_features(child)
    ]
    missing = sorted(set(spec.targets) - {name for _, name in found})
    if missing:
        names = sorted({name for _, name, child in _children(model) if _has_features(child)})
        raise BadConfig(
            f"{type(model).__name__} has no linear layer named {', '.join(missing)}; "
            f"it has {', '.join(names)}"
        )
    for parent, name in found:
        setattr(parent, name, LoraLinear(getattr(parent, name), spec.rank, _DTYPES[spec.dtype]))


def pack(
    model: nn.Module,
    quantisation: str,
    kept_whole: frozenset[int] = frozenset(),
    *,
    keeps_input: bool = False,
    packed_from: torch.dtype | None = None,
) -> None:
    """Store every linear layer of `model` packed, but those whose id is in `kept_whole`; in place."""
    for parent, name, child in list(_children(model)):
        if isinstance(child, nn.Linear) and id(child) not in kept_whole:
            bias = None if child.bias is None else child.bias.detach()
            packed = QuantisedLinear(
                child.in_features,
                child.out_features,
                quantisation,
                bias,
                keeps_input=keeps_input,
                packed_from=packed_from,
            )
            setattr(parent, name, packed)


def counted_parameters(model: nn.Module) -> int:
    """All parameters, packed ones as the numbers they stand for. [1]"""
    packed = sum(
        module.packed_parameters for module in model.modules() if isinstance(module, QuantisedLinear)
    )
    return sum(parameter.numel() for parameter in model.parameters()) + packed


def _kept_whole(model: nn.Module) -> frozenset[int]:
    """The output head stays in 16 bits: transformers leaves it out of quantisation."""
    head = getattr(model, "get_output_embeddings", lambda: None)()
    return frozenset() if head is None else frozenset({id(head)})


def _children(model: nn.Module) -> list[tuple[nn.Module, str, nn.Module]]:
    return [(parent, name, child) for parent in model.modules() for name, child in parent.named_children()]


def _has_features(module: nn.Module) -> bool:
    return hasattr(module, "nf") or (hasattr(module, "in_features") and hasattr(module, "out_features"))


def _features(module: Any) -> tuple[int, int]:
    if hasattr(module, "nf"):  # the Conv1D of GPT-2
        return module.nx, module.nf
    return module.in_features, module.out_features

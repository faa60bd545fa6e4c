"""torch functions that published runs had and today's torch has not, to put in its place while tracing.

Imports torch: imported inside functions only.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import torch


class _SoftmaxKeepingInput(torch.autograd.Function):
    @staticmethod
    def forward(context: Any, scores: Any, dim: int) -> Any:
        weights = torch.softmax(scores, dim)
        context.save_for_backward(scores, weights)
        context.dim = dim
        return weights

    @staticmethod
    def backward(context: Any, *gradients: Any) -> Any:
        scores, weights = context.saved_tensors
        return torch._softmax_backward_data(gradients[0], weights, context.dim, scores.dtype), None


class _FusedCrossEntropy(torch.autograd.Function):
    @staticmethod
    def forward(context: Any, logits: Any, labels: Any) -> Any:
        losses = torch.empty(logits.shape[0], dtype=torch.float32, device=logits.device)
        sums = torch.empty_like(losses)
        context.save_for_backward(logits, sums, labels)
        return losses

    @staticmethod
    def backward(context: Any, *gradients: Any) -> Any:
        logits, _, _ = context.saved_tensors
        return torch.empty_like(logits), None


def softmax_that_keeps_its_input() -> contextlib.AbstractContextManager[None]:
    """Before torch 1.11 autograd kept softmax's input beside its output (pytorch/pytorch#64000)."""
    apply: Any = _SoftmaxKeepingInput.apply

    def softmax(scores: Any, dim: int | None = None, _stacklevel: int = 3, dtype: Any = None) -> Any:
        return apply(scores.float(), dim)  # autocast runs it in fp32, and the cast input is what is kept

    return _in_place_of("softmax", softmax)


def fused_cross_entropy() -> contextlib.AbstractContextManager[None]:
    """flash-attn's cross-entropy: saves the logits as they come and one fp32 sum per row, no fp32 copy."""
    apply: Any = _FusedCrossEntropy.apply

    def cross_entropy(logits: Any, labels: Any, *_: Any, **__: Any) -> Any:
        return apply(logits, labels).mean()

    return _in_place_of("cross_entropy", cross_entropy)


@contextlib.contextmanager
def _in_place_of(name: str, replacement: Any) -> Iterator[None]:
    functional: Any = torch.nn.functional
    original = getattr(functional, name)
    setattr(functional, name, replacement)
    try:
        yield
    finally:
        setattr(functional, name, original)

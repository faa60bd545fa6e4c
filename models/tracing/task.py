"""TrainingTask: what is traced. A module, its inputs and its loss, all on the meta device."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from .step_trace import TraceVariant

if TYPE_CHECKING:
    from torch import Tensor, nn


@dataclass(frozen=True)
class TrainingTask:
    """One training job as the tracer needs it.

    workload: id the trace carries.
    build: variant -> module on the meta device, in train mode, weights in fp32 (the tracer casts them for
        the "half" policy and switches activation checkpointing on).
    inputs: micro-batch -> keyword tensors on the meta device; sizes must be affine in the micro-batch.
    loss: (module, inputs) -> scalar tensor. What it does not return is freed when it returns, so logits
        live only where autograd keeps them.
    size: sequence length [tokens] or image side [pixels]; None where the workload has neither.
    notes: assumptions of the task, copied into the trace.
    """

    workload: str
    build: Callable[[TraceVariant], nn.Module]
    inputs: Callable[[int], Mapping[str, Tensor]]
    loss: Callable[[nn.Module, Mapping[str, Tensor]], Tensor]
    size: int | None = None
    notes: tuple[str, ...] = ()

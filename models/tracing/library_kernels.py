"""CUDA library calls that meta would take apart: cuDNN's recurrent networks, experts' grouped matmul.

Each is an autograd function that gives out the memory of the real call and records it as one op. Imports
torch: imported inside functions only.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import torch

from ..errors import BadConfig
from .op_rules import Cost
from .recorder import Recorder

# Per layer, direction, time step, sample and hidden unit cuDNN keeps for backward: the gates, the cell and
# the hidden state. An assumption (cuDNN does not publish its reserve layout).
RESERVE_STATES = 2
GATES = {"lstm": 4, "gru": 3, "rnn_tanh": 1, "rnn_relu": 1}


class _GroupedMatmul(torch.autograd.Function):
    """(tokens, k) x (experts, k, n) -> (tokens, n), each token with its expert's matrix."""

    @staticmethod
    def forward(ctx: Any, recorder: Recorder, tokens: torch.Tensor, experts: torch.Tensor) -> torch.Tensor:
        ctx.recorder = recorder
        ctx.save_for_backward(tokens, experts)
        out = tokens.new_empty(tokens.size(0), experts.size(-1))
        _record(recorder, "grouped_mm", "gemm", (tokens, experts), (out,), _grouped_flops(tokens, experts))
        return out

    @staticmethod
    def backward(ctx: Any, *gradients: torch.Tensor) -> tuple[Any, ...]:
        (gradient,) = gradients
        tokens, experts = ctx.saved_tensors
        flops = _grouped_flops(tokens, experts)
        token_gradient = expert_gradient = None
        if ctx.needs_input_grad[1]:
            token_gradient = torch.empty_like(tokens)
            _record(ctx.recorder, "grouped_mm", "gemm", (gradient, experts), (token_gradient,), flops)
        if ctx.needs_input_grad[2]:
            expert_gradient = torch.empty_like(experts)
            _record(ctx.recorder, "grouped_mm", "gemm", (tokens, gradient), (expert_gradient,), flops)
        return None, token_gradient, expert_gradient


def grouped_mm(recorder: Recorder, tokens: torch.Tensor, experts: torch.Tensor) -> torch.Tensor:
    """torch.nn.functional.grouped_mm for any float type (meta takes bfloat16 only)."""
    if tokens.dim() != 2 or experts.dim() != 3:
        shapes = f"{tuple(tokens.shape)} x {tuple(experts.shape)}"
        raise BadConfig(
            f"grouped_mm of {shapes} is not known; models/tracing/library_kernels.py takes 2-D x 3-D"
        )
    result: torch.Tensor = _GroupedMatmul.apply(recorder, tokens, experts)  # type: ignore[no-untyped-call]
    return result


def _grouped_flops(tokens: torch.Tensor, experts: torch.Tensor) -> int:
    return 2 * tokens.numel() * experts.size(-1)


class _Recurrent(torch.autograd.Function):
    """One cuDNN call for all layers, directions and time steps. x: (time, batch, features)."""

    @staticmethod
    def forward(
        ctx: Any, recorder: Recorder, kind: str, directions: int, x: torch.Tensor, *tensors: torch.Tensor
    ) -> tuple[torch.Tensor, ...]:
        states = 2 if kind == "lstm" else 1
        initial, weights = tensors[:states], tensors[states:]
        time, batch, _ = x.shape
        layers_and_directions, _, out_features = initial[0].shape
        hidden = weights[1].size(0) // GATES[kind]
        out = x.new_empty(time, batch, directions * out_features)
        last = tuple(torch.empty_like(state) for state in initial)
        kept = (GATES[kind] + RESERVE_STATES) * hidden
        reserve = x.new_empty(layers_and_directions * time * batch * kept)
        ctx.recorder, ctx.kind = recorder, kind
        ctx.launches = time * layers_and_directions
        ctx.flops = 2 * time * batch * sum(weight.numel() for weight in weights if weight.dim() == 2)
        ctx.save_for_backward(x, out, reserve, *tensors)
        written = (out, *last, reserve)
        _record(recorder, kind, "rnn", (x, *tensors), written, ctx.flops, ctx.launches)
        return out, *last

    @staticmethod
    def backward(ctx: Any, *gradients: torch.Tensor) -> tuple[Any, ...]:
        x, out, reserve, *tensors = ctx.saved_tensors
        made = [
            torch.empty_like(tensor) if needed else None
            for tensor, needed in zip((x, *tensors), ctx.needs_input_grad[3:], strict=True)
        ]
        read = (*(g for g in gradients if g is not None), x, out, reserve, *tensors)
        written = [tensor for tensor in made if tensor is not None]
        name = f"{ctx.kind}_backward"
        _record(ctx.recorder, name, "rnn", read, written, 2 * ctx.flops, 2 * ctx.launches)
        return None, None, None, *made


def recurrent(
    recorder: Recorder,
    kind: str,
    x: torch.Tensor,
    initial: Sequence[torch.Tensor],
    weights: Sequence[torch.Tensor],
    bidirectional: bool,
    batch_first: bool,
) -> tuple[torch.Tensor, ...]:
    """torch._VF.lstm and kin. Returns (output, last hidden state[, last cell state])."""
    directions = 2 if bidirectional else 1
    x = x.transpose(0, 1) if batch_first else x
    result = _Recurrent.apply(recorder, kind, directions, x, *initial, *weights)  # type: ignore[no-untyped-call]
    out, *last = result
    return (out.transpose(0, 1) if batch_first else out), *last


def _record(
    recorder: Recorder,
    op: str,
    op_class: str,
    read: Sequence[torch.Tensor],
    written: Sequence[torch.Tensor],
    flops: int,
    launches: int = 1,
) -> None:
    shapes = tuple(tuple(tensor.shape) for tensor in read)
    if flops <= 0 and all(prod(shape) for shape in shapes):
        raise BadConfig(f"{op} on {shapes[0]} counts no FLOPs")
    cost = Cost(
        flops,
        sum(tensor.nbytes for tensor in read),
        sum(tensor.nbytes for tensor in written),
        launches,
        "library kernel",
    )
    recorder.add_op(op, op_class, shapes, cost)

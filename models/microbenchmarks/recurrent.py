"""LSTM stacks through the library call, forward and backward."""

from __future__ import annotations

from collections.abc import Iterator

from .operands import torch_name
from .registry import Call, Case, Operands, Target, Work, suite

# (time steps, batch, width, layers)
STACKS = ((12, 4, 480, 1), (28, 6, 640, 1), (24, 12, 896, 1), (12, 5, 1408, 1), (10, 4, 1664, 1))
_GATES = 4
_KEPT = 6  # floats a hidden unit keeps for backward: the gates, the cell and the hidden state


@suite("recurrent")
def recurrent(target: Target) -> Iterator[Case]:
    for dtype in target.dtypes:
        for time, batch, width, layers in STACKS[::2] if target.tiny else STACKS:
            for backward in (False, True):
                yield lstm_case(time, batch * target.scale, width, layers, dtype, backward=backward)


def lstm_case(time: int, batch: int, width: int, layers: int, dtype: str, *, backward: bool) -> Case:
    """FLOPs as the tracer counts its library kernel: 2 x time x batch x weights, twice that backward."""

    def make(take: Operands) -> Call:
        import torch

        kind = getattr(torch, torch_name(dtype))
        lstm = torch.nn.LSTM(width, width, layers, batch_first=True).to(take.device, kind)
        x = take.floats(batch, time, width).detach().requires_grad_()
        if not backward:

            def forward() -> object:
                with torch.enable_grad():  # training keeps what backward needs
                    return lstm(x)[0]

            return forward
        with torch.enable_grad():
            out = lstm(x)[0]
        gradient = take.floats(batch, time, width)
        wanted = [x, *lstm.parameters()]
        return lambda: torch.autograd.grad(out, wanted, gradient, retain_graph=True)

    weights = layers * 2 * _GATES * width * width
    item = 4 if torch_name(dtype) == "float32" else 2
    flops = 2.0 * time * batch * weights * (2 if backward else 1)
    activations = time * batch * width * (2 + layers * _KEPT) * item
    name = "lstm_backward" if backward else "lstm"
    work = Work(
        op=name,
        op_class="rnn",
        shapes=((time, batch, width), (layers, batch, width)),
        flops=flops,
        bytes_read=weights * item + (activations if backward else time * batch * width * item),
        bytes_written=(weights + 2 * time * batch * width) * item if backward else activations,
    )
    return Case(
        f"{name}/{time}x{batch}x{width}x{layers}/{dtype}",
        "recurrent",
        dtype,
        "",
        make,
        work,
        cold=False,
        flush=True,
    )

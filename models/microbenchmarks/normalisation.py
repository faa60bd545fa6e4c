"""Norms, softmax, reductions, pooling and losses, forward and backward; by rows and row length."""

from __future__ import annotations

from collections.abc import Iterator

from .registry import Call, Case, Operands, Target, suite

# (rows, width)
ROWS = ((16, 640), (112, 640), (480, 640), (900, 1280), (3000, 1280))
# (batch, heads, sequence) of square score maps
SCORES = ((1, 10, 48), (2, 10, 112), (4, 10, 112), (3, 10, 224))
# (batch, channels, side)
IMAGES = ((2, 400, 8), (3, 200, 15), (3, 112, 30), (3, 48, 60), (6, 192, 60))
# (rows, classes)
LOSSES = ((3, 900), (24, 12), (120, 6_000), (208, 32_000))


@suite("normalisation")
def normalisation(target: Target) -> Iterator[Case]:
    step = 2 if target.tiny else 1
    for rows, width in ROWS[::step]:
        rows *= target.scale
        yield from row_cases(rows, width)
    for batch, heads, sequence in SCORES[::step]:
        yield from softmax_cases((batch * target.scale, heads, sequence, sequence), "_softmax")
    for rows, classes in LOSSES[::step]:
        yield from softmax_cases((rows * target.scale, classes), "_log_softmax")
        yield from _losses(rows * target.scale, classes)
    for batch, channels, side in IMAGES[::step]:
        yield from image_cases(batch * target.scale, channels, side)


def _case(op: str, shape: tuple[int, ...], make: object) -> Case:
    form = "x".join(map(str, shape))
    return Case(f"{op}/{form}", "normalisation", "float32", "", make)  # type: ignore[arg-type]


def row_cases(rows: int, width: int) -> Iterator[Case]:
    def layer_norm(take: Operands) -> Call:
        import torch

        x, weight, bias = take.floats(rows, width), take.floats(width), take.floats(width)
        return lambda: torch.ops.aten.native_layer_norm(x, [width], weight, bias, 1e-5)

    def layer_norm_backward(take: Operands) -> Call:
        import torch

        gradient, x = take.floats(rows, width), take.floats(rows, width)
        mean, spread = take.floats(rows, 1), take.floats(rows, 1)
        weight, bias = take.floats(width), take.floats(width)
        backward = torch.ops.aten.native_layer_norm_backward
        return lambda: backward(gradient, x, [width], mean, spread, weight, bias, [True, True, True])

    def bias_gradient(take: Operands) -> Call:
        x = take.floats(rows, width)
        return lambda: x.sum(0, keepdim=True)

    yield _case("native_layer_norm", (rows, width), layer_norm)
    yield _case("native_layer_norm_backward", (rows, width), layer_norm_backward)
    yield _case("sum", (rows, width), bias_gradient)


def softmax_cases(shape: tuple[int, ...], op: str) -> Iterator[Case]:
    def forward(take: Operands) -> Call:
        import torch

        x = take.floats(*shape)
        call = getattr(torch.ops.aten, op)
        return lambda: call(x, -1, False)

    def backward(take: Operands) -> Call:
        import torch

        gradient, out = take.floats(*shape), take.floats(*shape)
        call = getattr(torch.ops.aten, f"{op}_backward_data")
        return lambda: call(gradient, out, -1, torch.float32)

    yield _case(op, shape, forward)
    yield _case(f"{op}_backward_data", shape, backward)


def _losses(rows: int, classes: int) -> Iterator[Case]:
    def forward(take: Operands) -> Call:
        import torch

        x, target = take.floats(rows, classes), take.integers(rows, below=classes)
        return lambda: torch.ops.aten.nll_loss_forward(x, target, None, 1, -100)

    def backward(take: Operands) -> Call:
        import torch

        x, target = take.floats(rows, classes), take.integers(rows, below=classes)
        gradient, total = take.floats(1).view(()), take.floats(1).view(())
        call = torch.ops.aten.nll_loss_backward
        return lambda: call(gradient, x, target, None, 1, -100, total)

    yield _case("nll_loss_forward", (rows, classes), forward)
    yield _case("nll_loss_backward", (rows, classes), backward)


def image_cases(batch: int, channels: int, side: int) -> Iterator[Case]:
    shape = (batch, channels, side, side)

    def batch_norm(take: Operands) -> Call:
        import torch

        x = take.floats(*shape)
        weight, bias, mean, variance = (take.floats(channels) for _ in range(4))
        call = torch.ops.aten.native_batch_norm
        if take.device != "meta":
            mean, variance = torch.zeros_like(mean), torch.ones_like(variance)  # not the shared pool: written
        return lambda: call(x, weight, bias, mean, variance, True, 0.1, 1e-5)

    def batch_norm_backward(take: Operands) -> Call:
        import torch

        gradient, x = take.floats(*shape), take.floats(*shape)
        weight, mean, variance, saved_mean, saved_spread = (take.floats(channels) for _ in range(5))
        call = torch.ops.aten.native_batch_norm_backward
        wanted = [True, True, True]
        return lambda: call(gradient, x, weight, mean, variance, saved_mean, saved_spread, True, 1e-5, wanted)

    def max_pool(take: Operands) -> Call:
        import torch

        x = take.floats(*shape)
        return lambda: torch.ops.aten.max_pool2d_with_indices(x, [3, 3], [2, 2], [1, 1])

    def max_pool_backward(take: Operands) -> Call:
        import torch

        x = take.floats(*shape)
        out, indices = torch.ops.aten.max_pool2d_with_indices(x, [3, 3], [2, 2], [1, 1])
        gradient = take.floats(*out.shape)
        call = torch.ops.aten.max_pool2d_with_indices_backward
        return lambda: call(gradient, x, [3, 3], [2, 2], [1, 1], [1, 1], False, indices)

    def mean(take: Operands) -> Call:
        x = take.floats(*shape)
        return lambda: x.mean((-1, -2), keepdim=True)

    yield _case("native_batch_norm", shape, batch_norm)
    yield _case("native_batch_norm_backward", shape, batch_norm_backward)
    yield _case("max_pool2d_with_indices", shape, max_pool)
    yield _case("max_pool2d_with_indices_backward", shape, max_pool_backward)
    yield _case("mean", shape, mean)

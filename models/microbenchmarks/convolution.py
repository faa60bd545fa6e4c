"""Convolutions, forward and backward: 1x1, larger kernels, stems of few channels, depthwise; both layouts."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from .registry import Call, Case, Operands, Target, suite


@dataclass(frozen=True, slots=True)
class Geometry:
    """A square 2-D convolution. side: of the input. [pixels]"""

    batch: int
    channels_in: int
    channels_out: int
    side: int
    kernel: int
    stride: int = 1
    groups: int = 1
    padding: int | None = None

    @property
    def padded(self) -> int:
        return self.kernel // 2 if self.padding is None else self.padding

    @property
    def side_out(self) -> int:
        return (self.side + 2 * self.padded - self.kernel) // self.stride + 1


GEOMETRIES = (
    Geometry(3, 48, 192, 60, 1), Geometry(3, 192, 48, 60, 1), Geometry(2, 160, 640, 30, 1),
    Geometry(3, 640, 160, 30, 1), Geometry(3, 640, 320, 15, 1), Geometry(6, 320, 1280, 15, 1),
    Geometry(3, 1600, 400, 8, 1), Geometry(2, 400, 1600, 8, 1), Geometry(3, 192, 384, 60, 1, 2),
    Geometry(3, 56, 56, 60, 3), Geometry(3, 112, 112, 30, 3), Geometry(3, 112, 112, 60, 3, 2),
    Geometry(3, 208, 208, 15, 3), Geometry(3, 400, 400, 8, 3), Geometry(6, 160, 160, 20, 3),
    Geometry(3, 400, 400, 16, 3, 2),
    Geometry(3, 3, 48, 200, 7, 2), Geometry(6, 3, 32, 190, 3, 2), Geometry(2, 3, 640, 210, 14, 14, 1, 0),
    Geometry(3, 96, 96, 50, 3, 1, 96), Geometry(2, 240, 240, 25, 5, 1, 240),
)  # fmt: skip


@suite("convolution")
def convolution(target: Target) -> Iterator[Case]:
    geometries = GEOMETRIES[::8] if target.tiny else GEOMETRIES
    layouts = ("channels_first", "channels_last") if target.kind == "cuda" else ("channels_first",)
    for dtype in target.dtypes:
        for layout in layouts:
            for g in geometries:
                scaled = Geometry(
                    g.batch * target.scale, g.channels_in, g.channels_out, g.side, g.kernel, g.stride,
                    g.groups, g.padding,
                )  # fmt: skip
                yield forward_case(scaled, layout, dtype)
                yield backward_case(scaled, layout, dtype)


def _arguments(g: Geometry) -> tuple[list[int], list[int], list[int], bool, list[int], int]:
    return [g.stride] * 2, [g.padded] * 2, [1, 1], False, [0, 0], g.groups


def _key(g: Geometry) -> str:
    return f"{g.batch}x{g.channels_in}x{g.side}->{g.channels_out}k{g.kernel}s{g.stride}g{g.groups}p{g.padded}"


def forward_case(g: Geometry, layout: str, dtype: str) -> Case:
    def make(take: Operands) -> Call:
        import torch

        form = torch.channels_last if layout == "channels_last" else torch.contiguous_format
        x = take.floats(g.batch, g.channels_in, g.side, g.side).contiguous(memory_format=form)
        weight = take.floats(g.channels_out, g.channels_in // g.groups, g.kernel, g.kernel)
        weight = weight.contiguous(memory_format=form)
        arguments = _arguments(g)
        return lambda: torch.ops.aten.convolution(x, weight, None, *arguments)

    return Case(f"convolution/{layout}/{_key(g)}/{dtype}", "convolution", dtype, layout, make)


def backward_case(g: Geometry, layout: str, dtype: str, *, input_needed: bool | None = None) -> Case:
    """Input and weight gradients; a stem's input is the image, which needs none."""
    needed = g.channels_in > 4 if input_needed is None else input_needed

    def make(take: Operands) -> Call:
        import torch

        form = torch.channels_last if layout == "channels_last" else torch.contiguous_format
        x = take.floats(g.batch, g.channels_in, g.side, g.side).contiguous(memory_format=form)
        gradient = take.floats(g.batch, g.channels_out, g.side_out, g.side_out)
        gradient = gradient.contiguous(memory_format=form)
        weight = take.floats(g.channels_out, g.channels_in // g.groups, g.kernel, g.kernel)
        weight = weight.contiguous(memory_format=form)
        arguments, mask = _arguments(g), [needed, True, False]
        backward = torch.ops.aten.convolution_backward
        return lambda: backward(gradient, x, weight, None, *arguments, mask)

    return Case(f"convolution_backward/{layout}/{_key(g)}/{dtype}", "convolution", dtype, layout, make)

"""Convolutional classifiers of published memory rows that no library here has: plain modules.

VGG (Simonyan & Zisserman 2014), DenseNet (Huang et al. 2016), Inception v3 (Szegedy et al. 2015), ResNeXt
(Xie et al. 2016), MobileNetV3 (Howard et al. 2019), EfficientNetV2 (Tan & Le 2021), ConvNeXt (Liu et al.
2022).
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from .plain_cnn import DenseBlock
from .resnet import resnet


def _classifier(width: int, classes: int = 1000) -> list[nn.Module]:
    return [nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(width, classes)]


def vgg(*repeats: int) -> nn.Module:
    """3x3 convolutions with bias in five levels, three wide linear layers."""
    layers: list[nn.Module] = []
    inputs = 3
    for width, count in zip((64, 128, 256, 512, 512), repeats, strict=True):
        for _ in range(count):
            layers += [nn.Conv2d(inputs, width, 3, padding=1), nn.ReLU(True)]
            inputs = width
        layers.append(nn.MaxPool2d(2))
    head = (nn.Linear(512 * 49, 4096), nn.ReLU(True), nn.Dropout(), nn.Linear(4096, 4096), nn.ReLU(True))
    return nn.Sequential(*layers, nn.Flatten(), *head, nn.Dropout(), nn.Linear(4096, 1000))


def vgg11() -> nn.Module:
    return vgg(1, 1, 2, 2, 2)


def vgg19() -> nn.Module:
    return vgg(2, 2, 4, 4, 4)


def densenet(*depths: int) -> nn.Module:
    """Dense blocks of those depths, halved in width and size between them."""
    layers: list[nn.Module] = [
        *(nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64), nn.ReLU(True), nn.MaxPool2d(3, 2, 1))
    ]
    width = 64
    for level, depth in enumerate(depths):
        layers.append(DenseBlock(width, depth))
        width += 32 * depth
        layers += [nn.BatchNorm2d(width), nn.ReLU(True)]
        if level < len(depths) - 1:
            layers += [nn.Conv2d(width, width // 2, 1, bias=False), nn.AvgPool2d(2)]
            width //= 2
    return nn.Sequential(*layers, *_classifier(width))


def densenet169() -> nn.Module:
    return densenet(6, 12, 32, 32)


def densenet201() -> nn.Module:
    return densenet(6, 12, 48, 32)


def resnext101_32x8d() -> nn.Module:
    return resnet((3, 4, 23, 3), width=256, groups=32)


Size = int | tuple[int, int]


def _unit(inputs: int, outputs: int, kernel: Size, stride: int = 1, padding: Size = 0) -> nn.Sequential:
    conv = nn.Conv2d(inputs, outputs, kernel, stride, padding, bias=False)
    return nn.Sequential(conv, nn.BatchNorm2d(outputs, eps=0.001), nn.ReLU(True))


class Side(nn.Module):
    """Branches side by side on one input, their outputs stacked."""

    def __init__(self, *branches: nn.Module) -> None:
        super().__init__()
        self.branches = nn.ModuleList(branches)

    def forward(self, x_bchw: Tensor) -> Tensor:
        return torch.cat([branch(x_bchw) for branch in self.branches], 1)


def _row(width: int) -> tuple[tuple[int, int], tuple[int, int]]:
    """A 1 x width kernel and its padding."""
    return (1, width), (0, width // 2)


def _column(width: int) -> tuple[tuple[int, int], tuple[int, int]]:
    return (width, 1), (width // 2, 0)


def _seven(inputs: int, middle: int, outputs: int, repeats: int) -> nn.Sequential:
    """1x1, then `repeats` pairs of 1x7 and 7x1; the double pair starts with 7x1."""
    layers = [_unit(inputs, middle, 1)]
    shapes = [_row(7), _column(7)] if repeats == 1 else [_column(7), _row(7), _column(7), _row(7)]
    for index, (kernel, padding) in enumerate(shapes):
        layers.append(_unit(middle, outputs if index == len(shapes) - 1 else middle, kernel, 1, padding))
    return nn.Sequential(*layers)


def _pooled(inputs: int, outputs: int) -> nn.Sequential:
    return nn.Sequential(nn.AvgPool2d(3, 1, 1), _unit(inputs, outputs, 1))


def _inception_a(inputs: int, pool: int) -> Side:
    return Side(
        _unit(inputs, 64, 1),
        nn.Sequential(_unit(inputs, 48, 1), _unit(48, 64, 5, 1, 2)),
        nn.Sequential(_unit(inputs, 64, 1), _unit(64, 96, 3, 1, 1), _unit(96, 96, 3, 1, 1)),
        _pooled(inputs, pool),
    )


def _inception_c(middle: int) -> Side:
    return Side(
        *(_unit(768, 192, 1), _seven(768, middle, 192, 1), _seven(768, middle, 192, 2), _pooled(768, 192))
    )


def _inception_e(inputs: int) -> Side:
    def split() -> Side:
        return Side(_unit(384, 384, *_with_stride(_row(3))), _unit(384, 384, *_with_stride(_column(3))))

    return Side(
        _unit(inputs, 320, 1),
        nn.Sequential(_unit(inputs, 384, 1), split()),
        nn.Sequential(_unit(inputs, 448, 1), _unit(448, 384, 3, 1, 1), split()),
        _pooled(inputs, 192),
    )


def _with_stride(shape: tuple[tuple[int, int], tuple[int, int]]) -> tuple[tuple[int, int], int, Size]:
    return shape[0], 1, shape[1]


def inception_v3() -> nn.Module:
    """Without the auxiliary head."""
    return nn.Sequential(
        *(_unit(3, 32, 3, 2), _unit(32, 32, 3), _unit(32, 64, 3, 1, 1), nn.MaxPool2d(3, 2)),
        *(_unit(64, 80, 1), _unit(80, 192, 3), nn.MaxPool2d(3, 2)),
        *(_inception_a(192, 32), _inception_a(256, 64), _inception_a(288, 64)),
        Side(
            _unit(288, 384, 3, 2),
            nn.Sequential(_unit(288, 64, 1), _unit(64, 96, 3, 1, 1), _unit(96, 96, 3, 2)),
            nn.MaxPool2d(3, 2),
        ),
        *(_inception_c(128), _inception_c(160), _inception_c(160), _inception_c(192)),
        Side(
            nn.Sequential(_unit(768, 192, 1), _unit(192, 320, 3, 2)),
            nn.Sequential(*_seven(768, 192, 192, 1), _unit(192, 192, 3, 2)),
            nn.MaxPool2d(3, 2),
        ),
        *(_inception_e(1280), _inception_e(2048)),
        *_classifier(2048),
    )


def _act(name: str) -> nn.Module:
    acts: dict[str, type[nn.ReLU | nn.Hardswish | nn.SiLU]] = {
        "relu": nn.ReLU,
        "hardswish": nn.Hardswish,
        "silu": nn.SiLU,
    }
    return acts[name](True)


def _normed(
    inputs: int, outputs: int, kernel: int, stride: int = 1, *, groups: int = 1, act: str = ""
) -> list[nn.Module]:
    conv = nn.Conv2d(inputs, outputs, kernel, stride, kernel // 2, groups=groups, bias=False)
    return [conv, nn.BatchNorm2d(outputs, eps=0.001), *([_act(act)] if act else [])]


class Squeeze(nn.Module):
    """Channels weighted by what their mean says."""

    def __init__(self, width: int, reduced: int, act: str, gate: nn.Module) -> None:
        super().__init__()
        self.down, self.up = nn.Conv2d(width, reduced, 1), nn.Conv2d(reduced, width, 1)
        self.act, self.gate = _act(act), gate

    def forward(self, x_bchw: Tensor) -> Tensor:
        weight = self.up(self.act(self.down(x_bchw.mean((2, 3), keepdim=True))))
        y: Tensor = x_bchw * self.gate(weight)
        return y


class Inverted(nn.Module):
    """A body that is added to its input where shapes agree."""

    def __init__(self, body: list[nn.Module], added: bool) -> None:
        super().__init__()
        self.body, self.added = nn.Sequential(*body), added

    def forward(self, x_bchw: Tensor) -> Tensor:
        y: Tensor = self.body(x_bchw)
        return x_bchw + y if self.added else y


def _divisible(width: float, by: int = 8) -> int:
    rounded = max(by, int(width + by / 2) // by * by)
    return rounded + by if rounded < 0.9 * width else rounded


def _inverted(
    inputs: int, outputs: int, kernel: int, stride: int, middle: int, act: str, squeeze: nn.Module | None
) -> Inverted:
    wide = _normed(inputs, middle, 1, act=act) if middle != inputs else []
    body = [*wide, *_normed(middle, middle, kernel, stride, groups=middle, act=act)]
    body += [squeeze] if squeeze is not None else []
    return Inverted([*body, *_normed(middle, outputs, 1)], stride == 1 and inputs == outputs)


# Kernel, expanded channels, output channels, squeeze, activation, stride.
_MOBILE_LARGE = (
    *((3, 16, 16, False, "relu", 1), (3, 64, 24, False, "relu", 2), (3, 72, 24, False, "relu", 1)),
    *((5, 72, 40, True, "relu", 2), (5, 120, 40, True, "relu", 1), (5, 120, 40, True, "relu", 1)),
    *((3, 240, 80, False, "hardswish", 2), (3, 200, 80, False, "hardswish", 1)),
    *((3, 184, 80, False, "hardswish", 1), (3, 184, 80, False, "hardswish", 1)),
    *((3, 480, 112, True, "hardswish", 1), (3, 672, 112, True, "hardswish", 1)),
    *((5, 672, 160, True, "hardswish", 2), (5, 960, 160, True, "hardswish", 1)),
    (5, 960, 160, True, "hardswish", 1),
)


def mobilenet_v3_large() -> nn.Module:
    layers, inputs = _normed(3, 16, 3, 2, act="hardswish"), 16
    for kernel, middle, outputs, squeezed, act, stride in _MOBILE_LARGE:
        squeeze = Squeeze(middle, _divisible(middle / 4), "relu", nn.Hardsigmoid()) if squeezed else None
        layers.append(_inverted(inputs, outputs, kernel, stride, middle, act, squeeze))
        inputs = outputs
    head = [nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(960, 1280), nn.Hardswish(True), nn.Dropout(0.2)]
    return nn.Sequential(*layers, *_normed(160, 960, 1, act="hardswish"), *head, nn.Linear(1280, 1000))


Stage = tuple[str, int, int, int, int]  # kind, repeats, stride, expansion, channels


def _efficientnet_v2(stem: int, stages: tuple[Stage, ...]) -> nn.Module:
    layers, inputs = _normed(3, stem, 3, 2, act="silu"), stem
    for kind, repeats, first_stride, widen, outputs in stages:
        for index in range(repeats):
            stride = first_stride if index == 0 else 1
            middle = inputs * widen
            if kind == "inverted":
                squeeze = Squeeze(middle, round(inputs / 4), "silu", nn.Sigmoid())
                layers.append(_inverted(inputs, outputs, 3, stride, middle, "silu", squeeze))
            else:
                fused = _normed(inputs, middle, 3, stride, act="silu")
                body = _normed(inputs, outputs, 3, stride, act="silu")
                if kind == "fused":
                    body = [*fused, *_normed(middle, outputs, 1)]
                layers.append(Inverted(body, stride == 1 and inputs == outputs))
            inputs = outputs
    return nn.Sequential(*layers, *_normed(inputs, 1280, 1, act="silu"), *_classifier(1280))


def efficientnet_v2_s() -> nn.Module:
    return _efficientnet_v2(
        24,
        (
            *(("plain", 2, 1, 1, 24), ("fused", 4, 2, 4, 48), ("fused", 4, 2, 4, 64)),
            *(("inverted", 6, 2, 4, 128), ("inverted", 9, 1, 6, 160), ("inverted", 15, 2, 6, 256)),
        ),
    )


def efficientnet_v2_m() -> nn.Module:
    return _efficientnet_v2(
        24,
        (
            *(("plain", 3, 1, 1, 24), ("fused", 5, 2, 4, 48), ("fused", 5, 2, 4, 80)),
            *(("inverted", 7, 2, 4, 160), ("inverted", 14, 1, 6, 176), ("inverted", 18, 2, 6, 304)),
            ("inverted", 5, 1, 6, 512),
        ),
    )


def efficientnet_v2_l() -> nn.Module:
    return _efficientnet_v2(
        32,
        (
            *(("plain", 4, 1, 1, 32), ("fused", 7, 2, 4, 64), ("fused", 7, 2, 4, 96)),
            *(("inverted", 10, 2, 4, 192), ("inverted", 19, 1, 6, 224), ("inverted", 25, 2, 6, 384)),
            ("inverted", 7, 1, 6, 640),
        ),
    )


class ChannelNorm(nn.LayerNorm):
    """Layer norm over channels: permuted to the end and back."""

    def forward(self, x_bchw: Tensor) -> Tensor:
        normed: Tensor = super().forward(x_bchw.permute(0, 2, 3, 1))
        return normed.permute(0, 3, 1, 2)


class NextBlock(nn.Module):
    """ConvNeXt's: depthwise 7x7, norm, two linear layers over channels; scaled, and left out at random."""

    def __init__(self, width: int, left_out: float) -> None:
        super().__init__()
        self.filter = nn.Conv2d(width, width, 7, padding=3, groups=width)
        self.body = nn.Sequential(
            nn.LayerNorm(width, eps=1e-6), nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width)
        )
        self.scale = nn.Parameter(torch.empty(width, 1, 1))
        self.left_out = left_out

    def forward(self, x_bchw: Tensor) -> Tensor:
        y: Tensor = self.body(self.filter(x_bchw).permute(0, 2, 3, 1)).permute(0, 3, 1, 2)
        y = self.scale * y
        if self.left_out:
            kept = torch.empty(y.shape[0], 1, 1, 1, device=y.device).bernoulli_(1 - self.left_out)
            y = y * kept.div_(1 - self.left_out)
        y += x_bchw
        return y


def _convnext(widths: tuple[int, ...], depths: tuple[int, ...], left_out: float) -> nn.Module:
    """torchvision's form; the chance of being left out grows with depth."""
    layers: list[nn.Module] = [nn.Conv2d(3, widths[0], 4, 4), ChannelNorm(widths[0], eps=1e-6)]
    total, index = sum(depths), 0
    for level, (width, depth) in enumerate(zip(widths, depths, strict=True)):
        for _ in range(depth):
            layers.append(NextBlock(width, left_out * index / (total - 1)))
            index += 1
        if level < len(widths) - 1:
            layers += [ChannelNorm(width, eps=1e-6), nn.Conv2d(width, widths[level + 1], 2, 2)]
    head = [nn.AdaptiveAvgPool2d(1), ChannelNorm(widths[-1], eps=1e-6), nn.Flatten()]
    return nn.Sequential(*layers, *head, nn.Linear(widths[-1], 1000))


def convnext_tiny() -> nn.Module:
    return _convnext((96, 192, 384, 768), (3, 3, 9, 3), 0.1)


def convnext_base() -> nn.Module:
    return _convnext((128, 256, 512, 1024), (3, 3, 27, 3), 0.5)

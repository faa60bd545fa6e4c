"""VGG (Simonyan & Zisserman 2014), SqueezeNet (Iandola et al. 2016), DenseNet (Huang et al. 2016)."""

from __future__ import annotations

import torch
from torch import Tensor, nn


def vgg16() -> nn.Module:
    """Thirteen 3x3 convolutions with bias, three wide linear layers."""
    layers: list[nn.Module] = []
    inputs = 3
    for width, repeats in ((64, 2), (128, 2), (256, 3), (512, 3), (512, 3)):
        for _ in range(repeats):
            layers += [nn.Conv2d(inputs, width, 3, padding=1), nn.ReLU(True)]
            inputs = width
        layers.append(nn.MaxPool2d(2))
    head = (nn.Linear(512 * 49, 4096), nn.ReLU(True), nn.Dropout(), nn.Linear(4096, 4096), nn.ReLU(True))
    return nn.Sequential(*layers, nn.Flatten(), *head, nn.Dropout(), nn.Linear(4096, 1000))


class Fire(nn.Module):
    """Squeeze to few channels by 1x1, expand by 1x1 and 3x3 side by side."""

    def __init__(self, inputs: int, squeeze: int, expand: int) -> None:
        super().__init__()
        self.squeeze = nn.Sequential(nn.Conv2d(inputs, squeeze, 1), nn.ReLU(True))
        self.one = nn.Sequential(nn.Conv2d(squeeze, expand, 1), nn.ReLU(True))
        self.three = nn.Sequential(nn.Conv2d(squeeze, expand, 3, padding=1), nn.ReLU(True))

    def forward(self, x_bchw: Tensor) -> Tensor:
        small = self.squeeze(x_bchw)
        return torch.cat((self.one(small), self.three(small)), 1)


def squeezenet1_1() -> nn.Module:
    """Eight fire modules; pooling early is what 1.1 changed."""
    return nn.Sequential(
        *(nn.Conv2d(3, 64, 3, 2), nn.ReLU(True), nn.MaxPool2d(3, 2, ceil_mode=True)),
        *(Fire(64, 16, 64), Fire(128, 16, 64), nn.MaxPool2d(3, 2, ceil_mode=True)),
        *(Fire(128, 32, 128), Fire(256, 32, 128), nn.MaxPool2d(3, 2, ceil_mode=True)),
        *(Fire(256, 48, 192), Fire(384, 48, 192), Fire(384, 64, 256), Fire(512, 64, 256)),
        *(nn.Dropout(), nn.Conv2d(512, 1000, 1), nn.ReLU(True), nn.AdaptiveAvgPool2d(1), nn.Flatten()),
    )


class DenseLayer(nn.Module):
    """Everything before it in, 32 new channels out."""

    def __init__(self, inputs: int, growth: int = 32) -> None:
        super().__init__()
        self.body = nn.Sequential(
            *(nn.BatchNorm2d(inputs), nn.ReLU(True), nn.Conv2d(inputs, 4 * growth, 1, bias=False)),
            *(nn.BatchNorm2d(4 * growth), nn.ReLU(True)),
            nn.Conv2d(4 * growth, growth, 3, padding=1, bias=False),
        )

    def forward(self, features: list[Tensor]) -> Tensor:
        new: Tensor = self.body(torch.cat(features, 1))
        return new


class DenseBlock(nn.Module):
    """Layers that each see all maps so far, kept as a list until the end of the block."""

    def __init__(self, inputs: int, depth: int) -> None:
        super().__init__()
        self.layers = nn.ModuleList(DenseLayer(inputs + 32 * i) for i in range(depth))

    def forward(self, x_bchw: Tensor) -> Tensor:
        features = [x_bchw]
        for layer in self.layers:
            features.append(layer(features))
        return torch.cat(features, 1)


def densenet121() -> nn.Module:
    """Blocks of 6, 12, 24 and 16 layers, halved in width and size between blocks."""
    layers: list[nn.Module] = [
        *(nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64), nn.ReLU(True), nn.MaxPool2d(3, 2, 1))
    ]
    width = 64
    for depth in (6, 12, 24, 16):
        layers.append(DenseBlock(width, depth))
        width += 32 * depth
        layers += [nn.BatchNorm2d(width), nn.ReLU(True)]
        if depth != 16:
            layers += [nn.Conv2d(width, width // 2, 1, bias=False), nn.AvgPool2d(2)]
            width //= 2
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(width, 1000))

"""Small CNNs: MobileNetV2 (Sandler et al. 2018), MNASNet (Tan et al. 2018), ShuffleNetV2 (Ma et al. 2018)."""

from __future__ import annotations

import torch
from torch import Tensor, nn


def unit(
    inputs: int, outputs: int, kernel: int, stride: int = 1, *, depthwise: bool = False, act: str = "relu"
) -> list[nn.Module]:
    """Convolution, batch norm and, unless act is empty, an activation."""
    groups = inputs if depthwise else 1
    conv = nn.Conv2d(inputs, outputs, kernel, stride, kernel // 2, groups=groups, bias=False)
    acts: dict[str, list[nn.Module]] = {"relu": [nn.ReLU(True)], "relu6": [nn.ReLU6(True)], "": []}
    return [conv, nn.BatchNorm2d(outputs), *acts[act]]


class Inverted(nn.Module):
    """Widen by 1x1, filter depthwise, narrow by 1x1; added to its input where shapes agree."""

    def __init__(self, inputs: int, outputs: int, kernel: int, stride: int, widen: int, act: str) -> None:
        super().__init__()
        middle = inputs * widen
        first = unit(inputs, middle, 1, act=act) if widen != 1 else []
        depthwise = unit(middle, middle, kernel, stride, depthwise=True, act=act)
        self.body = nn.Sequential(*first, *depthwise, *unit(middle, outputs, 1, act=""))
        self.added = stride == 1 and inputs == outputs

    def forward(self, x_bchw: Tensor) -> Tensor:
        y: Tensor = self.body(x_bchw)
        return x_bchw + y if self.added else y


def mobilenet_v2() -> nn.Module:
    """Rows: widening, channels, repeats, first stride."""
    layers, inputs = unit(3, 32, 3, 2, act="relu6"), 32
    for widen, outputs, repeats, stride in (
        *((1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2)),
        *((6, 96, 3, 1), (6, 160, 3, 2), (6, 320, 1, 1)),
    ):
        for i in range(repeats):
            layers.append(Inverted(inputs, outputs, 3, stride if i == 0 else 1, widen, "relu6"))
            inputs = outputs
    head = [nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Dropout(0.2), nn.Linear(1280, 1000)]
    return nn.Sequential(*layers, *unit(320, 1280, 1, act="relu6"), *head)


def mnasnet1_0() -> nn.Module:
    """Rows: kernel, widening, channels, repeats, first stride."""
    layers = unit(3, 32, 3, 2) + unit(32, 32, 3, depthwise=True) + unit(32, 16, 1, act="")
    inputs = 16
    for kernel, widen, outputs, repeats, stride in (
        *((3, 3, 24, 3, 2), (5, 3, 40, 3, 2), (5, 6, 80, 3, 2)),
        *((3, 6, 96, 2, 1), (5, 6, 192, 4, 2), (3, 6, 320, 1, 1)),
    ):
        for i in range(repeats):
            layers.append(Inverted(inputs, outputs, kernel, stride if i == 0 else 1, widen, "relu"))
            inputs = outputs
    head = [nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Dropout(0.2), nn.Linear(1280, 1000)]
    return nn.Sequential(*layers, *unit(320, 1280, 1), *head)


class Shuffle(nn.Module):
    """Half the channels pass by, half are filtered depthwise; then the halves are shuffled."""

    def __init__(self, inputs: int, outputs: int, stride: int) -> None:
        super().__init__()
        half = outputs // 2
        self.stride = stride
        filtered = inputs if stride > 1 else half
        self.left = (
            nn.Sequential(
                *unit(inputs, inputs, 3, stride, depthwise=True, act=""),
                *unit(inputs, half, 1),
            )
            if stride > 1
            else nn.Identity()
        )
        self.right = nn.Sequential(
            *unit(filtered, half, 1),
            *unit(half, half, 3, stride, depthwise=True, act=""),
            *unit(half, half, 1),
        )

    def forward(self, x_bchw: Tensor) -> Tensor:
        left, right = (x_bchw, x_bchw) if self.stride > 1 else x_bchw.chunk(2, 1)
        y_bchw = torch.cat((self.left(left), self.right(right)), 1)
        batch, channels, height, width = y_bchw.shape
        shuffled = y_bchw.view(batch, 2, channels // 2, height, width).transpose(1, 2)
        return shuffled.reshape(batch, channels, height, width)


def shufflenet_v2_x1_0() -> nn.Module:
    """Stages of 4, 8 and 4 units."""
    layers, inputs = [*unit(3, 24, 3, 2), nn.MaxPool2d(3, 2, 1)], 24
    for outputs, repeats in ((116, 4), (232, 8), (464, 4)):
        for i in range(repeats):
            layers.append(Shuffle(inputs, outputs, 2 if i == 0 else 1))
            inputs = outputs
    head = [nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(1024, 1000)]
    return nn.Sequential(*layers, *unit(464, 1024, 1), *head)

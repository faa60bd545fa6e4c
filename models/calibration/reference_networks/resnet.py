"""ResNet, ResNeXt and Wide ResNet: He et al. 2015, Xie et al. 2016, Zagoruyko & Komodakis 2016."""

from __future__ import annotations

from torch import Tensor, nn


class Residual(nn.Module):
    """A basic block (two 3x3) or a bottleneck (1x1, 3x3 with groups, 1x1), and the way around it."""

    def __init__(self, inputs: int, outputs: int, middle: int, stride: int, groups: int, basic: bool) -> None:
        super().__init__()
        if basic:
            self.body = nn.Sequential(
                *convolution(inputs, outputs, 3, stride), nn.ReLU(True), *convolution(outputs, outputs, 3)
            )
        else:
            self.body = nn.Sequential(
                *convolution(inputs, middle, 1),
                nn.ReLU(True),
                *convolution(middle, middle, 3, stride, groups),
                nn.ReLU(True),
                *convolution(middle, outputs, 1),
            )
        same = stride == 1 and inputs == outputs
        self.around = nn.Identity() if same else nn.Sequential(*convolution(inputs, outputs, 1, stride))
        self.out = nn.ReLU(True)

    def forward(self, x_bchw: Tensor) -> Tensor:
        y: Tensor = self.out(self.body(x_bchw) + self.around(x_bchw))
        return y


def convolution(
    inputs: int, outputs: int, kernel: int, stride: int = 1, groups: int = 1
) -> tuple[nn.Module, nn.Module]:
    """A padded convolution without bias, and its batch norm."""
    conv = nn.Conv2d(inputs, outputs, kernel, stride, kernel // 2, groups=groups, bias=False)
    return conv, nn.BatchNorm2d(outputs)


def stem() -> nn.Sequential:
    """7x7 at stride 2, then a 3x3 pool at stride 2: 224 px become 56."""
    return nn.Sequential(*convolution(3, 64, 7, 2), nn.ReLU(True), nn.MaxPool2d(3, 2, 1))


def stages(
    depths: tuple[int, ...], basic: bool = False, width: int = 64, groups: int = 1, last_stride: int = 2
) -> list[nn.Sequential]:
    """The residual stages. width: channels of the first 3x3, all groups together."""
    found, inputs = [], 64
    for level, depth in enumerate(depths):
        outputs = 64 * 2**level * (1 if basic else 4)
        strides = [1 if level == 0 else (last_stride if level == len(depths) - 1 else 2)] + [1] * (depth - 1)
        blocks = []
        for stride in strides:
            blocks.append(Residual(inputs, outputs, width * 2**level, stride, groups, basic))
            inputs = outputs
        found.append(nn.Sequential(*blocks))
    return found


def resnet(
    depths: tuple[int, ...], *, basic: bool = False, width: int = 64, groups: int = 1, classes: int = 1000
) -> nn.Module:
    """An ImageNet classifier."""
    return nn.Sequential(
        stem(),
        *stages(depths, basic, width, groups),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(512 if basic else 2048, classes),
    )


def resnet18() -> nn.Module:
    return resnet((2, 2, 2, 2), basic=True)


def resnet50() -> nn.Module:
    return resnet((3, 4, 6, 3))


def resnet152() -> nn.Module:
    return resnet((3, 8, 36, 3))


def resnext50_32x4d() -> nn.Module:
    return resnet((3, 4, 6, 3), width=128, groups=32)


def resnext101_32x4d() -> nn.Module:
    return resnet((3, 4, 23, 3), width=128, groups=32)


def wide_resnet50_2() -> nn.Module:
    return resnet((3, 4, 6, 3), width=128)

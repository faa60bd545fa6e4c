"""SSD300 on a ResNet-50 cut after its third stage: Liu et al. 2015, as the MLPerf reference adapts it."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from .resnet import stages, stem

CLASSES = 81
# (channels in, squeezed, out, stride, padding) of the layers after the backbone: 38 -> 19, 10, 5, 3, 1.
EXTRA = (
    *((1024, 256, 512, 2, 1), (512, 256, 512, 2, 1)),
    *((512, 128, 256, 2, 1), (256, 128, 256, 1, 0), (256, 128, 256, 1, 0)),
)
BOXES = (4, 6, 6, 6, 4, 4)


class SSD300(nn.Module):
    """300 px images to 8,732 boxes with 81 class scores each."""

    def __init__(self) -> None:
        super().__init__()
        # The third stage keeps its size (stride 1): features stay at 38x38.
        self.backbone = nn.Sequential(stem(), *stages((3, 4, 6), last_stride=1))
        self.extra = nn.ModuleList(self._extra(*row) for row in EXTRA)
        channels = (1024, *(row[2] for row in EXTRA))
        pairs = list(zip(channels, BOXES, strict=True))
        self.place = nn.ModuleList(nn.Conv2d(c, n * 4, 3, padding=1) for c, n in pairs)
        self.score = nn.ModuleList(nn.Conv2d(c, n * CLASSES, 3, padding=1) for c, n in pairs)

    @staticmethod
    def _extra(inputs: int, squeezed: int, outputs: int, stride: int, padding: int) -> nn.Sequential:
        return nn.Sequential(
            *(nn.Conv2d(inputs, squeezed, 1, bias=False), nn.BatchNorm2d(squeezed), nn.ReLU(True)),
            nn.Conv2d(squeezed, outputs, 3, stride, padding, bias=False),
            *(nn.BatchNorm2d(outputs), nn.ReLU(True)),
        )

    def forward(self, x_bchw: Tensor) -> tuple[Tensor, Tensor]:
        """(places (batch, 4, boxes), scores (batch, classes, boxes))."""
        maps = [self.backbone(x_bchw)]
        for layer in self.extra:
            maps.append(layer(maps[-1]))
        batch = x_bchw.shape[0]
        places = [head(m).reshape(batch, 4, -1) for head, m in zip(self.place, maps, strict=True)]
        scores = [head(m).reshape(batch, CLASSES, -1) for head, m in zip(self.score, maps, strict=True)]
        return torch.cat(places, 2), torch.cat(scores, 2)

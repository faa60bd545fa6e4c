"""A multi-layer perceptron with ReLU and dropout on flat inputs."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from .base import TrainableModule


class Mlp(TrainableModule):
    """widths: input, hidden..., classes."""

    def __init__(self, widths: list[int], dropout: float) -> None:
        super().__init__()
        layers: list[nn.Module] = []
        for width_in, width_out in itertools.pairwise(widths[:-1]):
            layers += [nn.Linear(width_in, width_out), nn.ReLU(), nn.Dropout(dropout)]
        self.layers = nn.Sequential(*layers, nn.Linear(widths[-2], widths[-1]))

    def forward(self, x_BD: Tensor) -> Tensor:  # noqa: N803 (dimension letters)
        out: Tensor = self.layers(x_BD)
        return out

    @classmethod
    def inputs(cls, batch: int, size: int, config: Mapping[str, Any]) -> dict[str, Tensor]:
        return {
            "x": torch.empty(batch, config["widths"][0], device="meta"),
            "label": torch.empty(batch, dtype=torch.long, device="meta"),
        }

    def loss(self, inputs: Mapping[str, Tensor]) -> Tensor:
        return functional.cross_entropy(self(inputs["x"]), inputs["label"])

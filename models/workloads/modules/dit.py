"""Diffusion transformer with adaLN-Zero conditioning: Peebles and Xie 2023, arXiv:2212.09748.

Trained on latents that are one eighth of the image's side; encoding the images is not part of the step.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from .base import TrainableModule

LATENT_REDUCTION = 8
FREQUENCIES = 256


def modulated(x_BSD: Tensor, shift_BD: Tensor, scale_BD: Tensor) -> Tensor:  # noqa: N803
    return x_BSD * (1 + scale_BD.unsqueeze(1)) + shift_BD.unsqueeze(1)


class DitBlock(nn.Module):
    """Attention and MLP, each shifted, scaled and gated by the condition."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.norm_1 = nn.LayerNorm(width, elementwise_affine=False, eps=1e-6)
        self.qkv = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)
        self.norm_2 = nn.LayerNorm(width, elementwise_affine=False, eps=1e-6)
        self.up = nn.Linear(width, 4 * width)
        self.down = nn.Linear(4 * width, width)
        self.condition = nn.Sequential(nn.SiLU(), nn.Linear(width, 6 * width))

    def attention(self, x_BSD: Tensor) -> Tensor:  # noqa: N803
        batch, length, width = x_BSD.shape
        heads = (batch, length, self.heads, width // self.heads)
        query, key, value = (part.view(heads).transpose(1, 2) for part in self.qkv(x_BSD).chunk(3, dim=-1))
        attended = functional.scaled_dot_product_attention(query, key, value)
        out: Tensor = self.out(attended.transpose(1, 2).reshape(batch, length, width))
        return out

    def forward(self, x_BSD: Tensor, condition_BD: Tensor) -> Tensor:  # noqa: N803
        shift_1, scale_1, gate_1, shift_2, scale_2, gate_2 = self.condition(condition_BD).chunk(6, dim=1)
        attended = self.attention(modulated(self.norm_1(x_BSD), shift_1, scale_1))
        x_BSD = x_BSD + gate_1.unsqueeze(1) * attended  # noqa: N806
        wide = functional.gelu(self.up(modulated(self.norm_2(x_BSD), shift_2, scale_2)), approximate="tanh")
        residual: Tensor = x_BSD + gate_2.unsqueeze(1) * self.down(wide)
        return residual


class Dit(TrainableModule):
    """Predicts noise and its variance for latents (B, channels, side, side), given step and class."""

    def __init__(
        self, image_size: int, patch: int, channels: int, width: int, depth: int, heads: int, classes: int
    ) -> None:
        super().__init__()
        side = image_size // LATENT_REDUCTION
        self.patches = nn.Conv2d(channels, width, kernel_size=patch, stride=patch)
        # A fixed sine table, but a parameter of the published model, and counted there.
        self.places = nn.Parameter(torch.zeros(1, (side // patch) ** 2, width), requires_grad=False)
        self.step = nn.Sequential(nn.Linear(FREQUENCIES, width), nn.SiLU(), nn.Linear(width, width))
        self.classes = nn.Embedding(classes + 1, width)  # and one for "no class"
        self.blocks = nn.ModuleList(DitBlock(width, heads) for _ in range(depth))
        self.norm = nn.LayerNorm(width, elementwise_affine=False, eps=1e-6)
        self.condition = nn.Sequential(nn.SiLU(), nn.Linear(width, 2 * width))
        self.head = nn.Linear(width, patch * patch * channels * 2)

    def forward(self, latents: Tensor, step_B: Tensor, class_B: Tensor) -> Tensor:  # noqa: N803
        x_BSD = self.patches(latents).flatten(2).transpose(1, 2) + self.places  # noqa: N806
        condition_BD = self.step(waves(step_B, x_BSD.dtype)) + self.classes(class_B)  # noqa: N806
        for block in self.blocks:
            x_BSD = self.run_block(block, x_BSD, condition_BD)  # noqa: N806
        shift, scale = self.condition(condition_BD).chunk(2, dim=1)
        out: Tensor = self.head(modulated(self.norm(x_BSD), shift, scale))
        return out

    @classmethod
    def inputs(cls, batch: int, size: int, config: Mapping[str, Any]) -> dict[str, Tensor]:
        side = size // LATENT_REDUCTION
        latents = (batch, config["channels"], side, side)
        return {
            "latents": torch.empty(latents, device="meta"),
            "noise": torch.empty(latents, device="meta"),
            "step": torch.empty(batch, dtype=torch.long, device="meta"),
            "class": torch.empty(batch, dtype=torch.long, device="meta"),
        }

    def loss(self, inputs: Mapping[str, Tensor]) -> Tensor:
        predicted = self(inputs["latents"], inputs["step"], inputs["class"]).chunk(2, dim=-1)[0]
        return functional.mse_loss(predicted, inputs["noise"].view(predicted.shape))


def waves(step_B: Tensor, dtype: torch.dtype) -> Tensor:  # noqa: N803
    """(B, FREQUENCIES) cosines and sines of the diffusion step."""
    half = FREQUENCIES // 2
    ladder = torch.arange(half, dtype=torch.float32, device=step_B.device)
    angles = step_B[:, None].float() * torch.exp(-math.log(10_000) * ladder / half)[None]
    return torch.cat([torch.cos(angles), torch.sin(angles)], dim=-1).to(dtype)

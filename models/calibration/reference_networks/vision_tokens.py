"""Classifiers on image patches that wrote their score matrix to memory: timm of 2022, before torch 2.0.

BEiT (Bao et al. 2021), CaiT (Touvron et al. 2021), MLP-Mixer (Tolstikhin et al. 2021); and NFNet (Brock et
al. 2021) of the same library, which standardises its convolutions' weights at every step.

Dimensions: B batch, N patches, D width, H heads, S head size.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn
from torch.nn import functional


def _mlp(width: int, inner: int) -> nn.Sequential:
    return nn.Sequential(nn.Linear(width, inner), nn.GELU(), nn.Linear(inner, width))


class Patches(nn.Module):
    """Non-overlapping 16x16 patches as tokens."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.proj = nn.Conv2d(3, width, 16, 16)

    def forward(self, x_bchw: Tensor) -> Tensor:
        tokens: Tensor = self.proj(x_bchw).flatten(2).transpose(1, 2)
        return tokens


def _heads(qkv: Tensor, heads: int) -> tuple[Tensor, Tensor, Tensor]:
    """(B, N, 3 D) -> three of (B, H, N, S)."""
    batch, count, width = qkv.shape
    parts = qkv.reshape(batch, count, 3, heads, width // (3 * heads)).permute(2, 0, 3, 1, 4)
    query, key, value = parts.unbind(0)
    return query, key, value


class BiasedBlock(nn.Module):
    """BEiT's: a learned bias per pair of positions on the scores, and scales on both branches."""

    def __init__(self, width: int, heads: int, side: int) -> None:
        super().__init__()
        self.heads, self.tokens = heads, side * side + 1
        self.norm_1, self.norm_2 = nn.LayerNorm(width, eps=1e-6), nn.LayerNorm(width, eps=1e-6)
        self.qkv = nn.Linear(width, 3 * width, bias=False)
        self.q_bias, self.v_bias = nn.Parameter(torch.empty(width)), nn.Parameter(torch.empty(width))
        self.register_buffer("k_bias", torch.empty(width), persistent=False)
        self.table = nn.Parameter(torch.empty((2 * side - 1) ** 2 + 3, heads))
        index = torch.empty(self.tokens, self.tokens, dtype=torch.long)
        self.register_buffer("index", index, persistent=False)
        self.proj, self.mlp = nn.Linear(width, width), _mlp(width, 4 * width)
        self.gamma_1, self.gamma_2 = nn.Parameter(torch.empty(width)), nn.Parameter(torch.empty(width))

    def _attention(self, x_bnd: Tensor) -> Tensor:
        k_bias, index = self.get_buffer("k_bias"), self.get_buffer("index")
        bias = torch.cat((self.q_bias, k_bias, self.v_bias))
        query, key, value = _heads(functional.linear(x_bnd, self.qkv.weight, bias), self.heads)
        scores = query * query.shape[-1] ** -0.5 @ key.transpose(-2, -1)
        positions = self.table[index.view(-1)].view(self.tokens, self.tokens, -1)
        scores = scores + positions.permute(2, 0, 1).contiguous().unsqueeze(0)
        mixed = (scores.softmax(-1) @ value).transpose(1, 2).reshape(x_bnd.shape)
        y: Tensor = self.proj(mixed)
        return y

    def forward(self, x_bnd: Tensor) -> Tensor:
        x_bnd = x_bnd + self.gamma_1 * self._attention(self.norm_1(x_bnd))
        y: Tensor = x_bnd + self.gamma_2 * self.mlp(self.norm_2(x_bnd))
        return y


class Beit(nn.Module):
    def __init__(self, width: int, layers: int, heads: int, side: int = 14) -> None:
        super().__init__()
        self.patches, self.first = Patches(width), nn.Parameter(torch.empty(1, 1, width))
        self.blocks = nn.ModuleList(BiasedBlock(width, heads, side) for _ in range(layers))
        self.norm, self.head = nn.LayerNorm(width, eps=1e-6), nn.Linear(width, 1000)

    def forward(self, x_bchw: Tensor) -> Tensor:
        x_bnd = self.patches(x_bchw)
        x_bnd = torch.cat((self.first.expand(x_bnd.shape[0], -1, -1), x_bnd), 1)
        for block in self.blocks:
            x_bnd = block(x_bnd)
        logits: Tensor = self.head(self.norm(x_bnd[:, 1:].mean(1)))
        return logits


def beit_base() -> nn.Module:
    return Beit(768, 12, 12)


def beit_large() -> nn.Module:
    return Beit(1024, 24, 16)


class TalkingBlock(nn.Module):
    """CaiT's: heads mix their scores before and after softmax."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.norm_1, self.norm_2 = nn.LayerNorm(width, eps=1e-6), nn.LayerNorm(width, eps=1e-6)
        self.qkv, self.proj = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.before, self.after = nn.Linear(heads, heads), nn.Linear(heads, heads)
        self.mlp = _mlp(width, 4 * width)
        self.gamma_1, self.gamma_2 = nn.Parameter(torch.empty(width)), nn.Parameter(torch.empty(width))

    def _attention(self, x_bnd: Tensor) -> Tensor:
        query, key, value = _heads(self.qkv(x_bnd), self.heads)
        scores = query * query.shape[-1] ** -0.5 @ key.transpose(-2, -1)
        scores = self.before(scores.permute(0, 2, 3, 1)).permute(0, 3, 1, 2).softmax(-1)
        scores = self.after(scores.permute(0, 2, 3, 1)).permute(0, 3, 1, 2)
        y: Tensor = self.proj((scores @ value).transpose(1, 2).reshape(x_bnd.shape))
        return y

    def forward(self, x_bnd: Tensor) -> Tensor:
        x_bnd = x_bnd + self.gamma_1 * self._attention(self.norm_1(x_bnd))
        y: Tensor = x_bnd + self.gamma_2 * self.mlp(self.norm_2(x_bnd))
        return y


class ClassBlock(nn.Module):
    """CaiT's last two: only the class token asks."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.norm_1, self.norm_2 = nn.LayerNorm(width, eps=1e-6), nn.LayerNorm(width, eps=1e-6)
        self.q, self.k, self.v, self.proj = (nn.Linear(width, width) for _ in range(4))
        self.mlp = _mlp(width, 4 * width)
        self.gamma_1, self.gamma_2 = nn.Parameter(torch.empty(width)), nn.Parameter(torch.empty(width))

    def _attention(self, x_bnd: Tensor) -> Tensor:
        batch, count, width = x_bnd.shape
        split = (batch, count, self.heads, width // self.heads)
        query = self.q(x_bnd[:, 0]).unsqueeze(1).reshape(batch, 1, *split[2:]).permute(0, 2, 1, 3)
        key, value = (part(x_bnd).reshape(split).permute(0, 2, 1, 3) for part in (self.k, self.v))
        weights = (query * split[3] ** -0.5 @ key.transpose(-2, -1)).softmax(-1)
        y: Tensor = self.proj((weights @ value).transpose(1, 2).reshape(batch, 1, width))
        return y

    def forward(self, x_bnd: Tensor, first_b1d: Tensor) -> Tensor:
        seen = torch.cat((first_b1d, x_bnd), 1)
        first_b1d = first_b1d + self.gamma_1 * self._attention(self.norm_1(seen))
        y: Tensor = first_b1d + self.gamma_2 * self.mlp(self.norm_2(first_b1d))
        return y


class Cait(nn.Module):
    def __init__(self, width: int, layers: int, heads: int) -> None:
        super().__init__()
        self.patches, self.first = Patches(width), nn.Parameter(torch.empty(1, 1, width))
        self.positions = nn.Parameter(torch.empty(1, 196, width))
        self.blocks = nn.ModuleList(TalkingBlock(width, heads) for _ in range(layers))
        self.last = nn.ModuleList(ClassBlock(width, heads) for _ in range(2))
        self.norm, self.head = nn.LayerNorm(width, eps=1e-6), nn.Linear(width, 1000)

    def forward(self, x_bchw: Tensor) -> Tensor:
        x_bnd = self.patches(x_bchw) + self.positions
        for block in self.blocks:
            x_bnd = block(x_bnd)
        first_b1d = self.first.expand(x_bnd.shape[0], -1, -1)
        for block in self.last:
            first_b1d = block(x_bnd, first_b1d)
        logits: Tensor = self.head(self.norm(torch.cat((first_b1d, x_bnd), 1))[:, 0])
        return logits


def cait_s24() -> nn.Module:
    return Cait(384, 24, 8)


class MixerBlock(nn.Module):
    """Mix over patches, then over channels."""

    def __init__(self, width: int, patches: int) -> None:
        super().__init__()
        self.norm_1, self.norm_2 = nn.LayerNorm(width, eps=1e-6), nn.LayerNorm(width, eps=1e-6)
        self.tokens, self.channels = _mlp(patches, width // 2), _mlp(width, 4 * width)

    def forward(self, x_bnd: Tensor) -> Tensor:
        x_bnd = x_bnd + self.tokens(self.norm_1(x_bnd).transpose(1, 2)).transpose(1, 2)
        y: Tensor = x_bnd + self.channels(self.norm_2(x_bnd))
        return y


class Mean(nn.Module):
    """Over the tokens."""

    def forward(self, x_bnd: Tensor) -> Tensor:
        return x_bnd.mean(1)


def mixer_b16() -> nn.Module:
    blocks = [MixerBlock(768, 196) for _ in range(12)]
    return nn.Sequential(Patches(768), *blocks, nn.LayerNorm(768, eps=1e-6), Mean(), nn.Linear(768, 1000))


class StandardConv(nn.Conv2d):
    """A convolution whose weights are standardised, with a gain, at every step."""

    def __init__(self, inputs: int, outputs: int, kernel: int, stride: int = 1, groups: int = 1) -> None:
        super().__init__(inputs, outputs, kernel, stride, kernel // 2, groups=groups)
        self.gain = nn.Parameter(torch.empty(outputs, 1, 1, 1))

    def forward(self, x_bchw: Tensor) -> Tensor:
        flat = self.weight.reshape(1, self.out_channels, -1)
        gain = (self.gain * math.sqrt(1 / self.weight[0].numel())).view(-1)
        weight = functional.batch_norm(flat, None, None, weight=gain, training=True).reshape_as(self.weight)
        return functional.conv2d(
            x_bchw, weight, self.bias, self.stride, self.padding, self.dilation, self.groups
        )


class NfBlock(nn.Module):
    """A bottleneck with two grouped 3x3, squeeze and excitation, and a scaled way around; no norms.

    timm's own variant: GELU's gain is folded into the weights and no gain is learned for the branch.
    """

    def __init__(self, inputs: int, outputs: int, stride: int, first: bool) -> None:
        super().__init__()
        middle = outputs // 2
        groups = middle // 128
        self.stride, self.first = stride, first
        self.around = StandardConv(inputs, outputs, 1) if first else None
        self.conv_1 = StandardConv(inputs, middle, 1)
        self.conv_2 = StandardConv(middle, middle, 3, stride, groups)
        self.conv_3 = StandardConv(middle, middle, 3, 1, groups)
        self.conv_4 = StandardConv(middle, outputs, 1)
        self.down, self.up = nn.Conv2d(outputs, outputs // 2, 1), nn.Conv2d(outputs // 2, outputs, 1)

    def forward(self, x_bchw: Tensor) -> Tensor:
        y: Tensor = functional.gelu(x_bchw) * 0.97
        around = x_bchw
        if self.around is not None:
            around = self.around(functional.avg_pool2d(y, 2, self.stride) if self.stride > 1 else y)
        y = self.conv_1(y)
        for conv in (self.conv_2, self.conv_3, self.conv_4):
            y = conv(functional.gelu(y))
        weight = self.up(functional.relu(self.down(y.mean((2, 3), keepdim=True)), inplace=True))
        y = 2.0 * (y * weight.sigmoid()) * 0.2 + around
        return y


def nfnet_f0() -> nn.Module:
    layers: list[nn.Module] = [
        *(StandardConv(3, 16, 3, 2), nn.GELU(), StandardConv(16, 32, 3), nn.GELU()),
        *(StandardConv(32, 64, 3), nn.GELU(), StandardConv(64, 128, 3, 2)),
    ]
    inputs = 128
    for outputs, depth, stride in ((256, 1, 1), (512, 2, 2), (1536, 6, 2), (1536, 3, 2)):
        for index in range(depth):
            layers.append(NfBlock(inputs, outputs, stride if index == 0 else 1, index == 0))
            inputs = outputs
    head = [nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(3072, 1000)]
    return nn.Sequential(*layers, StandardConv(1536, 3072, 1), nn.GELU(), *head)

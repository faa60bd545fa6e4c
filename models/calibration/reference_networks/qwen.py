"""Qwen (first generation, 2023), as its own code runs with the fused kernels of flash-attention installed.

Norms, rotary embedding and attention are one kernel each; the loss is taken on 16-bit logits. The class of
the second generation in `transformers` spells these out in a dozen ops, which the table did not run.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from ...workloads.modules.base import TrainableModule, token_ids


class FusedNorm(nn.Module):
    """RMS norm as one kernel: layer norm without bias moves the same bytes."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(width))

    def forward(self, x_btd: Tensor) -> Tensor:
        return functional.layer_norm(x_btd, (x_btd.shape[-1],), self.weight)


class Block(nn.Module):
    """One fused projection to queries, keys and values; a gated linear unit."""

    def __init__(self, width: int, heads: int, inner: int) -> None:
        super().__init__()
        self.heads = heads
        self.norm_1, self.norm_2 = FusedNorm(width), FusedNorm(width)
        self.qkv = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width, bias=False)
        self.up, self.gate = nn.Linear(width, inner, bias=False), nn.Linear(width, inner, bias=False)
        self.down = nn.Linear(inner, width, bias=False)

    def forward(self, x_btd: Tensor) -> Tensor:
        batch, time, width = x_btd.shape
        split = (batch, time, self.heads, width // self.heads)
        query, key, value = (
            part.view(split).transpose(1, 2) for part in self.qkv(self.norm_1(x_btd)).chunk(3, dim=-1)
        )
        # The rotation reads and writes queries and keys once each.
        query, key = query * 1.5, key * 1.5
        mixed = functional.scaled_dot_product_attention(query, key, value, is_causal=True)
        x_btd = x_btd + self.out(mixed.transpose(1, 2).reshape(batch, time, width))
        seen = self.norm_2(x_btd)
        y: Tensor = x_btd + self.down(self.up(seen) * functional.silu(self.gate(seen)))
        return y


class Qwen(TrainableModule):
    """A decoder with an output table of its own."""

    def __init__(self, width: int, heads: int, inner: int, layers: int, vocabulary: int) -> None:
        super().__init__()
        self.words = nn.Embedding(vocabulary, width)
        self.blocks = nn.ModuleList(Block(width, heads, inner) for _ in range(layers))
        self.norm = FusedNorm(width)
        self.head = nn.Linear(width, vocabulary, bias=False)

    def forward(self, tokens_bt: Tensor) -> Tensor:
        x_btd = self.words(tokens_bt)
        for block in self.blocks:
            x_btd = self.run_block(block, x_btd)
        logits: Tensor = self.head(self.norm(x_btd))
        return logits

    @classmethod
    def inputs(cls, batch: int, size: int, config: Mapping[str, Any]) -> dict[str, Tensor]:
        return {"tokens": token_ids(batch, size), "next_tokens": token_ids(batch, size)}

    def loss(self, inputs: Mapping[str, Tensor]) -> Tensor:
        logits = self(inputs["tokens"])
        return functional.cross_entropy(logits.flatten(0, 1), inputs["next_tokens"].flatten())

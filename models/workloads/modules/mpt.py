"""MPT, as MosaicML's llm-foundry trains it: a GPT with fused attention and a tied head.

Its ALiBi bias is added inside the attention kernel, so that here it costs neither an op nor a byte. The class
`transformers` has writes the score matrix instead, which is not what anybody trains with.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from .base import TrainableModule, token_ids


class MptBlock(nn.Module):
    """Pre-norm attention and a four times wider GELU layer."""

    def __init__(self, width: int, heads: int, bias: bool) -> None:
        super().__init__()
        self.heads = heads
        self.norm_1 = nn.LayerNorm(width, bias=bias)
        self.qkv = nn.Linear(width, 3 * width, bias=bias)
        self.out = nn.Linear(width, width, bias=bias)
        self.norm_2 = nn.LayerNorm(width, bias=bias)
        self.up = nn.Linear(width, 4 * width, bias=bias)
        self.down = nn.Linear(4 * width, width, bias=bias)

    def forward(self, x_BSD: Tensor) -> Tensor:  # noqa: N803 (dimension letters)
        batch, length, width = x_BSD.shape
        heads = (batch, length, self.heads, width // self.heads)
        query, key, value = (
            part.view(heads).transpose(1, 2) for part in self.qkv(self.norm_1(x_BSD)).chunk(3, dim=-1)
        )
        attended = functional.scaled_dot_product_attention(query, key, value, is_causal=True)
        x_BSD = x_BSD + self.out(attended.transpose(1, 2).reshape(batch, length, width))  # noqa: N806
        residual: Tensor = x_BSD + self.down(functional.gelu(self.up(self.norm_2(x_BSD))))
        return residual


class Mpt(TrainableModule):
    """positions: "learned" (one row for each of max_seq_len places) or "alibi"."""

    def __init__(
        self,
        vocab_size: int,
        d_model: int,
        n_heads: int,
        n_layers: int,
        max_seq_len: int,
        positions: str,
        bias: bool,
    ) -> None:
        super().__init__()
        self.vocab_size = vocab_size
        self.tokens = nn.Embedding(vocab_size, d_model)
        self.places = nn.Embedding(max_seq_len, d_model) if positions == "learned" else None
        self.blocks = nn.ModuleList(MptBlock(d_model, n_heads, bias) for _ in range(n_layers))
        self.norm = nn.LayerNorm(d_model, bias=bias)

    def forward(self, tokens_BS: Tensor) -> Tensor:  # noqa: N803 (dimension letters)
        x_BSD = self.tokens(tokens_BS)  # noqa: N806
        if self.places is not None:
            x_BSD = x_BSD + self.places(torch.arange(tokens_BS.shape[1], device=tokens_BS.device))  # noqa: N806
        for block in self.blocks:
            x_BSD = self.run_block(block, x_BSD)  # noqa: N806
        return functional.linear(self.norm(x_BSD), self.tokens.weight)

    @classmethod
    def inputs(cls, batch: int, size: int, config: Mapping[str, Any]) -> dict[str, Tensor]:
        return {"tokens": token_ids(batch, size), "next_tokens": token_ids(batch, size)}

    def loss(self, inputs: Mapping[str, Tensor]) -> Tensor:
        logits = self(inputs["tokens"])
        return functional.cross_entropy(logits.view(-1, self.vocab_size), inputs["next_tokens"].view(-1))

"""GNMT v2 (Wu et al. 2016, as the NVIDIA example simplifies it) and Transformer-big (Vaswani et al. 2017)."""

from __future__ import annotations

import torch
from torch import Tensor, nn

GNMT_VOCABULARY = 31_794
TRANSFORMER_VOCABULARY = 33_712


class Lstm(nn.Module):
    """An LSTM layer as cuDNN prices it, not as it computes: for tracing only.

    cuDNN multiplies the inputs of all time steps at once, keeps the recurrent weights on chip, fuses the
    gates into one kernel and sums weight gradients over all steps in one product. Unrolled in aten ops, the
    same layer would move its weights and their gradients once per step. So both products stand here over
    all steps together, and the gates as products and sums over whole sequences.
    """

    def __init__(self, inputs: int, hidden: int) -> None:
        super().__init__()
        self.from_input = nn.Linear(inputs, 4 * hidden)
        self.from_hidden = nn.Linear(hidden, 4 * hidden)
        self.hidden = hidden

    def forward(self, x_bth: Tensor) -> Tensor:
        projected = self.from_input(x_bth)
        gates = projected + self.from_hidden(projected[..., : self.hidden])
        inward, forget, new, outward = gates.chunk(4, 2)
        out: Tensor = torch.tanh(inward * new + forget) * outward
        return out


class GNMT(nn.Module):
    """Four LSTM layers each side, the first encoder layer in both directions, normed additive attention.

    Shapes: tokens (batch, time); hidden size 1024.
    """

    def __init__(self, hidden: int = 1024) -> None:
        super().__init__()
        self.embedding = nn.Embedding(GNMT_VOCABULARY, hidden)
        self.onward, self.back = Lstm(hidden, hidden), Lstm(hidden, hidden)
        self.second = Lstm(2 * hidden, hidden)
        self.encoder = nn.ModuleList(Lstm(hidden, hidden) for _ in range(2))
        self.decoder_first = Lstm(hidden, hidden)
        self.query = nn.Linear(hidden, hidden, bias=False)
        self.key = nn.Linear(hidden, hidden, bias=False)
        self.vote = nn.Parameter(torch.empty(hidden))
        self.decoder = nn.ModuleList(Lstm(2 * hidden, hidden) for _ in range(3))
        self.dropout = nn.Dropout(0.2)
        self.output = nn.Linear(hidden, GNMT_VOCABULARY)

    def forward(self, source_bs: Tensor, target_bt: Tensor) -> Tensor:
        """Logits (batch, target time, vocabulary)."""
        words = self.dropout(self.embedding(source_bs))
        x = self.second(self.dropout(torch.cat((self.onward(words), self.back(words)), 2)))
        for layer in self.encoder:
            x = layer(self.dropout(x)) + x
        y = self.decoder_first(self.dropout(self.embedding(target_bt)))
        context = self._attend(y, x)
        for layer in self.decoder:
            y = layer(torch.cat((self.dropout(y), context), 2)) + y
        logits: Tensor = self.output(y)
        return logits

    def _attend(self, y_bth: Tensor, x_bsh: Tensor) -> Tensor:
        sums = torch.tanh(self.query(y_bth).unsqueeze(2) + self.key(x_bsh).unsqueeze(1))
        scores_bts = torch.softmax((sums * self.vote).sum(3), 2)
        return torch.bmm(scores_bts, x_bsh)


class SelfOrCross(nn.Module):
    """Multi-head attention with a score matrix in memory, as the 2019-2021 scripts ran it."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.query, self.key = nn.Linear(width, width), nn.Linear(width, width)
        self.value, self.out = nn.Linear(width, width), nn.Linear(width, width)
        self.dropout = nn.Dropout(0.1)

    def forward(self, x_btd: Tensor, memory_bsd: Tensor, mask_ts: Tensor | None) -> Tensor:
        batch, time, width = x_btd.shape
        split = (batch, -1, self.heads, width // self.heads)
        query = self.query(x_btd).view(split).transpose(1, 2)
        key = self.key(memory_bsd).view(split).transpose(1, 2)
        value = self.value(memory_bsd).view(split).transpose(1, 2)
        scores = query @ key.transpose(2, 3) * (width // self.heads) ** -0.5
        if mask_ts is not None:
            scores = scores + mask_ts
        mixed = self.dropout(torch.softmax(scores, 3)) @ value
        y: Tensor = self.out(mixed.transpose(1, 2).reshape(batch, time, width))
        return y


class Layer(nn.Module):
    """Post-norm: attention to itself, in the decoder to the encoder too, then two wide linear layers."""

    def __init__(self, width: int, inner: int, heads: int, cross: bool) -> None:
        super().__init__()
        self.itself = SelfOrCross(width, heads)
        self.cross = SelfOrCross(width, heads) if cross else None
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(3 if cross else 2))
        self.wide = nn.Sequential(nn.Linear(width, inner), nn.ReLU(True), nn.Linear(inner, width))
        self.dropout = nn.Dropout(0.1)

    def forward(self, x_btd: Tensor, memory_bsd: Tensor | None, mask_tt: Tensor | None) -> Tensor:
        x = self.norms[0](x_btd + self.dropout(self.itself(x_btd, x_btd, mask_tt)))
        if self.cross is not None and memory_bsd is not None:
            x = self.norms[1](x + self.dropout(self.cross(x, memory_bsd, None)))
        y: Tensor = self.norms[-1](x + self.dropout(self.wide(x)))
        return y


class TransformerBig(nn.Module):
    """Six layers each side, width 1024, inner 4096, 16 heads; all three embeddings shared."""

    def __init__(self, width: int = 1024, inner: int = 4096, heads: int = 16, depth: int = 6) -> None:
        super().__init__()
        self.embedding = nn.Embedding(TRANSFORMER_VOCABULARY, width)
        self.encoder = nn.ModuleList(Layer(width, inner, heads, False) for _ in range(depth))
        self.decoder = nn.ModuleList(Layer(width, inner, heads, True) for _ in range(depth))
        self.dropout = nn.Dropout(0.1)

    def forward(self, source_bs: Tensor, target_bt: Tensor) -> Tensor:
        """Logits (batch, target time, vocabulary)."""
        x = self.dropout(self.embedding(source_bs))
        for layer in self.encoder:
            x = layer(x, None, None)
        time = target_bt.shape[1]
        future = torch.full((time, time), float("-inf"), device=target_bt.device).triu(1)
        y = self.dropout(self.embedding(target_bt))
        for layer in self.decoder:
            y = layer(y, x, future.to(y.dtype))
        return nn.functional.linear(y, self.embedding.weight)

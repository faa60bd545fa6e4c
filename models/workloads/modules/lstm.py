"""The word-level LSTM language model of Zaremba, Sutskever and Vinyals 2014, arXiv:1409.2329."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from torch import Tensor, nn
from torch.nn import functional

from .base import TrainableModule, token_ids


class LstmLanguageModel(TrainableModule):
    """Embedding, stacked LSTM, softmax over the vocabulary; dropout between layers only."""

    def __init__(self, vocab_size: int, width: int, layers: int, dropout: float) -> None:
        super().__init__()
        self.vocab_size = vocab_size
        self.embedding = nn.Embedding(vocab_size, width)
        self.dropout = nn.Dropout(dropout)
        self.lstm = nn.LSTM(width, width, layers, dropout=dropout, batch_first=True)
        self.head = nn.Linear(width, vocab_size)

    def forward(self, tokens_BS: Tensor) -> Tensor:  # noqa: N803 (dimension letters)
        hidden_BSD, _ = self.lstm(self.dropout(self.embedding(tokens_BS)))  # noqa: N806
        logits_BSV: Tensor = self.head(self.dropout(hidden_BSD))  # noqa: N806
        return logits_BSV

    @classmethod
    def inputs(cls, batch: int, size: int, config: Mapping[str, Any]) -> dict[str, Tensor]:
        return {"tokens": token_ids(batch, size), "next_tokens": token_ids(batch, size)}

    def loss(self, inputs: Mapping[str, Tensor]) -> Tensor:
        logits = self(inputs["tokens"])
        return functional.cross_entropy(logits.view(-1, self.vocab_size), inputs["next_tokens"].view(-1))

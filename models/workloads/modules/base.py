"""What a plain module of the zoo offers beside `forward`."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any

import torch
import torch.utils.checkpoint
from torch import Tensor, nn


class TrainableModule(nn.Module, ABC):
    """A module that knows its inputs and its loss, and can recompute its blocks in backward."""

    recompute_blocks = False

    @classmethod
    @abstractmethod
    def inputs(cls, batch: int, size: int, config: Mapping[str, Any]) -> dict[str, Tensor]:
        """One micro-batch on the meta device; size in tokens or pixels, config as for `__init__`."""

    @abstractmethod
    def loss(self, inputs: Mapping[str, Tensor]) -> Tensor:
        """The scalar that training descends."""

    def gradient_checkpointing_enable(self, gradient_checkpointing_kwargs: object = None) -> None:
        """Keep only the input of each block and run it again in backward; named as in transformers."""
        self.recompute_blocks = True

    def run_block(self, block: nn.Module, *arguments: Tensor) -> Tensor:
        """The block's output, under recomputation where that is on."""
        if self.recompute_blocks and self.training:
            # By attribute: the tracer replaces this function to carry its casts into the recomputation.
            again: Tensor = torch.utils.checkpoint.checkpoint(block, *arguments, use_reentrant=False)
            return again
        out: Tensor = block(*arguments)
        return out


def token_ids(batch: int, length: int) -> Tensor:
    """(B, S) token ids; on meta they have a shape and no values."""
    return torch.empty(batch, length, dtype=torch.long, device="meta")

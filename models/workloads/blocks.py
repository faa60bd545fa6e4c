"""The repeated blocks of a language model, from its configuration: what GPUs can hold between them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..model_parallel import Blocks
from .records import Workload

# What libraries call the same thing.
_LAYERS = ("num_hidden_layers", "n_layers", "n_layer", "num_layers")
_WIDTHS = ("hidden_size", "n_embd", "d_model", "dim")
_HEADS = ("num_attention_heads", "n_heads", "n_head", "num_heads")
# One stack of like layers over tokens. Encoder-decoders have two stacks, mixtures of experts exchange tokens.
_RECIPES = frozenset({"causal-lm", "masked-lm", "question-answering", "sequence-classification", "module"})
_FEW_OUTPUTS = frozenset({"question-answering", "sequence-classification"})
_EXPERTS = ("num_local_experts", "num_experts")


def blocks_of(workload: Workload, size: int | None) -> Blocks | None:
    """The blocks of `workload` at `size` tokens a sample; None where it is no plain stack of layers."""
    config = workload.builder.config
    layers, width = _first(config, _LAYERS), _first(config, _WIDTHS)
    vocabulary = _first(config, ("vocab_size",))
    tokens = size or workload.default_size
    if workload.kind != "transformer" or workload.builder.recipe not in _RECIPES or vocabulary is None:
        return None
    if layers is None or width is None or tokens is None or any(name in config for name in _EXPERTS):
        return None
    predicts_tokens = workload.builder.recipe not in _FEW_OUTPUTS
    return Blocks(layers, width, tokens, _first(config, _HEADS), vocabulary, predicts_tokens)


def _first(config: Mapping[str, Any], names: tuple[str, ...]) -> int | None:
    return next((int(config[name]) for name in names if isinstance(config.get(name), int)), None)

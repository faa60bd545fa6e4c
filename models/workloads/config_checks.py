"""Refuse figures of a configuration that no model has, before any of them is used to build one."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from typing import Any

from ..errors import BadConfig

# What each kind of key may hold; the first pattern that matches the key's last part decides. The largest
# values are ten times those of any published model: 126 layers, 53,248 wide, 10 M positions, 1 M tokens.
_BOUNDS: tuple[tuple[re.Pattern[str], float, float, str], ...] = (
    (re.compile(r"(dropout|_pdrop|_prob|drop_rate|drop_path_rate)$"), 0, 1, "between 0 and 1"),
    (re.compile(r"type_vocab_size$"), 0, 1_000, "between 0 and 1,000"),
    (
        re.compile(r"(^num_hidden_layers|^num_layers|n_layers?|_layers|^depths?)$"),
        0,
        2_000,
        "between 0 and 2,000",
    ),
    (re.compile(r"(num_.*heads|n_heads?|_attention_heads)$"), 1, 10_000, "between 1 and 10,000"),
    (re.compile(r"(hidden_size|n_embd|d_model|embed_dim|^dim)$"), 1, 1_000_000, "between 1 and 1,000,000"),
    (re.compile(r"(intermediate_size|n_inner|d_ff|ffn_dim)$"), 1, 10_000_000, "between 1 and 10,000,000"),
    (re.compile(r"(vocab_size)$"), 1, 10_000_000, "between 1 and 10,000,000"),
    (re.compile(r"(_experts)$"), 0, 100_000, "between 0 and 100,000"),
    (re.compile(r"(position_embeddings|n_positions|n_ctx)$"), -1, 1_000_000_000, "at most 1,000,000,000"),
    (re.compile(r"(image_size|patch_size|num_channels)$"), 1, 100_000, "between 1 and 100,000"),
)
_WHOLE = re.compile(r"(size|layers?|heads?|n_embd|d_model|d_ff|_dim|positions|embeddings|experts|channels)$")

# Deeper nesting than this is an attack or an accident; the deepest published configurations have 3 levels.
_DEEPEST = 16


def check(values: Mapping[str, Any], file: str) -> None:
    """Raises BadConfig, naming file and key, for a figure that is not finite, not whole or absurd."""
    for key, value in _figures(values, file, "", 0):
        if isinstance(value, float) and not math.isfinite(value):
            raise BadConfig(f'{file}: key "{key}" is {value}, which is no number')
        name = re.sub(r"(\[\d+\])+$", "", key).rsplit(".", 1)[-1]
        if _WHOLE.search(name) and value != int(value):
            raise BadConfig(f'{file}: key "{key}" must be a whole number, not {value}')
        for pattern, low, high, words in _BOUNDS:
            if pattern.search(name):
                if not low <= value <= high:
                    raise BadConfig(f'{file}: key "{key}" must be {words}, not {value}')
                break


def _figures(value: Any, file: str, key: str, depth: int) -> Iterator[tuple[str, float]]:
    if depth > _DEEPEST:
        raise BadConfig(f'{file}: key "{key}" is nested deeper than {_DEEPEST} levels')
    if isinstance(value, bool):
        return
    if isinstance(value, int | float):
        yield key, value
    elif isinstance(value, Mapping):
        for name, inner in value.items():
            yield from _figures(inner, file, f"{key}.{name}" if key else name, depth + 1)
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            yield from _figures(inner, file, f"{key}[{index}]", depth + 1)

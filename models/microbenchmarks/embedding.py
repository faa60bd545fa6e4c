"""Embedding lookups and their gradient: rows touched forward, the whole table written backward."""

from __future__ import annotations

from collections.abc import Iterator

from .registry import Call, Case, Operands, Target, suite

# (tokens, table rows, width)
TABLES = ((112, 448, 640), (112, 2, 640), (480, 20_000, 640), (900, 20_000, 640), (350, 8_000, 1300))


@suite("embedding")
def embedding(target: Target) -> Iterator[Case]:
    for tokens, rows, width in TABLES[::3] if target.tiny else TABLES:
        yield from embedding_cases(tokens * target.scale, rows, width)


def embedding_cases(tokens: int, rows: int, width: int) -> Iterator[Case]:
    def forward(take: Operands) -> Call:
        import torch

        table, ids = take.floats(rows, width), take.integers(tokens, below=rows)
        return lambda: torch.ops.aten.embedding(table, ids)

    def backward(take: Operands) -> Call:
        import torch

        gradient, ids = take.floats(tokens, width), take.integers(tokens, below=rows)
        return lambda: torch.ops.aten.embedding_dense_backward(gradient, ids, rows, -1, False)

    form = f"{tokens}x{rows}x{width}"
    yield Case(f"embedding/{form}", "embedding", "float32", "", forward)
    yield Case(f"embedding_dense_backward/{form}", "embedding", "float32", "", backward)

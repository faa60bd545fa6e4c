"""Matrix products: the three of a linear layer, and the batched ones of attention.

A linear layer of `tokens` x `features_in` -> `features_out` runs, in training, forward x W' + b ("nt"), input
gradient g W ("nn") and weight gradient g' x ("tn"). No shape is one of a workload we are scored on.
"""

from __future__ import annotations

from collections.abc import Iterator

from .registry import Call, Case, Operands, Target, suite

# (tokens, in, out) at scale 1; a GPU gets `scale` times the tokens.
LINEARS = (
    (1, 640, 640), (3, 2080, 900), (24, 640, 1100), (24, 1100, 1100), (72, 1100, 1100), (72, 1100, 12),
    (160, 640, 1100), (112, 640, 640), (112, 640, 2560), (112, 2560, 640), (224, 896, 896),
    (224, 512, 2048), (224, 2048, 512), (480, 640, 640), (480, 640, 1920), (480, 896, 3584),
    (480, 3584, 896), (208, 640, 32_000), (350, 1300, 6_000), (60, 1408, 5_632),
)  # fmt: skip
# (batch, rows, columns, inner) of scores = Q K'; the other layouts permute them.
PRODUCTS = ((10, 112, 112, 64), (40, 112, 112, 64), (10, 224, 224, 80), (14, 300, 300, 64), (60, 48, 48, 32))
_TINY = 2


@suite("matmul")
def matmul(target: Target) -> Iterator[Case]:
    linears = LINEARS[:: len(LINEARS) // _TINY] if target.tiny else LINEARS
    for dtype in target.dtypes:
        for tokens, features_in, features_out in linears:
            rows = tokens * target.scale
            for layout, (m, n, k) in {
                "nt": (rows, features_out, features_in),
                "nn": (rows, features_in, features_out),
                "tn": (features_out, features_in, rows),
            }.items():
                yield product_case(m, n, k, layout, dtype)


@suite("bmm")
def bmm(target: Target) -> Iterator[Case]:
    products = PRODUCTS[:_TINY] if target.tiny else PRODUCTS
    for dtype in target.dtypes:
        for batch, m, n, k in products:
            b = batch * target.scale
            for layout, (rows, columns, inner) in {"nt": (m, n, k), "nn": (m, k, n), "tn": (n, k, m)}.items():
                yield batched_case(b, rows, columns, inner, layout, dtype)


def product_case(m: int, n: int, k: int, layout: str, dtype: str, *, bias: bool | None = None) -> Case:
    """(m, k) x (k, n). layout: which operands lie transposed; "nt" adds a bias unless told not to."""
    add = layout == "nt" if bias is None else bias

    def make(take: Operands) -> Call:
        import torch

        a = take.floats(k, m).t() if layout[0] == "t" else take.floats(m, k)
        b = take.floats(n, k).t() if layout[1] == "t" else take.floats(k, n)
        if not add:
            return lambda: torch.mm(a, b)
        row = take.floats(n)
        return lambda: torch.addmm(row, a, b)

    name = "addmm" if add else "mm"
    return Case(f"{name}/{layout}/{m}x{n}x{k}/{dtype}", "matmul", dtype, layout, make)


def batched_case(batch: int, m: int, n: int, k: int, layout: str, dtype: str) -> Case:
    """(batch, m, k) x (batch, k, n)."""

    def make(take: Operands) -> Call:
        import torch

        a = take.floats(batch, k, m).mT if layout[0] == "t" else take.floats(batch, m, k)
        b = take.floats(batch, n, k).mT if layout[1] == "t" else take.floats(batch, k, n)
        return lambda: torch.bmm(a, b)

    return Case(f"bmm/{layout}/{batch}x{m}x{n}x{k}/{dtype}", "bmm", dtype, layout, make)

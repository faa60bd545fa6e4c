"""Operands for the calls: slices of one pool of normal numbers, each take further along it.

Drawing fresh numbers for every call would cost more than the calls. Normal numbers, not zeros: a GPU that
multiplies zeros draws less power and clocks higher than training ever will.
"""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import torch
    from torch import Tensor

# Far above a CPU core's private caches (2 MiB) and a GPU's L2 (50 to 128 MB).
POOL_BYTES = {"cpu": 192 * 2**20, "cuda": 2**30}
_ALIGN = 256


def torch_name(dtype: str) -> str:
    """The torch type behind a case's: TF32 is a way to multiply float32, not a type of its own.

    >>> torch_name("tf32")
    'float32'
    """
    return "float32" if dtype == "tf32" else dtype


class PoolOperands:
    """Tensors on a device. A take that would run past the pool begins again at its start."""

    def __init__(self, device: str, dtype: str, pool: Tensor | None = None) -> None:
        import torch

        self.device, self.dtype = device, dtype
        self._generator = torch.Generator(device=device).manual_seed(0)
        self.pool = pool if pool is not None else _fresh_pool(device)
        self._at = 0

    def floats(self, *shape: int, dtype: str | None = None) -> Tensor:
        """Contiguous, uninitialised by nothing: normal numbers of variance one."""
        import torch

        kind: torch.dtype = getattr(torch, torch_name(dtype or self.dtype))
        elements = prod(shape)
        pool = self.pool if kind is torch.float32 else _as_type(self.pool, kind)
        if elements > pool.numel():
            return torch.ones(shape, dtype=kind, device=self.device)
        if self._at + elements > pool.numel():
            self._at = 0
        start = self._at
        self._at += -(-elements // _ALIGN) * _ALIGN
        return pool[start : start + elements].view(shape)

    def integers(self, *shape: int, below: int) -> Tensor:
        import torch

        return torch.randint(0, below, shape, device=self.device, generator=self._generator)

    def flush(self) -> None:
        """Read the whole pool, so that the caches hold it and nothing else."""
        self.pool.sum()

    def of(self, dtype: str) -> PoolOperands:
        """The same pool in another default type."""
        return PoolOperands(self.device, dtype, self.pool)


class MetaOperands:
    """Shapes alone, for the recorder."""

    device = "meta"

    def __init__(self, dtype: str) -> None:
        self.dtype = dtype

    def floats(self, *shape: int, dtype: str | None = None) -> Tensor:
        import torch

        kind: torch.dtype = getattr(torch, torch_name(dtype or self.dtype))
        return torch.empty(shape, dtype=kind, device="meta")

    def integers(self, *shape: int, below: int) -> Tensor:
        import torch

        return torch.empty(shape, dtype=torch.long, device="meta")

    def flush(self) -> None:
        """There is nothing to empty."""


_CAST: dict[tuple[int, str], Tensor] = {}


def _as_type(pool: Tensor, kind: torch.dtype) -> Tensor:
    """The pool in a 16-bit type, cast once."""
    key = (pool.data_ptr(), str(kind))
    if key not in _CAST:
        _CAST[key] = pool.to(kind)
    return _CAST[key]


def _fresh_pool(device: str) -> Tensor:
    import torch

    elements = POOL_BYTES["cpu" if device == "cpu" else "cuda"] // 4
    if device != "cpu":
        return torch.randn(elements, device=device)
    # Random numbers cost 5 ns each on one core: draw a block and repeat it.
    block = torch.randn(2**20)
    return block.repeat(elements // block.numel())

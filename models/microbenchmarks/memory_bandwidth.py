"""Copies far above any cache: what the memory itself gives. A smaller copy measures a cache instead."""

from __future__ import annotations

from collections.abc import Iterator

from .registry import Call, Case, Operands, Target, suite

# [B]: a GPU's L2 reaches 128 MB; a CPU's shared L3 may reach 300 MB, which one thread cannot fill in time.
SIZES = {"cpu": (64 * 2**20, 160 * 2**20), "cuda": (256 * 2**20, 2**30)}


@suite("memory_bandwidth")
def memory_bandwidth(target: Target) -> Iterator[Case]:
    for size in SIZES[target.kind][:1] if target.tiny else SIZES[target.kind]:
        yield copy_case(size)


def copy_case(size: int) -> Case:
    def make(take: Operands) -> Call:
        import torch

        source = take.floats(size // 4)
        to = torch.empty_like(source)
        return lambda: to.copy_(source)

    return Case(f"copy_/{size}", "memory_bandwidth", "float32", "bandwidth", make, cold=False)

"""All-reduce, all-gather and reduce-scatter between the cards of this machine, and who can reach whom.

One process drives all cards (torch.cuda.comm), as nothing may outlive an interrupt; it is slower than one
process per card by the launch of each copy, which matters below about 1 MB.
"""

from __future__ import annotations

from collections.abc import Iterator

from .registry import Call, Case, Operands, Target, Work, suite

SIZES = (1 * 2**20, 25 * 2**20, 100 * 2**20, 400 * 2**20)
KINDS = ("all_reduce", "all_gather", "reduce_scatter")


@suite("all_reduce")
def all_reduce(target: Target) -> Iterator[Case]:
    if target.kind != "cuda" or target.count < 2:
        return
    for size in SIZES[:1] if target.tiny else SIZES:
        for kind in KINDS:
            yield _collective(kind, size, target.count)


def _collective(kind: str, size: int, count: int) -> Case:
    def make(take: Operands) -> Call:
        import torch
        from torch.cuda import nccl

        parts = size // 4 // count
        whole = [torch.ones(parts * count, device=f"cuda:{i}") for i in range(count)]
        shards = [torch.ones(parts, device=f"cuda:{i}") for i in range(count)]
        if kind == "all_reduce":
            return lambda: nccl.all_reduce(whole)  # type: ignore[no-untyped-call]
        if kind == "all_gather":
            return lambda: nccl.all_gather(shards, whole)
        return lambda: nccl.reduce_scatter(whole, shards)

    extra = {"bytes": float(size), "devices": float(count)}
    work = Work(kind, "communication", ((size // 4,),), 0.0, size, size, extra)
    return Case(f"{kind}/{count}/{size}", "all_reduce", "float32", kind, make, work, cold=False)


def peer_access(count: int) -> list[list[bool]]:
    """Which card reaches which other's memory directly, as the driver says."""
    import torch

    return [
        [i == j or bool(torch.cuda.can_device_access_peer(i, j)) for j in range(count)] for i in range(count)
    ]

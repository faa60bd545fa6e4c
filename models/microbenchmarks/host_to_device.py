"""Copies from the host to the card, from pageable and from pinned memory. Nothing to measure on a CPU."""

from __future__ import annotations

from collections.abc import Iterator

from .registry import Call, Case, Operands, Target, Work, suite

SIZES = (1 * 2**20, 16 * 2**20, 128 * 2**20)


@suite("host_to_device")
def host_to_device(target: Target) -> Iterator[Case]:
    if target.kind != "cuda":
        return
    for size in SIZES[:1] if target.tiny else SIZES:
        for pinned in (True, False):
            yield _copy(size, pinned)


def _copy(size: int, pinned: bool) -> Case:
    def make(take: Operands) -> Call:
        import torch

        source = torch.zeros(size // 4)
        source = source.pin_memory() if pinned else source
        to = torch.empty(size // 4, device=take.device)
        return lambda: to.copy_(source, non_blocking=pinned)

    name = "pinned" if pinned else "pageable"
    work = Work("host_to_device", "transfer", ((size // 4,),), 0.0, size, size, {"bytes": float(size)})
    return Case(f"host_to_device/{name}/{size}", "host_to_device", "float32", name, make, work, cold=False)

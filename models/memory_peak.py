"""The allocated and reserved peak at any micro-batch, read off a summary's grid of replayed ones."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from .allocator import ROUNDING
from .errors import BadData
from .tracing.summary import MemoryPoint, StepSummary


@dataclass(frozen=True, slots=True)
class Peak:
    """Peaks of one process before context and communicators. [B]

    parts: category -> bytes at the allocated peak; adds up to allocated_p50.
    texts: what was assumed on the way.   host_bytes: what lies in the host's memory instead.
    """

    allocated_p50: int
    allocated_p95: int
    reserved_p50: int
    parts: Mapping[str, int]
    phase: str
    op: str
    texts: tuple[str, ...] = ()
    host_bytes: int = 0

    def plus(self, part: str, p50_bytes: int, p95_bytes: int | None = None, text: str | None = None) -> Peak:
        """This peak with one more part alive throughout, for which the allocator reserves no slack."""
        if not p50_bytes and not p95_bytes:
            return self
        return replace(
            self,
            allocated_p50=self.allocated_p50 + p50_bytes,
            allocated_p95=self.allocated_p95 + (p50_bytes if p95_bytes is None else p95_bytes),
            reserved_p50=self.reserved_p50 + p50_bytes,
            parts={**self.parts, part: self.parts.get(part, 0) + p50_bytes},
            texts=(*self.texts, text) if text else self.texts,
        )


def peak_at(summary: StepSummary, micro_batch: int, *, accumulating: bool) -> Peak:
    """The peak at `micro_batch`, between grid points linearly, past the last by the last slope.

    What tensors ask for is a maximum of affine laws in the batch, hence convex: the chord lies above it, and
    past the grid only a phase with a steeper slope could exceed it (the grid ends where activations rule).
    Blocks the allocator leaves unsplit come on top and go with alignment: replays at 144 other batches of 16
    variants allocate up to 1.8 % more than the chord. They reserve 5 % more to 6 % less in nine of ten cases
    (median 0.2 % more); both lie inside the P95 band.

    Raises BadData where the summary holds no points, or a single one that is smaller than asked.
    """
    points = [point for point in summary.memory if point.accumulating is accumulating]
    if not points and accumulating:
        plain = peak_at(summary, micro_batch, accumulating=False)
        text = "accumulated gradients added to the peak of a plain step (an upper bound)"
        return plain.plus("gradients", summary.gradient_bytes, text=text)
    if not points:
        raise BadData(
            f"{summary.workload}: the summary {summary.variant.key} has no memory points; trace it again"
        )
    left, right = _around(summary, points, micro_batch)
    if left is right:
        return _of(left)
    share = (micro_batch - left.batch) / (right.batch - left.batch)
    near = right if share > 0.5 else left
    allocated = _between(left.allocated_bytes, right.allocated_bytes, share)
    parts = {
        name: max(0, _between(left.breakdown.get(name, 0), right.breakdown.get(name, 0), share))
        for name in {**left.breakdown, **right.breakdown}
    }
    parts[ROUNDING] = parts.get(ROUNDING, 0) + allocated - sum(parts.values())
    reserved = max(allocated, _between(left.reserved_bytes, right.reserved_bytes, share))
    return Peak(allocated, allocated, reserved, parts, near.phase, near.op)


def _of(point: MemoryPoint) -> Peak:
    allocated = point.allocated_bytes
    return Peak(allocated, allocated, point.reserved_bytes, point.breakdown, point.phase, point.op)


def _between(left: int, right: int, share: float) -> int:
    return left + round((right - left) * share)


def _around(
    summary: StepSummary, points: list[MemoryPoint], micro_batch: int
) -> tuple[MemoryPoint, MemoryPoint]:
    """The two points to draw the line through; the same one twice where it is the answer."""
    previous = points[0]
    if micro_batch <= previous.batch:
        return previous, previous
    for point in points[1:]:
        if micro_batch == point.batch:
            return point, point
        if micro_batch < point.batch:
            return previous, point
        previous = point
    if len(points) == 1:
        raise BadData(
            f"{summary.workload}: the summary {summary.variant.key} knows memory at micro-batch "
            f"{previous.batch} only, not at {micro_batch}; trace it again"
        )
    return points[-2], points[-1]

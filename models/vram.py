"""Will it fit: peak memory of one training step on one card, as four figures with their spread.

Allocated (tensors) comes from the summary's replayed grid; reserved adds what the caching allocator keeps;
process adds context and communicators; headroom compares with what torch sees of the card. Terms that no
trace sees are those of memory_terms.py. Cheap: no torch, no trace, some tens of microseconds a call.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from . import memory_terms
from .errors import ModelsError, UnknownName
from .memory_peak import Peak, peak_at
from .memory_terms import CURRENT_CUDA, Term
from .precision import policy_of
from .sharding import STRATEGIES, shard
from .tracing.summary import StepSummary

if TYPE_CHECKING:
    from .hardware.catalogue import Gpu

Fits = Literal["yes", "no", "too_close"]

# A batch nobody trains; only there so that the search for the largest one ends.
_LARGEST_MICRO_BATCH = 2**20


class WrongSummary(ModelsError):
    """The summary was traced under another precision policy than the one asked for."""


@dataclass(frozen=True, slots=True)
class Quantiles:
    """What to expect, and what 19 of 20 runs stay below. [B]"""

    p50: int
    p95: int


@dataclass(frozen=True, slots=True)
class MemoryEstimate:
    """Peak memory of one training process on one card. [B]

    allocated_bytes: live tensors and library workspaces, as torch.cuda.max_memory_allocated counts.
    reserved_bytes: what the caching allocator holds on this card. Where the unlimited figure would pass the
        card, cached segments go back first, down to what the tensors need: so it may run though slower.
    process_bytes: reserved, context and communicators, as nvidia-smi shows for the process.
    capacity_bytes: the card as torch sees it.   headroom_bytes: capacity less process P95; negative if it fails.
    fits: "yes" where process P95 is within capacity, "no" where even P50 is not, else "too_close".
    breakdown: parts of process P50; adds up exactly.
    """

    allocated_bytes: Quantiles
    reserved_bytes: Quantiles
    process_bytes: Quantiles
    capacity_bytes: int
    headroom_bytes: int
    fits: Fits
    breakdown: Mapping[str, int]
    peak_phase: str
    peak_op: str
    assumptions: tuple[str, ...]
    tier: str = "replay"


def estimate_memory(
    summary: StepSummary,
    gpu: Gpu,
    *,
    precision: str,
    micro_batch: int,
    gpu_count: int = 1,
    strategy: str = "ddp",
    accumulation: int = 1,
    cuda: str = CURRENT_CUDA,
) -> MemoryEstimate:
    """Peak memory of each of `gpu_count` processes that train `summary` on `gpu`.

    precision: a key of PRECISIONS whose policy is the summary's. micro_batch: samples per GPU and micro-step.
    strategy: "ddp" (a replica per GPU) or "fsdp" (weights, gradients and optimizer state sharded).
    accumulation: micro-steps per optimizer step; above one, gradients stay alive.
    cuda: runtime version; it sets the size of the context.

    Raises WrongSummary, UnknownName (strategy, precision), BadData (a summary without memory points) and
    ValueError for counts below one.
    """
    need = _need(summary, gpu, precision, micro_batch, gpu_count, strategy, accumulation, cuda)
    peak = need.peak
    process = Quantiles(
        need.process(peak.reserved_p50, need.least_p50, need.outside_p50),
        need.process(need.reserved_p95, need.least_p95, need.outside_p95),
    )
    reserved = Quantiles(process.p50 - need.outside_p50, process.p95 - need.outside_p95)
    breakdown = dict(peak.parts)
    breakdown["allocator_slack"] = reserved.p50 - peak.allocated_p50
    breakdown["cuda_context"] = need.context.p50_bytes
    if need.communicator.p50_bytes:
        breakdown["communicator"] = need.communicator.p50_bytes
    return MemoryEstimate(
        allocated_bytes=Quantiles(peak.allocated_p50, need.allocated_p95),
        reserved_bytes=reserved,
        process_bytes=process,
        capacity_bytes=need.capacity_bytes,
        headroom_bytes=need.capacity_bytes - process.p95,
        fits=_verdict(process, need.capacity_bytes),
        breakdown=breakdown,
        peak_phase=peak.phase,
        peak_op=peak.op,
        assumptions=_assumptions(summary, need, gpu, gpu_count, accumulation),
    )


def _verdict(process: Quantiles, capacity_bytes: int) -> Fits:
    if process.p95 <= capacity_bytes:
        return "yes"
    return "no" if process.p50 > capacity_bytes else "too_close"


def max_micro_batch(
    summary: StepSummary,
    gpu: Gpu,
    *,
    precision: str,
    gpu_count: int = 1,
    strategy: str = "ddp",
    accumulation: int = 1,
    cuda: str = CURRENT_CUDA,
) -> int:
    """The largest micro-batch that fits on P95; 0 where not even one sample does. Errors as estimate_memory."""

    def fits(micro_batch: int) -> bool:
        need = _need(summary, gpu, precision, micro_batch, gpu_count, strategy, accumulation, cuda)
        return need.least_p95 + need.outside_p95 <= need.capacity_bytes

    return largest(fits)


def largest(fits: Callable[[int], bool]) -> int:
    """The largest micro-batch for which `fits` holds, where it holds up to some batch and never after; else 0."""
    below, above = 0, 1
    while above <= _LARGEST_MICRO_BATCH and fits(above):
        below, above = above, above * 2
    while above - below > 1:
        middle = (below + above) // 2
        if fits(middle):
            below = middle
        else:
            above = middle
    return below


@dataclass(frozen=True, slots=True)
class _Need:
    """The sums before they are named; `least` is what must be reserved when every free segment goes back."""

    peak: Peak
    context: Term
    communicator: Term
    capacity_bytes: int
    capacity_text: str
    band: memory_terms.Band
    cublas_text: str

    @property
    def allocated_p95(self) -> int:
        return int(self.peak.allocated_p95 * self.band.allocated_p95)

    @property
    def reserved_p95(self) -> int:
        wider = self.peak.reserved_p50 + self.peak.allocated_p95 - self.peak.allocated_p50
        return max(int(wider * self.band.reserved_p95), self.allocated_p95)

    @property
    def least_p50(self) -> int:
        return min(int(self.peak.allocated_p50 * (1 + self.band.floor_p50)), self.peak.reserved_p50)

    @property
    def least_p95(self) -> int:
        return min(int(self.allocated_p95 * (1 + self.band.floor_p95)), self.reserved_p95)

    @property
    def outside_p50(self) -> int:
        return self.context.p50_bytes + self.communicator.p50_bytes

    @property
    def outside_p95(self) -> int:
        return self.context.p95_bytes + self.communicator.p95_bytes

    def process(self, reserved: int, least: int, outside: int) -> int:
        return max(least + outside, min(reserved + outside, self.capacity_bytes))


def _need(
    summary: StepSummary,
    gpu: Gpu,
    precision: str,
    micro_batch: int,
    gpu_count: int,
    strategy: str,
    accumulation: int,
    cuda: str,
) -> _Need:
    if min(micro_batch, gpu_count, accumulation) < 1:
        raise ValueError(
            "micro_batch, gpu_count and accumulation must be at least 1, "
            f"not {micro_batch}, {gpu_count}, {accumulation}"
        )
    if strategy not in STRATEGIES:
        raise UnknownName("strategy", strategy, STRATEGIES, f"Known: {', '.join(STRATEGIES)}")
    policy = policy_of(precision)
    if policy != summary.variant.precision_policy:
        raise WrongSummary(
            f"{summary.workload}: the summary {summary.variant.key} is of policy "
            f'{summary.variant.precision_policy}, but precision "{precision}" runs under {policy}'
        )
    peak = peak_at(summary, micro_batch, accumulating=accumulation > 1)
    if gpu_count > 1:
        peak = shard(peak, summary, micro_batch, gpu_count, strategy, accumulating=accumulation > 1)
    workspace = memory_terms.cublas_workspace(gpu)
    capacity_bytes, capacity_text = memory_terms.capacity(gpu)
    return _Need(
        peak=peak.plus("cublas_workspace", workspace.p50_bytes),
        context=memory_terms.context(gpu, cuda),
        communicator=memory_terms.communicator(gpu_count),
        capacity_bytes=capacity_bytes,
        capacity_text=capacity_text,
        band=memory_terms.band(),
        cublas_text=workspace.text,
    )


def _assumptions(
    summary: StepSummary, need: _Need, gpu: Gpu, gpu_count: int, accumulation: int
) -> tuple[str, ...]:
    lines = [
        need.capacity_text,
        need.context.text,
        need.cublas_text,
        need.band.text,
        f"optimizer {summary.variant.optimizer}, attention {summary.variant.attention_kernel}, gradients freed "
        "between steps (zero_grad to None), every sample as long as the longest",
    ]
    if gpu_count > 1:
        lines.append(need.communicator.text)
    if accumulation > 1:
        lines.append("gradient accumulation keeps gradients alive through the whole step")
    return (*lines, *need.peak.texts, *summary.rewrites)

"""Will it fit: peak memory of one training step on one card, as four figures with their spread.

Allocated (tensors) comes from the summary's replayed grid; reserved adds what the caching allocator keeps;
process adds context and communicators; headroom compares with what torch sees of the card. Terms that no
trace sees are those of memory_terms.py. Cheap: no torch, no trace, some tens of microseconds a call.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

from . import memory_terms, strategies
from .errors import ModelsError
from .memory_peak import Peak, peak_at
from .memory_split import P95_SPLIT, rank_summary
from .memory_terms import CURRENT_CUDA, CardTerms
from .model_parallel import Split
from .precision import policy_of
from .sharding import Offload, check_offload, model_states, shard
from .tracing.summary import StepSummary

if TYPE_CHECKING:
    from .hardware.catalogue import Gpu

Fits = Literal["yes", "no", "too_close"]
Quantile = Literal["p50", "p95"]

WHOLE = Split()  # one GPU to a replica
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
    capacity_bytes: the card as torch sees it.   headroom_bytes: capacity less process P95, may be negative.
    fits: "yes" where process P95 is within capacity, "no" where even P50 is not, else "too_close".
    breakdown: parts of process P50; adds up exactly.
    host_bytes: what an offload keeps in the host's memory for this process.
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
    host_bytes: int = 0


def estimate_memory(
    summary: StepSummary,
    gpu: Gpu,
    *,
    precision: str,
    micro_batch: int,
    gpu_count: int = 1,
    strategy: str = "ddp",
    accumulation: int = 1,
    offload: Offload = "none",
    split: Split = WHOLE,
    cuda: str = CURRENT_CUDA,
    terms: CardTerms | None = None,
) -> MemoryEstimate:
    """Peak memory of each of `gpu_count` processes that train `summary` on `gpu`.

    precision: a key of PRECISIONS whose policy is the summary's. micro_batch: samples per GPU and micro-step.
    strategy: of STRATEGIES: "ddp" (a replica per GPU), "zero1" to "zero3", "fsdp" (shards everything).
    accumulation: micro-steps per optimizer step; above one, gradients stay alive.
    offload: "optimizer" keeps its state in the host's memory, "parameters" weights and gradients as well.
    split: GPUs that hold one replica between them; strategy and offload then work between replicas.
    cuda: runtime version; it sets the size of the context.
    terms: instead of the shipped table's, e.g. fitted without some source.

    Raises WrongSummary, UnknownName (strategy, precision), CannotOffload, CannotSplit, BadData (a summary
    without memory points) and ValueError for counts below one.
    """
    if micro_batch < 1:
        raise ValueError(f"micro_batch must be at least 1, not {micro_batch}")
    terms = terms or memory_terms.card_terms(gpu, gpu_count, cuda)
    job = _job(summary, terms, precision, gpu_count, strategy, accumulation, offload, split)
    need = job.need(micro_batch)
    peak, process = need.peak, need.process()
    reserved = Quantiles(process.p50 - terms.outside_p50, process.p95 - terms.outside_p95)
    breakdown = dict(peak.parts)
    breakdown["allocator_slack"] = reserved.p50 - peak.allocated_p50
    breakdown["cuda_context"] = terms.context.p50_bytes
    if terms.communicator.p50_bytes:
        breakdown["communicator"] = terms.communicator.p50_bytes
    return MemoryEstimate(
        allocated_bytes=Quantiles(peak.allocated_p50, need.allocated_p95),
        reserved_bytes=reserved,
        process_bytes=process,
        capacity_bytes=terms.capacity_bytes,
        headroom_bytes=terms.capacity_bytes - process.p95,
        fits=_verdict(process, terms.capacity_bytes),
        breakdown=breakdown,
        peak_phase=peak.phase,
        peak_op=peak.op,
        assumptions=_assumptions(job, need),
        host_bytes=peak.host_bytes,
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
    offload: Offload = "none",
    split: Split = WHOLE,
    cuda: str = CURRENT_CUDA,
    terms: CardTerms | None = None,
    quantile: Quantile = "p95",
) -> int:
    """The largest micro-batch that fits; 0 where not one sample does.

    quantile: "p95" to rely on it; "p50" for the central guess that published largest batches are held to.
    Errors as estimate_memory.
    """

    terms = terms or memory_terms.card_terms(gpu, gpu_count, cuda)
    job = _job(summary, terms, precision, gpu_count, strategy, accumulation, offload, split)
    if quantile == "p50":
        available = terms.capacity_bytes - terms.outside_p50
        return largest(lambda micro_batch: job.need(micro_batch).least_p50 <= available)
    available = terms.capacity_bytes - terms.outside_p95
    return largest(lambda micro_batch: job.need(micro_batch).least_p95 <= available)


def fixed_and_per_sample(summary: StepSummary, gpu: Gpu, **shape: Any) -> tuple[int, int]:
    """(model states of one process, bytes that one sample more adds), both whatever the batch. [B]

    shape: the arguments of estimate_memory but micro_batch. States are weights, gradients and optimizer
    state, as far as this GPU holds them.
    """
    accumulating = {**shape, "accumulation": max(2, shape.get("accumulation", 1))}
    states = model_states(estimate_memory(summary, gpu, micro_batch=1, **accumulating).breakdown)
    few, many = 128, 256  # past any batch where the optimizer rules the peak
    less, more = (estimate_memory(summary, gpu, micro_batch=n, **shape) for n in (few, many))
    return states, (more.allocated_bytes.p50 - less.allocated_bytes.p50) // (many - few)


def largest(fits: Callable[[int], bool]) -> int:
    """The largest micro-batch for which `fits` holds, given that it holds up to some batch only; else 0."""
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
    terms: CardTerms

    @property
    def allocated_p95(self) -> int:
        return int(self.peak.allocated_p95 * self.terms.band.allocated_p95)

    @property
    def reserved_p95(self) -> int:
        wider = self.peak.reserved_p50 + self.peak.allocated_p95 - self.peak.allocated_p50
        return max(int(wider * self.terms.band.reserved_p95), self.allocated_p95)

    @property
    def least_p50(self) -> int:
        return min(int(self.peak.allocated_p50 * (1 + self.terms.band.floor_p50)), self.peak.reserved_p50)

    @property
    def least_p95(self) -> int:
        return min(int(self.allocated_p95 * (1 + self.terms.band.floor_p95)), self.reserved_p95)

    def process(self) -> Quantiles:
        capacity, terms = self.terms.capacity_bytes, self.terms
        p50 = max(
            self.least_p50 + terms.outside_p50, min(self.peak.reserved_p50 + terms.outside_p50, capacity)
        )
        p95 = max(self.least_p95 + terms.outside_p95, min(self.reserved_p95 + terms.outside_p95, capacity))
        return Quantiles(p50, p95)


@dataclass(frozen=True, slots=True)
class _Job:
    """What does not change while the micro-batch is searched."""

    summary: StepSummary
    terms: CardTerms
    gpu_count: int
    strategy: str
    accumulating: bool
    offload: Offload
    split: Split

    def need(self, micro_batch: int) -> _Need:
        peak = peak_at(self.summary, micro_batch, accumulating=self.accumulating)
        replicas = self.gpu_count // self.split.gpus
        if replicas > 1 or self.offload != "none":
            peak = shard(
                *(peak, self.summary, micro_batch, replicas, self.strategy),
                accumulating=self.accumulating,
                offload=self.offload,
            )
        if self.split.tensor > 1:
            peak = replace(peak, allocated_p95=int(peak.allocated_p95 * P95_SPLIT))
        return _Need(peak.plus("cublas_workspace", self.terms.cublas_workspace.p50_bytes), self.terms)


def _job(
    summary: StepSummary,
    terms: CardTerms,
    precision: str,
    gpu_count: int,
    strategy: str,
    accumulation: int,
    offload: Offload,
    split: Split,
) -> _Job:
    if gpu_count < 1 or accumulation < 1:
        raise ValueError(f"gpu_count and accumulation must be at least 1, not {gpu_count}, {accumulation}")
    strategies.strategy(strategy)
    check_offload(offload, strategy)
    policy = policy_of(precision)
    if policy != summary.variant.precision_policy:
        raise WrongSummary(
            f"{summary.workload}: the summary {summary.variant.key} is of policy "
            f'{summary.variant.precision_policy}, but precision "{precision}" runs under {policy}'
        )
    split.checked(gpu_count, summary.workload)
    rank = rank_summary(summary, split)
    return _Job(rank, terms, gpu_count, strategy, accumulation > 1, offload, split)


def _assumptions(job: _Job, need: _Need) -> tuple[str, ...]:
    variant, terms = job.summary.variant, job.terms
    lines = [
        *(terms.capacity_text, terms.context.text, terms.cublas_workspace.text, terms.band.text),
        f"optimizer {variant.optimizer}, attention {variant.attention_kernel}, gradients freed between steps "
        "(zero_grad to None), every sample as long as the longest",
    ]
    if "-paged-" in variant.optimizer:
        lines.append(
            "paged optimizer: moments of tensors from 100,000 values on lie in managed memory, outside the "
            "allocator, and leave the card whenever it runs short"
        )
    if job.gpu_count > 1:
        lines.append(terms.communicator.text)
    if job.accumulating:
        lines.append("gradient accumulation keeps gradients alive through the whole step")
    return (*lines, *need.peak.texts, *job.summary.rewrites)

"""How long one training step takes on one or many GPUs.

    estimate_step(summary, gpu, ...) -> StepEstimate    accumulation, communication, optimizer, 80 % band

Physics (calibration/physics.py) gives the seconds of each op class; what training runs taught about groups of
classes on this card (calibration/profile.py) corrects them:  step = physics x exp(shares . multipliers).
Reads stored data only: neither torch nor scipy.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from math import exp, hypot, sqrt
from typing import TYPE_CHECKING, Any

import numpy as np

from . import model_parallel, scaling
from .calibration import physics
from .calibration.profile import Floats, fitted
from .errors import ModelsError
from .input_pipeline import InputPipeline
from .model_parallel import Blocks, Split, Traffic
from .precision import precision as precision_of
from .step_price import CardCosts, StepPrice, card_costs, price, quantisation_of
from .strategies import strategy as strategy_of
from .tracing.summary import StepSummary

if TYPE_CHECKING:
    from .hardware.records import Gpu

__all__ = [
    "ImpossibleForecast",
    "StepEstimate",
    "StepRequest",
    "card_costs",
    "estimate_step",
    "estimate_steps",
]

# Standard normal quantile of 90 %: an 80 % band leaves 10 % on each side.
Z_80 = 1.2815515655446004
LAUNCH = "launch"
COMMUNICATION = "communication"
BreakdownRow = tuple[str, str, float]
WAITING = "input pipeline"
BUBBLE = "pipeline bubble"
# How far a step may be off what is assumed of it; natural log, ours. torch.compile: there is one row. Tensor
# and pipeline parallel: four rows, of one library. int8 bases: none; LLM.int8 splits each product in two.
COMPILED_SD = 0.15
SPLIT_SD = 0.12
INT8_SD = 0.3


class ImpossibleForecast(ModelsError):
    """A step faster than the card's peak allows: a fault of ours, never shown as a figure."""


@dataclass(frozen=True, slots=True)
class StepEstimate:
    """One optimizer step on all GPUs together.

    step_seconds, low_seconds, high_seconds: with an 80 % band. [s]
    samples_per_second: over all GPUs, at step_seconds.
    tier: "measured_card" (training runs of this card are in the fit), "measured_architecture", "datasheet".
    breakdown: (op class, phase, seconds); adds up to step_seconds. "launch" is what kernel launches and a
    slow host add, "communication" what the exchange between GPUs adds.
    launch_share: how much of a faster host would be felt, 0 to 1.
    mfu: FLOPs of the step, recomputation included, over the datasheet peak of the units that run them.
    """

    step_seconds: float
    low_seconds: float
    high_seconds: float
    samples_per_second: float
    tier: str
    breakdown: tuple[BreakdownRow, ...]
    communication_seconds: float
    launch_share: float
    mfu: float
    assumptions: tuple[str, ...]
    notes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class StepRequest:
    """One optimizer step to estimate. Counts are at least 1.

    summary: traced in the policy of `precision`; micro_batch: samples per replica and micro-step.
    gpu_count: GPUs in all; node_count: machines they stand in; link within, network between machines.
    strategy: how replicas share the step (strategies.py); accumulation: micro-steps of one optimizer step.
    power_limit_watts: a limit set below the board's own. compiled: by torch.compile, with a wider band.
    input_pipeline: what feeds each GPU; where it is slower than the GPU it decides, and is named.
    tensor_parallel, pipeline_parallel: GPUs that hold one replica between them; blocks: what they share out,
        None where the model is no plain stack of transformer layers.
    """

    summary: StepSummary
    gpu: Gpu
    precision: str
    micro_batch: int
    gpu_count: int = 1
    node_count: int = 1
    link: str = "none"
    network: str = "none"
    strategy: str = "ddp"
    accumulation: int = 1
    power_limit_watts: float | None = None
    compiled: bool = False
    input_pipeline: InputPipeline | None = None
    tensor_parallel: int = 1
    pipeline_parallel: int = 1
    blocks: Blocks | None = None

    @property
    def replicas(self) -> int:
        """Copies of the model that train on different samples."""
        return self.gpu_count // (self.tensor_parallel * self.pipeline_parallel)

    def checked(self) -> StepRequest:
        """Itself. Raises ValueError for counts below one, LinkMismatch and CannotSplit for what cannot be."""
        for name in ("micro_batch", "gpu_count", "node_count", "accumulation"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} must be at least 1, got {getattr(self, name)}")
        scaling.check_link(self.gpu, self.link)
        self.split.checked(self.gpu_count, self.summary.workload)
        return self

    @property
    def split(self) -> Split:
        return Split(self.tensor_parallel, self.pipeline_parallel, self.blocks)


@dataclass(frozen=True, slots=True)
class _OneGpu:
    """One optimizer step on one GPU. by_row (R, groups) [s]; shares (groups,): felt in log step.

    working: the part of the seconds a stage of a pipeline is not waiting for others.
    """

    seconds: float
    physics_seconds: float
    by_row: Floats
    shares: Floats
    working: float


def estimate_steps(requests: Iterable[StepRequest]) -> list[StepEstimate]:
    """The estimate of each request; cards and workloads that repeat are priced once."""
    return [estimate(request) for request in requests]


def estimate_step(
    summary: StepSummary, gpu: Gpu, *, precision: str, micro_batch: int, **how: Any
) -> StepEstimate:
    """`estimate` of StepRequest(summary, gpu, precision, micro_batch, **how)."""
    return estimate(StepRequest(summary, gpu, precision, micro_batch, **how))


def estimate(request: StepRequest) -> StepEstimate:
    """Seconds of one optimizer step: accumulation micro-steps, what GPUs exchange, the update.

    Raises ModelsError (unknown precision, strategy or link; a link the card does not have; a model that
    cannot be split so; no figure for the card's peak), ValueError for counts below one, ImpossibleForecast
    where the sum breaks the card's peak.
    """
    r = request.checked()
    costs = card_costs(r.gpu, r.precision, r.power_limit_watts)
    priced = price(r.summary, r.gpu, r.precision, r.power_limit_watts, r.compiled)
    one = _one_gpu(costs, priced, r)
    sent = _exchange(r)
    inside = _inside_replica(r)
    communication = (
        scaling.exposed_seconds(sent.seconds, one.seconds, _hidden_by(r.strategy)) + inside.seconds
    )
    busy = one.seconds + communication
    fed = r.input_pipeline.delivery_seconds(r.micro_batch * r.accumulation) if r.input_pipeline else 0.0
    step = max(busy, fed)
    flops = (priced.flops[0] + priced.flops[1] * r.micro_batch) * r.accumulation / r.split.gpus
    mfu = flops / costs.peak_flops / step
    if not 0 <= mfu <= 1 + 1e-9:
        raise ImpossibleForecast(
            f"{r.summary.workload} on {r.gpu.id} in {r.precision}: {step:.3g} s a step would be {mfu:.0%} of "
            "the card's peak; please report this as a fault of the estimator"
        )
    link_sd = max(sent.log_sd, inside.log_sd)
    spread = exp(Z_80 * hypot(_log_sd(costs, one, communication, link_sd), *_unlearned(r)))
    return StepEstimate(
        step_seconds=step,
        low_seconds=max(busy / spread, fed),
        high_seconds=max(busy * spread, fed),
        samples_per_second=r.micro_batch * r.accumulation * r.replicas / step,
        tier=costs.tier,
        breakdown=_breakdown(costs, priced, one, communication, step - busy),
        communication_seconds=communication,
        launch_share=float(one.shares[physics.LAUNCH_GROUP]),
        mfu=mfu,
        assumptions=_assumptions(r, sent, inside),
        notes=costs.notes + (r.input_pipeline.notes(busy, fed) if r.input_pipeline else ()),
    )


def _exchange(r: StepRequest) -> scaling.Exchange:
    """Between replicas."""
    return scaling.exchange(
        strategy=r.strategy,
        gradient_bytes=r.summary.gradient_bytes,
        parameters=r.summary.parameters,
        gpu_count=r.gpu_count,
        node_count=r.node_count,
        link_name=r.link,
        network_name=r.network,
        accumulation=r.accumulation,
        fitted=fitted().links,
        tensor_parallel=r.tensor_parallel,
        pipeline_parallel=r.pipeline_parallel,
    )


def _inside_replica(r: StepRequest) -> Traffic:
    """Between the GPUs that hold one replica."""
    fabric = scaling.Fabric.of(r.gpu_count, r.node_count, r.link, r.network, fitted().links)
    return model_parallel.traffic(
        r.split,
        fabric,
        micro_batch=r.micro_batch,
        accumulation=r.accumulation,
        replicas=r.replicas,
        compute_bytes=precision_of(r.precision).compute_bytes,
        parameters=r.summary.parameters,
        recomputes=r.summary.variant.activation_checkpointing,
    )


def _unlearned(r: StepRequest) -> tuple[float, ...]:
    """Standard deviations of what no measured runs, or hardly any, say: natural log."""
    return (
        COMPILED_SD if r.compiled else 0.0,
        SPLIT_SD if r.split.gpus > 1 else 0.0,
        INT8_SD if quantisation_of(r.summary) == "int8" else 0.0,
    )


def _one_gpu(costs: CardCosts, priced: StepPrice, r: StepRequest) -> _OneGpu:
    """What one GPU is busy with, and idle for where it waits for other stages of a pipeline."""
    split = r.split
    parameters = float(r.summary.parameters)
    passes = split.micro_steps(r.accumulation, parameters)
    shard = 1 / r.replicas if strategy_of(r.strategy).shards_update else 1.0
    shard *= split.busiest(parameters)
    repeats = passes * (1.0 - priced.is_update) + shard * priced.is_update
    repeats = repeats * np.array([split.share_of(op_class) for op_class, _ in priced.rows])
    by_row = (priced.constant + priced.per_sample * r.micro_batch) * repeats[:, None]
    by_group = by_row.sum(axis=0)
    launches = priced.launches[0] * passes + priced.launches[1] * split.busiest(parameters)
    by_group[physics.LAUNCH_GROUP] += launches * costs.launch_seconds
    device = float(by_group.sum())
    host = (priced.host_ops[0] * passes + priced.host_ops[1] * split.busiest(parameters)) * costs.host_seconds
    step = physics.overlap(device, host)
    shares = by_group * (device ** (physics.CORNER - 1) / step**physics.CORNER)
    shares[physics.LAUNCH_GROUP] += 1.0 - shares.sum()
    # Products never beat the datasheet, whatever the fit makes of a step unlike any it saw. Convolutions may:
    # some algorithms do fewer FLOPs than are counted.
    products = (priced.product_flops[0] + priced.product_flops[1] * r.micro_batch) * passes / split.tensor
    seconds = max(step * exp(float(shares @ costs.multipliers)), products / costs.peak_flops)
    working = r.accumulation / split.pipeline / passes if split.pipeline > 1 else 1.0
    return _OneGpu(seconds, step, by_row, shares, working)


def _hidden_by(strategy: str) -> float:
    by = fitted().hidden_by
    return by["sharded"] if strategy in ("fsdp", "zero3") else by["ddp"]


def _log_sd(costs: CardCosts, one: _OneGpu, communication: float, link_sd: float) -> float:
    """Standard deviation of log step seconds: classes, recipe, and the link."""
    profile = fitted()
    variance = float(one.shares @ costs.covariance @ one.shares) + profile.recipe_sd**2
    factor = profile.band_factors.get(costs.tier, 1.0)
    step = one.seconds + communication
    return sqrt((one.seconds / step * factor) ** 2 * variance + (communication / step * link_sd) ** 2)


def _breakdown(
    costs: CardCosts, priced: StepPrice, one: _OneGpu, communication: float, starved: float
) -> tuple[BreakdownRow, ...]:
    """Physics times each group's own multiplier, scaled to add up to the step."""
    factor = np.exp(costs.multipliers)
    seconds = one.by_row @ factor
    waiting = (one.physics_seconds - float(one.by_row.sum())) * float(factor[physics.LAUNCH_GROUP])
    total = float(seconds.sum()) + waiting
    scale = one.seconds * one.working / total if total else 0.0
    rows: list[BreakdownRow] = [
        (op_class, phase, float(s) * scale) for (op_class, phase), s in zip(priced.rows, seconds, strict=True)
    ]
    rows.append((LAUNCH, "all", waiting * scale))
    if one.working < 1:
        rows.append((BUBBLE, "all", one.seconds * (1 - one.working)))
    if communication:
        rows.append((COMMUNICATION, "backward", communication))
    if starved > 0:
        rows.append((WAITING, "all", starved))
    return tuple(rows)


def _assumptions(r: StepRequest, sent: scaling.Exchange, inside: Traffic) -> tuple[str, ...]:
    feeding = "input pipeline keeps up" if r.input_pipeline is None else r.input_pipeline.said
    said = [f"software of {int(fitted().software_year)}, {feeding}, steady clocks"]
    if r.compiled:
        said.append("torch.compile fuses elementwise chains and norms to half their traffic (assumption)")
    if r.summary.variant.adapter:
        packed = quantisation_of(r.summary)
        base = f"a base packed as {packed}, unpacked for each product" if packed else "a frozen base"
        said.append(f"adapters {r.summary.variant.adapter} on {base}")
    if r.split.gpus > 1:
        said.append(
            f"tensor parallel {r.tensor_parallel}, pipeline parallel {r.pipeline_parallel} (1F1B) over "
            f"{inside.over}: {inside.bytes / 1e9:.2f} GB a step, none of it hidden"
        )
    if r.replicas > 1:
        said.append(
            f"{r.strategy} over {sent.bottleneck}: {sent.bytes / 1e9:.2f} GB a step at "
            f"{sent.bandwidth_bytes_per_second / 1e9:.1f} GB/s effective"
        )
    return tuple(said)

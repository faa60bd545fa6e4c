"""How long one training step takes on one or many GPUs.

    estimate_step(summary, gpu, ...) -> StepEstimate    accumulation, communication, optimizer, 80 % band

Physics (calibration/physics.py) gives the seconds of each op class; what training runs taught about groups of
classes on this card (calibration/profile.py) corrects them:  step = physics x exp(shares . multipliers).
Reads stored data only: neither torch nor scipy.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, fields
from functools import lru_cache
from math import exp, hypot, sqrt
from typing import TYPE_CHECKING

import numpy as np

from . import scaling
from .calibration import physics
from .calibration.profile import Floats, Profile, fitted
from .calibration.sheet import REWRITE_LAUNCHES, card_row
from .errors import ModelsError
from .input_pipeline import InputPipeline
from .tracing.step_trace import FLOP_CLASSES, OP_CLASSES, Phase
from .tracing.summary import StepSummary

if TYPE_CHECKING:
    from .hardware.records import Gpu

# Standard normal quantile of 90 %: an 80 % band leaves 10 % on each side.
Z_80 = 1.2815515655446004
LAUNCH = "launch"
COMMUNICATION = "communication"
_GROUPS = len(physics.GROUPS)

BreakdownRow = tuple[str, str, float]
WAITING = "input pipeline"
# How far torch.compile may be off what is assumed of it. Natural log; ours, for there is one row.
COMPILED_SD = 0.15


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
    """The arguments of `estimate_step` as data, for `estimate_steps`."""

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


@dataclass(frozen=True, slots=True)
class CardCosts:
    """What FLOPs, bytes and launches cost on one card in one precision, by physics alone.

    per_flop (F,) [s/FLOP]; per_byte (C,) [s/B]; launch_seconds, host_seconds: per kernel.
    multipliers (groups,): natural log; covariance: theirs.
    """

    peak_flops: float
    rewrites: tuple[float, ...]
    per_flop: Floats
    per_byte: Floats
    launch_seconds: float
    host_seconds: float
    multipliers: Floats
    covariance: Floats
    tier: str
    notes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class StepPrice:
    """Device seconds of one micro-step and one update, by physics, affine in the micro-batch.

    rows: (op class, phase), R of them. constant, per_sample (R, groups) [s]; is_update (R,): 0 or 1.
    launches, host_ops: (micro-step, update). flops, product_flops: (constant, per sample) of a micro-step;
    products are all but convolutions.
    """

    rows: tuple[tuple[str, Phase], ...]
    constant: Floats
    per_sample: Floats
    is_update: Floats
    launches: tuple[float, float]
    host_ops: tuple[float, float]
    flops: tuple[float, float]
    product_flops: tuple[float, float]


@dataclass(frozen=True, slots=True)
class _OneGpu:
    """One optimizer step on one GPU. by_row (R, groups) [s]; shares (groups,): felt in log step."""

    seconds: float
    physics_seconds: float
    by_row: Floats
    shares: Floats


def estimate_steps(requests: Iterable[StepRequest]) -> list[StepEstimate]:
    """`estimate_step` for each request; cards and workloads that repeat are priced once."""
    names = [f.name for f in fields(StepRequest) if f.name not in ("summary", "gpu")]
    return [estimate_step(r.summary, r.gpu, **{name: getattr(r, name) for name in names}) for r in requests]


def estimate_step(
    summary: StepSummary,
    gpu: Gpu,
    *,
    precision: str,
    micro_batch: int,
    gpu_count: int = 1,
    node_count: int = 1,
    link: str = "none",
    network: str = "none",
    strategy: str = "ddp",
    accumulation: int = 1,
    power_limit_watts: float | None = None,
    compiled: bool = False,
    input_pipeline: InputPipeline | None = None,
) -> StepEstimate:
    """Seconds of one optimizer step: accumulation micro-steps, the exchange between GPUs, the update.

    summary: traced in the policy of `precision`; micro_batch: samples per GPU and micro-step.
    gpu_count: GPUs in all; node_count: machines they stand in; link within, network between machines.
    power_limit_watts: a limit set below the board's own. compiled: by torch.compile, with a wider band.
    input_pipeline: what feeds each GPU; where it is slower than the GPU it decides, and is named.
    Raises ModelsError (unknown precision, strategy or link; a link the card does not have; no figure for the
    card's peak), ValueError for counts below one, ImpossibleForecast where the sum breaks the card's peak.
    """
    counts = {"micro_batch": micro_batch, "gpu_count": gpu_count, "node_count": node_count}
    for name, count in {**counts, "accumulation": accumulation}.items():
        if count < 1:
            raise ValueError(f"{name} must be at least 1, got {count}")
    scaling.check_link(gpu, link)
    card, work = _Gpu(gpu), _Summary(summary)
    costs = _card_costs(card, precision, power_limit_watts)
    priced = _price(work, card, precision, power_limit_watts, compiled)
    shard = 1 / gpu_count if scaling.shards_optimizer(strategy) else 1.0
    one = _one_gpu(costs, priced, micro_batch, accumulation, shard)
    sent = scaling.exchange(
        strategy=strategy,
        gradient_bytes=summary.gradient_bytes,
        parameters=summary.parameters,
        gpu_count=gpu_count,
        node_count=node_count,
        link_name=link,
        network_name=network,
        accumulation=accumulation,
        fitted=fitted().links,
    )
    communication = scaling.exposed_seconds(sent.seconds, one.seconds, _hidden_by(strategy))
    busy = one.seconds + communication
    fed = input_pipeline.delivery_seconds(micro_batch * accumulation) if input_pipeline else 0.0
    step = max(busy, fed)
    flops = (priced.flops[0] + priced.flops[1] * micro_batch) * accumulation
    mfu = flops / costs.peak_flops / step
    if not 0 <= mfu <= 1 + 1e-9:
        raise ImpossibleForecast(
            f"{summary.workload} on {gpu.id} in {precision}: {step:.3g} s a step would be {mfu:.0%} of the "
            "card's peak; please report this as a fault of the estimator"
        )
    sd = hypot(_log_sd(costs, one, communication, sent.log_sd), COMPILED_SD if compiled else 0.0)
    spread = exp(Z_80 * sd)
    return StepEstimate(
        step_seconds=step,
        low_seconds=max(busy / spread, fed),
        high_seconds=max(busy * spread, fed),
        samples_per_second=micro_batch * accumulation * gpu_count / step,
        tier=costs.tier,
        breakdown=_breakdown(costs, priced, one, communication, step - busy),
        communication_seconds=communication,
        launch_share=float(one.shares[physics.LAUNCH_GROUP]),
        mfu=mfu,
        assumptions=_assumptions(strategy, sent, gpu_count, input_pipeline, compiled),
        notes=costs.notes + (input_pipeline.notes(busy, fed) if input_pipeline else ()),
    )


def card_costs(gpu: Gpu, precision: str, power_limit_watts: float | None = None) -> CardCosts:
    """What this card makes of each op class. Raises UnknownFigure, PrecisionUnsupported."""
    return _card_costs(_Gpu(gpu), precision, power_limit_watts)


class _ById:
    """Hashes a large frozen value by identity, and keeps it alive while it is a key."""

    __slots__ = ("value",)

    def __hash__(self) -> int:
        return id(self.value)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _ById) and self.value is other.value

    value: object


class _Summary(_ById):
    __slots__ = ()
    value: StepSummary

    def __init__(self, value: StepSummary) -> None:
        self.value = value


class _Gpu(_ById):
    __slots__ = ()
    value: Gpu

    def __init__(self, value: Gpu) -> None:
        self.value = value


@lru_cache(maxsize=1024)
def _card_costs(key: _Gpu, precision: str, power_limit_watts: float | None) -> CardCosts:
    gpu, profile = key.value, fitted()
    card = profile.cards.get(gpu.id)
    row = card_row(gpu, precision, card.achieved_flops if card else {}, power_limit_watts)
    sheet = physics.Sheet(
        rate_flops=np.array([row.rate_flops]),
        bandwidth=np.array([row.bandwidth]),
        sm_clock=np.array([row.sm_clock]),
        l2_bytes=np.array([row.l2_bytes]),
        log_power=np.array([row.log_power]),
        unit=np.array([row.unit_index]),
        rewrites=np.array([row.rewrites]),
    )
    learned = card.multipliers.get(row.unit) if card else None
    year = np.array([profile.software_year])
    c = profile.coefficients
    notes = [] if power_limit_watts is None else [f"board limited to {power_limit_watts:g} W"]
    if card is None:
        notes.append(f"{gpu.id} is not in the fitted profile: priced from its datasheet alone")
    return CardCosts(
        peak_flops=row.peak_flops,
        rewrites=row.rewrites,
        per_flop=np.asarray(physics.seconds_per_flop(c, sheet, np)[0]),
        per_byte=np.asarray(physics.seconds_per_byte(c, sheet)[0]),
        launch_seconds=float(c.launch_seconds),
        host_seconds=float(physics.host_seconds_per_op(c, year, np.zeros(1), np)[0]),
        multipliers=learned.log_multiplier if learned else np.zeros(_GROUPS),
        covariance=learned.covariance if learned else np.diag(_widest(profile)),
        tier=card.tier if card else "datasheet",
        notes=tuple(notes),
    )


def _widest(profile: Profile) -> Floats:
    """Variance of each group's multiplier for a card the profile does not hold: the widest it does hold."""
    known = [m.covariance.diagonal() for card in profile.cards.values() for m in card.multipliers.values()]
    return np.max(known, axis=0) if known else np.full(_GROUPS, 0.3**2)


@lru_cache(maxsize=8192)
def _price(s: _Summary, g: _Gpu, precision: str, watts: float | None, compiled: bool) -> StepPrice:
    summary, costs = s.value, _card_costs(g, precision, watts)
    constant, per_sample = np.zeros((len(summary.work), _GROUPS)), np.zeros((len(summary.work), _GROUPS))
    launches, host_ops, flops, products = [0.0, 0.0], [0.0, 0.0], [0.0, 0.0], [0.0, 0.0]
    for i, work in enumerate(summary.work):
        at = OP_CLASSES.index(work.op_class)
        fused = physics.COMPILED_TRAFFIC if compiled and work.op_class in physics.COMPILED_CLASSES else 1.0
        left = physics.COMPILED_LAUNCHES if compiled and work.phase != "optimizer" else 1.0
        parts = [(work.bytes, costs.per_byte[at] * fused, physics.BYTE_GROUP_INDEX[at])]
        if at < len(FLOP_CLASSES):
            parts.append((work.flops, costs.per_flop[at], physics.FLOP_GROUP_INDEX[at]))
            for total in (flops,) if work.op_class.startswith("conv") else (flops, products):
                total[0] += work.flops.constant
                total[1] += work.flops.per_sample
        for amount, cost, group in parts:
            constant[i, group] += amount.constant * cost
            per_sample[i, group] += amount.per_sample * cost
        again = REWRITE_LAUNCHES if costs.rewrites[at] else 0
        update = work.phase == "optimizer"
        launches[update] += work.launches * left * (1 + again)
        host_ops[update] += work.launches * left * (physics.BARE_OP if update else 1.0)
    return StepPrice(
        rows=tuple((w.op_class, w.phase) for w in summary.work),
        constant=constant,
        per_sample=per_sample,
        is_update=np.array([float(w.phase == "optimizer") for w in summary.work]),
        launches=(launches[0], launches[1]),
        host_ops=(host_ops[0], host_ops[1]),
        flops=(flops[0], flops[1]),
        product_flops=(products[0], products[1]),
    )


def _one_gpu(
    costs: CardCosts, priced: StepPrice, micro_batch: int, accumulation: int, shard: float
) -> _OneGpu:
    repeats = accumulation * (1.0 - priced.is_update) + shard * priced.is_update
    by_row = (priced.constant + priced.per_sample * micro_batch) * repeats[:, None]
    by_group = by_row.sum(axis=0)
    launches = priced.launches[0] * accumulation + priced.launches[1]
    by_group[physics.LAUNCH_GROUP] += launches * costs.launch_seconds
    device = float(by_group.sum())
    host = (priced.host_ops[0] * accumulation + priced.host_ops[1]) * costs.host_seconds
    step = physics.overlap(device, host)
    shares = by_group * (device ** (physics.CORNER - 1) / step**physics.CORNER)
    shares[physics.LAUNCH_GROUP] += 1.0 - shares.sum()
    # Products never beat the datasheet, whatever the fit makes of a step unlike any it saw. Convolutions may:
    # some algorithms do fewer FLOPs than are counted.
    products = (priced.product_flops[0] + priced.product_flops[1] * micro_batch) * accumulation
    seconds = max(step * exp(float(shares @ costs.multipliers)), products / costs.peak_flops)
    return _OneGpu(seconds, step, by_row, shares)


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
    scale = one.seconds / total if total else 0.0
    rows: list[BreakdownRow] = [
        (op_class, phase, float(s) * scale) for (op_class, phase), s in zip(priced.rows, seconds, strict=True)
    ]
    rows.append((LAUNCH, "all", waiting * scale))
    if communication:
        rows.append((COMMUNICATION, "backward", communication))
    if starved > 0:
        rows.append((WAITING, "all", starved))
    return tuple(rows)


def _assumptions(
    strategy: str, sent: scaling.Exchange, gpu_count: int, fed_by: InputPipeline | None, compiled: bool
) -> tuple[str, ...]:
    feeding = "input pipeline keeps up" if fed_by is None else "input pipeline as declared, loading ahead"
    said = [f"software of {int(fitted().software_year)}, {feeding}, steady clocks"]
    if compiled:
        said.append("torch.compile fuses elementwise chains and norms to half their traffic (assumption)")
    if gpu_count > 1:
        said.append(
            f"{strategy} over {sent.bottleneck}: {sent.bytes / 1e9:.2f} GB a step at "
            f"{sent.bandwidth_bytes_per_second / 1e9:.1f} GB/s effective"
        )
    return tuple(said)

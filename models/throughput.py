"""How long one training step takes on one or many GPUs.

    price(summary, gpu, precision) -> StepPrice     affine in the micro-batch, cached
    estimate_step(...)             -> StepEstimate  accumulation, communication, optimizer, 80 % band

The seconds of each op class are physics (calibration/physics.py) times what training runs taught about that
group of classes on this card (calibration/profile.py). Reads stored data only: neither torch nor scipy.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from . import scaling
from .calibration import physics
from .calibration.profile import CardProfile, Floats, Profile, fitted
from .errors import ModelsError
from .precision import Unit, peak_flops, unit_of
from .tracing.step_trace import FLOP_CLASSES, OP_CLASSES, Phase
from .tracing.summary import StepSummary

if TYPE_CHECKING:
    from .hardware.catalogue import Gpu

# Standard normal quantile of 90 %: an 80 % band leaves 10 % on each side.
Z_80 = 1.2815515655446004
LAUNCH = "launch"
COMMUNICATION = "communication"

BreakdownRow = tuple[str, str, float]


class ImpossibleForecast(ModelsError):
    """A step faster than the card's peak allows: a fault of ours, never shown as a figure."""


@dataclass(frozen=True, slots=True)
class StepEstimate:
    """One optimizer step on all GPUs together.

    step_seconds, low_seconds, high_seconds: with an 80 % band. [s]
    samples_per_second: over all GPUs, at step_seconds.
    breakdown: (op class, phase, seconds); adds up to step_seconds. "launch" is what kernel launches and a
    slow host add, "communication" what the exchange between GPUs adds.
    mfu: model FLOPs of the step over what the units' datasheet peak could do in that time.
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
class CardCosts:
    """What FLOPs, bytes and launches cost on one card in one precision, multipliers included.

    seconds_per_flop: (F,). seconds_per_byte: (C,). covariance: of the groups' log multipliers.
    """

    unit: Unit
    peak_flops: float
    seconds_per_flop: Floats
    seconds_per_byte: Floats
    launch_seconds: float
    host_seconds: float
    covariance: Floats
    tier: str
    notes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class StepPrice:
    """One micro-step and one optimizer update, affine in the micro-batch. Rows E are (op class, phase).

    constant, per_sample: (E,) device seconds. groups: (E, groups) constant and per-sample seconds by group.
    launches: (forward and backward, optimizer). flops: (constant, per sample) of a micro-step.
    """

    rows: tuple[tuple[str, Phase], ...]
    constant: Floats
    per_sample: Floats
    group_constant: Floats
    group_per_sample: Floats
    is_optimizer: Floats
    launches: tuple[int, int]
    flops: tuple[float, float]


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


def estimate_steps(requests: Iterable[StepRequest]) -> list[StepEstimate]:
    """`estimate_step` for each request; cards and workloads that repeat are priced once."""
    return [
        estimate_step(
            r.summary,
            r.gpu,
            precision=r.precision,
            micro_batch=r.micro_batch,
            gpu_count=r.gpu_count,
            node_count=r.node_count,
            link=r.link,
            network=r.network,
            strategy=r.strategy,
            accumulation=r.accumulation,
            power_limit_watts=r.power_limit_watts,
        )
        for r in requests
    ]


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
) -> StepEstimate:
    """Seconds of one optimizer step: accumulation micro-steps, the exchange between GPUs, the update.

    summary: traced in the policy of `precision`; micro_batch: samples per GPU and micro-step.
    gpu_count: GPUs in all; node_count: machines they stand in; link within, network between machines.
    power_limit_watts: a limit set below the board's own.
    Raises ModelsError (unknown precision, strategy or link; a link the card does not have; no figure for the
    card's peak), ValueError for counts below one, ImpossibleForecast where the sum breaks the card's peak.
    """
    for name, count in (
        ("micro_batch", micro_batch),
        ("gpu_count", gpu_count),
        ("node_count", node_count),
        ("accumulation", accumulation),
    ):
        if count < 1:
            raise ValueError(f"{name} must be at least 1, got {count}")
    scaling.check_link(gpu, link)
    costs = card_costs(gpu, precision, power_limit_watts)
    priced = _price(_Summary(summary), _Gpu(gpu), precision, power_limit_watts)
    shard = 1 / gpu_count if scaling.shards_optimizer(strategy) else 1.0
    repeats = accumulation * (1.0 - priced.is_optimizer) + shard * priced.is_optimizer
    seconds = (priced.constant + priced.per_sample * micro_batch) * repeats
    device = float(seconds.sum())
    launches = priced.launches[0] * accumulation + priced.launches[1]
    launch = launches * costs.launch_seconds
    one_gpu = physics.overlap(device + launch, launches * costs.host_seconds)
    sent = scaling.exchange(
        strategy=strategy,
        gradient_bytes=summary.gradient_bytes,
        parameters=summary.parameters,
        gpu_count=gpu_count,
        node_count=node_count,
        link_name=link,
        network_name=network,
        accumulation=accumulation,
    )
    communication = scaling.exposed_seconds(sent.seconds, one_gpu, _hidden_by(strategy))
    step = one_gpu + communication
    flops = (priced.flops[0] + priced.flops[1] * micro_batch) * accumulation
    mfu = flops / costs.peak_flops / step
    if not 0 < mfu <= 1 and flops > 0:
        raise ImpossibleForecast(
            f"{summary.workload} on {gpu.id} in {precision}: {step:.3g} s a step would be {mfu:.0%} of the "
            "card's peak; please report this as a fault of the estimator"
        )
    sd = _log_sd(summary, costs, priced, micro_batch, accumulation, one_gpu, launch, communication, sent)
    spread = float(np.exp(Z_80 * sd))
    return StepEstimate(
        step_seconds=step,
        low_seconds=step / spread,
        high_seconds=step * spread,
        samples_per_second=micro_batch * accumulation * gpu_count / step,
        tier=costs.tier,
        breakdown=_breakdown(priced, seconds, one_gpu, communication),
        communication_seconds=communication,
        launch_share=(one_gpu - device) / one_gpu if one_gpu else 0.0,
        mfu=mfu,
        assumptions=_assumptions(strategy, sent, gpu_count),
        notes=costs.notes,
    )


def card_costs(gpu: Gpu, precision: str, power_limit_watts: float | None = None) -> CardCosts:
    """What this card makes of each op class. Raises UnknownFigure, PrecisionUnsupported."""
    return _card_costs(_Gpu(gpu), precision, power_limit_watts)


def sheet_of(
    gpu: Gpu, precision: str, card: CardProfile | None, power_limit_watts: float | None = None
) -> physics.Sheet:
    """One-row sheet of `gpu` for the units of `precision`. Raises UnknownFigure, PrecisionUnsupported."""
    unit = unit_of(gpu, precision)
    peak = peak_flops(gpu, precision)
    achieved = card.achieved_flops.get(unit.removesuffix("_on_fp32"), peak) if card else peak
    if unit == "half_on_fp32" and card:
        achieved = card.achieved_flops.get("fp32", peak)
    watts = gpu.tdp_watts if power_limit_watts is None else min(power_limit_watts, gpu.tdp_watts)
    on_matrix_units = unit in ("tf32", "half")
    log_power = np.log(min(3.0, 0.45 * watts / (peak / 1e12))) if on_matrix_units else 0.0
    return physics.Sheet(
        rate_flops=np.array([achieved]),
        bandwidth=np.array([gpu.bandwidth_bytes_per_second]),
        sm_clock=np.array([gpu.sm_count * gpu.boost_clock_hz]),
        l2_bytes=np.array([float(gpu.l2_bytes)]),
        log_power=np.array([log_power]),
        unit=np.array([physics.UNITS.index(unit)]),
    )


class _ById:
    """Hashes a large frozen value by identity, and keeps it alive while it is a key."""

    __slots__ = ("value",)

    def __init__(self, value: object) -> None:
        self.value = value

    def __hash__(self) -> int:
        return id(self.value)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _ById) and self.value is other.value


class _Summary(_ById):
    __slots__ = ()
    value: StepSummary


class _Gpu(_ById):
    __slots__ = ()
    value: Gpu


@lru_cache(maxsize=1024)
def _card_costs(key: _Gpu, precision: str, power_limit_watts: float | None) -> CardCosts:
    gpu, profile = key.value, fitted()
    card = profile.cards.get(gpu.id)
    sheet = sheet_of(gpu, precision, card, power_limit_watts)
    unit = unit_of(gpu, precision)
    peak = peak_flops(gpu, precision)
    learned = card.multipliers.get(unit) if card else None
    groups = len(physics.GROUPS)
    factor = np.exp(learned.log_multiplier) if learned else np.ones(groups)
    covariance = learned.covariance if learned else np.diag(_unseen_variance(profile))
    per_flop = physics.seconds_per_flop(profile.coefficients, sheet, np)[0]
    per_flop = per_flop * factor[list(physics.FLOP_GROUP_INDEX)]
    per_byte = physics.seconds_per_byte(profile.coefficients, sheet)[0]
    per_byte = per_byte * factor[list(physics.BYTE_GROUP_INDEX)]
    launch_factor = factor[physics.LAUNCH_GROUP]
    year = np.array([profile.software_year])
    host = physics.host_seconds_per_launch(profile.coefficients, year, np)[0]
    notes = () if power_limit_watts is None else (f"board limited to {power_limit_watts:g} W",)
    return CardCosts(
        unit=unit,
        peak_flops=peak,
        # No class beats the datasheet, whatever the fit says of a card it never saw.
        seconds_per_flop=np.maximum(per_flop, 1.0 / peak),
        seconds_per_byte=per_byte,
        launch_seconds=float(profile.coefficients.launch_seconds * launch_factor),
        host_seconds=float(host * launch_factor),
        covariance=covariance,
        tier=card.tier if card else "datasheet",
        notes=notes,
    )


def _unseen_variance(profile: Profile) -> Floats:
    """Variance of each group's multiplier for a card the profile does not hold: the widest it does hold."""
    known = [m.covariance.diagonal() for card in profile.cards.values() for m in card.multipliers.values()]
    return np.max(known, axis=0) if known else np.full(len(physics.GROUPS), 0.3**2)


@lru_cache(maxsize=8192)
def _price(s: _Summary, g: _Gpu, precision: str, power_limit_watts: float | None) -> StepPrice:
    summary, costs = s.value, _card_costs(g, precision, power_limit_watts)
    count, groups = len(summary.work), len(physics.GROUPS)
    constant, per_sample = np.zeros(count), np.zeros(count)
    group_constant, group_per_sample = np.zeros((count, groups)), np.zeros((count, groups))
    launches, flops = [0, 0], [0.0, 0.0]
    for i, work in enumerate(summary.work):
        at = OP_CLASSES.index(work.op_class)
        parts = [(work.bytes, costs.seconds_per_byte[at], physics.BYTE_GROUP_INDEX[at])]
        if at < len(FLOP_CLASSES):
            parts.append((work.flops, costs.seconds_per_flop[at], physics.FLOP_GROUP_INDEX[at]))
            flops[0] += work.flops.constant
            flops[1] += work.flops.per_sample
        for amount, cost, group in parts:
            constant[i] += amount.constant * cost
            per_sample[i] += amount.per_sample * cost
            group_constant[i, group] += amount.constant * cost
            group_per_sample[i, group] += amount.per_sample * cost
        launches[work.phase == "optimizer"] += work.launches
    return StepPrice(
        rows=tuple((w.op_class, w.phase) for w in summary.work),
        constant=constant,
        per_sample=per_sample,
        group_constant=group_constant,
        group_per_sample=group_per_sample,
        is_optimizer=np.array([float(w.phase == "optimizer") for w in summary.work]),
        launches=(launches[0], launches[1]),
        flops=(flops[0], flops[1]),
    )


def _hidden_by(strategy: str) -> float:
    by = fitted().hidden_by
    return by["sharded"] if strategy in ("fsdp", "zero3") else by["ddp"]


def _log_sd(
    summary: StepSummary,
    costs: CardCosts,
    priced: StepPrice,
    micro_batch: int,
    accumulation: int,
    one_gpu: float,
    launch: float,
    communication: float,
    sent: scaling.Exchange,
) -> float:
    """Standard deviation of log step seconds: classes, host, recipe, and the link."""
    profile = fitted()
    repeats = accumulation + (1 - accumulation) * priced.is_optimizer
    by_row = priced.group_constant + priced.group_per_sample * micro_batch
    by_group = repeats @ by_row
    total = float(by_group.sum()) + launch
    scale = one_gpu / total if total else 0.0
    shares = by_group * (total / one_gpu if one_gpu else 0.0) ** (physics.CORNER - 1) / (one_gpu or 1.0)
    shares[physics.LAUNCH_GROUP] = max(0.0, 1.0 - shares.sum()) if scale else 0.0
    offset_sd = profile.workloads.get(summary.workload, (0.0, 0.0))[1]
    variance = float(shares @ costs.covariance @ shares) + profile.recipe_sd**2 + offset_sd**2
    variance += (shares[physics.LAUNCH_GROUP] * profile.host_sd) ** 2
    tier_factor = profile.band_factors.get(costs.tier, 1.0)
    step = one_gpu + communication
    alone = one_gpu / step if step else 0.0
    felt = communication / step * sent.log_sd if step else 0.0
    return float(np.sqrt((alone * tier_factor) ** 2 * variance + felt**2))


def _breakdown(
    priced: StepPrice, seconds: Floats, one_gpu: float, communication: float
) -> tuple[BreakdownRow, ...]:
    rows: list[BreakdownRow] = [
        (op_class, phase, float(s)) for (op_class, phase), s in zip(priced.rows, seconds, strict=True)
    ]
    waiting = one_gpu - float(seconds.sum())
    if waiting:
        rows.append((LAUNCH, "all", waiting))
    if communication:
        rows.append((COMMUNICATION, "backward", communication))
    return tuple(rows)


def _assumptions(strategy: str, sent: scaling.Exchange, gpu_count: int) -> tuple[str, ...]:
    said = [
        f"software of {fitted().software_year:.0f}; input pipeline keeps up; steady clocks",
    ]
    if gpu_count > 1:
        said.append(
            f"{strategy} over {sent.bottleneck}: {sent.bytes / 1e9:.2f} GB a step at "
            f"{sent.bandwidth_bytes_per_second / 1e9:.1f} GB/s effective"
        )
    return tuple(said)

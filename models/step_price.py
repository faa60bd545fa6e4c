"""What a traced step costs on one card by physics: affine in the micro-batch, before what was learned of it.

    card_costs(gpu, precision) -> CardCosts        what a FLOP, a byte and a launch cost
    price(summary, gpu, precision) -> StepPrice    the step's seconds by op class, phase and group

Cards and workloads that repeat are priced once.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from .calibration import physics
from .calibration.profile import Floats, Profile, fitted
from .calibration.sheet import REWRITE_LAUNCHES, card_row
from .tracing import adapter_spec
from .tracing.step_trace import FLOP_CLASSES, OP_CLASSES, ZERO, Affine, Phase
from .tracing.summary import ClassWork, StepSummary

if TYPE_CHECKING:
    from .hardware.records import Gpu

_GROUPS = len(physics.GROUPS)


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


def card_costs(gpu: Gpu, precision: str, power_limit_watts: float | None = None) -> CardCosts:
    """What this card makes of each op class. Raises UnknownFigure, PrecisionUnsupported."""
    return _card_costs(_Gpu(gpu), precision, power_limit_watts)


def price(
    summary: StepSummary,
    gpu: Gpu,
    precision: str,
    power_limit_watts: float | None = None,
    compiled: bool = False,
) -> StepPrice:
    """The step on that card, by physics alone. compiled: by torch.compile. Raises as `card_costs` does."""
    return _price(_Summary(summary), _Gpu(gpu), precision, power_limit_watts, compiled)


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
    works = _unpacking_apart(summary)
    constant, per_sample = np.zeros((len(works), _GROUPS)), np.zeros((len(works), _GROUPS))
    launches, host_ops, flops, products = [0.0, 0.0], [0.0, 0.0], [0.0, 0.0], [0.0, 0.0]
    for i, work in enumerate(works):
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
        rows=tuple((w.op_class, w.phase) for w in works),
        constant=constant,
        per_sample=per_sample,
        is_update=np.array([float(w.phase == "optimizer") for w in works]),
        launches=(launches[0], launches[1]),
        host_ops=(host_ops[0], host_ops[1]),
        flops=(flops[0], flops[1]),
        product_flops=(products[0], products[1]),
    )


def _unpacking_apart(summary: StepSummary) -> list[ClassWork]:
    """The work, the unpacking of a quantised base in a class of its own.

    The trace unpacks each weight with an elementwise op. What such ops move whatever the batch is that: all
    else they do is by the sample.
    """
    if not quantisation_of(summary):
        return list(summary.work)
    found = []
    for work in summary.work:
        if work.op_class == "elementwise" and work.phase != "optimizer" and work.bytes.constant > 0:
            unpacked = Affine(work.bytes.constant, 0.0)
            found.append(ClassWork("dequantisation", work.phase, ZERO, unpacked, 0))
            work = replace(work, bytes=Affine(0.0, work.bytes.per_sample))
        found.append(work)
    return found


def quantisation_of(summary: StepSummary) -> str:
    """How the frozen base is stored; "" where it is not packed."""
    return adapter_spec.parse(summary.variant.adapter).quantisation if summary.variant.adapter else ""

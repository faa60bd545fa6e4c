"""What would make it fit: each change alone with its new peak and price in time, and the cheapest together.

What a change costs in time depends on card and link, so the caller brings a `Price`: the throughput estimate
of a setting. Nothing here holds a rule of thumb.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING, Any

from .errors import ModelsError, TraceUnavailable
from .lever_changes import (
    CHANGES,
    CHECKPOINTING,
    EIGHT_BIT,
    FUSED,
    SHARDED,
    SMALLER,
    Change,
    Setting,
    SummaryOf,
    adapters,
    estimate,
    grown,
    shape_of,
)
from .tracing.adapter_spec import USUAL_ADAPTER
from .tracing.step_trace import TraceVariant
from .tracing.summary import StepSummary
from .vram import MemoryEstimate

__all__ = [
    "Lever",
    "Price",
    "Setting",
    "SummaryOf",
    "cheapest_combination",
    "checkpointing_alone",
    "estimate",
    "levers",
    "shape_of",
]

if TYPE_CHECKING:
    from .hardware.catalogue import Gpu
    from .workloads.records import Workload

# (setting) -> GPU-seconds of one sample; None where no speed can be told.
Price = Callable[[Setting], float | None]

# Combinations whose times are as close as this count as equal; then the fewest changes win.
_SAME_TIME = 1.03


@dataclass(frozen=True, slots=True)
class Lever:
    """One change, or several, and the peak it leads to.

    names: of the changes.   setting: the step with them made.   estimate: its memory.
    saved_bytes: process P95 before less after; negative where the change costs memory.
    time_factor: GPU-seconds of a sample over those before; None where no speed can be told.
    """

    names: tuple[str, ...]
    setting: Setting
    estimate: MemoryEstimate
    saved_bytes: int
    time_factor: float | None = None

    @property
    def fits(self) -> bool:
        return self.estimate.fits == "yes"

    def to_json(self) -> dict[str, Any]:
        """A JSON-ready dict of name, verdict, peaks and the setting that leads there."""
        return {
            "name": " + ".join(self.names),
            "fits": self.estimate.fits,
            "process_bytes": {"p50": self.estimate.process_bytes.p50, "p95": self.estimate.process_bytes.p95},
            "saved_bytes": self.saved_bytes,
            "time_factor": None if self.time_factor is None else round(self.time_factor, 3),
            "precision": self.setting.precision,
            "micro_batch": self.setting.micro_batch,
            "accumulation": self.setting.accumulation,
            "activation_checkpointing": self.setting.activation_checkpointing,
            "optimizer": self.setting.optimizer,
            "gpu_count": self.setting.gpu_count,
            "strategy": self.setting.strategy,
            "adapter": self.setting.adapter,
            "offload": self.setting.offload,
            "tensor_parallel": self.setting.tensor_parallel,
        }


def shipped_only(workload: Workload) -> SummaryOf:
    """Summaries of `workload` that need no tracing: a page of levers should not take a minute.

    The function raises TraceUnavailable for any other variant.
    """
    from .workloads import store

    keys = {variant.key for variant in store.shipped_variants(workload)}

    def summary_of(variant: TraceVariant) -> StepSummary:
        real = store.variant_of(workload, variant)
        if real.key not in keys:
            raise TraceUnavailable(f"{workload.id}: the variant {real.key} does not ship")
        return store.summary(workload, real)

    return summary_of


def summaries_of(workload: Workload, gpu: Gpu, setting: Setting) -> SummaryOf:
    """Where levers look: at what ships, where the setting itself ships; else at whatever can be traced."""
    from .workloads import store

    shipped = shipped_only(workload)
    try:
        shipped(setting.variant(gpu))
    except TraceUnavailable:
        return functools.cache(lambda variant: store.summary(workload, variant))
    return functools.cache(shipped)


def levers(
    summary_of: SummaryOf,
    gpu: Gpu,
    setting: Setting,
    price: Price | None = None,
    usual_adapter: str = USUAL_ADAPTER,
) -> tuple[Lever, ...]:
    """Each change alone that lowers the peak, those that are enough first, then by what they save.

    usual_adapter: spec of what LoRA trains in this model; "" where it has none.
    A change whose variant neither ships nor can be traced here is left out.
    """
    before = _before(summary_of, gpu, setting, price)
    found = []
    for name, change in (*CHANGES.items(), *adapters(usual_adapter).items()):
        lever = _pulled(summary_of, gpu, setting, (name,), change(summary_of, gpu, setting), before)
        if lever is not None and lever.saved_bytes > 0:
            found.append(lever)
    sharded = [
        _pulled(summary_of, gpu, setting, (name,), change(summary_of, gpu, setting), before)
        for name, change in SHARDED.items()
    ]
    enough = [lever for lever in sharded if lever is not None and lever.fits]
    found += enough[:1] or [lever for lever in sharded[-1:] if lever is not None]
    return tuple(sorted(found, key=lambda lever: (not lever.fits, -lever.saved_bytes)))


def part_that_fits(summary_of: SummaryOf, gpu: Gpu, setting: Setting) -> Setting:
    """`setting` where it fits or accumulates already; else its batch in the fewest equal parts that fit."""
    if setting.accumulation > 1 or estimate(summary_of, gpu, setting).fits == "yes":
        return setting
    return CHANGES[SMALLER](summary_of, gpu, setting) or setting


def checkpointing_alone(
    summary_of: SummaryOf, gpu: Gpu, setting: Setting, price: Price | None = None
) -> Lever | None:
    """What activation checkpointing trades here, whether or not it helps; None where there is none."""
    before = _before(summary_of, gpu, setting, price)
    changed = CHANGES[CHECKPOINTING](summary_of, gpu, setting)
    return _pulled(summary_of, gpu, setting, (CHECKPOINTING,), changed, before)


def cheapest_combination(
    summary_of: SummaryOf,
    gpu: Gpu,
    setting: Setting,
    price: Price | None = None,
    *,
    more_gpus: bool = False,
    adapter: str = "",
) -> Lever | None:
    """The changes that fit together at the least time for a sample; None where none do or it fits already.

    Of combinations within 3 % of the least the one with the fewest changes, the gentlest first: fused
    optimizer, mixed precision, smaller micro-batch, checkpointing, 8-bit optimizer, offload. Without a price
    the fewest changes.
    An accumulated batch is cut into as few parts as then fit.
    more_gpus: also shard over more of them. adapter: also train that instead of all weights, with the base
    whole or packed.
    """
    changes = {**CHANGES, **(SHARDED if more_gpus else {}), **adapters(adapter)}
    before = _before(summary_of, gpu, setting, price)
    if before.estimate.fits == "yes":
        return None
    fitting: list[Lever] = []
    for count in range(1, len(changes) + 1):
        for names in combinations(changes, count):
            lever = _together(summary_of, gpu, setting, changes, names, before)
            if lever is not None and lever.fits:
                fitting.append(lever)
        if fitting and price is None:
            break
    if not fitting:
        return None
    priced = [lever for lever in fitting if lever.time_factor is not None]
    if not priced:
        return fitting[0]
    least = min(lever.time_factor or 0.0 for lever in priced)
    return next(lever for lever in priced if (lever.time_factor or 0.0) <= _SAME_TIME * least)


def _together(
    summary_of: SummaryOf,
    gpu: Gpu,
    setting: Setting,
    changes: Mapping[str, Change],
    names: tuple[str, ...],
    before: _Before,
) -> Lever | None:
    """All of `names` at once; None where one changes nothing after the others."""
    sharded = SHARDED.keys() & set(names)
    # Nobody publishes 8-bit moments, scaled in blocks of 2,048, under shards that cut through them.
    if len(sharded) > 1 or (EIGHT_BIT in names and (sharded or FUSED in names)):
        return None
    # The micro-batch is chosen last: it takes what room the others leave.
    changed: Setting | None = setting
    for name in sorted(names, key=lambda name: name == SMALLER):
        after = changes[name](summary_of, gpu, changed) if changed else None
        changed = None if after == changed else after
    if changed is not None and setting.accumulation > 1:
        changed = grown(summary_of, gpu, changed)
    return _pulled(summary_of, gpu, setting, names, changed, before)


@dataclass(frozen=True, slots=True)
class _Before:
    """The step as asked, which every change is held against."""

    estimate: MemoryEstimate
    price: Price | None
    seconds: float | None

    def factor(self, changed: Setting) -> float | None:
        after = self.price(changed) if self.price is not None and self.seconds is not None else None
        return None if after is None or self.seconds is None else after / self.seconds


def _before(summary_of: SummaryOf, gpu: Gpu, setting: Setting, price: Price | None) -> _Before:
    return _Before(estimate(summary_of, gpu, setting), price, price(setting) if price else None)


def _pulled(
    summary_of: SummaryOf,
    gpu: Gpu,
    setting: Setting,
    names: tuple[str, ...],
    changed: Setting | None,
    before: _Before,
) -> Lever | None:
    if changed is None or changed == setting:
        return None
    try:
        after = estimate(summary_of, gpu, changed)
    except ModelsError:
        return None
    traced = summary_of(changed.variant(gpu)).variant
    if changed.activation_checkpointing and not traced.activation_checkpointing:
        return None  # the workload has no checkpointing; it was given its plain variant
    saved = before.estimate.process_bytes.p95 - after.process_bytes.p95
    return Lever(
        names,
        changed,
        after,
        saved,
        before.factor(changed) if after.fits == "yes" or len(names) == 1 else None,
    )

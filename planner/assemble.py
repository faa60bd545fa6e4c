"""From the rows that are listed to the options of a plan: lines, spread, chances, memory and speed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import TYPE_CHECKING

from . import money
from .answer import Chance, Job, PlanOption, Room, Speed
from .estimator import Estimator, Setting
from .limits import Limits
from .luck import Luck
from .options import Variant
from .rows import Row
from .terms import Terms

if TYPE_CHECKING:
    from .models.throughput import StepEstimate
    from .models.vram import MemoryEstimate


def options_of(
    listed: Sequence[str],
    kept: Sequence[Row],
    front: Mapping[str, str | None],
    terms: Terms,
    job: Job,
    estimator: Estimator,
    limits: Limits,
    seed: int,
) -> tuple[PlanOption, ...]:
    """The options in the order listed. listed: places in `kept`; front: place -> place that beats it."""
    rows = [kept[int(place)] for place in listed]
    ids = _distinct([row.id for row in rows])
    id_of = dict(zip(listed, ids, strict=True))
    priced = [row.price(terms) for row in rows]
    luck = Luck(rows, terms, seed)
    parts = _Parts(job, estimator)
    found = []
    for rank, (place, row, price) in enumerate(zip(listed, rows, priced, strict=True), 1):
        beaten_by = front[place]
        variant = row.run.variant
        chance = Chance(
            luck.chance_of_hours(rank - 1, limits.hours), luck.chance_of_cost(rank - 1, limits.budget)
        )
        found.append(
            PlanOption(
                rank=rank,
                id=id_of[place],
                provider=variant.machine.provider,
                hardware=variant.machine.id,
                count=variant.count,
                gpu=variant.machine.gpu.id,
                gpu_count=variant.gpu_count,
                purchase_model=price.purchase_model,
                region=price.region,
                pareto=beaten_by is None,
                dominated_by=None if beaten_by is None else id_of[beaten_by],
                cost=luck.cost(rank - 1),
                time_hours=luck.hours(rank - 1),
                cash_upfront=price.cash_upfront,
                cost_per_epoch=_per_epoch(row.cost, job),
                price_per_gpu_hour=price.price_per_gpu_hour,
                cost_lines=price.lines,
                time_lines=price.time_lines,
                memory=parts.room(variant),
                throughput=parts.speed(variant),
                prices=price.prices,
                chance=chance,
                notes=(*price.notes, *variant.step.notes),
            )
        )
    return tuple(found)


def _distinct(ids: list[str]) -> list[str]:
    """Two offers of one place and contract would share an id: the later ones get a number."""
    seen: dict[str, int] = {}
    found = []
    for name in ids:
        seen[name] = seen.get(name, 0) + 1
        found.append(name if seen[name] == 1 else f"{name}#{seen[name]}")
    return found


def _per_epoch(cost: Decimal, job: Job) -> Decimal | None:
    return money.price(money.divided(cost, job.epochs)) if job.epochs else None


class _Parts:
    """Memory and speed as answers, made once per variant."""

    def __init__(self, job: Job, estimator: Estimator) -> None:
        self._job = job
        self._estimator = estimator
        self._rooms: dict[int, Room] = {}
        self._speeds: dict[int, Speed] = {}

    def room(self, variant: Variant) -> Room:
        if id(variant) not in self._rooms:
            self._rooms[id(variant)] = room_of(variant.memory)
        return self._rooms[id(variant)]

    def speed(self, variant: Variant) -> Speed:
        if id(variant) not in self._speeds:
            flops = self._estimator.flops(variant.machine.gpu, variant.setting)
            self._speeds[id(variant)] = speed_of(variant.step, variant.setting, self._job.steps, flops)
        return self._speeds[id(variant)]


def room_of(memory: MemoryEstimate) -> Room:
    """A memory estimate as an answer."""
    return Room(
        allocated_bytes=(memory.allocated_bytes.p50, memory.allocated_bytes.p95),
        reserved_bytes=(memory.reserved_bytes.p50, memory.reserved_bytes.p95),
        process_bytes=(memory.process_bytes.p50, memory.process_bytes.p95),
        capacity_bytes=memory.capacity_bytes,
        fits=memory.fits,
        breakdown=memory.breakdown,
        peak_phase=memory.peak_phase,
        peak_op=memory.peak_op,
        tier=memory.tier,
    )


def speed_of(
    step: StepEstimate, setting: Setting, steps: int, flops: tuple[tuple[str, float], ...] = ()
) -> Speed:
    """A step estimate as an answer."""
    return Speed(
        value=step.samples_per_second,
        low=step.samples_per_second * step.step_seconds / step.high_seconds,
        high=step.samples_per_second * step.step_seconds / step.low_seconds,
        step_seconds=step.step_seconds,
        step_seconds_low=step.low_seconds,
        step_seconds_high=step.high_seconds,
        steps=steps,
        precision=setting.precision,
        global_batch_size=setting.micro_batch * setting.accumulation * setting.replicas,
        micro_batch_size=setting.micro_batch,
        accumulation=setting.accumulation,
        activation_checkpointing=setting.activation_checkpointing,
        strategy=setting.strategy,
        link=setting.link,
        network=setting.network,
        communication_seconds=step.communication_seconds,
        tier=step.tier,
        breakdown=step.breakdown,
        notes=step.notes,
        flops=flops,
    )

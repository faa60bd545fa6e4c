"""The parts of a plan: plain frozen records, and the JSON each becomes.

Money is Decimal here and text in JSON; hours of the sums are Decimal here and numbers in JSON; moments are
UTC and RFC 3339 in JSON. Only additions are made to these records within one SCHEMA_VERSION major.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from typing import Any, Literal

from . import money

SCHEMA_VERSION = "1.0"

# Where a figure comes from, weakest last.
Basis = Literal["measured", "quoted", "modelled", "assumed"]


@dataclass(frozen=True, slots=True)
class CostLine:
    """One term of a cost: amount = quantity × unit_price, exactly. [currency]

    quantity is rounded before the product, never after. formula: how the quantity and price came about.
    source: where unit_price comes from. observed_at: when the source said it; None for what is computed.
    """

    item: str
    quantity: Decimal
    unit: str
    unit_price: Decimal
    amount: Decimal
    currency: str
    formula: str
    source: str
    observed_at: datetime | None
    basis: Basis

    def to_json(self) -> dict[str, Any]:
        return {
            "item": self.item,
            "quantity": money.text(self.quantity),
            "unit": self.unit,
            "unit_price": money.text(self.unit_price),
            "amount": money.text(self.amount),
            "currency": self.currency,
            "formula": self.formula,
            "source": self.source,
            "observed_at": moment(self.observed_at),
            "basis": self.basis,
        }


@dataclass(frozen=True, slots=True)
class TimeLine:
    """One term of the duration; they add up to time_hours.p50. [h]"""

    item: str
    hours: Decimal
    formula: str
    source: str
    basis: Basis

    def to_json(self) -> dict[str, Any]:
        return {
            "item": self.item,
            "hours": float(self.hours),
            "formula": self.formula,
            "source": self.source,
            "basis": self.basis,
        }


@dataclass(frozen=True, slots=True)
class Cost:
    """p50 is the central estimate, the exact sum of the cost lines; p10 and p90 are simulated. [currency]"""

    p10: Decimal
    p50: Decimal
    p90: Decimal

    def to_json(self) -> dict[str, str]:
        return {"p10": money.text(self.p10), "p50": money.text(self.p50), "p90": money.text(self.p90)}


@dataclass(frozen=True, slots=True)
class Hours:
    """p50 is the central estimate, the exact sum of the time lines; p10 and p90 are simulated. [h]"""

    p10: Decimal
    p50: Decimal
    p90: Decimal

    def to_json(self) -> dict[str, float]:
        return {"p10": float(self.p10), "p50": float(self.p50), "p90": float(self.p90)}


@dataclass(frozen=True, slots=True)
class PriceUsed:
    """A stored price that a cost rests on, as published, and its rate into the plan's currency.

    amount: per `unit`, in `currency`. fx_rate: plan currency per unit of `currency`; 1 where they are equal.
    age_days: from observed_at to the plan's as_of.
    """

    id: str
    item: str
    provider: str
    region: str
    contract: str
    amount: Decimal
    currency: str
    unit: str
    source: str
    source_ref: str
    observed_at: datetime
    age_days: int
    quality: str
    fx_rate: Decimal
    fx_source: str | None
    fx_observed_at: datetime | None

    def to_json(self) -> dict[str, Any]:
        return {
            "id": self.id,
            "item": self.item,
            "provider": self.provider,
            "region": self.region,
            "contract": self.contract,
            "amount": money.text(self.amount),
            "currency": self.currency,
            "unit": self.unit,
            "source": self.source,
            "source_ref": self.source_ref,
            "observed_at": moment(self.observed_at),
            "age_days": self.age_days,
            "quality": self.quality,
            "fx_rate": money.text(self.fx_rate),
            "fx_source": self.fx_source,
            "fx_observed_at": moment(self.fx_observed_at),
        }


@dataclass(frozen=True, slots=True)
class Speed:
    """How fast one variant trains. value, low, high: all GPUs together, 80 % band. [samples/s]

    step_seconds: one optimizer step; low and high of the same band. [s]
    steps: optimizer steps of the whole run. [1]
    breakdown: (op class, phase, seconds), adds up to step_seconds.
    flops: (op class, FLOP of one optimizer step on all GPUs).
    """

    value: float
    low: float
    high: float
    step_seconds: float
    step_seconds_low: float
    step_seconds_high: float
    steps: int
    precision: str
    global_batch_size: int
    micro_batch_size: int
    accumulation: int
    activation_checkpointing: bool
    strategy: str
    link: str
    network: str
    communication_seconds: float
    tier: str
    breakdown: tuple[tuple[str, str, float], ...]
    notes: tuple[str, ...] = ()
    flops: tuple[tuple[str, float], ...] = ()

    def to_json(self) -> dict[str, Any]:
        return {
            "value": self.value,
            "low": self.low,
            "high": self.high,
            "unit": "samples/s",
            "step_seconds": self.step_seconds,
            "step_seconds_low": self.step_seconds_low,
            "step_seconds_high": self.step_seconds_high,
            "steps": self.steps,
            "precision": self.precision,
            "global_batch_size": self.global_batch_size,
            "micro_batch_size": self.micro_batch_size,
            "accumulation": self.accumulation,
            "activation_checkpointing": self.activation_checkpointing,
            "strategy": self.strategy,
            "link": self.link,
            "network": self.network,
            "communication_seconds": self.communication_seconds,
            "tier": self.tier,
            "breakdown": [
                {"op_class": op_class, "phase": phase, "seconds": seconds}
                for op_class, phase, seconds in self.breakdown
            ],
            "flops_per_step": dict(self.flops),
            "notes": list(self.notes),
        }


@dataclass(frozen=True, slots=True)
class Room:
    """Memory of one GPU under one variant; pairs are (p50, p95). [B]

    fits: "yes", or "too_close" where the P95 leaves less than the safe headroom.
    """

    allocated_bytes: tuple[int, int]
    reserved_bytes: tuple[int, int]
    process_bytes: tuple[int, int]
    capacity_bytes: int
    fits: str
    breakdown: Mapping[str, int]
    peak_phase: str
    peak_op: str
    tier: str

    @property
    def used_share(self) -> float:
        return self.process_bytes[0] / self.capacity_bytes

    def to_json(self) -> dict[str, Any]:
        def pair(of: tuple[int, int]) -> dict[str, int]:
            return {"p50": of[0], "p95": of[1]}

        return {
            "allocated_bytes": pair(self.allocated_bytes),
            "reserved_bytes": pair(self.reserved_bytes),
            "process_bytes": pair(self.process_bytes),
            "capacity_bytes": self.capacity_bytes,
            "headroom_bytes": self.capacity_bytes - self.process_bytes[0],
            "used_share": round(self.used_share, 4),
            "fits": self.fits,
            "breakdown": dict(self.breakdown),
            "peak_phase": self.peak_phase,
            "peak_op": self.peak_op,
            "tier": self.tier,
        }


@dataclass(frozen=True, slots=True)
class Chance:
    """Simulated chance of keeping each limit, None where the limit was not given. [0, 1]"""

    deadline: float | None
    budget: float | None

    def to_json(self) -> dict[str, float | None]:
        return {"deadline": self.deadline, "budget": self.budget}


@dataclass(frozen=True, slots=True)
class PlanOption:
    """One way to run the job. rank: 1 first; the front by cost, then the dominated rows by cost.

    hardware: instance or rig id. count: how many of it; gpu_count: GPUs in all.
    purchase_model: a key of purchase_models.PURCHASE_MODELS. region: "" where the hardware has none.
    dominated_by: id of an option that is no dearer and no slower, and better in one; None on the front.
    cash_upfront: what is paid before the run begins.
    price_per_gpu_hour: of the hardware alone; None where it is bought.
    """

    rank: int
    id: str
    provider: str
    hardware: str
    count: int
    gpu: str
    gpu_count: int
    purchase_model: str
    region: str
    pareto: bool
    dominated_by: str | None
    cost: Cost
    time_hours: Hours
    cash_upfront: Decimal
    cost_per_epoch: Decimal | None
    price_per_gpu_hour: Decimal | None
    cost_lines: tuple[CostLine, ...]
    time_lines: tuple[TimeLine, ...]
    memory: Room
    throughput: Speed
    prices: tuple[PriceUsed, ...]
    chance: Chance
    notes: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        def or_none(amount: Decimal | None) -> str | None:
            return None if amount is None else money.text(amount)

        return {
            "rank": self.rank,
            "id": self.id,
            "provider": self.provider,
            "hardware": self.hardware,
            "count": self.count,
            "gpu": self.gpu,
            "gpu_count": self.gpu_count,
            "purchase_model": self.purchase_model,
            "region": self.region,
            "pareto": self.pareto,
            "dominated_by": self.dominated_by,
            "cost": self.cost.to_json(),
            "time_hours": self.time_hours.to_json(),
            "cash_upfront": money.text(self.cash_upfront),
            "cost_per_epoch": or_none(self.cost_per_epoch),
            "price_per_gpu_hour": or_none(self.price_per_gpu_hour),
            "cost_lines": [line.to_json() for line in self.cost_lines],
            "time_lines": [line.to_json() for line in self.time_lines],
            "memory": self.memory.to_json(),
            "throughput": self.throughput.to_json(),
            "prices": [used.to_json() for used in self.prices],
            "chance": self.chance.to_json(),
            "notes": list(self.notes),
        }


@dataclass(frozen=True, slots=True)
class Excluded:
    """Something that could have run the job and was left out.

    code: memory, no_price, stale_price, currency, precision, batch, network or unknown_figure.
    """

    id: str
    code: str
    reason: str

    def to_json(self) -> dict[str, str]:
        return {"id": self.id, "code": self.code, "reason": self.reason}


@dataclass(frozen=True, slots=True)
class Assumption:
    """Something taken as true that the user did not say. text: one line for people; source: who says so.

    checked: when the source was read; None for what was worked out, or given.
    """

    key: str
    text: str
    source: str
    checked: date | None = None

    def to_json(self) -> dict[str, str | None]:
        checked = None if self.checked is None else self.checked.isoformat()
        return {"key": self.key, "text": self.text, "source": self.source, "checked": checked}


@dataclass(frozen=True, slots=True)
class Job:
    """The training run that is planned.

    samples: to be trained on in all. steps: optimizer steps.
    size: tokens or pixels of a sample, None for neither.
    """

    workload: str
    title: str
    parameters: int
    epochs: Decimal | None
    tokens: int | None
    dataset: str
    dataset_samples: int | None
    samples: int
    size: int | None
    size_unit: str | None
    global_batch_size: int
    steps: int
    optimizer: str

    def to_json(self) -> dict[str, Any]:
        return {
            "workload": self.workload,
            "title": self.title,
            "parameters": self.parameters,
            "epochs": None if self.epochs is None else float(self.epochs),
            "tokens": self.tokens,
            "dataset": self.dataset,
            "dataset_samples": self.dataset_samples,
            "samples": self.samples,
            "size": self.size,
            "size_unit": self.size_unit,
            "global_batch_size": self.global_batch_size,
            "steps": self.steps,
            "optimizer": self.optimizer,
        }


def moment(at: datetime | None) -> str | None:
    """RFC 3339 in UTC, to the second."""
    return None if at is None else f"{at:%Y-%m-%dT%H:%M:%SZ}"

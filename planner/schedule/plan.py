"""The answer to a schedule: one plan per point of the front, as plain frozen records and as JSON.

Money is Decimal here and text in JSON; moments are UTC and RFC 3339 in JSON; hours are numbers in JSON. A
plan carries its own ledger: every payment with the moment it falls due. `cost.p50` is the exact sum of the
ledger, so whatever a report adds up by month, job or provider agrees with the plan to the last decimal.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Any, Literal

from planner import money
from planner.answer import SCHEMA_VERSION, Assumption, Cost, Excluded, Hours, PriceUsed, moment

Expenditure = Literal["capital", "operating", "prepaid", "disposal"]
Category = Literal[
    "compute",  # rented GPU hours, by any contract
    "commitment",  # what a promised spend costs, used or not
    "purchase",  # a rig bought
    "resale",  # a rig sold, less selling cost: negative
    "energy",  # electricity of owned rigs
    "hosting",  # colocation, cooling, space
    "staff",
    "maintenance",  # spares, wear
    "storage",
    "transfer",  # egress
    "tax",  # purchase tax that is not reclaimed
    "other",
]


@dataclass(frozen=True, slots=True)
class Payment:
    """One line of the ledger: amount = quantity × unit_price, exactly. [currency]

    due: when the money leaves (negative amounts: comes in). service_start, service_end: what it pays for;
        equal moments for something bought outright.
    expenditure: capital (a rig, booked and depreciated), operating (used as paid), prepaid (paid ahead of
        service, amortised over it) or disposal (a rig sold).
    job: id of the job, "" for what belongs to the whole project. project, team, tags: as in the schedule.
    provider: "own" for rigs. region: "" where there is none. hardware: instance or rig id. sku: the seller's,
        "" where unknown. purchase_model: a key of purchase_models.PURCHASE_MODELS, or "".
    list_amount: the same at list price (on demand), for what a commitment or spot saves; None: no list price.
    asset: names the rigs bought together ("rig-4x-rtx-4090@2027-01"), for purchase, resale and running cost.
    energy_kwh, co2_kg: of this line; None where unknown or none.
    price_ids: of SchedulePlan.prices that unit_price rests on. source: in words, where no price is stored.
    """

    due: datetime
    service_start: datetime
    service_end: datetime
    category: Category
    expenditure: Expenditure
    description: str
    job: str
    project: str
    team: str
    tags: Mapping[str, str]
    provider: str
    region: str
    hardware: str
    sku: str
    purchase_model: str
    quantity: Decimal
    unit: str
    unit_price: Decimal
    amount: Decimal
    list_amount: Decimal | None
    asset: str
    energy_kwh: Decimal | None
    co2_kg: Decimal | None
    price_ids: tuple[str, ...]
    source: str

    def to_json(self) -> dict[str, Any]:
        return {
            "due": moment(self.due),
            "service_start": moment(self.service_start),
            "service_end": moment(self.service_end),
            "category": self.category,
            "expenditure": self.expenditure,
            "description": self.description,
            "job": self.job,
            "project": self.project,
            "team": self.team,
            "tags": dict(self.tags),
            "provider": self.provider,
            "region": self.region,
            "hardware": self.hardware,
            "sku": self.sku,
            "purchase_model": self.purchase_model,
            "quantity": money.text(self.quantity),
            "unit": self.unit,
            "unit_price": money.text(self.unit_price),
            "amount": money.text(self.amount),
            "list_amount": _or_none(self.list_amount),
            "asset": self.asset,
            "energy_kwh": _or_none(self.energy_kwh),
            "co2_kg": _or_none(self.co2_kg),
            "price_ids": list(self.price_ids),
            "source": self.source,
        }


@dataclass(frozen=True, slots=True)
class Purchase:
    """Rigs bought together. unit_price: of one, all parts and tax. [currency]

    ordered, usable: moments; lead time lies between. resale_each: expected at `sold`, less selling cost;
    None: kept past the horizon at no value. life_months: for depreciation.
    """

    asset: str
    rig: str
    count: int
    ordered: datetime
    usable: datetime
    unit_price: Decimal
    sold: datetime | None
    resale_each: Decimal | None
    life_months: int

    def to_json(self) -> dict[str, Any]:
        return {
            "asset": self.asset,
            "rig": self.rig,
            "count": self.count,
            "ordered": moment(self.ordered),
            "usable": moment(self.usable),
            "unit_price": money.text(self.unit_price),
            "sold": moment(self.sold),
            "resale_each": _or_none(self.resale_each),
            "life_months": self.life_months,
        }


@dataclass(frozen=True, slots=True)
class CommitmentHeld:
    """An hourly spend promised. level: [currency/h]. used_share: of what it covers over the term. [0, 1]

    held: whether it was there before the plan; then nothing more is paid for it here.
    """

    id: str
    provider: str
    kind: str
    level: Decimal
    discount: Decimal
    start: datetime
    end: datetime
    used_share: float
    held: bool

    def to_json(self) -> dict[str, Any]:
        return {
            "id": self.id,
            "provider": self.provider,
            "kind": self.kind,
            "level_per_hour": money.text(self.level),
            "discount": float(self.discount),
            "start": moment(self.start),
            "end": moment(self.end),
            "used_share": self.used_share,
            "held": self.held,
        }


@dataclass(frozen=True, slots=True)
class JobPlan:
    """How and when one run is done.

    option: its id. detail: the whole PlanOption as JSON (cost and time lines, memory, throughput, prices).
    cost: what the run adds by itself, without its share of rigs bought. [currency] hours: wall time. [h]
    """

    id: str
    workload: str
    project: str
    team: str
    tags: Mapping[str, str]
    option: str
    provider: str
    hardware: str
    count: int
    gpu: str
    gpu_count: int
    purchase_model: str
    region: str
    release: datetime
    deadline: datetime | None
    start: datetime
    end: datetime
    hours: Hours
    cost: Cost
    energy_kwh: Decimal | None
    co2_kg: Decimal | None
    predecessors: tuple[str, ...]
    detail: Mapping[str, Any]

    def to_json(self) -> dict[str, Any]:
        return {
            "id": self.id,
            "workload": self.workload,
            "project": self.project,
            "team": self.team,
            "tags": dict(self.tags),
            "option": self.option,
            "provider": self.provider,
            "hardware": self.hardware,
            "count": self.count,
            "gpu": self.gpu,
            "gpu_count": self.gpu_count,
            "purchase_model": self.purchase_model,
            "region": self.region,
            "release": moment(self.release),
            "deadline": moment(self.deadline),
            "start": moment(self.start),
            "end": moment(self.end),
            "time_hours": self.hours.to_json(),
            "cost": self.cost.to_json(),
            "energy_kwh": _or_none(self.energy_kwh),
            "co2_kg": _or_none(self.co2_kg),
            "predecessors": list(self.predecessors),
            "detail": dict(self.detail),
        }


@dataclass(frozen=True, slots=True)
class ScheduleRisk:
    """Of the simulation. on_time: chance that every job keeps its deadline; None where none has one. [0, 1]

    in_budget: None without a budget. cvar95: mean of the dearest 5 % of draws. [currency]
    not_separable_from: points of the front whose 80 % band of cost overlaps this one's at the same draws.
    """

    draws: int
    on_time: float | None
    in_budget: float | None
    cvar95: Decimal
    finish_p10: datetime
    finish_p90: datetime
    not_separable_from: tuple[int, ...] = ()

    def to_json(self) -> dict[str, Any]:
        return {
            "draws": self.draws,
            "on_time": self.on_time,
            "in_budget": self.in_budget,
            "cost_cvar95": money.text(self.cvar95),
            "finish_p10": moment(self.finish_p10),
            "finish_p90": moment(self.finish_p90),
            "not_separable_from": list(self.not_separable_from),
        }


@dataclass(frozen=True, slots=True)
class PlanPoint:
    """One plan of the front. point: 1 is the cheapest. cost.p50 is the exact sum of `ledger`. [currency]

    kind: cloud (nothing owned is used), owned (nothing is rented) or hybrid.
    time_hours: the objective's value: hours from the start of the schedule to the last finish, or the largest
        turnaround or lateness. finish: of the last job, placed hour by hour.
    late_hours: largest lateness against the jobs' deadlines; 0 where all are kept. [h]
    present_value: of the ledger at the schedule's discount rate; equals cost.p50 at rate 0. [currency]
    gap: share of the cost not proven to be needed. proven: whether the solver ended by itself.
    meets_limits: deadlines and budgets kept at the schedule's percentile.
    """

    point: int
    kind: Literal["cloud", "hybrid", "owned"]
    cost: Cost
    present_value: Decimal
    cash_upfront: Decimal
    finish: datetime
    time_hours: Hours
    late_hours: float
    energy_kwh: Decimal | None
    co2_kg: Decimal | None
    gap: float
    proven: bool
    meets_limits: bool
    purchases: tuple[Purchase, ...]
    commitments: tuple[CommitmentHeld, ...]
    jobs: tuple[JobPlan, ...]
    ledger: tuple[Payment, ...]
    risk: ScheduleRisk
    notes: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        return {
            "point": self.point,
            "kind": self.kind,
            "cost": self.cost.to_json(),
            "present_value": money.text(self.present_value),
            "cash_upfront": money.text(self.cash_upfront),
            "finish": moment(self.finish),
            "time_hours": self.time_hours.to_json(),
            "late_hours": self.late_hours,
            "energy_kwh": _or_none(self.energy_kwh),
            "co2_kg": _or_none(self.co2_kg),
            "gap": self.gap,
            "proven": self.proven,
            "meets_limits": self.meets_limits,
            "purchases": [purchase.to_json() for purchase in self.purchases],
            "commitments": [held.to_json() for held in self.commitments],
            "jobs": [job.to_json() for job in self.jobs],
            "risk": self.risk.to_json(),
            "ledger": [payment.to_json() for payment in self.ledger],
            "notes": list(self.notes),
        }


@dataclass(frozen=True, slots=True)
class SchedulePlan:
    """The whole answer. front: cheapest first, each faster than the one before.

    starts: start of month 0; ends: end of the last month. time_zone: in which months begin (IANA name).
    chosen: the point to book unless another is asked for: the cheapest that meets the limits, if any does.
    schedule: the schedule file as validated, as plain values, so that a plan can be made again.
    """

    name: str
    as_of: datetime
    snapshot: str
    currency: str
    seed: int
    objective: str
    starts: datetime
    ends: datetime
    time_zone: str
    discount_rate: Decimal
    limits: Mapping[str, str]
    schedule: Mapping[str, Any]
    front: tuple[PlanPoint, ...]
    chosen: int | None
    prices: tuple[PriceUsed, ...]
    excluded: tuple[Excluded, ...]
    assumptions: tuple[Assumption, ...]
    warnings: tuple[str, ...]

    @property
    def oldest_price(self) -> datetime | None:
        """When the oldest price of any point was observed."""
        return min((used.observed_at for used in self.prices), default=None)

    def to_json(self, created_at: datetime | None = None) -> dict[str, Any]:
        """Plain values, always the same for the same plan. created_at is written only when given."""
        body: dict[str, Any] = {"schema_version": SCHEMA_VERSION, "kind": "schedule"}
        if created_at is not None:
            body["created_at"] = moment(created_at)
        return body | {
            "name": self.name,
            "as_of": moment(self.as_of),
            "snapshot": self.snapshot,
            "currency": self.currency,
            "seed": self.seed,
            "objective": self.objective,
            "starts": moment(self.starts),
            "ends": moment(self.ends),
            "time_zone": self.time_zone,
            "discount_rate": float(self.discount_rate),
            "limits": dict(self.limits),
            "schedule": dict(self.schedule),
            "front": [point.to_json() for point in self.front],
            "chosen": self.chosen,
            "prices": [used.to_json() for used in self.prices],
            "excluded": [excluded.to_json() for excluded in self.excluded],
            "assumptions": [assumption.to_json() for assumption in self.assumptions],
            "warnings": list(self.warnings),
            "oldest_price": moment(self.oldest_price),
        }


def _or_none(amount: Decimal | None) -> str | None:
    return None if amount is None else money.text(amount)

"""From how much use on owning a rig is cheaper than renting, for one workload.

Owning costs what stands still (the purchase as an annuity less its resale, idle power, upkeep, staff) and
what an hour of work adds (power at load above idle). Renting costs what the same runs cost on the machine
compared with, so that speed, start-up, billing steps and interruptions are in it. Break-even utilization:

    u* = fixed per rig-year / (8760 h × (rented cost of what the rig does in an hour − added power))

which is tco.break_even_utilization with q = GPU-hours rented for each GPU-hour of the rig. A rig works as it
does most: all its cards on one run, or a run on each card.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from . import money, tco
from .answer import SCHEMA_VERSION, moment
from .assumptions import HOURS_PER_YEAR
from .errors import NoPrice, UsageError
from .ownership import parts_of, purchase_price, residual_value, rig_decay, upkeep_per_year
from .request import OptimizeRequest

if TYPE_CHECKING:
    from .answer import Hours, PlanOption
    from .models.hardware.catalogue import Rig
    from .plan import Plan
    from .planning import Planning
    from .terms import Terms

REFERENCE = "bert-base"
"""The workload of `planner breakeven` where none is named."""

_RENTED = ("on_demand", "spot", "community", "reserved")
_KW = Decimal(1000)


@dataclass(frozen=True, slots=True)
class Owning:
    """One rig. price: of all parts. resale: at the end of its life, less selling cost. [currency]

    fixed_per_year: annuity, idle power, upkeep, staff. [currency/y] added_per_hour: power at load above idle.
    [currency/h] runs_at_once: 1, or one on each card. hours_per_run: of the rig for each run: the hours of
    one / runs_at_once; low, high: its 80 % range. [h]
    """

    rig: str
    gpu_count: int
    price: Decimal
    resale: Decimal
    life_years: Decimal
    fixed_per_year: Decimal
    added_per_hour: Decimal
    runs_at_once: int
    hours_per_run: Decimal
    hours_low: Decimal
    hours_high: Decimal


@dataclass(frozen=True, slots=True)
class Compared:
    """Owning against one way of renting.

    throughput_ratio: q, GPU-hours of the rented machine for each of the rig. price_per_gpu_hour: rented.
    utilization, utilization_low, utilization_high: u*, and at the fast and slow ends of q; None: never.
    hours_per_year, runs_per_year: at u*. payback_runs: runs until what is saved has paid the rig, nothing
    sold, no interest; None: never. never: why not, "" otherwise.
    """

    option: PlanOption
    throughput_ratio: float
    ratio_low: float
    ratio_high: float
    price_per_gpu_hour: Decimal
    cost_per_run: Decimal
    utilization: Decimal | None
    utilization_low: Decimal | None
    utilization_high: Decimal | None
    hours_per_year: Decimal | None
    runs_per_year: Decimal | None
    payback_runs: int | None
    never: str

    def to_json(self) -> dict[str, Any]:
        def share(value: Decimal | None) -> float | None:
            return None if value is None else round(float(value), 6)

        return {
            "option": self.option.id,
            "provider": self.option.provider,
            "hardware": self.option.hardware,
            "count": self.option.count,
            "purchase_model": self.option.purchase_model,
            "region": self.option.region,
            "cost_per_run": money.text(self.cost_per_run),
            "price_per_gpu_hour": money.text(self.price_per_gpu_hour),
            "throughput_ratio": round(self.throughput_ratio, 4),
            "throughput_ratio_low": round(self.ratio_low, 4),
            "throughput_ratio_high": round(self.ratio_high, 4),
            "utilization": share(self.utilization),
            "utilization_low": share(self.utilization_low),
            "utilization_high": share(self.utilization_high),
            "hours_per_year": share(self.hours_per_year),
            "runs_per_year": share(self.runs_per_year),
            "payback_runs": self.payback_runs,
            "never": self.never,
            "prices": [used.to_json() for used in self.option.prices],
        }


@dataclass(frozen=True, slots=True)
class BreakEven:
    """Owning one rig for one workload, against each way of renting. notes: what was taken as true."""

    plan: Plan
    owning: Owning
    compared: tuple[Compared, ...]
    notes: tuple[str, ...]

    def to_json(self) -> dict[str, Any]:
        own = self.owning
        return {
            "schema_version": SCHEMA_VERSION,
            "kind": "breakeven",
            "as_of": moment(self.plan.as_of),
            "currency": self.plan.currency,
            "job": self.plan.job.to_json(),
            "rig": {
                "id": own.rig,
                "gpu_count": own.gpu_count,
                "price": money.text(own.price),
                "resale_at_end_of_life": money.text(own.resale),
                "life_years": float(own.life_years),
                "fixed_per_year": money.text(own.fixed_per_year),
                "added_per_hour": money.text(own.added_per_hour),
                "runs_at_once": own.runs_at_once,
                "rig_hours_per_run": float(own.hours_per_run),
            },
            "against": [each.to_json() for each in self.compared],
            "assumptions": list(self.notes),
        }


def breakeven(hardware: str, model: str | None, against: str | None, values: Mapping[str, Any]) -> BreakEven:
    """See planner.breakeven."""
    from .api import planning_of
    from .models.errors import ModelsError
    from .models.hardware import catalogue
    from .planning import make_plan, terms_of

    try:
        rig = catalogue.rig(hardware)
    except ModelsError as error:
        raise UsageError(f"hardware = {hardware}: {error}", "hardware") from error
    planning = planning_of(OptimizeRequest.of(model=model or REFERENCE, **values))
    plan = make_plan(planning)
    terms = terms_of(planning)
    bought = _cheapest(o for o in plan.options if o.hardware == rig.id and o.purchase_model == "amortised")
    if bought is None:
        raise NoPrice(_why_not(rig, plan))
    own = _owning(rig, _hardest_worked(rig, bought, planning), terms)
    rented = [o for o in plan.options if o.purchase_model in _RENTED and o.provider != "own"]
    chosen = _named(rented, against) if against is not None else _of_each_kind(rented)
    if not chosen:
        raise NoPrice("nothing that could run this can be rented at a stored price")
    ordered = sorted(chosen, key=lambda option: (option.cost.p50, option.id))
    return BreakEven(
        plan, own, tuple(_against(own, option) for option in ordered), _notes(plan, terms, model)
    )


def _cheapest(options: Iterable[PlanOption]) -> PlanOption | None:
    return min(options, key=lambda option: (option.cost.p50, option.id), default=None)


def _why_not(rig: Rig, plan: Plan) -> str:
    why = next(
        (each.reason for each in plan.excluded if each.id == rig.id), "it has no price, or was filtered out"
    )
    return f"{rig.id} cannot be bought for this run: {why}"


def _named(rented: Iterable[PlanOption], name: str) -> list[PlanOption]:
    """The cheapest of each way of renting that machine or card. Raises UsageError naming the nearest."""
    from .models.errors import nearest_names
    from .models.hardware import catalogue

    rented = list(rented)
    cards = {card.id for card in catalogue.candidates(name)}
    found = [option for option in rented if name == option.hardware or option.gpu in cards]
    if not found:
        near = nearest_names(name, sorted({option.hardware for option in rented}), limit=1)
        hint = f'. Did you mean "{near[0]}"?' if near else ""
        raise UsageError(f"against = {name}: no rented option of this run is on it{hint}", "against")
    return _of_each_kind(found)


def _of_each_kind(rented: Iterable[PlanOption]) -> list[PlanOption]:
    best: dict[str, PlanOption] = {}
    for option in sorted(rented, key=lambda option: (option.cost.p50, option.id)):
        best.setdefault(option.purchase_model, option)
    # A term of months bought for one run says nothing of many runs.
    return [option for model, option in best.items() if model != "reserved"]


def _hardest_worked(rig: Rig, whole: PlanOption, planning: Planning) -> tuple[Hours, int]:
    """(rig-hours of a run, runs at once) of the way of working that does more of them."""
    from .answer import Hours
    from .errors import PlannerError
    from .planning import make_plan

    machine = next(each for each in planning.machines if each.id == rig.id)
    one = replace(machine, gpu_count=1, link="none")
    count = Decimal(rig.gpu_count)
    try:
        single = _cheapest(make_plan(replace(planning, machines=[one])).options)
    except PlannerError:  # it does not fit on one card, or not in time
        single = None
    if single is None or rig.gpu_count == 1 or single.time_hours.p50 / count >= whole.time_hours.p50:
        return whole.time_hours, 1
    hours = single.time_hours
    each = (money.quantity(money.divided(end, count)) for end in (hours.p10, hours.p50, hours.p90))
    return Hours(*each), rig.gpu_count


def _owning(rig: Rig, work: tuple[Hours, int], terms: Terms) -> Owning:
    parts = parts_of(rig, terms)
    assert parts is not None  # an amortised option has been priced
    price, life = purchase_price(parts), Decimal(str(rig.life_years))
    resale = money.price(residual_value(price, rig_decay(rig, terms).per_year, life, terms))
    tariff = Decimal(0) if terms.tariff is None else terms.tariff.price
    idle_kw, load_kw = Decimal(str(rig.idle_watts)) / _KW, Decimal(str(rig.load_watts)) / _KW
    standing = tco.operating_cost_per_year(
        electricity_price=tariff,
        pue=terms.pue,
        utilization=Decimal(0),
        load_kw=load_kw,
        idle_kw=idle_kw,
        maintenance=upkeep_per_year(rig, parts, terms),
        staff=terms.assume["staff_cost_per_rig_year"],
    )
    discount = terms.assume["discount_rate_per_year"]
    return Owning(
        rig=rig.id,
        gpu_count=rig.gpu_count,
        price=price,
        resale=resale,
        life_years=life,
        fixed_per_year=money.price(tco.equivalent_annual_cost(price, resale, discount, life, standing)),
        added_per_hour=money.price(tariff * terms.pue * (load_kw - idle_kw)),
        runs_at_once=work[1],
        hours_per_run=work[0].p50,
        hours_low=work[0].p10,
        hours_high=work[0].p90,
    )


def _against(own: Owning, option: PlanOption) -> Compared:
    """The formula at the head of this module, and the same at both ends of the ratio's band."""
    rented_hours = money.divided(option.cost.p50, own.hours_per_run)
    utilization = _utilization(own, rented_hours)
    low, high = _band(own, option)
    payback = tco.payback_periods(own.price, option.cost.p50, own.added_per_hour * own.hours_per_run)
    gpu_hours = float(option.time_hours.p50) * option.gpu_count
    ratio = gpu_hours / (float(own.hours_per_run) * own.gpu_count)
    hours = None if utilization is None else utilization * HOURS_PER_YEAR
    possible = utilization is not None and utilization <= 1
    never = "" if possible else "renting costs less even if the rig never rests"
    if payback is None:
        never = "the rig's power alone costs more than renting"
    return Compared(
        option=option,
        throughput_ratio=ratio,
        ratio_low=ratio * low,
        ratio_high=ratio * high,
        price_per_gpu_hour=money.price(money.divided(option.cost.p50, Decimal(str(gpu_hours)))),
        cost_per_run=option.cost.p50,
        utilization=utilization,
        utilization_low=_utilization(own, rented_hours * Decimal(str(high))),
        utilization_high=_utilization(own, rented_hours * Decimal(str(low))),
        hours_per_year=None if hours is None else money.quantity(hours),
        runs_per_year=None if hours is None else money.quantity(money.divided(hours, own.hours_per_run)),
        payback_runs=None if payback is None else math.ceil(payback),
        never=never,
    )


def _utilization(own: Owning, rented_per_hour: Decimal) -> Decimal | None:
    """u* of the whole rig: ratio and GPU count are in what the rented machine costs for its hour."""
    return tco.break_even_utilization(
        fixed_per_gpu_year=own.fixed_per_year,
        cloud_price_per_gpu_hour=rented_per_hour,
        throughput_ratio=Decimal(1),
        energy_price_per_gpu_hour=own.added_per_hour,
    )


def _band(own: Owning, option: PlanOption) -> tuple[float, float]:
    """Factors of the ratio at the ends of its 80 % band: two speeds, wrong independently of each other."""

    def side(own_end: Decimal, rented_end: Decimal) -> float:
        a = math.log(float(own_end) / float(own.hours_per_run))
        b = math.log(float(rented_end) / float(option.time_hours.p50))
        return math.hypot(a, b)

    hours = option.time_hours
    return math.exp(-side(own.hours_high, hours.p10)), math.exp(side(own.hours_low, hours.p90))


def _notes(plan: Plan, terms: Terms, model: str | None) -> tuple[str, ...]:
    found = [] if model else [f"no --model was given: {REFERENCE} and its reference run stand for the work"]
    assume = terms.assume
    found += [
        f"discount rate {assume['discount_rate_per_year']:f} a year",
        f"PUE {terms.pue:f}, electricity "
        + ("unknown and left out" if terms.tariff is None else f"{money.text(terms.tariff.price)} a kWh"),
        f"staff {assume['staff_cost_per_rig_year']:f} a rig-year",
        "payback runs: until savings have paid the rig; nothing sold, no interest, no upkeep",
        "every hour of work is of this workload; a rig that is full runs nothing else",
    ]
    return (*found, *(warning for warning in plan.warnings if "staff" not in warning))

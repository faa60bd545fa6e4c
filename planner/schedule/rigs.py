"""The rigs of a schedule: what one costs to have from each month on, exactly and as numbers to decide by."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal
from functools import cached_property

from planner import money
from planner.assumptions import MONTHS_PER_YEAR
from planner.errors import UsageError
from planner.market import Market
from planner.models.errors import ModelsError
from planner.models.hardware import catalogue
from planner.optimizer.problem import RigType
from planner.own_rigs import AtHand, at_hand
from planner.ownership import Decay, PartPrice, parts_of, purchase_price, residual_value, rig_decay
from planner.terms import Terms

from .dates import Calendar
from .file import ScheduleFile
from .options import converted


@dataclass(frozen=True, slots=True)
class RigCost:
    """One rig type. parts: what it is bought as, () for one that is only at hand. life_months: as catalogued.

    yearly, monthly: staff and hosting of one. cooling: of one, once. [currency]
    """

    rig: catalogue.Rig
    parts: tuple[PartPrice, ...]
    price: Decimal
    tax: Decimal
    cooling: Decimal
    monthly: Decimal
    at_hand: int
    may_buy: int
    lead: Decimal

    @property
    def paid(self) -> Decimal:
        """For one rig, once: parts, tax, cooling. [currency]"""
        return money.total((self.price, self.tax, self.cooling))

    @property
    def life_months(self) -> int:
        return round(float(self.rig.life_years) * 12)


@dataclass(frozen=True)
class Rigs:
    """All rig types of a schedule, in the order of Problem.rigs."""

    costs: tuple[RigCost, ...]
    calendar: Calendar
    terms: Terms
    sell: bool
    discount_rate: Decimal

    @cached_property
    def index(self) -> Mapping[str, int]:
        """Rig id -> its place."""
        return {cost.rig.id: place for place, cost in enumerate(self.costs)}

    @cached_property
    def types(self) -> tuple[RigType, ...]:
        """As numbers."""
        months = range(self.calendar.months)
        return tuple(
            RigType(
                id=cost.rig.id,
                net_cost=tuple(self._net(cost, month) for month in months),
                at_hand=cost.at_hand,
                most=cost.at_hand + cost.may_buy,
                watts=float(cost.rig.load_watts),
            )
            for cost in self.costs
        )

    @property
    def fixed_by_month(self) -> tuple[Decimal, ...]:
        """What rigs at hand cost whatever is decided: hosting and staff. [currency]"""
        each = money.total(money.product(cost.monthly, Decimal(cost.at_hand)) for cost in self.costs)
        return (each,) * self.calendar.months

    def resale(self, cost: RigCost, month: int) -> Decimal:
        """What one bought for that month fetches when the schedule ends, less selling cost; 0 where kept."""
        if not self.sell:
            return money.ZERO
        decay = self.decay(cost).per_year
        return money.price(residual_value(cost.price, decay, self.years(month), self.terms))

    def decay(self, cost: RigCost) -> Decay:
        """How fast its resale value falls."""
        return rig_decay(cost.rig, self.terms)

    def years(self, month: int) -> Decimal:
        """From that month to the schedule's end. [y]"""
        return Decimal(self.calendar.months - month) / MONTHS_PER_YEAR

    def ordered(self, cost: RigCost, month: int) -> datetime:
        """When it must be ordered to work from that month on."""
        return self.calendar.edges[month] - timedelta(hours=float(cost.lead))

    def _net(self, cost: RigCost, month: int) -> float | None:
        if not cost.may_buy or self.calendar.edge_hours[month] + 1e-6 < float(cost.lead):
            return None
        left = self.calendar.months - month
        kept = sum(float(cost.monthly) * self._factor(month + later) for later in range(left))
        sold = float(self.resale(cost, month)) * self._factor(self.calendar.months)
        return float(cost.paid) * self._factor(month) + kept - sold

    def _factor(self, month: int) -> float:
        """Present value of 1 in that month."""
        return math.exp(-math.log1p(float(self.discount_rate)) * month / 12)


def rigs_of(file: ScheduleFile, calendar: Calendar, terms: Terms) -> Rigs:
    """Raises UsageError for a rig that may be bought but has a part without a price."""
    counts: dict[str, list[int]] = {}
    leads: dict[str, Decimal] = {}
    for rig in file.hardware.at_hand:
        counts.setdefault(_rig(rig.rig).id, [0, 0])[0] += rig.count
    for buy in file.hardware.may_buy:
        name = _rig(buy.rig).id
        counts.setdefault(name, [0, 0])[1] += buy.most
        leads[name] = max(leads.get(name, Decimal(0)), buy.lead_time)
    found = [
        _cost(_rig(name), have, buy, leads.get(name, Decimal(0)), file, terms)
        for name, (have, buy) in counts.items()
    ]
    return Rigs(tuple(found), calendar, terms, file.hardware.sell_at_end, file.costs.discount_rate)


def _cost(
    rig: catalogue.Rig, have: int, buy: int, lead: Decimal, file: ScheduleFile, terms: Terms
) -> RigCost:
    parts: Sequence[PartPrice] = parts_of(rig, terms) or ()
    if buy and not parts:
        why = next((each.reason for each in terms.market.excluded if each.id == rig.id), "no price is stored")
        raise UsageError(f"hardware.may_buy: {rig.id}: {why}", "hardware")
    price = purchase_price(parts)
    costs = file.costs
    yearly = converted(costs.staff, file, "costs.staff") or money.ZERO
    hosting = converted(costs.hosting, file, "costs.hosting") or money.ZERO
    return RigCost(
        rig=rig,
        parts=tuple(parts),
        price=price,
        tax=money.price(price * costs.purchase_tax),
        cooling=converted(costs.cooling.cost, file, "costs.cooling.cost") or money.ZERO,
        monthly=money.price(money.divided(yearly, Decimal(MONTHS_PER_YEAR)) + hosting),
        at_hand=have,
        may_buy=buy,
        lead=lead,
    )


def known_rigs(names: Iterable[str]) -> None:
    """Raises UsageError for a name that no rig of the catalogue has."""
    for name in names:
        _rig(name)


def owned_of(counts: Mapping[str, int], market: Market) -> AtHand:
    """Every rig there could be, as many as there could be. Raises UsageError for an unknown one."""
    named = at_hand([_rig(name).id for name in counts], market)
    merged: dict[str, int] = {}
    for name, count in counts.items():
        merged[_rig(name).id] = merged.get(_rig(name).id, 0) + count
    return AtHand(named.machines, merged, named.rates)


def _rig(name: str) -> catalogue.Rig:
    try:
        return catalogue.rig(name)
    except ModelsError as error:
        raise UsageError(f"hardware: {error}", "hardware") from error

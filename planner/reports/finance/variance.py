"""Plan against bill: by month, seller, region and machine, and how much of the gap is price or volume."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from decimal import Decimal

from planner import money
from planner.errors import UsageError

from .accrual import Accrual
from .actual import Billed
from .cash import fiscal
from .charges import charges_of
from .months import Month, month_of
from .table import Row, Table, columns

Key = tuple[Month, str, str, str, str]


@dataclass(slots=True)
class Side:
    """amount: [currency]. hours: of machines, by the rows that tell them. [h]"""

    amount: Decimal = money.ZERO
    hours: Decimal = money.ZERO

    def add(self, amount: Decimal, hours: Decimal | None) -> None:
        self.amount = money.total((self.amount, amount))
        if hours is not None:
            self.hours += hours


@dataclass(frozen=True)
class Bill:
    """A bill added up. detailed: the sellers whose rows name machines; located: those that name regions."""

    sides: dict[Key, Side]
    months: frozenset[tuple[str, Month]]
    detailed: frozenset[str]
    located: frozenset[str]


def bill_of(rows: Iterable[Billed], accrual: Accrual) -> Bill:
    """Raises UsageError where a row is in another currency: two of them in one total say nothing."""
    zone, currency = accrual.book.zone, accrual.book.currency
    sides: defaultdict[Key, Side] = defaultdict(Side)
    detailed, located = set(), set()
    for row in rows:
        if row.currency != currency:
            raise UsageError(
                f"the bill is in {row.currency}, the plan in {currency}: plan again with --currency "
                f"{row.currency}",
                "actual",
            )
        key = (month_of(row.at, zone), row.provider, row.region, row.hardware, row.category)
        sides[key].add(row.amount, row.quantity)
        if row.hardware:
            detailed.add(row.provider)
        if row.region:
            located.add(row.provider)
    months = frozenset((key[1], key[0]) for key in sides)
    return Bill(dict(sides), months, frozenset(detailed), frozenset(located))


def variance(accrual: Accrual, bill: Bill) -> Table:
    planned = _planned(accrual, bill)

    def rows() -> Iterator[Row]:
        step = accrual.book.step
        for key in sorted({*planned, *bill.sides}):
            month, provider, region, hardware, category = key
            forecast = planned.get(key, Side())
            told = (
                month.first_day, *fiscal(month, accrual), provider, region or None, hardware or None,
                category, forecast.amount,
            )  # fmt: skip
            if (provider, month) not in bill.months:
                yield *told, None, None, None, None, None, None, forecast.hours or None, None
                continue
            actual = bill.sides.get(key, Side())
            gap = money.total((actual.amount, -forecast.amount))
            share = money.quantity(money.divided(gap, forecast.amount)) if forecast.amount else None
            effects = _effects(forecast, actual, gap, step)
            yield *told, actual.amount, gap, share, *effects, forecast.hours or None, actual.hours or None

    return Table(
        "variance", "Plan against actual",
        "Billed less planned, as invoiced. PriceEffect + VolumeEffect + MixEffect = Variance; mix is what "
        "stands on one side only or tells no hours. Actual is empty where the file has no row of that seller "
        "and month.",
        columns(
            Month="date", FiscalYear="integer", FiscalPeriod="integer", Provider="text", Region="text",
            Hardware="text", ChargeCategory="text", Forecast="money", Actual="money", Variance="money",
            VarianceShare="number", PriceEffect="money", VolumeEffect="money", MixEffect="money",
            ForecastHours="number", ActualHours="number",
        ),
        rows,
    )  # fmt: skip


def _planned(accrual: Accrual, bill: Bill) -> dict[Key, Side]:
    """The plan's billed charges, no finer than the bill tells."""
    found: defaultdict[Key, Side] = defaultdict(Side)
    billed = {provider for provider, _ in bill.months}
    for charge in charges_of(accrual):
        line = charge.line
        if line is None or not charge.billed:
            continue
        known = line.provider in billed
        region = line.region if not known or line.provider in bill.located else ""
        hardware = line.hardware if not known or line.provider in bill.detailed else ""
        hours = line.quantity if line.unit == "instance-hour" and charge.category == "Usage" else None
        key = (charge.month, line.provider, region, hardware, charge.category)
        found[key].add(charge.billed, hours)
    return dict(found)


def _effects(forecast: Side, actual: Side, gap: Decimal, step: Decimal) -> tuple[Decimal, Decimal, Decimal]:
    """(price, volume, mix); they add up to `gap`. Volume is counted at the planned price. [currency]"""
    if not forecast.hours or not actual.hours:
        return money.ZERO, money.ZERO, gap
    at_planned = money.divided(money.product(forecast.amount, actual.hours), forecast.hours)
    volume = money.quantity(at_planned - forecast.amount, step)
    return gap - volume, volume, money.ZERO

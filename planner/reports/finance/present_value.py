"""Payments at their value when the plan starts, and as an equal yearly cost."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from decimal import Decimal

from planner import money, tco

from .book import Line

# A year of discounting, as the plan's own present value counts it. [s]
_YEAR_SECONDS = Decimal(365 * 24 * 3600)


def growth(due: datetime, start: datetime, rate: Decimal) -> Decimal:
    """(1 + r)^years from `start` to `due`. [1]"""
    years = Decimal(int((due - start).total_seconds())) / _YEAR_SECONDS
    return Decimal((1 + rate) ** years)


def discounted(lines: Iterable[Line], start: datetime, rate: Decimal, step: Decimal) -> Decimal:
    """sum of amount / (1 + r)^years; at rate 0 the exact sum. [currency]"""
    if not rate:
        return money.total(line.amount for line in lines)
    known: dict[datetime, Decimal] = {}
    total = money.ZERO
    for line in lines:
        if line.due not in known:
            known[line.due] = growth(line.due, start, rate)
        total += line.amount / known[line.due]
    return money.quantity(total, max(step, money.QUANTITY_STEP))


def equivalent_annual_cost(present_value: Decimal, rate: Decimal, years: Decimal, step: Decimal) -> Decimal:
    """PV × r / (1 - (1 + r)^-L): the equal yearly payment over the plan's years. [currency/y]"""
    if years <= 0:
        return present_value
    return money.quantity(
        present_value * tco.capital_recovery_factor(rate, years), max(step, money.QUANTITY_STEP)
    )

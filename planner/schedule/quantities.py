"""Numbers with their unit, as a schedule file has them: "0.30 USD/kWh", "8 kW", "21d", "19 %".

A bare number that could be two things is refused: nobody should have to guess whether a price is per hour or
per month. Every function returns Decimal in the unit its name says, or raises ValueError with what is meant.
"""

from __future__ import annotations

import re
from datetime import UTC, date, datetime, time
from decimal import Decimal
from typing import Any
from zoneinfo import ZoneInfo

from planner.request import instant, number, span_hours

_AMOUNT = re.compile(r"^\s*([+-]?[\d_]*\.?\d+(?:[eE][+-]?\d{1,3})?)\s*(.*?)\s*$")
_WATTS = {"w": Decimal(1), "kw": Decimal(1000)}


def split(value: Any) -> tuple[Decimal, str]:
    """The number and its unit, "" without one."""
    if isinstance(value, bool):
        raise ValueError("must be a number with its unit")
    match = _AMOUNT.match(str(value))
    if not match:
        raise ValueError("must be a number with its unit")
    return number(match[1]), match[2]


def money_per(value: Any, per: tuple[str, ...], example: str) -> tuple[Decimal, str]:
    """(amount, currency) of text such as "0.30 USD/kWh"; per: spellings of what it is per, () for none."""
    amount, unit = split(value)
    currency, _, of = unit.replace(" per ", "/").partition("/")
    wanted = {spelling.casefold() for spelling in per} or {""}
    if not re.fullmatch(r"[A-Z]{3}", currency.strip()) or of.strip().casefold() not in wanted:
        raise ValueError(f'must be an amount with currency and unit, such as "{example}"')
    if amount < 0:
        raise ValueError("must not be negative")
    return amount, currency.strip()


def share(value: Any) -> Decimal:
    """A share from "19 %" or "0.19" as text or number below 1; a bare number of 1 or more is refused."""
    amount, unit = split(value)
    if unit == "%":
        amount = amount / 100
    elif unit or amount >= 1:
        raise ValueError('must be a share, such as "19 %" or 0.19')
    if not 0 <= amount < 1:
        raise ValueError("must lie between 0 and 100 %")
    return amount


def yearly_rate(value: Any) -> Decimal:
    """A rate per year from "6 %/y" or "6 % a year"."""
    amount, unit = split(value)
    if unit.replace(" ", "") not in ("%/y", "%/year", "%ayear", "%peryear"):
        raise ValueError('must be a rate a year, such as "6 %/y"')
    if not 0 <= amount <= 100:
        raise ValueError("must lie between 0 and 100 %/y")
    return amount / 100


def watts(value: Any) -> Decimal:
    """Watts from "8 kW" or "800 W"."""
    amount, unit = split(value)
    factor = _WATTS.get(unit.casefold())
    if factor is None or amount <= 0:
        raise ValueError('must be a power, such as "8 kW"')
    return amount * factor


def carbon(value: Any) -> Decimal:
    """Kilograms of CO2 per kWh from "0.35 kg/kWh" or "350 g/kWh"."""
    amount, unit = split(value)
    factor = {"kg/kwh": Decimal(1), "g/kwh": Decimal("0.001")}.get(unit.replace(" ", "").casefold())
    if factor is None or not 0 <= amount * factor <= 10:
        raise ValueError('must be CO2 per energy, such as "350 g/kWh"')
    return amount * factor


def moment_or_span(value: Any) -> datetime | date | Decimal:
    """A date, an instant with its time zone, or a span in hours ("3d")."""
    if isinstance(value, datetime):
        return instant(value)
    if isinstance(value, date):
        return value
    written = str(value).strip()
    if len(written) == 10 and written[4:5] == "-":
        try:
            return date.fromisoformat(written)
        except ValueError as error:
            raise ValueError('must be a date such as "2027-03-31"') from error
    if "T" in written or " " in written.strip():
        return instant(written)
    return span_hours(written)


def start_of(day: date, zone: ZoneInfo) -> datetime:
    """The first instant of that day there, in UTC."""
    return datetime.combine(day, time.min, zone).astimezone(UTC)

"""What an asset loses in value by month and by tax year: straight line, declining balance, MACRS.

Formulas and check values: financial accounting textbooks; IRS Publication 946, Tables A-1 to A-5.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import cache
from importlib.resources import files
from zoneinfo import ZoneInfo

from planner import money

from .book import Asset
from .months import MONTHS_A_YEAR, Month, month_of, split
from .policy import Policy

_LATE_SHARE = Decimal("0.40")


@dataclass(frozen=True, slots=True)
class TaxYear:
    """One asset in one tax year. share: of its cost, before a disposal cuts it. [1] amount: [currency]"""

    year: int
    convention: str
    share: Decimal
    amount: Decimal


@cache
def macrs_shares() -> Mapping[str, Sequence[Decimal]]:
    """Shares of the cost by tax year, 5-year property: half_year, mid_quarter_1 to mid_quarter_4."""
    table = tomllib.loads((files(__package__) / "data" / "macrs.toml").read_text(encoding="utf-8"))
    return {
        name: tuple(Decimal(percent) / 100 for percent in table[name]["percent"])
        for name in table
        if name != "source"
    }


def straight_line_monthly(cost: Decimal, salvage: Decimal, life_months: int, step: Decimal) -> list[Decimal]:
    """(P - S) / L each month; rounding the running sum makes them add up exactly. [currency]"""
    return split(cost - salvage, [Decimal(1)] * life_months, step)


def declining_balance_yearly(
    cost: Decimal, factor: Decimal, life_years: Decimal, years: int, step: Decimal
) -> list[Decimal]:
    """(k / L) × book value at the year's start, each year. [currency]

    >>> declining_balance_yearly(Decimal(10000), Decimal(2), Decimal(5), 3, Decimal("0.01"))
    [Decimal('4000.00'), Decimal('2400.00'), Decimal('1440.00')]
    """
    amounts, value = [], cost
    for _ in range(years):
        lost = money.quantity(money.divided(value * factor, life_years), step)
        amounts.append(lost)
        value -= lost
    return amounts


def monthly(asset: Asset, policy: Policy, zone: ZoneInfo, step: Decimal, convention: str) -> list[Decimal]:
    """By month from the month in service; a sold asset's end with the month of the sale. [currency]

    A month counts in full, that of entry and that of sale too. convention: of MACRS.
    """
    first = month_of(asset.in_service, zone)
    salvage = money.quantity(asset.cost * policy.salvage_share, step)
    if policy.depreciation == "straight_line":
        found = straight_line_monthly(asset.cost, salvage, asset.life_months, step)
    elif policy.depreciation == "declining_balance":
        found = _declining(asset, policy, salvage, step)
    else:
        found = _macrs_monthly(asset, policy, first, step, convention)
    return found if asset.sold is None else found[: month_of(asset.sold, zone).index - first.index + 1]


def _declining(asset: Asset, policy: Policy, salvage: Decimal, step: Decimal) -> list[Decimal]:
    """Never below the salvage value; what the method leaves at the end of life stays on the books."""
    years = -(-asset.life_months // MONTHS_A_YEAR)
    life = money.divided(Decimal(asset.life_months), Decimal(MONTHS_A_YEAR))
    left = asset.cost - salvage
    found: list[Decimal] = []
    for lost in declining_balance_yearly(asset.cost, policy.factor, life, years, step):
        months = min(MONTHS_A_YEAR, asset.life_months - len(found))
        part = money.quantity(money.divided(lost * months, Decimal(MONTHS_A_YEAR)), step)
        part = max(money.ZERO, min(part, left))
        found += split(part, [Decimal(1)] * months, step)
        left -= part
    return found


def _macrs_monthly(
    asset: Asset, policy: Policy, first: Month, step: Decimal, convention: str
) -> list[Decimal]:
    """Each tax year's share in equal parts over its months in service."""
    found: list[Decimal] = []
    shares = macrs_shares()[convention]
    amounts = split(asset.cost, list(shares), step)
    for amount in amounts:
        _, period = first.plus(len(found)).fiscal(policy.tax_year_start)
        found += split(amount, [Decimal(1)] * (MONTHS_A_YEAR + 1 - period), step)
    return found


def conventions(assets: Sequence[Asset], policy: Policy, zone: ZoneInfo) -> dict[str, str]:
    """Asset -> the table it depreciates by for tax: half_year, or mid_quarter_ and its quarter."""
    by_year: dict[int, list[tuple[Asset, int]]] = {}
    for asset in assets:
        year, period = month_of(asset.in_service, zone).fiscal(policy.tax_year_start)
        by_year.setdefault(year, []).append((asset, (period + 2) // 3))
    found = {}
    for entered in by_year.values():
        late = money.total(asset.cost for asset, quarter in entered if quarter == 4)
        mid_quarter = policy.convention == "mid_quarter" or (
            policy.convention == "auto" and late > _LATE_SHARE * money.total(a.cost for a, _ in entered)
        )
        for asset, quarter in entered:
            found[asset.id] = f"mid_quarter_{quarter}" if mid_quarter else "half_year"
    return found


def tax_years(asset: Asset, policy: Policy, zone: ZoneInfo, step: Decimal, convention: str) -> list[TaxYear]:
    """MACRS by tax year. The year of a sale gets the part that the convention leaves it; later ones nothing.

    An asset sold in the tax year it entered depreciates not at all.
    """
    first, _ = month_of(asset.in_service, zone).fiscal(policy.tax_year_start)
    shares = macrs_shares()[convention]
    amounts = split(asset.cost, list(shares), step)
    sold = None if asset.sold is None else month_of(asset.sold, zone).fiscal(policy.tax_year_start)
    found = []
    for number, (share, amount) in enumerate(zip(shares, amounts, strict=True)):
        year = first + number
        if sold is not None and year >= sold[0]:
            kept = _kept_in_year_of_sale(sold[1], convention) if number else money.ZERO
            if year == sold[0]:
                found.append(TaxYear(year, convention, share, money.quantity(amount * kept, step)))
            break
        found.append(TaxYear(year, convention, share, amount))
    return found


def _kept_in_year_of_sale(period: int, convention: str) -> Decimal:
    """Half a year; or to the middle of the quarter of the sale: 12.5, 37.5, 62.5 or 87.5 %. [1]"""
    if convention == "half_year":
        return Decimal("0.5")
    return (Decimal((period + 2) // 3) - Decimal("0.5")) / 4
